//! Damaged and forged bytes: an error or the right answers; never a panic, never memory out of proportion.

use mayhap::internals::{self, scalable::Plan};
use mayhap::{
    Answers, BinaryFuse8, BinaryFuse32, Bitmap, BlockedBloom, BlockedLayout, BlockedShape, Bloom,
    BuildOptions, CountingBloom, Cuckoo, CuckooShape, DLeft, DecodeError, DualBloom, FingerprintSet,
    ForeignHash, Gcs, GrowableCuckoo, Growing, HashScheme, ItemEncoding, Quotient, Ribbon, ScalableBloom,
    ScalableCuckoo, WideBloom, WidePlacement, Window, Xor16,
};
use mayhap_testkit::alloc_meter::AllocMeter;
use mayhap_testkit::corrupt::Corruptor;
use xxhash_rust::xxh3::xxh3_64;

#[global_allocator]
static METER: AllocMeter = AllocMeter;

const HEADER: usize = 192;
/// Every field of the header: its offset and length.
const FIELDS: [(&str, usize, usize); 23] = [
    ("magic", 0, 8),
    ("version", 8, 2),
    ("kind", 10, 2),
    ("placement", 12, 2),
    ("hash scheme", 14, 2),
    ("payload bytes", 16, 8),
    ("payload checksum", 24, 8),
    ("seed or key, low", 32, 8),
    ("seed or key, high", 40, 8),
    ("capacity", 48, 8),
    ("inserted", 56, 8),
    ("target rate", 64, 8),
    ("parameter 0", 72, 8),
    ("parameter 1", 80, 8),
    ("parameter 2", 88, 8),
    ("parameter 3", 96, 8),
    ("parameter 4", 104, 8),
    ("parameters 5 and 6", 112, 16),
    ("parameter 7", 128, 8),
    ("reserved, first", 136, 16),
    ("reserved, middle", 152, 16),
    ("reserved, last", 168, 16),
    ("header checksum", 184, 8),
];

/// A filter of some kind: its bytes, and a function that uses them.
struct Specimen {
    name: &'static str,
    bytes: Vec<u8>,
    /// Decodes; then looks every member up. `Ok(true)`: all there.
    members_there: fn(&[u8]) -> Result<bool, DecodeError>,
    /// Decodes the filter and uses it in every way; it only has to return.
    exercise: fn(&[u8]) -> Result<(), DecodeError>,
}

const MEMBERS: u64 = 100;

/// One specimen per kind and layout; the decoders are plain functions, so that none can keep state.
fn specimens() -> Vec<Specimen> {
    let mut bloom = Bloom::for_capacity(MEMBERS, 0.01, 7).unwrap();
    let mut keyed = Bloom::for_capacity(MEMBERS, 0.01, HashScheme::keyed_random().unwrap()).unwrap();
    let wide = internals::bloom::from_parts(959, 7, MEMBERS, 0.01).unwrap();
    let mut wide = internals::wide::placed(wide, WidePlacement::BitsAndBlooms, ItemEncoding::Bytes).unwrap();
    let mut split = BlockedBloom::for_capacity(MEMBERS, 0.01, 7).unwrap();
    let line = BlockedShape::with_layout(BlockedLayout::Line512, MEMBERS, 1e-4).unwrap();
    let mut line = BlockedBloom::with_shape(line, 7).unwrap();
    let mut counting = CountingBloom::for_capacity(MEMBERS, 0.01, 7).unwrap();
    let mut dual = DualBloom::for_capacity(MEMBERS, 20, 0.01, 7).unwrap();
    let mut scalable = ScalableBloom::for_capacity(20, 0.01, 7).unwrap();
    let mut quotient = Quotient::for_capacity(MEMBERS + 20, 0.01, 7).unwrap();
    let mut dleft = DLeft::for_capacity(MEMBERS, 0.01, 7).unwrap();
    let mut window = Window::of_items(MEMBERS, 0.01, 7).unwrap();
    let mut window_of_time = Window::of_time(MEMBERS, MEMBERS, 1e-6, 7).unwrap();
    let mut cuckoo = Cuckoo::for_capacity(MEMBERS, 0.01, 7).unwrap();
    let sorted = CuckooShape::semi_sorted(MEMBERS, 0.01).unwrap();
    let mut sorted = Cuckoo::with_shape(sorted, 7).unwrap();
    let mut growable = GrowableCuckoo::for_growth(20, 1_000, 0.01, 7).unwrap();
    let mut growing = Growing::for_capacity(20, 0.01, 7).unwrap();
    let mut tables = ScalableCuckoo::for_capacity(64, 7).unwrap();
    let mut bitmap = Bitmap::new(1_000).unwrap();
    for item in 0..MEMBERS {
        bloom.insert(&item);
        keyed.insert(&item);
        wide.insert(&item);
        split.insert(&item);
        line.insert(&item);
        counting.insert(&item);
        dual.insert(&item).unwrap();
        scalable.insert(&item).unwrap();
        quotient.insert(&item).unwrap();
        dleft.insert(&item).unwrap();
        window.insert(&item);
        window_of_time.insert_at(&item, item);
        cuckoo.insert(&item).unwrap();
        sorted.insert(&item).unwrap();
        growable.insert(&item).unwrap();
        growing.insert(&item).unwrap();
        tables.insert(&item).unwrap();
        bitmap.set(item * 3).unwrap();
    }
    let redis_bloom = {
        let shape = internals::scalable::of_redis_bloom(Plan::RedisBloom, 20, 0.01, 2, 0.5).unwrap();
        let scheme = internals::foreign_scheme(ForeignHash::RedisBloom, ItemEncoding::Bytes);
        let mut filter = ScalableBloom::with_shape(shape, scheme).unwrap();
        (0..MEMBERS).for_each(|item| {
            filter.insert(&item).unwrap();
        });
        filter
    };
    dual.insert("to be removed").unwrap();
    dual.remove("to be removed");
    let bloom_members: fn(&[u8]) -> Result<bool, DecodeError> =
        |bytes| Bloom::decode(bytes).map(|filter| (0..MEMBERS).all(|item| filter.may_contain(&item)));
    let bloom_exercise: fn(&[u8]) -> Result<(), DecodeError> = |bytes| {
        let mut filter = Bloom::decode(bytes)?;
        filter.insert_batch(&["a", "b"]);
        let _ = (filter.may_contain("a"), filter.expected_fpr(), filter.fill(), filter.estimated_items());
        let copy = Bloom::decode(&filter.encode())?;
        filter.union(&copy).map_err(|_| ()).unwrap();
        Ok(())
    };
    let blocked_members: fn(&[u8]) -> Result<bool, DecodeError> =
        |bytes| BlockedBloom::decode(bytes).map(|filter| (0..MEMBERS).all(|item| filter.may_contain(&item)));
    let blocked_exercise: fn(&[u8]) -> Result<(), DecodeError> = |bytes| {
        let mut filter = BlockedBloom::decode(bytes)?;
        filter.insert_batch(&["a", "b"]);
        let _ = (filter.may_contain("a"), filter.expected_fpr(), filter.fill(), filter.estimated_items());
        BlockedBloom::decode(&filter.encode()).map(drop)
    };
    let fingerprints = |cuts| {
        let mut set = FingerprintSet::new(7).unwrap();
        (0..MEMBERS).for_each(|item| {
            set.insert(&item).unwrap();
        });
        (0..cuts).for_each(|_| set.cut().unwrap());
        set
    };
    let fingerprint_members: fn(&[u8]) -> Result<bool, DecodeError> =
        |bytes| FingerprintSet::decode(bytes).map(|set| (0..MEMBERS).all(|item| set.may_contain(&item)));
    let fingerprint_exercise: fn(&[u8]) -> Result<(), DecodeError> = |bytes| {
        let mut set = FingerprintSet::decode(bytes)?;
        set.set_memory_limit_bytes(1 << 20);
        let mut answers = Answers::new();
        let hashes: Vec<_> = (0..1_000_u64).map(|item| set.hash(&item)).collect();
        let _ = (set.insert("a"), set.insert_hash_batch(&hashes, &mut answers), set.expected_fpr());
        set.may_contain_hash_batch(&hashes, &mut answers);
        let copy = FingerprintSet::decode(&set.encode())?;
        let _ = (set.union(&copy), set.fingerprints().count(), set.capacity(), set.target_fpr());
        FingerprintSet::decode(&set.encode())?;
        let _ = (set.cut(), set.cut(), set.expected_fpr(), set.insert("b"));
        Ok(())
    };
    let window_members: fn(&[u8]) -> Result<bool, DecodeError> =
        |bytes| Window::decode(bytes).map(|filter| (0..MEMBERS).all(|item| filter.may_contain(&item)));
    let window_exercise: fn(&[u8]) -> Result<(), DecodeError> = |bytes| {
        let mut filter = Window::decode(bytes)?;
        let mut answers = Answers::new();
        for now in [0, 1 << 40, u64::MAX] {
            filter.insert_batch_at(&["a", "b"], now);
            filter.may_contain_batch_at(&["a", "b"], now / 2, &mut answers);
        }
        let _ = (filter.expected_fpr(), filter.fill(), filter.inserted(), filter.generations().count());
        Window::decode(&filter.encode()).map(drop)
    };
    let cuckoo_members: fn(&[u8]) -> Result<bool, DecodeError> =
        |bytes| Cuckoo::decode(bytes).map(|filter| (0..MEMBERS).all(|item| filter.may_contain(&item)));
    let cuckoo_exercise: fn(&[u8]) -> Result<(), DecodeError> = |bytes| {
        let mut filter = Cuckoo::decode(bytes)?;
        let _ = (filter.insert("a"), filter.insert_batch(&["b", "c"]), filter.count("a"), filter.remove("a"));
        let _ = (filter.expected_fpr(), filter.fill(), filter.remove_verified("b", || true));
        Cuckoo::decode(&filter.encode()).map(drop)
    };
    vec![
        Specimen {
            name: "cuckoo",
            bytes: cuckoo.encode(),
            members_there: cuckoo_members,
            exercise: cuckoo_exercise,
        },
        Specimen {
            name: "semi-sorted",
            bytes: sorted.encode(),
            members_there: cuckoo_members,
            exercise: cuckoo_exercise,
        },
        Specimen {
            name: "growable cuckoo",
            bytes: growable.encode(),
            members_there: |bytes| {
                GrowableCuckoo::decode(bytes).map(|filter| (0..MEMBERS).all(|item| filter.may_contain(&item)))
            },
            exercise: |bytes| {
                let mut filter = GrowableCuckoo::decode(bytes)?;
                let _ = (filter.insert("a"), filter.count("a"), filter.remove("a"), filter.expected_fpr());
                GrowableCuckoo::decode(&filter.encode()).map(drop)
            },
        },
        Specimen {
            name: "growing",
            bytes: growing.encode(),
            members_there: |bytes| {
                Growing::decode(bytes).map(|filter| (0..MEMBERS).all(|item| filter.may_contain(&item)))
            },
            exercise: |bytes| {
                let mut filter = Growing::decode(bytes)?;
                filter.limit_memory(Some(1 << 20));
                let _ =
                    (filter.insert("a"), filter.remove("a"), filter.remove(&7_u64), filter.expected_fpr());
                let _ = (filter.insert_batch(&["b"; 300]), filter.capacity(), filter.void_slots());
                Growing::decode(&filter.encode()).map(drop)
            },
        },
        Specimen {
            name: "scalable cuckoo",
            bytes: tables.encode(),
            members_there: |bytes| {
                ScalableCuckoo::decode(bytes).map(|filter| (0..MEMBERS).all(|item| filter.may_contain(&item)))
            },
            exercise: |bytes| {
                let mut filter = ScalableCuckoo::decode(bytes)?;
                filter.limit_memory(Some(1 << 10));
                let _ = (
                    filter.insert("a"),
                    filter.insert_unique("b"),
                    filter.remove("a"),
                    filter.remove(&7_u64),
                );
                let _ = (filter.count("a"), filter.expected_fpr(), filter.capacity());
                filter.compact();
                ScalableCuckoo::decode(&filter.encode()).map(drop)
            },
        },
        Specimen {
            name: "scalable of RedisBloom's",
            bytes: redis_bloom.encode(),
            members_there: |bytes| {
                ScalableBloom::decode(bytes).map(|filter| (0..MEMBERS).all(|item| filter.may_contain(&item)))
            },
            exercise: |bytes| {
                let mut filter = ScalableBloom::decode(bytes)?;
                filter.limit_memory(Some(1 << 12));
                let _ = (filter.insert("a"), filter.may_contain("a"), filter.expected_fpr());
                ScalableBloom::decode(&filter.encode()).map(drop)
            },
        },
        Specimen {
            name: "binary fuse",
            bytes: BinaryFuse8::build(0..MEMBERS, 7).unwrap().encode(),
            members_there: |bytes| {
                BinaryFuse8::decode(bytes).map(|filter| (0..MEMBERS).all(|item| filter.may_contain(&item)))
            },
            exercise: |bytes| {
                let filter = BinaryFuse8::decode(bytes)?;
                let mut answers = Answers::new();
                filter.may_contain_batch(&(0..1_000).collect::<Vec<u64>>(), &mut answers);
                let _ = (filter.shape().to_string(), filter.expected_fpr(), filter.bits_per_item());
                BinaryFuse8::decode(&filter.encode()).map(drop)
            },
        },
        Specimen {
            name: "binary fuse in shards",
            bytes: BinaryFuse32::build_with(0..MEMBERS, &BuildOptions::default().items_per_shard(30), 7)
                .unwrap()
                .encode(),
            members_there: |bytes| {
                BinaryFuse32::decode(bytes).map(|filter| (0..MEMBERS).all(|item| filter.may_contain(&item)))
            },
            exercise: |bytes| {
                let filter = BinaryFuse32::decode(bytes)?;
                let mut answers = Answers::new();
                filter.may_contain_batch(&(0..1_000).collect::<Vec<u64>>(), &mut answers);
                let _ = (filter.shape().to_string(), filter.expected_fpr(), filter.bits_per_item());
                BinaryFuse32::decode(&filter.encode()).map(drop)
            },
        },
        Specimen {
            name: "xor",
            bytes: Xor16::build(0..MEMBERS, 7).unwrap().encode(),
            members_there: |bytes| {
                Xor16::decode(bytes).map(|filter| (0..MEMBERS).all(|item| filter.may_contain(&item)))
            },
            exercise: |bytes| {
                let filter = Xor16::decode(bytes)?;
                let mut answers = Answers::new();
                filter.may_contain_batch(&(0..1_000).collect::<Vec<u64>>(), &mut answers);
                let _ = (filter.shape().to_string(), filter.expected_fpr(), filter.bits_per_item());
                Xor16::decode(&filter.encode()).map(drop)
            },
        },
        Specimen {
            name: "ribbon",
            bytes: Ribbon::build(0..MEMBERS, 0.01, 7).unwrap().encode(),
            members_there: |bytes| {
                Ribbon::decode(bytes).map(|filter| (0..MEMBERS).all(|item| filter.may_contain(&item)))
            },
            exercise: |bytes| {
                let filter = Ribbon::decode(bytes)?;
                let mut answers = Answers::new();
                filter.may_contain_batch(&(0..1_000).collect::<Vec<u64>>(), &mut answers);
                let _ = (filter.may_contain("a"), filter.expected_fpr(), filter.bits_per_item());
                Ribbon::decode(&filter.encode()).map(drop)
            },
        },
        Specimen {
            name: "d-left",
            bytes: dleft.encode(),
            members_there: |bytes| {
                DLeft::decode(bytes).map(|filter| (0..MEMBERS).all(|item| filter.may_contain(&item)))
            },
            exercise: |bytes| {
                let mut filter = DLeft::decode(bytes)?;
                let _ = (filter.insert("a"), filter.insert_batch(&["a", "b"]), filter.count_estimate("a"));
                let copy = DLeft::decode(&filter.encode())?;
                let _ = (filter.union(&copy), filter.remove("a"), filter.fill(), filter.estimated_items());
                DLeft::decode(&filter.encode()).map(drop)
            },
        },
        Specimen {
            name: "window",
            bytes: window.encode(),
            members_there: window_members,
            exercise: window_exercise,
        },
        Specimen {
            name: "window of time",
            bytes: window_of_time.encode(),
            members_there: window_members,
            exercise: window_exercise,
        },
        Specimen {
            name: "fingerprints",
            bytes: fingerprints(0).encode(),
            members_there: fingerprint_members,
            exercise: fingerprint_exercise,
        },
        Specimen {
            name: "cut fingerprints",
            bytes: fingerprints(1).encode(),
            members_there: fingerprint_members,
            exercise: fingerprint_exercise,
        },
        Specimen {
            name: "fingerprints cut twice",
            bytes: fingerprints(2).encode(),
            members_there: fingerprint_members,
            exercise: fingerprint_exercise,
        },
        Specimen {
            name: "quotient",
            bytes: quotient.encode(),
            members_there: |bytes| {
                Quotient::decode(bytes).map(|filter| (0..MEMBERS).all(|item| filter.may_contain(&item)))
            },
            exercise: |bytes| {
                let mut filter = Quotient::decode(bytes)?;
                let _ = (filter.insert_batch(&["a", "b"]), filter.remove("a"), filter.count("b"));
                let _ = (filter.fill(), filter.estimated_items(), filter.fingerprints().count());
                let copy = Quotient::decode(&filter.encode())?;
                let _ = (filter.union(&copy), filter.double());
                Quotient::decode(&filter.encode()).map(drop)
            },
        },
        Specimen {
            name: "bloom",
            bytes: bloom.encode(),
            members_there: bloom_members,
            exercise: bloom_exercise,
        },
        Specimen {
            name: "keyed",
            bytes: keyed.encode(),
            members_there: bloom_members,
            exercise: bloom_exercise,
        },
        Specimen {
            name: "wide",
            bytes: wide.encode(),
            members_there: |bytes| {
                WideBloom::decode(bytes).map(|filter| (0..MEMBERS).all(|item| filter.may_contain(&item)))
            },
            exercise: |bytes| {
                let mut filter = WideBloom::decode(bytes)?;
                filter.insert_batch(&["a", "b"]);
                let _ =
                    (filter.may_contain("a"), filter.expected_fpr(), filter.fill(), filter.estimated_items());
                let copy = WideBloom::decode(&filter.encode())?;
                filter.union(&copy).map_err(|_| ()).unwrap();
                Ok(())
            },
        },
        Specimen {
            name: "split",
            bytes: split.encode(),
            members_there: blocked_members,
            exercise: blocked_exercise,
        },
        Specimen {
            name: "line",
            bytes: line.encode(),
            members_there: blocked_members,
            exercise: blocked_exercise,
        },
        Specimen {
            name: "gcs",
            bytes: Gcs::build(0..MEMBERS, 0.01, 7).unwrap().encode(),
            members_there: |bytes| {
                Gcs::decode(bytes).map(|filter| (0..MEMBERS).all(|item| filter.may_contain(&item)))
            },
            exercise: |bytes| {
                let mut filter = Gcs::decode(bytes)?;
                let copy = filter.try_clone().unwrap();
                let _ = (filter.values().count(), filter.expected_fpr(), filter.shape().memory_bytes());
                let _ = (0..MEMBERS).filter(|item| filter.may_contain(item)).count();
                let _ = filter.union(&copy);
                Gcs::decode(&filter.encode()).map(drop)
            },
        },
        Specimen {
            name: "counting",
            bytes: counting.encode(),
            members_there: |bytes| {
                CountingBloom::decode(bytes).map(|filter| (0..MEMBERS).all(|item| filter.may_contain(&item)))
            },
            exercise: |bytes| {
                let mut filter = CountingBloom::decode(bytes)?;
                filter.insert("a");
                filter.remove("a");
                let _ = (filter.saturated(), filter.fill(), filter.estimated_items());
                CountingBloom::decode(&filter.encode()).map(drop)
            },
        },
        Specimen {
            name: "dual",
            bytes: dual.encode(),
            members_there: |bytes| {
                DualBloom::decode(bytes).map(|filter| (0..MEMBERS).all(|item| filter.may_contain(&item)))
            },
            exercise: |bytes| {
                let mut filter = DualBloom::decode(bytes)?;
                let _ = (
                    filter.insert("a"),
                    filter.remove("a"),
                    filter.expected_fpr(),
                    filter.expected_false_no(),
                );
                DualBloom::decode(&filter.encode()).map(drop)
            },
        },
        Specimen {
            name: "scalable",
            bytes: scalable.encode(),
            members_there: |bytes| {
                ScalableBloom::decode(bytes).map(|filter| (0..MEMBERS).all(|item| filter.may_contain(&item)))
            },
            exercise: |bytes| {
                let filter = ScalableBloom::decode(bytes)?;
                let _ = (filter.may_contain("a"), filter.expected_fpr(), filter.capacity());
                ScalableBloom::decode(&filter.encode()).map(drop)
            },
        },
        Specimen {
            name: "bitmap",
            bytes: bitmap.encode(),
            members_there: |bytes| {
                Bitmap::decode(bytes).map(|filter| (0..MEMBERS).all(|item| filter.get(item * 3)))
            },
            exercise: |bytes| {
                let mut filter = Bitmap::decode(bytes)?;
                let _ = (filter.set(3), filter.count(), filter.first_clear(..));
                filter.not();
                Bitmap::decode(&filter.encode()).map(drop)
            },
        },
    ]
}

/// Large arrays are mapped, which the meter does not see; the system does. The most address space this process ever had.
fn peak_address_space_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmPeak:"));
    peak.and_then(|text| text.split_whitespace().next()?.parse().ok()).unwrap_or_default()
}

/// Whatever the bytes claim, no more than this is ever mapped: tests run in parallel, and each thread has a stack.
const MOST_MAPPED_KIB: u64 = 256 * 1024;

/// A forged length of gigabytes would show here, were it believed.
#[test]
fn announced_sizes_are_not_believed() {
    let before = peak_address_space_kib();
    for Specimen { name, bytes, members_there, .. } in specimens() {
        // Sizes of a gigabyte and more, in every field that can hold one.
        for at in [16, 48, 72, 80, 88, 96, 104] {
            for power in 20..50 {
                let mut forged = bytes.clone();
                forged[at..at + 8].copy_from_slice(&(1_u64 << power).to_le_bytes());
                seal(&mut forged);
                let damage = format!("2^{power} at byte {at}");
                let _ = metered(name, &forged, &damage, || members_there(&forged).is_ok());
            }
        }
    }
    let grown = peak_address_space_kib().saturating_sub(before);
    assert!(grown < MOST_MAPPED_KIB, "{grown} KiB more address space than before");
}

/// Runs `decode` and holds it to the limit on memory.
fn metered<T>(name: &str, bytes: &[u8], damage: &dyn std::fmt::Display, decode: impl FnOnce() -> T) -> T {
    let (result, measured) = AllocMeter::measure(decode);
    let limit = bytes.len() as u64 * 16 + 64 * 1024;
    assert!(measured.peak_bytes <= limit, "{name}, {damage}: {} bytes for {limit}", measured.peak_bytes);
    result
}

#[test]
fn intact_bytes_decode() {
    for specimen in specimens() {
        assert_eq!((specimen.members_there)(&specimen.bytes), Ok(true), "{}", specimen.name);
        (specimen.exercise)(&specimen.bytes).unwrap();
    }
}

#[test]
fn every_truncation_and_every_extension_is_an_error() {
    for Specimen { name, bytes, members_there, .. } in specimens() {
        let mut corruptor = Corruptor::new(&bytes);
        corruptor.truncations(|cut, damage| {
            let result = metered(name, cut, damage, || members_there(cut));
            assert!(result.is_err(), "{name}, {damage}");
        });
        corruptor.extensions(200, |long, damage| {
            let result = metered(name, long, damage, || members_there(long));
            assert!(result.is_err(), "{name}, {damage}");
        });
    }
}

#[test]
fn every_damaged_header_field_is_an_error() {
    let fields: Vec<(usize, usize)> = FIELDS.iter().map(|&(_, at, length)| (at, length)).collect();
    for Specimen { name, bytes, members_there, .. } in specimens() {
        Corruptor::new(&bytes).extremes(&fields, |damaged, damage| {
            if damaged != bytes {
                let result = metered(name, damaged, damage, || members_there(damaged));
                assert!(result.is_err(), "{name}, {damage}");
            }
        });
        Corruptor::new(&bytes).bit_flips(0..HEADER, |damaged, damage| {
            assert!(members_there(damaged).is_err(), "{name}, {damage}");
        });
    }
}

#[test]
fn a_million_random_flips_are_errors() {
    let specimens = specimens();
    let each = 1_000_000 / specimens.len() as u64 + 1;
    for (number, Specimen { name, bytes, members_there, .. }) in specimens.into_iter().enumerate() {
        Corruptor::new(&bytes).flips(number as u64, each, |damaged, damage| {
            let result = metered(name, damaged, damage, || members_there(damaged));
            assert!(matches!(result, Err(_) | Ok(true)), "{name}, {damage}: members were forgotten");
        });
    }
}

/// Puts right checksums into `bytes`, as an attacker would: of the payload, of nested filters, of the header.
fn seal(bytes: &mut [u8]) {
    let u64_at = |bytes: &[u8], at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
    if bytes.len() < HEADER {
        return;
    }
    let nested = matches!(bytes[10], 5 | 6);
    let (header, payload) = bytes.split_at_mut(HEADER);
    let checksum = if nested {
        let (mut headers, mut rest) = (Vec::new(), payload);
        while rest.len() >= HEADER {
            let length = usize::try_from(u64_at(rest, 16)).unwrap_or(usize::MAX).saturating_add(HEADER);
            let (part, behind) = rest.split_at_mut(length.min(rest.len()));
            seal(part);
            headers.extend_from_slice(&part[..HEADER]);
            rest = behind;
        }
        xxh3_64(&headers)
    } else {
        xxh3_64(payload)
    };
    header[24..32].copy_from_slice(&checksum.to_le_bytes());
    let checksum = xxh3_64(&header[..HEADER - 8]);
    header[HEADER - 8..].copy_from_slice(&checksum.to_le_bytes());
}

/// With all checksums corrected, only the checks of each field remain: nothing may panic, hang or allocate much memory.
#[test]
fn forged_bytes_with_correct_checksums_are_harmless() {
    let fields: Vec<(usize, usize)> = FIELDS.iter().map(|&(_, at, length)| (at, length)).collect();
    for Specimen { name, bytes, exercise, members_there } in specimens() {
        let mut sealed = bytes.clone();
        seal(&mut sealed);
        assert!(sealed == bytes, "{name}: the seal of this test is not that of the format");
        // The outer header, and for nested kinds the header of their first part.
        let inner: Vec<(usize, usize)> = fields.iter().map(|&(at, length)| (HEADER + at, length)).collect();
        let mut harmless = 0_u32;
        let mut show = |damaged: &[u8], damage: &mayhap_testkit::corrupt::Damage| {
            let decoded = metered(name, damaged, damage, || members_there(damaged).is_ok());
            if decoded {
                harmless += 1;
                let _ = exercise(damaged);
            }
        };
        Corruptor::new(&bytes).sealed_by(seal).extremes(&fields, &mut show);
        if matches!(name, "dual" | "scalable" | "scalable of RedisBloom's") {
            Corruptor::new(&bytes).sealed_by(seal).extremes(&inner, &mut show);
        }
        Corruptor::new(&bytes).sealed_by(seal).flips(11, 20_000, &mut show);
        Corruptor::new(&bytes).sealed_by(seal).truncations(&mut show);
        assert!(harmless > 0, "{name}: some forgeries decode, or the seal does not reach the fields");
    }
}

#[test]
fn forged_fields_are_named() {
    let mut filter = Bloom::for_capacity(90, 0.01, 7).unwrap();
    filter.insert("a");
    let bytes = filter.encode();
    let forge = |at: usize, field: &[u8]| {
        let mut forged = bytes.clone();
        forged[at..at + field.len()].copy_from_slice(field);
        seal(&mut forged);
        Bloom::decode(&forged).unwrap_err()
    };
    assert_eq!(forge(8, &[9, 0]), DecodeError::UnknownVersion { got: 9, newest: 1 });
    assert_eq!(forge(10, &[99, 0]), DecodeError::UnknownKind { got: 99 });
    assert!(matches!(forge(10, &[3, 0]), DecodeError::WrongKind { .. }));
    assert_eq!(forge(12, &[7, 0]), DecodeError::UnknownPlacement { got: 7 });
    assert_eq!(forge(14, &[7, 0]), DecodeError::UnknownHashScheme { got: 7 });
    assert!(matches!(forge(48, &[0; 8]), DecodeError::Unbuildable(_)));
    assert_eq!(forge(56, &[0xff; 8]), DecodeError::BadField { field: "inserted", got: u64::MAX });
    assert!(matches!(forge(64, &f64::NAN.to_le_bytes()), DecodeError::Unbuildable(_)));
    assert!(matches!(
        forge(72, &(1_u64 << 40).to_le_bytes()),
        DecodeError::BadField { field: "payload length", .. }
    ));
    assert!(matches!(forge(80, &[0; 8]), DecodeError::Unbuildable(_)));
    assert!(matches!(forge(88, &[1]), DecodeError::BadField { field: "unused parameter", .. }));
    assert!(matches!(forge(140, &[1]), DecodeError::BadField { field: "reserved", .. }));
    assert!(matches!(forge(bytes.len() - 1, &[0x80]), DecodeError::StrayBit { .. }));
    assert_eq!(Bloom::decode(b"not a filter").unwrap_err(), DecodeError::BadMagic);
    assert_eq!(Bloom::decode(&bytes[..12]).unwrap_err(), DecodeError::TooShort { need: 192, got: 12 });
}
