//! Dumps that RedisBloom made.

use std::path::Path;

use mayhap_command::Reply;
use serde_json::Value as Json;

use crate::keyspace::Keyspace;

fn bytes(name: &str) -> Vec<u8> {
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../mayhap-formats/tests/vectors/redisbloom").join(name);
    std::fs::read(&path).unwrap_or_else(|cause| panic!("{}: {cause}", path.display()))
}

fn text<'a>(case: &'a Json, field: &str) -> &'a str {
    case[field].as_str().unwrap_or_else(|| panic!("{field} is no text in {case}"))
}

fn unhex(hex: &str) -> Vec<u8> {
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
}

/// The items of a field, listed or generated.
fn items(case: &Json, field: &str) -> Vec<String> {
    if let Some(listed) = case[field].as_array() {
        let item = |value: &Json| value["item"].as_str().or(value.as_str()).unwrap().to_owned();
        return listed.iter().map(item).collect();
    }
    let generator = &case[format!("{field}_generator")];
    let (from, to) = (generator["from"].as_u64().unwrap(), generator["to_exclusive"].as_u64().unwrap());
    (from..to).map(|number| format!("{}{number}", text(generator, "prefix"))).collect()
}

/// Which of the probes RedisBloom took for members.
fn hits(case: &Json, probes: usize) -> Vec<bool> {
    if let Some(listed) = case["probes"].as_array() {
        return listed.iter().map(|probe| probe["contains"].as_bool().unwrap()).collect();
    }
    let mut hits = vec![false; probes];
    for offset in case["probe_false_positive_offsets"].as_array().unwrap() {
        hits[offset.as_u64().unwrap() as usize] = true;
    }
    hits
}

fn request(words: &[&str], items: &[String]) -> Vec<Vec<u8>> {
    words
        .iter()
        .map(|word| word.as_bytes().to_vec())
        .chain(items.iter().map(|item| item.as_bytes().to_vec()))
        .collect()
}

fn ask(keyspace: &mut Keyspace, words: &[Vec<u8>]) -> Reply {
    keyspace.ask(&words.iter().map(Vec::as_slice).collect::<Vec<_>>())
}

fn answers(reply: Reply) -> Vec<bool> {
    match reply {
        Reply::Booleans(answers) => answers.iter().collect(),
        Reply::Array(replies) => replies.iter().map(|reply| *reply == Reply::Boolean(true)).collect(),
        reply => panic!("{reply:?}"),
    }
}

/// Everything SCANDUMP says until it says 0.
fn dump(keyspace: &mut Keyspace, family: &str, name: &str) -> Vec<(i64, Vec<u8>)> {
    let (mut chunks, mut iterator) = (Vec::new(), 0);
    loop {
        let Reply::Array(reply) = keyspace.line(&format!("{family}.SCANDUMP {name} {iterator}")) else {
            panic!("a dump is an array")
        };
        match &reply[..] {
            [Reply::Integer(0), end] => {
                assert_eq!(*end, if family == "BF" { Reply::bulk("") } else { Reply::Null });
                return chunks;
            }
            [Reply::Integer(next), Reply::Bulk(chunk)] => {
                chunks.push((*next, chunk.clone()));
                iterator = *next;
            }
            other => panic!("{other:?}"),
        }
    }
}

/// Loads a dump, in this order, and compares every answer.
fn check(family: &str, body_field: &str, case: &Json) {
    let name = text(case, "name");
    let mut keyspace = Keyspace::default();
    let mut chunks = Vec::new();
    let body = bytes(text(case, body_field));
    let mut at = 0;
    for iterator in case["iterators"].as_array().unwrap() {
        let iterator = iterator.as_i64().unwrap();
        let end = usize::try_from(iterator - 1).unwrap();
        let chunk = if iterator == 1 { unhex(text(case, "header_hex")) } else { body[at..end].to_vec() };
        at = end;
        chunks.push((iterator, chunk));
    }
    let load = |keyspace: &mut Keyspace, name: &str, order: &[usize]| {
        for &index in order {
            let (iterator, chunk) = &chunks[index];
            let command = format!("{family}.LOADCHUNK");
            let iterator = iterator.to_string();
            let reply = keyspace.ask(&[command.as_bytes(), name.as_bytes(), iterator.as_bytes(), chunk]);
            assert_eq!(reply, Reply::Ok);
            if index != *order.last().unwrap() {
                let Reply::Refused(refusal) = keyspace.line(&format!("{family}.EXISTS {name} a")) else {
                    panic!("half of a filter says nothing")
                };
                assert!(refusal.to_string().starts_with("NOTREADY "));
            }
        }
    };
    let forth: Vec<usize> = (0..chunks.len()).collect();
    let back: Vec<usize> = [0].into_iter().chain((1..chunks.len()).rev()).collect();
    load(&mut keyspace, "loaded", &forth);
    load(&mut keyspace, "back", &back);

    let (members, probes) = (items(case, "items"), items(case, "probes"));
    let due = hits(case, probes.len());
    for loaded in ["loaded", "back"] {
        assert_eq!(dump(&mut keyspace, family, loaded), chunks, "{name}");
        let exists = format!("{family}.MEXISTS");
        let known = answers(ask(&mut keyspace, &request(&[&exists, loaded], &members)));
        assert!(known.iter().all(|&known| known), "{name}");
        let got = answers(ask(&mut keyspace, &request(&[&exists, loaded], &probes)));
        assert_eq!(got, due, "{name}: the same answers, the wrong ones included");
    }

    // The same commands make the same dump; of cuckoo filters as well, as long as the order of moves is RedisBloom's.
    let arguments: Vec<&str> =
        case["reserve_args"].as_array().unwrap().iter().map(|word| word.as_str().unwrap()).collect();
    let command = format!("{family}.RESERVE");
    let reserve = [&[&*command, "made"], &arguments[..]].concat();
    assert_eq!(ask(&mut keyspace, &request(&reserve, &[])), Reply::Ok);
    for item in &members {
        ask(&mut keyspace, &request(&[&format!("{family}.ADD"), "made"], std::slice::from_ref(item)));
    }
    assert_eq!(dump(&mut keyspace, family, "made"), chunks, "{name}");
    let Reply::Map(pairs) = keyspace.line(&format!("{family}.INFO made")) else { panic!("a map") };
    for (field, value) in pairs {
        let Reply::Simple(field) = field else { panic!("{field:?}") };
        let due = case["info"][&*field].as_i64().map_or(Reply::Null, Reply::Integer);
        assert_eq!(value, due, "{name}: {field}");
    }
    if family == "BF" {
        let all = request(&["BF.RESERVE", "many"], &[]);
        let all = [all, request(&arguments, &[])].concat();
        assert_eq!(ask(&mut keyspace, &all), Reply::Ok);
        ask(&mut keyspace, &request(&["BF.INSERT", "many", "ITEMS"], &members));
        assert_eq!(dump(&mut keyspace, family, "many"), chunks, "{name}: all at once");
    }
}

#[test]
fn dumps_load_answer_the_same_and_are_made_byte_for_byte() {
    for (family, file, body_field, least) in
        [("BF", "bf_scandump.json", "bits_file", 4), ("CF", "cf_scandump.json", "buckets_file", 2)]
    {
        let cases: Json = serde_json::from_slice(&bytes(file)).unwrap();
        let cases = cases["cases"].as_array().unwrap();
        assert!(cases.len() >= least);
        cases.iter().for_each(|case| check(family, body_field, case));
    }
}
