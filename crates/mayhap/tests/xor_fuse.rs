//! The promises of the xor filter and of the binary fuse filter: the same suite for both.

use std::collections::HashSet;

use mayhap::xor_fuse::{FuseGraph, SlotGraph, XorFuse, XorFuseShape, XorGraph};
use mayhap::{
    Answers, BinaryFuse8, BuildError, BuildOptions, DecodeError, Fingerprint, HashScheme, ItemHash,
    WellMixed, Xor8,
};
use mayhap_testkit::bad::{AlwaysMayhap, AlwaysNo};
use mayhap_testkit::rng::Rng;
use mayhap_testkit::suite::{Failure, Operation, RatePlan, Script, keeps_its_rate, never_forgets};
use mayhap_testkit::{
    Built, Inserted, Rebuilt, Shape, Subject, band_with_model_error, binomial_band, member, member_u64,
    non_member_u64,
};
use xxhash_rust::xxh3::xxh3_64;

const SEEDS: [u64; 8] = [1, 2, 3, 5, 8, 13, 21, 34];
const HEADER_BYTES: usize = 192;
/// Where in the header the two numbers begin that say how many slots there are.
const SLOTS_AT: usize = 96;

/// What differs between the two filters.
trait Expected: SlotGraph {
    /// Bits per item at most, with 8-bit fingerprints.
    const MOST_BITS: &[(u64, f64)];

    /// Numbers of slots, by their offset in the header, that no filter has.
    const FORGED_SLOTS: [(usize, u64); 3];
}

impl Expected for XorGraph {
    const MOST_BITS: &[(u64, f64)] =
        &[(1_000, 10.3), (1_000_000, 9.85), (10_000_000, 9.87), (100_000_000, 9.87)];
    const FORGED_SLOTS: [(usize, u64); 3] = [(SLOTS_AT, 0), (SLOTS_AT, 1 << 30), (SLOTS_AT + 8, 1)];
}

impl Expected for FuseGraph {
    const MOST_BITS: &[(u64, f64)] = &[(1_000_000, 9.05), (10_000_000, 9.05), (100_000_000, 9.07)];
    const FORGED_SLOTS: [(usize, u64); 3] = [(SLOTS_AT, 19), (SLOTS_AT + 8, 0), (SLOTS_AT + 8, 1 << 30)];
}

/// Filters that are built from all items together.
struct Whole<F: Fingerprint, G: SlotGraph>(XorFuse<F, G>);

impl<F: Fingerprint, G: SlotGraph> Built for Whole<F, G> {
    fn build(items: &[Vec<u8>], seed: u64) -> Result<Self, String> {
        XorFuse::build(items, seed).map(Self).map_err(|error| error.to_string())
    }

    fn may_contain(&self, item: &[u8]) -> bool {
        self.0.may_contain(item)
    }

    fn may_contain_batch(&self, items: &[&[u8]]) -> Vec<bool> {
        let mut answers = Answers::new();
        self.0.may_contain_batch(items, &mut answers);
        answers.iter().collect()
    }

    fn round_trip(&self) -> Result<Self, String> {
        XorFuse::decode(&self.0.encode()).map(Self).map_err(|error| error.to_string())
    }
}

/// The same in small shards, built by three threads or in passes, by turns.
struct Shards<G: SlotGraph>(XorFuse<u8, G>);

impl<G: SlotGraph> Built for Shards<G> {
    fn build(items: &[Vec<u8>], seed: u64) -> Result<Self, String> {
        let options = BuildOptions::default().threads(3).items_per_shard(20);
        let built = if items.len().is_multiple_of(2) {
            XorFuse::build_with(items, &options, seed)
        } else {
            XorFuse::build_in_passes(|| items, 3, &options, seed)
        };
        built.map(Self).map_err(|error| error.to_string())
    }

    fn may_contain(&self, item: &[u8]) -> bool {
        self.0.may_contain(item)
    }

    fn may_contain_batch(&self, items: &[&[u8]]) -> Vec<bool> {
        let mut answers = Answers::new();
        self.0.may_contain_batch(items, &mut answers);
        answers.iter().collect()
    }

    fn round_trip(&self) -> Result<Self, String> {
        XorFuse::decode(&self.0.encode()).map(Self).map_err(|error| error.to_string())
    }
}

/// Like [`Rebuilt`], but keeps only the last thirty items that were inserted again: otherwise a run of millions of operations would build filters of
/// hundreds of thousands of duplicates.
struct Rebuilding<F> {
    different: HashSet<Vec<u8>>,
    filter: Rebuilt<F>,
    seed: u64,
    again: usize,
}

impl<F: Built> Rebuilding<F> {
    fn new(seed: u64) -> Self {
        Self { different: HashSet::new(), filter: Rebuilt::new(seed), seed, again: 0 }
    }
}

impl<F: Built> Subject for Rebuilding<F> {
    fn insert(&mut self, item: &[u8]) -> Inserted {
        if !self.different.insert(item.to_vec()) {
            self.again += 1;
        }
        if self.again > 30 {
            self.filter = Rebuilt::new(self.seed);
            self.different.iter().for_each(|item| {
                self.filter.insert(item);
            });
            self.again = 0;
        }
        self.filter.insert(item)
    }

    fn may_contain(&self, item: &[u8]) -> bool {
        self.filter.may_contain(item)
    }

    fn round_trip(&self) -> Option<Result<Self, String>> {
        let back = self.filter.round_trip()?;
        let (different, seed, again) = (self.different.clone(), self.seed, self.again);
        Some(back.map(|filter| Self { different, filter, seed, again }))
    }

    fn may_contain_batch(&self, items: &[&[u8]]) -> Vec<bool> {
        self.filter.may_contain_batch(items)
    }
}

/// `MAYHAP_OPERATIONS` sets a longer run.
fn operations() -> u64 {
    std::env::var("MAYHAP_OPERATIONS").map_or(200_000, |number| number.parse().expect("a number"))
}

/// Everything but removing and merging, which it cannot.
const CANNOT: [Operation; 3] = [Operation::LookupRemoved, Operation::Remove, Operation::Merge];

fn never_forgets_an_item<G: Expected>() {
    let script = Script::new(operations(), 128);
    let report = never_forgets(Rebuilding::<Whole<u8, G>>::new, &script).unwrap();
    assert_eq!(report.missing(), CANNOT);
    let report = never_forgets(Rebuilding::<Whole<u16, G>>::new, &script).unwrap();
    assert_eq!(report.missing(), CANNOT);
    let report = never_forgets(Rebuilding::<Whole<u32, G>>::new, &script).unwrap();
    assert_eq!(report.missing(), CANNOT);
}

fn never_forgets_in_shards_with_threads_and_in_passes<G: Expected>() {
    let script = Script::new(operations() / 20, 200);
    let report = never_forgets(Rebuilding::<Shards<G>>::new, &script).unwrap();
    assert_eq!(report.missing(), CANNOT);
}

/// Wrong for one non-member in 128, as a filter would be that cuts one bit off its fingerprints.
struct SevenBits<G: SlotGraph>(Rebuilt<Whole<u8, G>>);

impl<G: SlotGraph> Subject for SevenBits<G> {
    fn insert(&mut self, item: &[u8]) -> Inserted {
        self.0.insert(item)
    }

    fn may_contain(&self, item: &[u8]) -> bool {
        // Two non-members instead of one: the chance that one of them is a false positive is twice as large.
        let twin = [item, b"'s twin"].concat();
        self.0.may_contain(item) || self.0.may_contain(&twin)
    }
}

/// Leaves some items out.
struct ForgetsSome<G: SlotGraph>(Rebuilt<Whole<u8, G>>);

impl<G: SlotGraph> Subject for ForgetsSome<G> {
    fn insert(&mut self, item: &[u8]) -> Inserted {
        if item.last() == Some(&b'7') {
            return Inserted::Mayhap;
        }
        self.0.insert(item)
    }

    fn may_contain(&self, item: &[u8]) -> bool {
        self.0.may_contain(item)
    }
}

fn the_suites_have_teeth<G: Expected>() {
    let plan = plan::<u8>(2_000, 4_000.0);
    assert!(matches!(
        keeps_its_rate(|seed| SevenBits::<G>(Rebuilt::new(seed)), &plan),
        Err(Failure::RateOff { .. })
    ));
    assert!(keeps_its_rate(|_| AlwaysNo, &plan).is_err());
    assert!(keeps_its_rate(|_| AlwaysMayhap, &plan).is_err());
    let script = Script::new(20_000, 128);
    assert!(never_forgets(|seed| ForgetsSome::<G>(Rebuilt::new(seed)), &script).is_err());
}

/// The expected number of false positives; the model is exact, so the band allows only for chance.
fn plan<F: Fingerprint>(items: u64, wrong: f64) -> RatePlan<'static> {
    let rate = 2_f64.powi(-(F::BITS as i32));
    let non_members = (wrong / rate) as u64 / SEEDS.len() as u64;
    let promised = binomial_band(non_members * SEEDS.len() as u64, rate, 1e-6);
    RatePlan { shape: Shape::Url, items, non_members, seeds: &SEEDS, promised }
}

fn keeps_its_rate_of_one_in_256_whatever_the_number_of_items<G: Expected>() {
    for items in [1, 2, 10, 100, 1_000, 50_000] {
        let report = keeps_its_rate(Rebuilt::<Whole<u8, G>>::new, &plan::<u8>(items, 4_000.0));
        // With a handful of slots a non-member hits the same three so often that single filters vary: only the average is checked.
        if items >= 100 {
            report.unwrap();
        } else {
            let wrong = report.map_or_else(
                |failure| match failure {
                    Failure::RateOff { wrong, .. } => wrong,
                    other => panic!("{items} items: {other}"),
                },
                |report| report.wrong,
            );
            assert!((3_000..5_000).contains(&wrong), "{items} items: {wrong}");
        }
    }
}

fn keeps_its_rate_of_one_in_65_536<G: Expected>() {
    let mut wrong = 0;
    let non_members = 20_000_000_u64;
    for seed in [1, 2] {
        let filter = XorFuse::<u16, G>::build((0..20_000).map(|i| member_u64(seed, i)), seed).unwrap();
        wrong += (0..non_members).filter(|&i| filter.may_contain(&non_member_u64(seed, i))).count() as u64;
    }
    assert!(binomial_band(2 * non_members, 1.0 / 65_536.0, 1e-6).contains(&wrong), "{wrong}");
}

/// Too rare to count: but every bit of the wide fingerprint must matter, its halves each on their own.
fn fingerprints_of_32_bits_are_distinguished<G: Expected>() {
    let filter = XorFuse::<u32, G>::build((0..20_000).map(|i| member_u64(0, i)), 0).unwrap();
    assert_eq!((0..20_000_000).filter(|&i| filter.may_contain(&non_member_u64(0, i))).count(), 0);
}

fn shards_keep_the_rate_too<G: Expected>() {
    let options = BuildOptions::default().items_per_shard(5_000);
    let (mut wrong, non_members) = (0, 500_000);
    for seed in SEEDS {
        let filter =
            XorFuse::<u8, G>::build_with((0..40_000).map(|i| member_u64(seed, i)), &options, seed).unwrap();
        assert_eq!(filter.shape().shards(), 8);
        assert!((0..40_000).all(|i| filter.may_contain(&member_u64(seed, i))));
        wrong += (0..non_members).filter(|&i| filter.may_contain(&non_member_u64(seed, i))).count() as u64;
    }
    assert!(band_with_model_error(8 * non_members, 1.0 / 256.0, 1e-6, 0.0).contains(&wrong), "{wrong}");
}

fn no_item_one_item_and_a_few<G: Expected>() {
    let empty = XorFuse::<u8, G>::build(Vec::<u64>::new(), 7).unwrap();
    assert_eq!((empty.inserted(), empty.memory_bytes(), empty.expected_fpr()), (0, 0, 0.0));
    assert!((0..100_000_u64).all(|item| !empty.may_contain(&item)));
    let mut answers = Answers::new();
    empty.may_contain_batch(&["a", "b"], &mut answers);
    assert_eq!((answers.len(), answers.maybe_count()), (2, 0));
    let back = XorFuse::<u8, G>::decode(&empty.encode()).unwrap();
    assert!((0..100_000_u64).all(|item| !back.may_contain(&item)));
    let passes = XorFuse::<u8, G>::build_in_passes(Vec::<u64>::new, 4, &BuildOptions::default(), 7).unwrap();
    assert_eq!(passes.encode(), empty.encode());
    for count in 1..300_u64 {
        for seed in 0..20 {
            let filter = XorFuse::<u16, G>::build(0..count, seed).unwrap();
            assert_eq!(filter.inserted(), count);
            assert!((0..count).all(|item| filter.may_contain(&item)), "{count} items, seed {seed}");
        }
    }
}

fn duplicates_change_nothing<G: Expected>() {
    let once: Vec<u64> = (0..3_000).map(|i| member_u64(0, i)).collect();
    let expected = XorFuse::<u8, G>::build(&once, 7).unwrap();
    let mut rng = Rng::new(1);
    // One item twice, some often, all of one item.
    let mut twice = once.clone();
    twice.push(once[17]);
    let mut often = once.clone();
    often.extend((0..50_000).map(|_| once[rng.below(3_000) as usize]));
    for items in [&twice, &often] {
        assert_eq!(XorFuse::<u8, G>::build(items, 7).unwrap().encode(), expected.encode());
    }
    let same = XorFuse::<u32, G>::build([5_u64; 10_000], 7).unwrap();
    assert_eq!((same.inserted(), same.may_contain(&5_u64)), (1, true));
    // In passes they are counted as items, but answer the same.
    let options = BuildOptions::default().items_per_shard(1_000);
    let passes = XorFuse::<u8, G>::build_in_passes(|| &often, 5, &options, 7).unwrap();
    assert_eq!(passes.inserted(), 3_000);
    assert!(once.iter().all(|item| passes.may_contain(item)));
}

fn threads_and_passes_make_the_same_bytes<G: Expected>() {
    let items: Vec<u64> = (0..100_000).map(|i| member_u64(3, i)).collect();
    let build = |threads: usize, per_shard: u64| {
        let options = BuildOptions::default().threads(threads).items_per_shard(per_shard);
        XorFuse::<u16, G>::build_with(&items, &options, 3).unwrap()
    };
    for per_shard in [5_000, 30_000, 1_000_000] {
        let alone = build(1, per_shard);
        assert!(items.iter().all(|item| alone.may_contain(item)));
        for threads in [0, 2, 7, 100] {
            assert_eq!(alone.encode(), build(threads, per_shard).encode(), "{threads} threads");
        }
        for passes in [0, 1, 2, 5, 1_000] {
            let options = BuildOptions::default().threads(2).items_per_shard(per_shard);
            let passes = XorFuse::<u16, G>::build_in_passes(|| items.iter(), passes, &options, 3).unwrap();
            assert_eq!(alone.encode(), passes.encode());
        }
        // The order of the items does not matter either.
        let mut reversed = items.clone();
        reversed.reverse();
        let options = BuildOptions::default().items_per_shard(per_shard);
        assert_eq!(alone.encode(), XorFuse::<u16, G>::build_with(reversed, &options, 3).unwrap().encode());
    }
    assert_eq!(build(2, 5_000).shape().shards(), 32);
}

fn hashes_and_items_and_batches_are_the_same<G: Expected>() {
    let items: Vec<Vec<u8>> = (0..1_000).map(member).collect();
    for scheme in [HashScheme::fast(5), HashScheme::keyed_random().unwrap()] {
        let by_item = XorFuse::<u8, G>::build(&items, scheme).unwrap();
        let hashes: Vec<_> = items.iter().map(|item| scheme.hash(item)).collect();
        let by_hash = XorFuse::<u8, G>::build_hashes(hashes, &BuildOptions::default(), scheme).unwrap();
        assert_eq!(by_item.encode(), by_hash.encode());
        for asked in [0, 1, 63, 64, 65, 128, 1_000] {
            let asked: Vec<u64> = (0..asked).map(|i| non_member_u64(1, i)).collect();
            let hashes: Vec<_> = asked.iter().map(|item| by_item.hash(item)).collect();
            let (mut of_items, mut of_hashes) = (Answers::new(), Answers::new());
            by_item.may_contain_batch(&asked, &mut of_items);
            by_item.may_contain_hash_batch(&hashes, &mut of_hashes);
            assert_eq!(of_items, of_hashes);
            let one_by_one: Vec<bool> = asked.iter().map(|item| by_item.may_contain(item)).collect();
            assert_eq!(of_items.iter().collect::<Vec<_>>(), one_by_one);
            assert!(
                hashes.iter().zip(one_by_one).all(|(hash, answer)| by_item.may_contain_hash(*hash) == answer)
            );
        }
    }
}

/// Keys chosen by an attacker: all in one shard, all with the same slots under the first seed, all equal except for a few bits.
fn chosen_keys_are_harmless<G: Expected>() {
    let keyed = |key: u64| ItemHash::from(WellMixed(u128::from(key)));
    let options = BuildOptions::default().items_per_shard(100).threads(2);
    let forgeries: [fn(u64) -> u64; 5] = [
        |i| i,                                     // one shard, low bits only
        |i| i << 52,                               // high bits only
        |i| i.wrapping_mul(0xf1de_83e1_9937_733d), // the first seed makes them 0, 1, 2, …
        |i| i << 26,
        |i| if i % 2 == 0 { i << 40 } else { !(i << 40) },
    ];
    for (number, forgery) in forgeries.into_iter().enumerate() {
        let hashes: Vec<ItemHash> = (0..2_000).map(|i| keyed(forgery(i))).collect();
        let distinct = (0..2_000).map(forgery).collect::<HashSet<_>>().len() as u64;
        match XorFuse::<u8, G>::build_hashes(hashes.clone(), &options, 0) {
            Ok(filter) => {
                assert!(hashes.iter().all(|&hash| filter.may_contain_hash(hash)), "forgery {number}");
                assert_eq!(filter.inserted(), distinct);
                assert!(filter.bits_per_item() < 40.0, "forgery {number}: {}", filter.bits_per_item());
            }
            Err(BuildError::Unsolvable { attempts, items }) => {
                assert!(attempts > 1 && items == distinct, "forgery {number}");
            }
            Err(other) => panic!("forgery {number}: {other}"),
        }
    }
}

fn sizes_are_known_beforehand<G: Expected>() {
    for &(items, most) in G::MOST_BITS {
        let shape = XorFuseShape::<G>::for_items(items, 8).unwrap();
        assert!(shape.bits_per_item() <= most, "{items}: {}", shape.bits_per_item());
    }
    for items in [1, 2, 17, 1_000, 54_321] {
        let built = XorFuse::<u16, G>::build(0..items, 1).unwrap();
        let shape = XorFuseShape::<G>::for_items(items, 16).unwrap();
        assert_eq!(
            (built.memory_bytes(), built.bits_per_item()),
            (shape.memory_bytes(), shape.bits_per_item())
        );
        assert_eq!(built.shape().to_string(), shape.to_string());
    }
    assert_eq!(XorFuseShape::<G>::bits_for(0.01), Ok(8));
    assert_eq!(XorFuseShape::<G>::bits_for(1.0 / 256.0), Ok(8));
    assert_eq!(XorFuseShape::<G>::bits_for(0.0039), Ok(16));
    assert_eq!(XorFuseShape::<G>::bits_for(1e-9), Ok(32));
    assert!(matches!(XorFuseShape::<G>::bits_for(1e-10), Err(BuildError::RateTooLow { .. })));
    assert!(matches!(XorFuseShape::<G>::bits_for(f64::NAN), Err(BuildError::RateOutOfRange { .. })));
    assert!(matches!(
        XorFuseShape::<G>::for_items(10, 9),
        Err(BuildError::FingerprintOutOfRange { got: 9, least: 8, limit: 32 })
    ));
    assert!(XorFuseShape::<G>::for_items(1 << 43, 8).is_err());
    assert!(XorFuseShape::<G>::for_items(1 << 42, 8).is_ok());
    assert!(XorFuseShape::<G>::for_items(1_000, 8).unwrap().within(1_000).is_err());
}

/// Puts right checksums into `bytes`, as an attacker would.
fn seal(bytes: &mut [u8]) {
    let (header, payload) = bytes.split_at_mut(HEADER_BYTES);
    header[24..32].copy_from_slice(&xxh3_64(payload).to_le_bytes());
    let checksum = xxh3_64(&header[..HEADER_BYTES - 8]);
    header[HEADER_BYTES - 8..].copy_from_slice(&checksum.to_le_bytes());
}

fn forged_fields_are_named<G: Expected>() {
    let bytes = XorFuse::<u8, G>::build(0..1_000_u64, 7).unwrap().encode();
    let forge = |at: usize, field: &[u8]| {
        let mut forged = bytes.clone();
        forged[at..at + field.len()].copy_from_slice(field);
        seal(&mut forged);
        XorFuse::<u8, G>::decode(&forged).unwrap_err()
    };
    let number = |number: u64| number.to_le_bytes();
    assert_eq!(forge(12, &[2, 0]), DecodeError::UnknownPlacement { got: 2 });
    assert!(matches!(forge(48, &number(1 << 50)), DecodeError::Unbuildable(_)));
    assert_eq!(forge(56, &number(3)), DecodeError::BadField { field: "inserted", got: 3 });
    assert!(matches!(forge(64, &0.5_f64.to_le_bytes()), DecodeError::BadField { field: "target rate", .. }));
    assert_eq!(forge(72, &number(16)), DecodeError::BadField { field: "fingerprint bits", got: 16 });
    assert_eq!(forge(80, &number(1 << 20)), DecodeError::BadField { field: "attempt", got: 1 << 20 });
    assert_eq!(forge(88, &number(25)), DecodeError::BadField { field: "shards", got: 25 });
    assert_eq!(
        forge(88, &number(1)),
        DecodeError::BadField { field: "payload length", got: bytes.len() as u64 - 192 }
    );
    let first = u64::from_le_bytes(bytes[SLOTS_AT..SLOTS_AT + 8].try_into().unwrap());
    for (at, slots) in G::FORGED_SLOTS {
        let got = if at == SLOTS_AT { slots } else { first };
        assert_eq!(
            forge(at, &number(slots)),
            DecodeError::BadField { field: "segments", got },
            "{at}: {slots}"
        );
    }
    assert!(matches!(forge(112, &number(1)), DecodeError::BadField { field: "unused parameter", .. }));
    // The slots of a single item end within a line.
    let mut small = XorFuse::<u8, G>::build([1_u64], 7).unwrap().encode();
    *small.last_mut().unwrap() = 1;
    seal(&mut small);
    assert!(matches!(XorFuse::<u8, G>::decode(&small), Err(DecodeError::StrayBit { .. })));
    // Widths are distinguished in both directions.
    let wide = XorFuse::<u16, G>::build(0..1_000_u64, 7).unwrap().encode();
    assert_eq!(
        XorFuse::<u8, G>::decode(&wide).unwrap_err(),
        DecodeError::BadField { field: "fingerprint bits", got: 16 }
    );
    assert!(XorFuse::<u32, G>::decode(&bytes).is_err());
}

fn copies_are_the_same<G: Expected>() {
    let filter = XorFuse::<u8, G>::build(0..1_000_u64, 7).unwrap();
    assert_eq!(filter.try_clone().unwrap().encode(), filter.encode());
    assert_eq!(filter.clone().encode(), filter.encode());
    assert_eq!(XorFuse::<u8, G>::decode(&filter.encode()).unwrap().encode(), filter.encode());
}

fn equal_filters_are_those_of_equal_items_seeds_and_options<G: Expected>() {
    let build = |items: u64, seed: u64| XorFuse::<u8, G>::build(0..items, seed).unwrap();
    let filter = build(1_000, 7);
    assert!(filter == filter.clone() && filter == build(1_000, 7));
    assert!(filter == XorFuse::decode(&filter.encode()).unwrap());
    assert!(filter != build(1_000, 8), "another seed");
    assert!(filter != build(999, 7), "one item less");
    let others = XorFuse::<u8, G>::build((0..999_u64).chain([1_000]), 7).unwrap();
    assert!(filter != others, "as many items, one of them another");
    let options = BuildOptions::default().items_per_shard(100);
    assert!(filter != XorFuse::build_with(0..1_000_u64, &options, 7).unwrap(), "other shards");
    assert!(build(0, 7) == build(0, 7) && build(0, 7) != filter);
}

fn every_filter_draws_a_seed_of_its_own_unless_told<G: Expected>() {
    let keys: Vec<u64> = (0..1_000).map(|i| member_u64(0, i)).collect();
    let filters: [XorFuse<u8, G>; 5] = [
        XorFuse::from_items(&keys).unwrap(),
        XorFuse::from_items(keys.iter().map(|key| key.to_le_bytes())).unwrap(),
        XorFuse::try_from(&keys).unwrap(),
        XorFuse::try_from(&keys[..]).unwrap(),
        XorFuse::try_from(keys.clone()).unwrap(),
    ];
    for (number, filter) in filters.iter().enumerate() {
        assert!(matches!(filter.scheme(), HashScheme::Fast { .. }));
        assert!(filters[..number].iter().all(|other| other.scheme() != filter.scheme()));
        assert_eq!(filter.inserted(), 1_000);
        assert!(keys.iter().all(|key| filter.may_contain(key)));
    }
}

fn debug_names_the_kind<G: Expected>() {
    let shown = format!("{:?}", XorFuse::<u8, G>::build(0..10_u64, 7).unwrap());
    assert!(shown.starts_with(&format!("{:?} {{ table: ", G::KIND)), "{shown}");
}

/// Runs each of these functions for both filters.
macro_rules! for_both {
    ($($promise:ident),* $(,)?) => {
        mod xor {
            $(#[test] fn $promise() { super::$promise::<super::XorGraph>(); })*
        }

        mod binary_fuse {
            $(#[test] fn $promise() { super::$promise::<super::FuseGraph>(); })*
        }
    };
}

for_both!(
    never_forgets_an_item,
    never_forgets_in_shards_with_threads_and_in_passes,
    the_suites_have_teeth,
    keeps_its_rate_of_one_in_256_whatever_the_number_of_items,
    keeps_its_rate_of_one_in_65_536,
    fingerprints_of_32_bits_are_distinguished,
    shards_keep_the_rate_too,
    no_item_one_item_and_a_few,
    duplicates_change_nothing,
    threads_and_passes_make_the_same_bytes,
    hashes_and_items_and_batches_are_the_same,
    chosen_keys_are_harmless,
    sizes_are_known_beforehand,
    forged_fields_are_named,
    copies_are_the_same,
    equal_filters_are_those_of_equal_items_seeds_and_options,
    every_filter_draws_a_seed_of_its_own_unless_told,
    debug_names_the_kind,
);

/// The names that programs use: each is its own type, and the two kinds do not read each other.
#[test]
fn the_names_are_two_kinds() {
    let (xor, fuse) = (Xor8::build(["a"], 7).unwrap(), BinaryFuse8::build(["a"], 7).unwrap());
    assert!(matches!(Xor8::decode(&fuse.encode()), Err(DecodeError::WrongKind { .. })));
    assert!(matches!(BinaryFuse8::decode(&xor.encode()), Err(DecodeError::WrongKind { .. })));
    assert_eq!(xor.shape().block_slots(), 12);
    assert_eq!(fuse.shape().segment_slots(), 4);
}
