//! RedisBloom's values in RDB files and `DUMP` payloads.

use std::borrow::Cow;

use mayhap::{BuildError, DecodeError, Filter, ScalableBloom, ScalableCuckoo, ScalableCuckooShape};
use mayhap_formats::redis_bloom::{self, Scaling};
use mayhap_formats::redis_rdb::{self, LoadFields, SaveFields, Value, ValueType};
use mayhap_formats::{Resemblance, redis_cuckoo};

use crate::hostile;
use crate::vectors::{inline_or_file, json, number, text, unhex};

const LIMIT: u64 = 1 << 26;

/// CRC-64 of Jones bit by bit, by definition: the reference for the table.
fn crc64(bytes: &[u8]) -> u64 {
    let bit = |crc: u64| crc >> 1 ^ if crc & 1 == 1 { 0x95ac_9329_ac4b_c9b5 } else { 0 };
    bytes.iter().fold(0, |crc, &byte| (0..8).fold(crc ^ u64::from(byte), |crc, _| bit(crc)))
}

/// A hand-made payload: a type, its content, an RDB version and the checksum.
fn sealed(body: &[u8], rdb_version: u8) -> Vec<u8> {
    let mut payload = [body, &[rdb_version, 0]].concat();
    let checksum = crc64(&payload);
    payload.extend_from_slice(&checksum.to_le_bytes());
    payload
}

/// A hand-made length of an RDB file.
fn length(number: u64) -> Vec<u8> {
    match number {
        0..64 => vec![number as u8],
        64..16_384 => vec![0x40 | (number >> 8) as u8, number as u8],
        16_384..0x1_0000_0000 => [&[0x80][..], &(number as u32).to_be_bytes()].concat(),
        _ => [&[0x81][..], &number.to_be_bytes()].concat(),
    }
}

fn unsigned(number: u64) -> Vec<u8> {
    [vec![2], length(number)].concat()
}

fn double(number: f64) -> Vec<u8> {
    [&[4][..], &number.to_le_bytes()].concat()
}

fn string(bytes: &[u8]) -> Vec<u8> {
    [vec![5], length(bytes.len() as u64), bytes.to_vec()].concat()
}

/// The same string as LZF with literal runs only.
fn packed_string(bytes: &[u8]) -> Vec<u8> {
    let runs: Vec<u8> = bytes.chunks(32).flat_map(|run| [&[run.len() as u8 - 1][..], run].concat()).collect();
    [vec![5, 0xc3], length(runs.len() as u64), length(bytes.len() as u64), runs].concat()
}

/// A type of the value, its id, its fields, its end.
fn module_value(id: u64, fields: &[Vec<u8>]) -> Vec<u8> {
    [&[7, 0x81][..], &id.to_be_bytes(), &fields.concat(), &[0]].concat()
}

const BLOOM_ID: u64 = 0x3016_e5a2_89be_f804;
const CUCKOO_ID: u64 = 0x3016_e5a2_8982_1404;

fn bloom(payload: &[u8]) -> ScalableBloom {
    let Ok(Value::Bloom(filter)) = redis_rdb::read_dump(payload, LIMIT) else { panic!("no Bloom filter") };
    filter
}

fn cuckoo(payload: &[u8]) -> ScalableCuckoo {
    let Ok(Value::Cuckoo(filter)) = redis_rdb::read_dump(payload, LIMIT) else { panic!("no cuckoo filter") };
    filter
}

/// The filters of the `SCANDUMP` vectors, which RedisBloom made, laid out as values by hand.
#[test]
fn values_laid_out_by_hand_are_the_filters_redis_bloom_made() {
    let cases = json("redisbloom/bf_scandump.json");
    for case in cases["cases"].as_array().unwrap() {
        let name = text(case, "name");
        let dump = [unhex(text(case, "header_hex")), inline_or_file(case, "bits", "redisbloom")].concat();
        let header = &case["header"];
        for string in [string, packed_string] {
            let mut bitmaps = &inline_or_file(case, "bits", "redisbloom")[..];
            let mut fields = ["size", "nfilters", "options", "growth"]
                .map(|field| unsigned(number(header, field)))
                .to_vec();
            for link in header["links"].as_array().unwrap() {
                let (bitmap, rest) = bitmaps.split_at(number(link, "bytes") as usize);
                bitmaps = rest;
                fields.extend([
                    unsigned(number(link, "entries")),
                    double(text(link, "error").parse().unwrap()),
                    unsigned(number(link, "hashes")),
                    double(text(link, "bpe").parse().unwrap()),
                    unsigned(number(link, "bits")),
                    unsigned(number(link, "n2")),
                    string(bitmap),
                    unsigned(number(link, "size")),
                ]);
            }
            let payload = sealed(&module_value(BLOOM_ID, &fields), 10);
            let filter = bloom(&payload);
            let mut scanned = Vec::new();
            redis_bloom::write(&filter, &mut scanned).unwrap();
            assert_eq!(scanned, dump, "{name}");
            let ours = ScalableBloom::decode(&filter.encode()).unwrap();
            let written = redis_rdb::write_dump(&ours, 10).unwrap();
            assert_eq!(written, sealed(&written[..written.len() - 10], 10), "{name}");
            assert_eq!(redis_rdb::write_dump(&bloom(&written), 10).unwrap(), written, "{name}");
            assert_eq!(redis_rdb::resembles(&payload), Resemblance::Surely, "{name}");
            let plain = payload.len() == written.len();
            assert!(!plain || payload == written, "{name}");
            // Without the growth, which is 2 then, in the versions before 4; and with no more than the hash of 32 bits before 2.
            for version in [2_u64, 3] {
                let mut older = fields.clone();
                older.remove(3);
                let older = sealed(&module_value(BLOOM_ID - 4 + version, &older), 9);
                let read = bloom(&older);
                assert_eq!(read.shape().growth_factor(), 2.0, "{name}");
                assert!(
                    read.layers().iter().zip(filter.layers()).all(|(a, b)| a.encode() == b.encode()),
                    "{name}"
                );
            }
        }
    }
    println!("redisbloom/bf_scandump.json: {} values", cases["cases"].as_array().unwrap().len());

    let cases = json("redisbloom/cf_scandump.json");
    for case in cases["cases"].as_array().unwrap() {
        let name = text(case, "name");
        let slots = inline_or_file(case, "buckets", "redisbloom");
        let dump = [unhex(text(case, "header_hex")), slots.clone()].concat();
        let info = &case["info"];
        let tables = number(info, "Number of filters");
        for string in [string, packed_string] {
            let mut fields = vec![unsigned(tables)];
            fields.extend(
                [
                    "Number of buckets",
                    "Number of items inserted",
                    "Number of items deleted",
                    "Bucket size",
                    "Max iterations",
                    "Expansion rate",
                ]
                .map(|field| unsigned(number(info, field))),
            );
            let strings: Vec<Vec<u8>> = slots.chunks(slots.len() / tables as usize).map(string).collect();
            let with_buckets = |slots: &Vec<u8>| [unsigned(number(info, "Number of buckets")), slots.clone()];
            fields.extend(strings.iter().flat_map(with_buckets));
            let payload = sealed(&module_value(CUCKOO_ID, &fields), 12);
            let filter = cuckoo(&payload);
            let mut scanned = Vec::new();
            redis_cuckoo::write(&filter, &mut scanned).unwrap();
            assert_eq!(scanned, dump, "{name}");
            let written = redis_rdb::write_dump(&filter, 12).unwrap();
            let plain = payload.len() == written.len();
            assert!(!plain || payload == written, "{name}");
            assert_eq!(cuckoo(&written).encode(), filter.encode(), "{name}");
            // Before version 4 only tables, buckets, items and slots.
            let older = [fields[..3].to_vec(), strings].concat();
            let older = cuckoo(&sealed(&module_value(CUCKOO_ID - 1, &older), 8));
            assert_eq!(older.encode(), filter.encode(), "{name}");
        }
    }
    println!("redisbloom/cf_scandump.json: {} values", cases["cases"].as_array().unwrap().len());
}

/// Strings of a real server: its lengths, its integers, its compression, its checksum. One of its strings replaces the slots of a filter, and must be
/// read back unchanged.
#[test]
fn strings_of_a_real_server_are_read() {
    let cases = json("redis/strings.json");
    let cases = cases["cases"].as_array().unwrap();
    for case in cases {
        let name = text(case, "name");
        let value = if let Some(hex) = case["value_hex"].as_str() {
            unhex(hex)
        } else if let Some(hex) = case["repeated_hex"].as_str() {
            unhex(hex).repeat(number(case, "times") as usize)
        } else {
            let byte = |i: u64| ((i * i * 31 + i * 7) / 8 % 256) as u8 ^ (i / 256 * 101 % 256) as u8;
            (0..number(case, "value_length")).map(byte).collect()
        };
        let dump = match case["dump_hex"].as_str() {
            Some(hex) => unhex(hex),
            None => {
                let (begin, end) = (text(case, "dump_begin_hex"), text(case, "dump_end_hex"));
                [unhex(begin), value.clone(), unhex(end)].concat()
            }
        };
        assert_eq!(dump, sealed(&dump[..dump.len() - 10], 10), "{name}: the checksum is the server's");
        assert_eq!(
            redis_rdb::read_dump(&dump, LIMIT).unwrap_err(),
            DecodeError::BadField { field: "type of the value", got: 0 },
            "{name}"
        );
        // The slots of one table of one bucket, or of as many as there are bytes.
        let encoded = &dump[1..dump.len() - 10];
        let (buckets, size) = match value.len() {
            0 => continue,
            bytes @ 1..256 => (1, bytes),
            bytes => {
                let buckets = 1 << bytes.trailing_zeros();
                (buckets, bytes / buckets)
            }
        };
        let fields = [1, buckets as u64, 0, 0, size as u64, 20, 1, buckets as u64].map(unsigned);
        let slots = [&[5][..], encoded].concat();
        let payload = sealed(&module_value(CUCKOO_ID, &[fields.to_vec(), vec![slots]].concat()), 10);
        match redis_rdb::read_dump(&payload, LIMIT) {
            Ok(Value::Cuckoo(filter)) => {
                let mut scanned = Vec::new();
                redis_cuckoo::write(&filter, &mut scanned).unwrap();
                assert_eq!(scanned[38..], value, "{name}");
            }
            refused => assert!(size > 255, "{name}: {refused:?}"),
        }
    }
    println!("redis/strings.json: {} strings", cases.len());
}

/// A module inside Redis gets its fields from the host, one by one.
#[test]
fn fields_of_a_host_make_the_same_filter() {
    #[derive(Clone, Debug)]
    enum Field {
        Unsigned(u64),
        Double(f64),
        Bytes(Vec<u8>),
    }
    #[derive(Default)]
    struct Host(Vec<Field>);
    impl SaveFields for Host {
        fn unsigned(&mut self, number: u64) {
            self.0.push(Field::Unsigned(number));
        }
        fn double(&mut self, number: f64) {
            self.0.push(Field::Double(number));
        }
        fn string(&mut self, bytes: &[u8]) {
            self.0.push(Field::Bytes(bytes.to_vec()));
        }
    }
    struct Given(std::vec::IntoIter<Field>);
    impl LoadFields<'static> for Given {
        fn unsigned(&mut self) -> Result<u64, DecodeError> {
            let Some(Field::Unsigned(number)) = self.0.next() else {
                return Err(DecodeError::PayloadDamaged);
            };
            Ok(number)
        }
        fn double(&mut self) -> Result<f64, DecodeError> {
            let Some(Field::Double(number)) = self.0.next() else { return Err(DecodeError::PayloadDamaged) };
            Ok(number)
        }
        fn string(&mut self) -> Result<Cow<'static, [u8]>, DecodeError> {
            let Some(Field::Bytes(bytes)) = self.0.next() else { return Err(DecodeError::PayloadDamaged) };
            Ok(Cow::Owned(bytes))
        }
    }
    let (filter, table) = specimens();
    let mut host = Host::default();
    redis_rdb::write_fields(&filter, &mut host).unwrap();
    assert_eq!(host.0.len(), 4 + 8 * filter.layers().len());
    let mut fields = Given(host.0.clone().into_iter());
    let Ok(Value::Bloom(same)) = redis_rdb::read_fields(ValueType::Bloom, 4, &mut fields, LIMIT) else {
        panic!()
    };
    assert_eq!((same.encode(), fields.0.len()), (filter.encode(), 0));
    for cut in 0..host.0.len() {
        let mut fields = Given(Vec::from(&host.0[..cut]).into_iter());
        assert!(redis_rdb::read_fields(ValueType::Bloom, 4, &mut fields, LIMIT).is_err(), "{cut} fields");
    }
    let mut host = Host::default();
    redis_rdb::write_fields(&table, &mut host).unwrap();
    let mut fields = Given(host.0.into_iter());
    let Ok(Value::Cuckoo(same)) = redis_rdb::read_fields(ValueType::Cuckoo, 4, &mut fields, LIMIT) else {
        panic!()
    };
    assert_eq!(same.encode(), table.encode());
    // And the bytes of an RDB file, without id and trailer.
    let value = redis_rdb::write_value(&table).unwrap();
    let payload = redis_rdb::write_dump(&table, 10).unwrap();
    assert_eq!(payload[10..payload.len() - 10], value);
    assert!(matches!(redis_rdb::read_value(ValueType::Cuckoo, 4, &value, LIMIT), Ok(Value::Cuckoo(_))));
    assert!(redis_rdb::read_value(ValueType::Bloom, 4, &value, LIMIT).is_err());
}

/// Two layers and two tables.
fn specimens() -> (ScalableBloom, ScalableCuckoo) {
    let names = ["ada", "grace", "edsger", "barbara", "donald", "tony", "leslie", "john", "alan"];
    let mut filter = redis_bloom::create(4, 0.05, Scaling::By(2)).unwrap();
    filter.insert_batch(&names).unwrap();
    let shape = ScalableCuckooShape::for_capacity(8).unwrap().with_expansion(2).unwrap();
    let mut table = redis_cuckoo::create(shape).unwrap();
    table.insert_batch(&names).unwrap();
    assert_eq!((filter.layers().len(), table.tables()), (2, 2));
    (filter, table)
}

#[test]
fn impossible_values_are_rejected() {
    let (filter, table) = specimens();
    let payload = redis_rdb::write_dump(&filter, 10).unwrap();
    let read = |payload: &[u8]| redis_rdb::read_dump(payload, LIMIT).unwrap_err();
    // The checksum covers every bit except the type, which is checked first.
    for bit in 8..payload.len() * 8 {
        let mut damaged = payload.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        assert_eq!(read(&damaged), DecodeError::PayloadDamaged, "bit {bit}");
    }
    let resealed = |edit: &dyn Fn(&mut Vec<u8>)| {
        let mut body = payload[..payload.len() - 10].to_vec();
        edit(&mut body);
        read(&sealed(&body, 10))
    };
    assert_eq!(
        resealed(&|body| body[9] = 5),
        DecodeError::NewerModule { name: "MBbloom--", got: 5, newest: 4 }
    );
    for version in [0, 1] {
        // The options of version 2 are an extra field: earlier versions have the entries of a layer there.
        let options = 10 + 4..10 + 6;
        let older = |body: &mut Vec<u8>| {
            body[9] = version;
            body.drain(options.start..options.end + 2);
        };
        let refused = resealed(&older);
        assert!(!matches!(refused, DecodeError::PayloadDamaged), "{refused}");
    }
    let other = resealed(&|body| body[2] ^= 1);
    assert!(matches!(other, DecodeError::OtherModule { .. }), "{other}");
    assert!(matches!(resealed(&|body| body.push(0)), DecodeError::TrailingBytes { extra: 1 }));
    assert!(matches!(resealed(&|body| body.truncate(body.len() - 1)), DecodeError::TooShort { .. }));
    for cut in 0..payload.len() {
        assert!(redis_rdb::read_dump(&payload[..cut], LIMIT).is_err(), "{cut}");
        if cut > 0 && cut < payload.len() - 10 {
            assert!(redis_rdb::read_dump(&sealed(&payload[..cut], 10), LIMIT).is_err(), "{cut}");
        }
    }
    let too_large = redis_rdb::read_dump(&payload, 7).unwrap_err();
    assert!(matches!(too_large, DecodeError::Unbuildable(BuildError::TooLarge { .. })), "{too_large}");
    // A layer before version 2 has the hash of 32 bits.
    let layer = [
        unsigned(4),
        double(0.025),
        unsigned(6),
        double(7.677_919_270_461_653),
        string(&[0; 8]),
        unsigned(0),
    ];
    let zero = [vec![unsigned(0), unsigned(1)], layer.to_vec()].concat();
    let refused = read(&sealed(&module_value(BLOOM_ID - 4, &zero), 8));
    assert!(matches!(refused, DecodeError::Unsupported { .. }), "{refused}");
    // A bitmap shorter than the bits, as in the payloads that took servers over.
    let bits = |bits: u64, bitmap: &[u8]| {
        let layer = [
            unsigned(4),
            double(0.01),
            unsigned(7),
            double(9.585_058_377_367_446),
            unsigned(bits),
            unsigned(0),
        ];
        let fields = [
            [unsigned(0), unsigned(1), unsigned(5), unsigned(2)].to_vec(),
            layer.to_vec(),
            vec![string(bitmap), unsigned(0)],
        ];
        redis_rdb::read_dump(&sealed(&module_value(BLOOM_ID, &fields.concat()), 10), LIMIT)
    };
    assert!(bits(64, &[0; 8]).is_ok());
    for (claimed, bitmap) in
        [(64, &[0; 7][..]), (64, &[0; 9]), (1 << 40, &[0; 8]), (u64::MAX, &[0; 8]), (0, &[])]
    {
        let refused = bits(claimed, bitmap).unwrap_err();
        assert_eq!(refused, DecodeError::BadField { field: "bits of a layer", got: claimed });
    }
    // A number of slots that does not match the buckets, and gigabytes of zeroes compressed to a few bytes.
    let slots = |slots: Vec<u8>| {
        let fields = [1, 4, 0, 0, 2, 20, 1, 4].map(unsigned);
        let payload = sealed(&module_value(CUCKOO_ID, &[fields.to_vec(), vec![slots]].concat()), 10);
        redis_rdb::read_dump(&payload, LIMIT)
    };
    assert!(slots(string(&[0; 8])).is_ok());
    assert!(slots(string(&[0; 7])).is_err() && slots(string(&[0; 16])).is_err());
    let bomb = |bytes| [&[5, 0xc3][..], &length(5), &length(bytes), &[0, 0, 0xff, 0xff, 0]].concat();
    let field = "length of a compressed string";
    assert_eq!(slots(bomb(1_000)).unwrap_err(), DecodeError::BadField { field, got: 1_000 });
    assert_eq!(slots(bomb(LIMIT + 1)).unwrap_err(), DecodeError::UnpacksTooLarge { limit: LIMIT });
    // Our own types are not RedisBloom's.
    let ours = ScalableCuckoo::for_capacity(10, 7).unwrap();
    assert!(redis_rdb::write_dump(&ours, 10).is_err());
    assert!(redis_rdb::write_dump(&ScalableBloom::for_capacity(10, 0.1, 7).unwrap(), 10).is_err());
    assert_eq!(redis_rdb::resembles(&payload), Resemblance::Surely);
    assert_eq!(redis_rdb::resembles(&payload[1..]), Resemblance::No);
    assert_eq!(ValueType::Bloom.name(), "MBbloom--");
    let _ = table;
}

#[test]
fn damaged_values_are_survived() {
    let (filter, table) = specimens();
    let used = |value: Value| {
        match &value {
            Value::Bloom(filter) => drop(Filter::decode(&filter.encode())?),
            Value::Cuckoo(filter) => drop(Filter::decode(&filter.encode())?),
            _ => unreachable!(),
        }
        let again = redis_rdb::write_dump(&value, 10).unwrap();
        redis_rdb::read_dump(&again, LIMIT).map(drop)
    };
    for (name, value_type, value) in [
        ("redis_rdb, Bloom", ValueType::Bloom, redis_rdb::write_value(&filter).unwrap()),
        ("redis_rdb, cuckoo", ValueType::Cuckoo, redis_rdb::write_value(&table).unwrap()),
    ] {
        let fields: Vec<(usize, usize)> = (0..value.len() - 8).map(|at| (at, [1, 2, 4, 8][at % 4])).collect();
        hostile::survives(name, &value, &fields, false, |bytes| {
            used(redis_rdb::read_value(value_type, 4, bytes, LIMIT)?)
        });
    }
    // Compressed, and of an older version.
    let mut scanned = Vec::new();
    redis_cuckoo::write(&table, &mut scanned).unwrap();
    let packed =
        [&unsigned(1)[..], &unsigned(4), &unsigned(5), &packed_string(&scanned[38..46]), &[0]].concat();
    hostile::survives("redis_rdb, compressed", &packed, &[(9, 1), (10, 1)], false, |bytes| {
        used(redis_rdb::read_value(ValueType::Cuckoo, 3, bytes, LIMIT)?)
    });
    let payload = redis_rdb::write_dump(&table, 10).unwrap();
    hostile::survives("redis_rdb::read_dump", &payload, &[(0, 1), (1, 1), (2, 8)], false, |bytes| {
        used(redis_rdb::read_dump(bytes, LIMIT)?)
    });
}
