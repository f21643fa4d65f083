//! The seeds of the fuzz targets, made from golden files, the vectors of other programs, and the output of the code itself. `MAYHAP_WRITE_SEEDS=1`
//! (`just fuzz-seeds`) writes missing seeds; existing ones are never changed.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use mayhap_command::Reply;
use mayhap_engine::log::{Limits, Log, Policy, Salts};
use mayhap_engine::snapshot;
use mayhap_formats::{Format, Sniffed};
use mayhap_fuzz::folder::pack;
use mayhap_fuzz::payloads::{MAKERS, make};
use mayhap_fuzz::random::Random;
use mayhap_fuzz::resp::encode;
use mayhap_fuzz::world::{Memory, ask_line as run, engine};
use mayhap_server::Settings;

/// Larger files are not used as seeds: they slow the fuzzer down.
const MOST_BYTES: usize = 6_000;

fn here() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn keep(target: &str, name: &str, bytes: &[u8]) {
    let folder = here().join("../../fuzz/corpus").join(target);
    let path = folder.join(name);
    if std::env::var_os("MAYHAP_WRITE_SEEDS").is_some() && !path.exists() {
        fs::create_dir_all(&folder).unwrap();
        fs::write(&path, bytes).unwrap();
    }
    assert!(path.exists(), "{} is missing: `just fuzz-seeds` writes it", path.display());
}

/// Encodes a string for `Input::string`.
fn string(bytes: &[u8]) -> Vec<u8> {
    let mut out = u16::try_from(bytes.len()).unwrap().to_le_bytes().to_vec();
    out.extend_from_slice(bytes);
    out
}

#[test]
fn resp() {
    let pipeline = [&["PING"][..], &["BF.ADD", "seen", "a"], &["ECHO", ""], &["SET", "a b", "\r\n"]];
    let bytes: Vec<u8> = pipeline.iter().flat_map(|request| encode(request)).collect();
    for (name, bytes) in [
        ("pipeline", &bytes[..]),
        ("inline", b"set \"a b\" 'c' d\r\nPING\r\n\r\nECHO \"\\x41\\n\"\r\n"),
        ("too-many-words", b"*2147483648\r\n"),
        ("wrapped-count", b"*4294967296\r\n$4\r\nPING\r\n"),
        ("just-too-many-words", b"*1048577\r\n"),
        ("long-word", b"*1\r\n$4294967296\r\n"),
        ("negative", b"*-1\r\n*0\r\n*1\r\n$-1\r\n"),
        ("nested", b"*1\r\n*1\r\n*1\r\n*1\r\n$4\r\nPING\r\n"),
        ("stranger", b"*11\r\n$16385\r\n"),
    ] {
        keep("resp", name, &[&[0, 1, 7, 30], bytes].concat());
        keep("resp", &format!("{name}-stranger"), &[&[1, 1, 7, 30], bytes].concat());
    }
}

#[test]
fn commands() {
    for seed in 0..24 {
        let mut random = Random(seed);
        let bytes: Vec<u8> = (0..400).map(|_| random.next() as u8).collect();
        keep("commands", &format!("steps-{seed:02}"), &bytes);
    }
}

#[test]
fn snapshots() {
    let lines = [
        &["bf.add a x"][..],
        &["cf.add a x"],
        &["set a text"],
        &["mf.reserve a capacity 10", "mf.add a x"],
        &["mf.reserve a kind cuckoo capacity 10 fpr 0.1", "mf.add a x"],
        &["mf.reserve a kind window window 10 fpr 0.1", "mf.add a x"],
        &["bf.reserve a 0.5 2 expansion 1", "bf.madd a p q r s t u v", "pexpire a 100000", "set b text"],
        &[],
    ];
    for (number, lines) in lines.iter().enumerate() {
        let (engine, _) = engine();
        lines.iter().for_each(|line| drop(run(&engine, line)));
        let disk = Memory::default();
        snapshot::save(&engine, &disk).unwrap();
        let bytes = disk.get(snapshot::FILE).unwrap();
        assert!(bytes.len() < 2 * MOST_BYTES, "{lines:?}: {}", bytes.len());
        keep("snapshot", &format!("made-{number}"), &[&[1], &bytes[..]].concat());
    }
}

#[test]
fn folders() {
    /// The requests before a snapshot and those after it. The flag gives values of 64 bytes or more their own files.
    type Made = (bool, &'static [&'static str], &'static [&'static str]);
    let made: [Made; 9] = [
        (false, &["bf.add a x"], &["bf.add a y", "bf.madd a p q"]),
        (true, &["bf.add a x", "set b text"], &["bf.add a y", "del b"]),
        (true, &["cf.add a x", "cf.add a y"], &["cf.del a x", "cf.add b x"]),
        (false, &["mf.reserve a capacity 10", "mf.add a x"], &["mf.madd a y z", "rename a b"]),
        (
            true,
            &["mf.reserve a kind scalable capacity 2"],
            &["mf.madd a p q r s t", "copy a b", "mf.add b u"],
        ),
        (
            true,
            &["mf.reserve a kind window window 10 fpr 0.1", "mf.add a x"],
            &["mf.add a y", "pexpire a 100000"],
        ),
        (
            false,
            &["bf.reserve a 0.5 2 expansion 1"],
            &["bf.madd a p q r s t", "flushall", "set a 1", "setbit a 77 1"],
        ),
        (false, &[], &["set a text", "append a more", "mf.reserve c kind bitmap range 0 100", "mf.add c 7"]),
        (true, &["bf.add a x", "bf.add b y", "bf.add c z", "pexpire c 100000"], &[]),
    ];
    for (number, (own_files, before, behind)) in made.into_iter().enumerate() {
        let (engine, _) = engine();
        let disk = Memory::default();
        let limits = Limits { salts: Salts::Seeded(9), ..Limits::default() };
        engine.recover_quiet(Arc::new(disk.clone()), Policy::No, limits).unwrap();
        before.iter().for_each(|line| drop(run(&engine, line)));
        if !before.is_empty() {
            let large_bytes = if own_files { 64 } else { 4 << 20 };
            engine.begin_snapshot(&disk).unwrap().with_sizes(large_bytes, 100, 2).finish().unwrap();
        }
        behind.iter().for_each(|line| drop(run(&engine, line)));
        engine.log().unwrap().sync().unwrap();
        let packed = pack(&disk.files());
        assert!(packed.len() < 4 * MOST_BYTES, "{before:?}: {}", packed.len());
        keep("folder", &format!("made-{number}"), &[&[3], &packed[..]].concat());
    }
}

#[test]
fn logs() {
    for (number, records) in
        [&[][..], &[&b"a"[..]], &[b"a", b"", b"bb"], &[&[7; 300], b"x"]].iter().enumerate()
    {
        let disk = Memory::default();
        let limits = Limits { salts: Salts::Seeded(9), ..Limits::default() };
        let open =
            Log::open_quiet(Arc::new(disk.clone()), 0, Policy::No, limits, |_, _| Ok::<(), String>(()));
        let (log, _) = open.unwrap();
        for (index, record) in records.iter().enumerate() {
            let number = log.append(record);
            assert!(log.commit(number + 1).is_ok());
            if index == 1 {
                log.rotate().unwrap();
            }
        }
        log.sync().unwrap();
        drop(log);
        let mut bytes = vec![1, 0];
        disk.files().values().for_each(|file| bytes.extend(string(file)));
        keep("log", &format!("made-{number}"), &bytes);
        bytes[0] = 0;
        keep("log", &format!("raw-{number}"), &bytes);
    }
}

/// All files in a folder and its subfolders.
fn below(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => below(&path, files),
            false => files.push(path),
        }
    }
}

#[test]
fn formats() {
    let mut files = Vec::new();
    below(&here().join("../mayhap/tests/golden"), &mut files);
    below(&here().join("../mayhap-formats/tests/vectors"), &mut files);
    files.sort();
    let mut kept = vec![0; Format::ALL.len()];
    for file in files {
        let bytes = fs::read(&file).unwrap();
        if bytes.len() > MOST_BYTES {
            continue;
        }
        let formats = match Format::sniff(&bytes) {
            Sniffed::Is(format) => vec![format],
            Sniffed::CouldBe(formats) => formats,
            _ => continue,
        };
        for format in formats {
            let number = Format::ALL.iter().position(|&other| other == format).unwrap();
            // One golden file of every kind of ours, and a few of the others.
            if kept[number] >= if format == Format::Mayhap { 30 } else { 3 } {
                continue;
            }
            kept[number] += 1;
            let body = if format == Format::RedisDump { &bytes[..bytes.len() - 10] } else { &bytes[..] };
            let name = format!("{format}-{}", file.file_stem().unwrap().to_string_lossy());
            keep("formats", &name, &[&[number as u8, 1, 1], body].concat());
        }
    }
}

#[test]
fn payloads() {
    for (number, lines) in MAKERS.iter().enumerate() {
        let (engine, _) = engine();
        make(&engine, lines);
        let Reply::Bulk(payload) = run(&engine, "dump v") else { panic!("no dump") };
        keep("payloads", &format!("restore-{number}"), &[&[0], &payload[..payload.len() - 10]].concat());
        keep(
            "payloads",
            &format!("fields-{number}"),
            &[4, number as u8, 1, 20, 5, 130, 0, 0, 1, 0, 7, 40, 3, 3],
        );
        if lines[0].starts_with("mf") || lines[0].starts_with("config") {
            continue;
        }
        let (dump, mode) = if lines[0].starts_with("bf") { ("bf.scandump", 1) } else { ("cf.scandump", 2) };
        let mut bytes = vec![mode];
        let mut iterator = 0;
        loop {
            let Reply::Array(parts) = run(&engine, &format!("{dump} v {iterator}")) else { panic!() };
            let [Reply::Integer(next), Reply::Bulk(chunk)] = &parts[..] else { break };
            if *next == 0 || chunk.len() > MOST_BYTES {
                break;
            }
            if iterator != 0 {
                bytes.push(0);
            }
            bytes.extend(string(chunk));
            iterator = *next;
        }
        keep("payloads", &format!("chunks-{number}"), &bytes);
    }
    for kind in
        ["bloom", "blocked", "scalable", "cuckoo", "quotient", "counting", "dual", "d-left", "growing"]
    {
        let (engine, _) = engine();
        run(&engine, &format!("mf.reserve v kind {kind} capacity 20 fpr 0.1"));
        run(&engine, "mf.madd v a b c d");
        let Reply::Array(parts) = run(&engine, "mf.dump v 0") else { continue };
        let [Reply::Integer(0), Reply::Bulk(file)] = &parts[..] else { panic!("{kind}: {parts:?}") };
        keep("payloads", &format!("mayhap-{kind}"), &[&[3], &file[..]].concat());
    }
}

#[test]
fn settings() {
    keep("settings", "all", Settings::of_program().to_toml().as_bytes());
    for (name, text) in [
        ("some", "port = 0\nhttp-port = \"off\"\nmax-memory = \"2 GiB\"\n"),
        ("rates", "bf-error-rate = 1e-300\nbf-initial-size = 9223372036854775807\n"),
        ("nonsense", "port = nan\nbind = [[], {}]\n"),
        ("unknown", "prot = 1\n"),
    ] {
        keep("settings", name, text.as_bytes());
    }
}

#[test]
fn http() {
    for (name, bytes) in [
        ("plan", &b"\x00{\"items\":1000,\"target_fpr\":0.01}"[..]),
        ("plan-all", b"\x00{\"items\":1000,\"target_fpr\":0.01,\"memory_limit_bytes\":5,\"growth\":\"window\",\"deletes\":true,\"untrusted\":true,\"lookups_per_day\":7}"),
        ("plan-extreme", b"\x00{\"items\":18446744073709551615,\"target_fpr\":1e-308}"),
        ("probe", b"\x01\x00{\"items\":[\"a\",\"b\",{\"base64\":\"AP8=\"}]}"),
        ("probe-mayhap", b"\x01\x02{\"items\":[\"\"]}"),
        ("probe-name", b"\x02\x05\x00bloom{\"items\":[\"a\"]}"),
        ("show", b"\x03\x06\x00mayhap"),
        ("show-escaped", b"\x03\x08\x00a%25%2Fb"),
        ("list", b"\x04\x14\x00cursor=0&count=2&matc"),
        ("list-pattern", b"\x04\x0b\x00match=*[a-z"),
    ] {
        keep("http", name, bytes);
    }
}
