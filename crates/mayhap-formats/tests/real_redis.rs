//! A real Redis and this library on the two keys of a Redisson filter.
//!
//! Redisson itself uses only SETBIT, GETBIT and a few commands for its config. Here we send them, with positions computed independently from the hash
//! alone. Filters made by its own client are in the vectors.

mod real;

use mayhap::{Bloom, Item, ItemEncoding};
use mayhap_formats::redisson::{self, Config, config_key};

use real::items::{Given, Items};
use real::redis::{Redis, Reply, Words, command};

const CODECS: [(ItemEncoding, Items); 8] = [
    (ItemEncoding::Kryo5, Items::Texts),
    (ItemEncoding::Kryo5, Items::Ints),
    (ItemEncoding::Kryo5, Items::Longs),
    (ItemEncoding::Kryo5Long, Items::Ints),
    (ItemEncoding::Utf8, Items::Texts),
    (ItemEncoding::Bytes, Items::Texts),
    (ItemEncoding::Decimal, Items::Longs),
    (ItemEncoding::Json, Items::Texts),
];
const MEMBERS: u64 = 1_000;
const NON_MEMBERS: u64 = 2_000;

/// The positions of an item in Redisson's order: the halves of its hash are added alternately.
fn positions<I: Item>(filter: &Bloom, item: &I) -> Vec<u64> {
    let hash = filter.hash(item).to_u128();
    let halves = [hash as u64, (hash >> 64) as u64];
    let mut sum = halves[0];
    let mut positions = Vec::new();
    for i in 1..=filter.shape().probes() as usize {
        positions.push((sum & i64::MAX as u64) % filter.shape().bits());
        sum = sum.wrapping_add(halves[i % 2]);
    }
    positions
}

fn set_bits<I: Item>(redis: &mut Redis, name: &str, filter: &Bloom, item: &I) -> bool {
    let set = |position: u64| command(["SETBIT", name, &position.to_string(), "1"]);
    let commands: Vec<Words> = positions(filter, item).into_iter().map(set).collect();
    redis.ask_all(&commands).contains(&Reply::Integer(0))
}

/// Every item's answer, from GETBIT.
fn answers_of_redis(redis: &mut Redis, name: &str, filter: &Bloom, items: &[Given]) -> Vec<bool> {
    let get = |position: u64| command(["GETBIT", name, &position.to_string()]);
    let commands: Vec<Words> = items.iter().flat_map(|item| positions(filter, item)).map(get).collect();
    let probes = filter.shape().probes() as usize;
    redis.ask_all(&commands).chunks(probes).map(|bits| !bits.contains(&Reply::Integer(0))).collect()
}

fn bytes(reply: Reply) -> Option<Vec<u8>> {
    let Reply::Bytes(bytes) = reply else { panic!("no bytes: {reply:?}") };
    bytes
}

/// The filter under this name, as HGETALL and GET have it.
fn fetch(redis: &mut Redis, name: &str, items: ItemEncoding) -> (Bloom, Vec<u8>) {
    let Reply::List(fields) = redis.ask(["HGETALL", &config_key(name)]) else { panic!("no hash") };
    let fields: Vec<Vec<u8>> = fields.into_iter().map(|field| bytes(field).unwrap()).collect();
    let config = Config::from_fields(fields.chunks(2).map(|pair| (&pair[0], &pair[1]))).unwrap();
    let bitmap = bytes(redis.ask(["GET", name])).unwrap_or_default();
    (redisson::read(&bitmap, &config, items).unwrap(), bitmap)
}

/// Stores the filter with the commands we write for it.
fn put(redis: &mut Redis, name: &str, filter: &Bloom) {
    let mut commands = Vec::new();
    redisson::write_commands(filter, name, &mut commands).unwrap();
    let replies = redis.ask_raw(&commands, if filter.ones() == 0 { 4 } else { 5 });
    assert!(
        matches!(replies.last(), Some(Reply::List(done)) if done.len() == replies.len() - 2),
        "{replies:?}"
    );
}

#[test]
fn redis_holds_the_very_bits_we_write() {
    let Some(mut redis) = Redis::start() else { return };
    for (number, (encoding, items)) in CODECS.into_iter().enumerate() {
        let name = format!("filter:{number}");
        let said = format!("{encoding} of {items:?}");
        let mut built =
            redisson::create(MEMBERS, if number % 2 == 0 { 0.01 } else { 0.0001 }, encoding).unwrap();
        let config = redisson::config(&built).unwrap();
        let mut fields = vec!["HSET".to_owned(), config_key(&name)];
        fields.extend(config.fields().into_iter().flat_map(|(field, value)| [field.to_owned(), value]));
        assert_eq!(redis.ask(fields), Reply::Integer(4), "{said}");

        // Item by item: Redis returns the old bit, and so whether the item was new.
        let members = items.some(0, MEMBERS);
        for item in &members {
            assert!(config.positions(item, encoding).eq(positions(&built, item)), "{said}: {item:?}");
            assert_eq!(set_bits(&mut redis, &name, &built, item), built.insert(item), "{said}: {item:?}");
        }
        let (mut fetched, bitmap) = fetch(&mut redis, &name, encoding);
        assert!(bitmap == redisson::bitmap(&built).unwrap(), "{said}");
        assert_eq!(redisson::config(&fetched).unwrap(), config, "{said}");
        assert_eq!(redis.ask(["BITCOUNT", &name]), Reply::Integer(built.ones() as i64), "{said}");
        assert_eq!(redis.ask(["STRLEN", &name]), Reply::Integer(bitmap.len() as i64), "{said}");
        let pieces: Vec<u8> = (0..bitmap.len())
            .step_by(100)
            .flat_map(|at| {
                bytes(redis.ask(["GETRANGE", &name, &at.to_string(), &(at + 99).to_string()])).unwrap()
            })
            .collect();
        assert!(pieces == bitmap, "{said}");

        let questions = [members, items.some(1_000_000, NON_MEMBERS)].concat();
        let answers = answers_of_redis(&mut redis, &name, &built, &questions);
        assert!(questions.iter().map(|item| fetched.may_contain(item)).eq(answers.iter().copied()), "{said}");
        assert!(answers[..MEMBERS as usize].iter().all(|&answer| answer), "{said}");
        let confused = fetch(&mut redis, &name, ItemEncoding::Utf16Le).0;
        assert!(
            !questions.iter().map(|item| confused.may_contain(item)).eq(answers),
            "{said}: the codec matters"
        );

        // A bit that no SETBIT set would be detected.
        fetched.insert("one more");
        assert!(redisson::bitmap(&fetched).unwrap() != bitmap, "{said}");
    }
    println!("{} codecs, {} questions each", CODECS.len(), MEMBERS + NON_MEMBERS);
}

#[test]
fn each_continues_with_the_filter_of_the_other() {
    let Some(mut redis) = Redis::start() else { return };
    for name in ["plain", "a {tag} in it"] {
        let mut filter = redisson::create(MEMBERS, 0.01, ItemEncoding::Kryo5).unwrap();
        filter.insert_batch(&Items::Texts.some(0, 500));
        // We begin with the whole bitmap; Redis continues.
        put(&mut redis, name, &filter);
        for item in Items::Longs.some(0, 300) {
            assert_eq!(set_bits(&mut redis, name, &filter, &item), filter.insert(&item), "{item:?}");
        }
        let (mut fetched, bitmap) = fetch(&mut redis, name, ItemEncoding::Kryo5);
        assert!(bitmap == redisson::bitmap(&filter).unwrap());
        // We continue with the bitmap of Redis.
        let last = Items::Ints.some(0, 200);
        fetched.insert_batch(&last);
        put(&mut redis, name, &fetched);
        assert!(answers_of_redis(&mut redis, name, &filter, &last).iter().all(|&answer| answer));
        filter.insert_batch(&last);
        assert!(fetch(&mut redis, name, ItemEncoding::Kryo5).1 == redisson::bitmap(&filter).unwrap());
    }
    assert_eq!(redis.ask(["EXISTS", "{plain}:config", "a {tag} in it:config"]), Reply::Integer(2));
    assert_eq!(redis.ask(["DBSIZE"]), Reply::Integer(4));
}

#[test]
fn an_empty_filter_has_no_bitmap() {
    let Some(mut redis) = Redis::start() else { return };
    let mut filter = redisson::create(10, 0.1, ItemEncoding::Utf8).unwrap();
    filter.insert("gone soon");
    put(&mut redis, "empty", &filter);
    filter.clear();
    put(&mut redis, "empty", &filter);
    assert_eq!(redis.ask(["GET", "empty"]), Reply::Bytes(None), "the previous value is gone");
    let (fetched, bitmap) = fetch(&mut redis, "empty", ItemEncoding::Utf8);
    assert_eq!((fetched.ones(), bitmap.len()), (0, 0));
    assert!(!fetched.may_contain("gone soon"));
}
