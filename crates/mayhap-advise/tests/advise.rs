//! The advisor: its prices are those of the filters really built, its choice always suits, and its lines of Rust compile.

use std::collections::HashSet;

use mayhap::{
    Bitmap, BlockedBloom, BlockedLayout, BlockedShape, Bloom, CountingBloom, DualBloom, Kind, ScalableBloom,
};
use mayhap_advise::{
    Advice, Deletes, Filling, Growth, ItemShape, Needs, NeedsError, Note, Price, Structure, Unsuitable,
    advise, price_list, rust_for, solve,
};
use mayhap_testkit::alloc_meter::AllocMeter;
use proptest::prelude::*;

#[global_allocator]
static METER: AllocMeter = AllocMeter;

const SPLIT: Structure = Structure::BlockedBloom(BlockedLayout::Split256);
const LINE: Structure = Structure::BlockedBloom(BlockedLayout::Line512);
/// Chinese mobile numbers: seven billion possible ones.
const PHONES: ItemShape = ItemShape::IntegerRange { low: 13_000_000_000, high: 19_999_999_999 };

fn best(needs: &Needs) -> Structure {
    recommended(&advise(needs).unwrap()).structure
}

fn recommended(advice: &Advice) -> &Price {
    advice.recommended().expect("something suits")
}

fn bytes_of(structure: Structure, needs: &Needs) -> u64 {
    let prices = price_list(needs).unwrap();
    let price = prices.iter().find(|price| price.structure == structure).unwrap();
    price.cost.expect("it can be built").memory_bytes
}

#[test]
fn a_billion_phone_numbers_are_a_bitmap() {
    let needs = Needs::new(1_000_000_000, 0.01).of(PHONES);
    let advice = advise(&needs).unwrap();
    let price = recommended(&advice);
    assert_eq!(price.structure, Structure::Bitmap);
    let bytes = price.cost.unwrap().memory_bytes;
    assert_eq!(bytes, 875_000_000, "7e9 bits");
    assert!(
        (1_190_000_000..1_210_000_000).contains(&bytes_of(Structure::Bloom, &needs)),
        "the classic filter"
    );
    assert!(advice.why[0].contains("7,000,000,000 possible numbers, 834 MiB"), "{:?}", advice.why);
    assert!(advice.why[1].contains("cuckoo semi-sorted, would take 1.10 GiB"), "{:?}", advice.why);
    assert!(price.can.exact && price.can.deletes && price.can.grows);
    assert!(
        !advice.notes.iter().any(|note| matches!(note, Note::WrongAnswers { .. })),
        "it has no false positives"
    );
    // A hundred million of them are another matter: the filter is a tenth of the bitmap.
    assert_eq!(best(&Needs::new(100_000_000, 0.01).of(PHONES)), SPLIT);
}

#[test]
fn a_billion_urls_are_a_blocked_filter() {
    let advice = advise(&Needs::new(1_000_000_000, 0.01)).unwrap();
    let price = recommended(&advice);
    assert_eq!(price.structure, SPLIT);
    assert!((10.5..10.6).contains(&price.cost.unwrap().bits_per_item));
    assert_eq!(
        advice.rust.as_deref(),
        Some("use mayhap::BlockedBloom;\nlet mut seen = BlockedBloom::new(1_000_000_000, 0.01)?;")
    );
    assert!(advice.why[1].contains("9% less memory (1.12 GiB)"), "{:?}", advice.why);
}

#[test]
fn few_items_are_a_hash_set() {
    for items in [1, 1_000, 30_000] {
        assert_eq!(best(&Needs::new(items, 0.01)), Structure::HashSet, "{items}");
    }
    assert_eq!(best(&Needs::new(1_000_000, 0.01)), SPLIT);
    // The numbers are included: its memory, and what a filter would save.
    let advice = advise(&Needs::new(1_000, 0.01)).unwrap();
    assert!(advice.why[0].contains("for 1,000 items, never wrong"), "{:?}", advice.why);
    assert!(advice.why[1].contains("would save"), "{:?}", advice.why);
    // Not where memory is counted in bytes, as with one set for every user.
    assert_eq!(best(&Needs::new(1_000, 0.01).within(1_400)), SPLIT);
    assert_eq!(best(&Needs::new(1_000, 0.01).within(1_250)), Structure::Bloom);
}

#[test]
fn deletions_growth_and_low_rates_change_the_kind() {
    let million = Needs::new(1_000_000, 0.01);
    assert_eq!(best(&million.clone().deleting(Deletes::Endlessly)), Structure::Cuckoo);
    let unknown = million.clone().growing(Growth::Unknown);
    assert_eq!(best(&unknown), Structure::Growing);
    assert_eq!(best(&unknown.deleting(Deletes::Endlessly)), Structure::Growing);
    assert_eq!(best(&million.clone().growing(Growth::AllAtOnce)), Structure::Ribbon);
    assert_eq!(best(&Needs::new(1_000_000, 1.0 / 256.0).growing(Growth::AllAtOnce)), Structure::BinaryFuse);
    // Dense lines below 0.1 %; below the range of lines, fingerprints.
    assert_eq!(best(&Needs::new(1_000_000, 1e-6)), LINE);
    assert_eq!(best(&Needs::new(1_000_000, 1e-10)), Structure::Quotient);
    // At a rate this low fingerprints are smaller than any filter, if the set never changes.
    assert_eq!(
        best(&Needs::new(1_000, 1e-15).within(8_000).growing(Growth::AllAtOnce)),
        Structure::SortedArray
    );
}

#[test]
fn a_window_is_for_windows_only() {
    let million = Needs::new(1_000_000, 0.01);
    let advice = advise(&million.clone().growing(Growth::Window)).unwrap();
    assert_eq!(recommended(&advice).structure, Structure::Window);
    assert!(advice.prices[1..].iter().all(|price| price.unsuitable.contains(&Unsuitable::NeverForgets)));
    assert!(advice.notes.contains(&Note::Forgets { items: 1_000_000 }));
    for growth in [Growth::AllAtOnce, Growth::UpToItems, Growth::Unknown] {
        let prices = price_list(&million.clone().growing(growth)).unwrap();
        let window = prices.iter().find(|price| price.structure == Structure::Window).unwrap();
        assert!(window.unsuitable.contains(&Unsuitable::ForgetsOldItems), "{growth:?}");
    }
}

#[test]
fn static_filters_are_advised_only_for_complete_sets() {
    for structure in Structure::all().filter(|structure| structure.is_static()) {
        let suits = |growth| {
            let prices = price_list(&Needs::new(100_000, 0.001).growing(growth)).unwrap();
            prices.into_iter().find(|price| price.structure == structure).unwrap().suits()
        };
        assert!(suits(Growth::AllAtOnce), "{structure}");
        assert!(!suits(Growth::UpToItems) && !suits(Growth::Unknown), "{structure}");
    }
}

#[test]
fn removals_in_little_memory_cost_the_certain_no() {
    // At a rate this high fingerprints cost more than bits do.
    let tight = Needs::new(1_000_000, 0.1).within(740_000);
    let advice = advise(&tight.clone().deleting(Deletes::UpTo(1_000))).unwrap();
    let price = recommended(&advice);
    assert_eq!(price.structure, Structure::DualBloom, "fingerprints take more");
    assert!(!price.can.certain_no);
    let warned = advice.notes.iter().find(|note| matches!(note, Note::Deletions { .. })).unwrap().to_string();
    assert!(warned.contains("may answer no for 10% of the members"), "{warned}");
    let wrong =
        advice.notes.iter().find(|note| matches!(note, Note::WrongAnswers { .. })).unwrap().to_string();
    assert!(!wrong.contains("a no is certain"), "{wrong}");
    // Without a limit of removals there is no size for the second filter.
    let endless = advise(&tight.deleting(Deletes::Endlessly)).unwrap();
    assert_eq!(endless.recommended(), None);
    let dual = endless.prices.iter().find(|price| price.structure == Structure::DualBloom).unwrap();
    assert!(dual.unsuitable.contains(&Unsuitable::WearsOut), "{dual:?}");
}

#[test]
fn advice_that_does_not_fit_includes_what_would() {
    let needs = Needs::new(1_000_000_000, 0.01).within(512 << 20);
    let advice = advise(&needs).unwrap();
    assert_eq!((advice.recommended(), &advice.rust), (None, &None));
    assert!(
        advice.why[0].contains("Nothing fits in 512 MiB")
            && advice.why[0].contains("cuckoo semi-sorted, takes 1.10 GiB")
    );
    let [Note::DoesNotFit { structure, rate_that_fits: Some(rate), items_that_fit: Some(items), .. }] =
        advice.notes[..]
    else {
        panic!("{:?}", advice.notes)
    };
    // Fingerprints are smaller, but not at so high a rate.
    assert_eq!(structure, Structure::Bloom);
    assert!(Bloom::for_capacity(items, 0.01, 0).unwrap().memory_bytes() <= 512 << 20);
    assert!(solve::bytes_for(structure, 1_000_000_000, rate).unwrap() <= 512 << 20);
    assert_eq!((items / 1_000_000, (rate * 100.0).round()), (447, 13.0));
}

#[test]
fn exact_sets_that_do_not_fit_include_the_items_that_would() {
    // No filter that grows and removes supports such a low rate.
    let needs =
        Needs::new(1_000_000, 1e-14).growing(Growth::Unknown).deleting(Deletes::Endlessly).within(1 << 20);
    let advice = advise(&needs).unwrap();
    let [Note::DoesNotFit { structure, rate_that_fits: None, items_that_fit: Some(items), .. }] =
        advice.notes[..]
    else {
        panic!("{:?}", advice.notes)
    };
    assert_eq!(structure, Structure::HashSet);
    assert!((10_000..20_000).contains(&items), "{items}");
    let mut fewer = needs;
    fewer.items = items;
    assert_eq!(best(&fewer), Structure::HashSet);
}

#[test]
fn threads_get_a_lock_free_kind_or_a_note_about_the_lock() {
    let shared = Needs::new(1_000_000, 0.01).threaded();
    let advice = advise(&shared).unwrap();
    assert_eq!(recommended(&advice).structure, SPLIT);
    assert!(advice.rust.unwrap().contains("\nlet seen = AtomicBlockedBloom::"));
    // A hash set would be exact, but every thread would wait for it.
    assert_eq!(best(&Needs::new(1_000, 0.01).threaded()), SPLIT);
    let advice = advise(&shared.deleting(Deletes::Endlessly)).unwrap();
    assert_eq!(recommended(&advice).structure, Structure::Cuckoo);
    assert!(advice.notes.contains(&Note::NeedsLock { structure: Structure::Cuckoo }));
}

#[test]
fn untrusted_items_get_a_keyed_hash() {
    let advice = advise(&Needs::new(1_000_000, 0.01).untrusted()).unwrap();
    assert!(advice.notes.contains(&Note::KeyedHashing));
    assert!(advice.rust.unwrap().ends_with(")?.keyed()?;"));
    let advice = advise(&Needs::new(1_000_000, 0.01)).unwrap();
    assert!(advice.notes.contains(&Note::FastHashing));
}

#[test]
fn wrong_answers_are_counted_per_day() {
    let said = |needs: &Needs| {
        let notes = advise(needs).unwrap().notes;
        notes.iter().find(|note| matches!(note, Note::WrongAnswers { .. })).unwrap().to_string()
    };
    let needs = Needs::new(1_000_000, 0.01);
    assert!(
        said(&needs)
            .contains("At 1,000 lookups of non-members a second that is up to 864,000 false positives a day")
    );
    assert!(
        said(&needs.asked_daily(5_000))
            .contains("5,000 lookups of non-members a day that is up to 50 false positives")
    );
    let rare = said(&Needs::new(1_000_000, 1e-9).asked_daily(1_000_000));
    assert!(rare.contains("one false positive in 1,000 days"), "{rare}");
}

/// The memory that the built filter reports.
fn built_bytes(structure: Structure, items: u64, rate: f64) -> Option<u64> {
    Some(match structure {
        Structure::Bloom => Bloom::for_capacity(items, rate, 0).unwrap().memory_bytes(),
        Structure::BlockedBloom(layout) => {
            let shape = BlockedShape::with_layout(layout, items, rate).unwrap();
            BlockedBloom::with_shape(shape, 0).unwrap().memory_bytes()
        }
        Structure::CountingBloom => CountingBloom::for_capacity(items, rate, 0).unwrap().memory_bytes(),
        Structure::DualBloom => DualBloom::for_capacity(items, items / 10, rate, 0).unwrap().memory_bytes(),
        Structure::ScalableBloom => {
            let mut filter = ScalableBloom::for_capacity(items, rate, 0).unwrap();
            for id in 0..items {
                filter.insert(&id).unwrap();
            }
            filter.memory_bytes()
        }
        Structure::Bitmap => Bitmap::new(items * 7).unwrap().memory_bytes(),
        _ => return None,
    })
}

#[test]
fn prices_are_those_of_the_filters_built() {
    for items in [1_000, 100_000] {
        for rate in [0.1, 0.01, 1e-4, 1e-7] {
            let range = ItemShape::IntegerRange { low: 5, high: 4 + items * 7 };
            let prices = price_list(&Needs::new(items, rate).of(range)).unwrap();
            for price in &prices {
                let cost = price.cost.expect("everything can be built");
                if let Some(bytes) = built_bytes(price.structure, items, rate) {
                    assert_eq!(cost.memory_bytes, bytes, "{} for {items} at {rate}", price.structure);
                }
                assert!((cost.bits_per_item - cost.memory_bytes as f64 * 8.0 / items as f64).abs() < 1e-9);
                assert!(cost.expected_fpr <= rate, "{price:?}");
            }
            // Every kind has a price, except RedisBloom's own and the one in which `uniq` stores lines.
            let kinds: HashSet<Kind> = prices.iter().filter_map(|price| price.structure.kind()).collect();
            let unpriced = [Kind::ScalableCuckoo, Kind::Fingerprints];
            assert_eq!(kinds, Kind::ALL.into_iter().filter(|kind| !unpriced.contains(kind)).collect());
        }
    }
}

#[test]
fn the_price_of_a_hash_set_equals_its_allocation() {
    for items in [1_000_u64, 100_000] {
        let mut set = HashSet::new();
        let ((), measured) = AllocMeter::measure(|| {
            set = HashSet::with_capacity(items as usize);
            set.extend(0..items);
        });
        let range = ItemShape::IntegerRange { low: 0, high: u64::MAX };
        let priced = bytes_of(Structure::HashSet, &Needs::new(items, 0.01).of(range));
        assert_eq!(priced, measured.peak_bytes, "{items} integers");
        assert_eq!(set.len() as u64, items);

        let mut set: HashSet<Box<[u8]>> = HashSet::new();
        let (_, measured) = AllocMeter::measure(|| {
            set = HashSet::with_capacity(items as usize);
            set.extend((0..items).map(|id| {
                let mut item = vec![0; 40].into_boxed_slice();
                item[..8].copy_from_slice(&id.to_le_bytes());
                item
            }));
        });
        let priced =
            bytes_of(Structure::HashSet, &Needs::new(items, 0.01).of(ItemShape::Bytes { typical_len: 40 }));
        // The meter counts the requested bytes; the allocator adds 8 bytes to each request.
        assert_eq!(priced, measured.peak_bytes + 8 * items, "{items} strings");
    }
}

#[test]
fn nonsense_is_an_error() {
    for rate in [0.0, 1.0, -1.0, 1.5, f64::NAN, f64::INFINITY] {
        assert!(matches!(advise(&Needs::new(1_000, rate)), Err(NeedsError::Build(_))), "{rate}");
        assert!(matches!(price_list(&Needs::new(1_000, rate)), Err(NeedsError::Build(_))), "{rate}");
        assert!(solve::items_for(Structure::Bloom, rate, 1 << 20).is_err(), "{rate}");
        assert!(solve::bytes_for(SPLIT, 1_000, rate).is_err(), "{rate}");
    }
    for items in [0, u64::MAX] {
        assert!(matches!(advise(&Needs::new(items, 0.01)), Err(NeedsError::Build(_))), "{items}");
        assert!(solve::rate_for(Structure::Bloom, items, 1 << 20).is_err(), "{items}");
    }
    assert_eq!(
        solve::bytes_for(Structure::HashSet, 1_000, 0.01),
        Err(NeedsError::NotAFilter { structure: Structure::HashSet })
    );
    let too_little = solve::rate_for(Structure::Bloom, 1_000_000_000, 1 << 20).unwrap_err();
    let said = too_little.to_string();
    assert!(
        said.starts_with("1.00 MiB are too few for a useful bloom: a rate of 50% would take 17"),
        "{said}"
    );
}

#[test]
fn two_numbers_give_the_third() {
    let open = Needs::new(1, 0.5);
    let known = solve::Known::ItemsAndMemory { items: 50_000_000, memory_bytes: 64 << 20 };
    let solved = solve::complete(known, &open).unwrap();
    assert_eq!((solved.items, solved.memory_limit_bytes), (50_000_000, Some(64 << 20)));
    assert!((0.005..0.01).contains(&solved.target_fpr), "{solved:?}");
    let advice = advise(&solved).unwrap();
    assert_eq!(recommended(&advice).structure, SPLIT);
    // Three digits that can be written down.
    assert!(advice.rust.as_ref().unwrap().lines().all(|line| line.len() < 80), "{:?}", advice.rust);

    let known = solve::Known::RateAndMemory { target_fpr: 0.001, memory_bytes: 64 << 20 };
    let solved = solve::complete(known, &open.clone().deleting(Deletes::Endlessly)).unwrap();
    let price = advise(&solved).unwrap();
    assert_eq!(recommended(&price).structure, Structure::Cuckoo);
    let (fits, next) = (solved.items, solved.items + solved.items / 1000);
    assert!(solve::bytes_for(Structure::Cuckoo, fits, 0.001).unwrap() <= 64 << 20);
    assert!(solve::bytes_for(Structure::Cuckoo, next, 0.001).unwrap() > 64 << 20);

    // Few removals in little memory: a filter with a certain no if possible, otherwise the best available.
    let known = solve::Known::ItemsAndMemory { items: 1_000_000, memory_bytes: 600_000 };
    let solved = solve::complete(known, &open.clone().deleting(Deletes::UpTo(1_000))).unwrap();
    assert_eq!(best(&solved), Structure::Quotient);
    let known = solve::Known::ItemsAndMemory { items: 1_000_000, memory_bytes: 400_000 };
    let solved = solve::complete(known, &open.clone().deleting(Deletes::UpTo(1_000))).unwrap();
    assert_eq!(best(&solved), Structure::DualBloom);
    let endless = solve::complete(known, &open.clone().deleting(Deletes::Endlessly)).unwrap_err();
    assert!(endless.to_string().contains("too few for a useful quotient"), "{endless}");

    // No more items than there are integers.
    let known = solve::Known::RateAndMemory { target_fpr: 0.01, memory_bytes: 1 << 20 };
    let few = open.clone().of(ItemShape::IntegerRange { low: 0, high: 999 });
    assert_eq!(solve::complete(known, &few).unwrap().items, 1_000);

    // Enough memory for never being wrong: the rate does not matter.
    let known = solve::Known::ItemsAndMemory { items: 1_000, memory_bytes: 1 << 30 };
    assert_eq!(best(&solve::complete(known, &open).unwrap()), Structure::HashSet);
}

fn solved_rate(items: u64, memory_bytes: u64, needs: &Needs) -> (Needs, Advice) {
    let solved = solve::complete(solve::Known::ItemsAndMemory { items, memory_bytes }, needs).unwrap();
    let advice = advise(&solved).unwrap();
    (solved, advice)
}

#[test]
fn a_rate_is_solved_down_to_the_floor_of_each_kind() {
    let open = Needs::new(1, 0.5);
    let (solved, advice) = solved_rate(1_000_000, 64 << 20, &open.clone().growing(Growth::Unknown));
    assert_eq!(recommended(&advice).structure, Structure::Growing);
    assert_eq!(solved.target_fpr, solve::LOWEST_RATE);
    let note =
        advice.notes.iter().find(|note| matches!(note, Note::LowestRate { .. })).expect("why no lower");
    assert!(note.to_string().contains("1 in 1,000,000,000 has no practical use, so 5"), "{note}");

    // Never being wrong is better than any rate, at any price that fits.
    let (_, advice) = solved_rate(1_000_000, 100 << 20, &open);
    assert_eq!(recommended(&advice).structure, Structure::HashSet);
    assert!(advice.why[1].contains("false positives for 1 in 1,000,000,000 non-members"), "{:?}", advice.why);
    // Every kind is considered where it can be built, and none is dropped for being a little larger than the winner.
    for price in &advice.prices {
        assert!(
            !price.unsuitable.iter().any(|reason| matches!(reason, Unsuitable::Unbuildable(_))),
            "{price:?}"
        );
    }
    let (_, advice) = solved_rate(50_000_000, 64 << 20, &open);
    for price in advice.prices.iter().filter(|price| price.structure.is_filter()) {
        let cost = price.cost.unwrap();
        if price.unsuitable.iter().any(|reason| matches!(reason, Unsuitable::OverMemory { .. })) {
            continue; // too large at any rate
        }
        assert!(cost.memory_bytes <= 64 << 20, "{price:?}");
        // Fingerprints have whole bits: one more may exceed the rest of the memory.
        let in_steps = price.can.refuses || price.structure.is_static();
        assert!(in_steps || cost.memory_bytes > 63 << 20, "{price:?}");
        let bytes = solve::bytes_for(price.structure, 50_000_000, cost.target_fpr).unwrap();
        assert_eq!(bytes, cost.memory_bytes, "{price:?}");
    }
    // Without the option the requested rate counts, as usual.
    let asked = Needs::new(1_000_000, 0.01).within(100 << 20);
    assert_eq!(best(&asked), SPLIT);
}

#[test]
fn removals_that_are_not_needed_cost_nothing() {
    let dual = |needs: &Needs| {
        let prices = price_list(needs).unwrap();
        prices.into_iter().find(|price| price.structure == Structure::DualBloom).unwrap()
    };
    let needs = Needs::new(1_000_000, 0.01);
    assert_eq!(dual(&needs).unsuitable, [Unsuitable::OnlyForRemovals]);
    assert!(dual(&needs.deleting(Deletes::UpTo(5))).suits());
}

/// Needs of every sort, sensible ones only.
fn any_needs() -> impl Strategy<Value = Needs> {
    let size = (1_u64..1 << 34, -20.0_f64..-0.7);
    let growth = prop_oneof![Just(Growth::AllAtOnce), Just(Growth::UpToItems), Just(Growth::Unknown)];
    let deletes =
        prop_oneof![Just(Deletes::Never), (1_u64..1 << 30).prop_map(Deletes::UpTo), Just(Deletes::Endlessly)];
    let limit = proptest::option::of(1_u64..1 << 40);
    let item = prop_oneof![
        Just(ItemShape::Unknown),
        (1_u32..200).prop_map(|typical_len| ItemShape::Bytes { typical_len }),
        (0_u64..1 << 40, 1_u64 << 34..1 << 45)
            .prop_map(|(low, wide)| ItemShape::IntegerRange { low, high: low + wide }),
    ];
    (size, growth, deletes, limit, item, any::<(bool, bool)>()).prop_map(
        |((items, exponent), growth, deletes, limit, item, (untrusted, threads))| {
            // A set that never changes has no removals.
            let deletes = if growth == Growth::AllAtOnce { Deletes::Never } else { deletes };
            let mut needs = Needs::new(items, exponent.exp()).growing(growth).deleting(deletes).of(item);
            (needs.memory_limit_bytes, needs.untrusted, needs.threads) = (limit, untrusted, threads);
            needs
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn the_recommended_kind_suits_the_needs(needs in any_needs()) {
        let advice = advise(&needs).unwrap();
        let suiting = advice.prices.iter().filter(|price| price.suits()).count();
        prop_assert_eq!(advice.recommended().is_some(), suiting > 0);
        prop_assert_eq!(advice.recommended().is_some(), advice.rust.is_some());
        prop_assert!(advice.prices[..suiting].iter().all(Price::suits), "suitable kinds come first");
        prop_assert!(advice.prices.iter().all(|price| price.cost.is_some() || !price.suits()));
        if let Some(price) = advice.recommended() {
            let cost = price.cost.unwrap();
            prop_assert!(cost.memory_bytes <= needs.memory_limit_bytes.unwrap_or(u64::MAX));
            prop_assert!(cost.expected_fpr <= needs.target_fpr);
            prop_assert!(price.can.deletes || needs.deletes == Deletes::Never);
            prop_assert!(price.can.grows || needs.growth != Growth::Unknown);
        }
        let said = advice.why.iter().cloned().chain(advice.notes.iter().map(ToString::to_string));
        for sentence in said {
            prop_assert!(sentence.ends_with('.') && !sentence.contains("NaN") && !sentence.contains("inf"), "{}", sentence);
        }
    }

    #[test]
    fn a_solved_rate_is_that_of_the_recommended_kind(needs in any_needs(), memory in 1_u64..1 << 40) {
        let known = solve::Known::ItemsAndMemory { items: needs.items, memory_bytes: memory };
        let Ok(solved) = solve::complete(known, &needs) else { return Ok(()) };
        let advice = advise(&solved).unwrap();
        for price in advice.prices.iter().filter(|price| price.suits()) {
            let cost = price.cost.unwrap();
            prop_assert!(cost.memory_bytes <= memory, "{:?}", price);
            prop_assert!(cost.expected_fpr <= cost.target_fpr && cost.target_fpr <= 0.5, "{:?}", price);
            let floor = if price.structure.is_filter() { solve::LOWEST_RATE } else { 0.0 };
            prop_assert!(cost.target_fpr >= floor, "{:?}", price);
        }
        if let Some(price) = advice.recommended().filter(|price| price.structure.is_filter()) {
            prop_assert_eq!(price.cost.unwrap().target_fpr, solved.target_fpr);
        }
        let said = advice.why.iter().cloned().chain(advice.notes.iter().map(ToString::to_string));
        for sentence in said {
            prop_assert!(sentence.ends_with('.') && !sentence.contains("NaN") && !sentence.contains("inf"), "{}", sentence);
        }
    }

    #[test]
    fn more_items_are_never_cheaper(items in 1_u64..1 << 40, more in 0_u64..1 << 40, exponent in -20.0_f64..-0.7) {
        let price = |items| price_list(&Needs::new(items, exponent.exp())).unwrap();
        for (few, many) in price(items).iter().zip(&price(items + more)) {
            // Sized for its final state; the initial memory varies.
            if few.structure == Structure::GrowableCuckoo {
                continue;
            }
            if let (Some(few), Some(many)) = (few.cost, many.cost) {
                prop_assert!(few.memory_bytes <= many.memory_bytes, "{} then {}", few.memory_bytes, many.memory_bytes);
            }
        }
    }

    #[test]
    fn a_lower_rate_is_never_cheaper(items in 1_u64..1 << 40, exponent in -20.0_f64..-0.7, lower in 0.0_f64..20.0) {
        let price = |exponent: f64| price_list(&Needs::new(items, exponent.exp())).unwrap();
        for (high, low) in price(exponent).iter().zip(&price((exponent - lower).max(-34.0))) {
            let Some((before, after)) = high.cost.zip(low.cost) else { continue };
            // Where lines no longer suffice a blocked filter uses one more line per item, and is smaller for it; so is a window, which consists of
            // blocked filters.
            let paid_in_lines = (high.structure == LINE && after.lines_hit > before.lines_hit)
                || [Structure::Window, Structure::GrowableCuckoo].contains(&high.structure);
            prop_assert!(before.memory_bytes <= after.memory_bytes || paid_in_lines, "{:?} then {:?}", high, low);
        }
    }

    #[test]
    fn a_solved_size_fits(items in 1_u64..1 << 36, exponent in -20.0_f64..-0.7) {
        for filter in Structure::all().filter(|structure| structure.is_filter()) {
            if filter == Structure::GrowableCuckoo {
                continue; // sized for its end, not for the beginning that is priced
            }
            let Ok(bytes) = solve::bytes_for(filter, items, exponent.exp()) else { continue };
            // A size that just fits is found again, or a better one.
            let found = solve::items_for(filter, exponent.exp(), bytes).unwrap();
            prop_assert!(found >= items, "{}: {} items instead of {}", filter, found, items);
            prop_assert!(solve::bytes_for(filter, found, exponent.exp()).unwrap() <= bytes);
            let rate = solve::rate_for(filter, items, bytes).unwrap();
            prop_assert!(solve::bytes_for(filter, items, rate).unwrap() <= bytes);
            // Whole bits, and lines, make steps: there a lower rate can take less memory.
            let steps = [LINE, Structure::Window].contains(&filter);
            prop_assert!(steps || rate <= exponent.exp() * 1.001, "{}: {} for {}", filter, rate, exponent.exp());
        }
    }
}

/// A filter priced with the user's number of probes is built with it, and its rate is the predicted one.
#[test]
fn a_filter_of_chosen_probes_keeps_its_rate() {
    const NON_MEMBERS: u64 = 200_000;
    for (probes, rate) in [(1, 0.05), (3, 0.01), (12, 0.01)] {
        let needs = Needs::new(100_000, rate).probing(probes);
        for structure in [Structure::Bloom, Structure::CountingBloom] {
            let mut filter = structure.create(&needs, mayhap::HashScheme::fast(7)).unwrap();
            assert_eq!(filter.memory_bytes(), bytes_of(structure, &needs), "{structure}, {probes}");
            (0..100_000_u64).for_each(|item| {
                filter.insert(&item).unwrap();
            });
            let expected = Filling::of(structure, &needs).unwrap().expected_fpr(100_000).unwrap();
            assert!(expected <= rate && expected > rate * 0.99, "{structure}, {probes}: {expected}");
            let wrong =
                (0..NON_MEMBERS).filter(|item| filter.may_contain(&(item + (1 << 40)))).count() as u64;
            let band = |rate| mayhap_testkit::binomial_band(NON_MEMBERS, rate, 1e-6);
            let promised = *band(expected * 0.98).start()..=*band(expected * 1.02).end();
            assert!(promised.contains(&wrong), "{structure}, {probes}: {wrong} not in {promised:?}");
        }
    }
    // No other number is requested, and the best number of probes costs least.
    let prices = price_list(&Needs::new(100_000, 0.01).probing(3)).unwrap();
    for price in prices.iter().filter(|price| !price.structure.lets_probes_be_chosen()) {
        assert!(price.unsuitable.contains(&Unsuitable::NoProbesToChoose), "{}", price.structure);
    }
    let bytes = |probes| bytes_of(Structure::Bloom, &Needs::new(100_000, 0.01).probing(probes));
    assert!((1..=30).all(|probes| bytes(probes) >= bytes(7)));
    assert_eq!(bytes(7), bytes_of(Structure::Bloom, &Needs::new(100_000, 0.01)));
}

#[test]
fn probes_and_one_number_are_the_filter_they_are_best_for() {
    use solve::Known;
    let open = Needs::new(1, 0.5);
    let needs = solve::complete(Known::ItemsAndProbes { items: 50_000, probes: 10 }, &open).unwrap();
    assert_eq!((needs.items, needs.target_fpr, needs.probes), (50_000, 1.0 / 1024.0, Some(10)));
    let best = mayhap::BloomShape::for_capacity(50_000, 1.0 / 1024.0).unwrap();
    assert_eq!(best.probes(), 10);
    assert_eq!(bytes_of(Structure::Bloom, &needs), best.memory_bytes());
    let memory_bytes = best.memory_bytes();
    let needs = solve::complete(Known::MemoryAndProbes { memory_bytes, probes: 10 }, &open).unwrap();
    assert!((50_000..50_100).contains(&needs.items) && needs.target_fpr == 1.0 / 1024.0, "{needs:?}");
    for probes in [0, 50, 65] {
        assert!(solve::complete(Known::ItemsAndProbes { items: 9, probes }, &open).is_err(), "{probes}");
    }
}

#[test]
fn items_are_solved_for_every_structure_on_its_own() {
    let known = solve::Known::RateAndMemory { target_fpr: 0.01, memory_bytes: 64 << 20 };
    let needs = solve::complete(known, &Needs::new(1, 0.5)).unwrap();
    let advice = advise(&needs).unwrap();
    assert!(needs.items_from_memory && recommended(&advice).cost.unwrap().items == needs.items);
    for price in &advice.prices {
        let Some(cost) = price.cost else { continue };
        assert!(cost.memory_bytes <= 64 << 20, "{price:?}");
        if price.structure.is_filter() && price.structure != Structure::GrowableCuckoo {
            assert_eq!(Ok(cost.items), solve::items_for(price.structure, 0.01, 64 << 20), "{price:?}");
        }
    }
    // A bitmap that fits holds its whole range; one that does not fit must not lower the answer below that of a filter.
    let range = ItemShape::IntegerRange { low: 0, high: (1 << 29) - 1 };
    let needs = solve::complete(known, &Needs::new(1, 0.5).of(range)).unwrap();
    assert_eq!((best(&needs), needs.items), (Structure::Bitmap, 1 << 29));
    let range = ItemShape::IntegerRange { low: 0, high: 1 << 30 };
    let needs = solve::complete(known, &Needs::new(1, 0.5).of(range)).unwrap();
    assert_eq!(best(&needs), SPLIT);
    // Few items in a hash set do not answer how many items are possible.
    let known = solve::Known::RateAndMemory { target_fpr: 0.01, memory_bytes: 1 << 20 };
    assert_eq!(best(&solve::complete(known, &Needs::new(1, 0.5)).unwrap()), SPLIT);
}

/// The lines the advisor prints, as code: that this compiles is half of the test, that it prints them the other half.
#[test]
fn the_lines_of_rust_compile_and_work() -> Result<(), Box<dyn std::error::Error>> {
    const SOURCE: &str = include_str!("advise.rs");
    fn prints(structure: Structure, needs: &Needs) {
        for line in rust_for(structure, needs).lines() {
            assert!(SOURCE.lines().any(|source| source.trim() == line), "this file should have {line:?}");
        }
    }
    let needs = Needs::new(200_000, 0.01);
    {
        use mayhap::BlockedBloom;
        let mut seen = BlockedBloom::new(200_000, 0.01)?;
        assert!(seen.insert("a"));
        prints(SPLIT, &needs);
    }
    {
        use mayhap::BlockedBloom;
        let mut seen = BlockedBloom::new(200_000, 0.01)?.keyed()?;
        assert!(seen.insert("a"));
        prints(SPLIT, &needs.clone().untrusted());
    }
    {
        use mayhap::AtomicBlockedBloom;
        let seen = AtomicBlockedBloom::new(200_000, 0.01)?;
        assert!(seen.insert("a"));
        prints(SPLIT, &needs.clone().threaded());
    }
    {
        use mayhap::{BlockedBloom, BlockedLayout, BlockedShape, HashScheme};
        let shape = BlockedShape::with_layout(BlockedLayout::Line512, 200_000, 0.01)?;
        let mut seen = BlockedBloom::with_shape(shape, HashScheme::random())?;
        assert!(seen.insert("a"));
        prints(LINE, &needs);
    }
    {
        use mayhap::Bloom;
        let mut seen = Bloom::new(200_000, 0.01)?;
        assert!(seen.insert("a"));
        prints(Structure::Bloom, &needs);
    }
    {
        use mayhap::AtomicBloom;
        let seen = AtomicBloom::new(200_000, 0.01)?;
        assert!(seen.insert("a"));
        prints(Structure::Bloom, &needs.clone().threaded());
    }
    {
        use mayhap::{Bloom, BloomShape, HashScheme};
        let shape = BloomShape::for_probes(200_000, 0.01, 3)?;
        let mut seen = Bloom::with_shape(shape, HashScheme::random())?;
        assert!(seen.insert("a"));
        prints(Structure::Bloom, &needs.clone().probing(3));
    }
    {
        use mayhap::{AtomicBloom, BloomShape, HashScheme};
        let shape = BloomShape::for_probes(200_000, 0.01, 3)?;
        let seen = AtomicBloom::with_shape(shape, HashScheme::random())?;
        assert!(seen.insert("a"));
        prints(Structure::Bloom, &needs.clone().probing(3).threaded());
    }
    {
        use mayhap::{CountingBloom, CountingShape, HashScheme};
        let shape = CountingShape::for_probes(200_000, 0.01, 3)?;
        let mut seen = CountingBloom::with_shape(shape, HashScheme::random())?;
        assert!(seen.insert("a"));
        prints(Structure::CountingBloom, &needs.clone().probing(3).deleting(Deletes::Endlessly));
    }
    {
        use mayhap::CountingBloom;
        let mut seen = CountingBloom::new(200_000, 0.01)?;
        assert!(seen.insert("a"));
        prints(Structure::CountingBloom, &needs.clone().deleting(Deletes::Endlessly));
    }
    {
        use mayhap::DualBloom;
        let mut seen = DualBloom::new(200_000, 1_000, 0.01)?;
        assert!(seen.insert("a")?);
        prints(Structure::DualBloom, &needs.clone().deleting(Deletes::UpTo(1_000)));
    }
    {
        use mayhap::ScalableBloom;
        let mut seen = ScalableBloom::new(200_000, 0.01)?;
        assert!(seen.insert("a")?);
        prints(Structure::ScalableBloom, &needs.clone().growing(Growth::Unknown));
    }
    {
        use mayhap::{Cuckoo, DLeft, Growing, Quotient};
        let mut seen = Cuckoo::new(200_000, 0.01)?;
        assert!(seen.insert("a")?);
        let mut seen = DLeft::new(200_000, 0.01)?;
        assert!(seen.insert("a")?);
        let mut seen = Growing::new(200_000, 0.01)?;
        assert!(seen.insert("a")?);
        let mut seen = Quotient::new(200_000, 0.01)?;
        assert!(seen.insert("a")?);
    }
    for structure in [Structure::Cuckoo, Structure::DLeft, Structure::Growing, Structure::Quotient] {
        let lines = rust_for(structure, &needs);
        let (imports, lines) = lines.split_once('\n').unwrap();
        assert!(imports.starts_with("use mayhap::"));
        assert!(SOURCE.lines().any(|source| source.trim() == lines), "this file should have {lines:?}");
    }
    {
        use mayhap::{Cuckoo, CuckooShape, HashScheme};
        let shape = CuckooShape::semi_sorted(200_000, 0.01)?;
        let mut seen = Cuckoo::with_shape(shape, HashScheme::random())?;
        assert!(seen.insert("a")?);
        prints(Structure::CuckooSemiSorted, &needs);
    }
    {
        use mayhap::{GrowableCuckoo, HashScheme};
        let mut seen = GrowableCuckoo::for_growth(200_000, 3_200_000, 0.01, HashScheme::random())?;
        assert!(seen.insert("a")?);
        prints(Structure::GrowableCuckoo, &needs);
    }
    {
        use mayhap::Window;
        let mut seen = Window::new(200_000, 0.01)?;
        assert!(seen.insert("a"));
        prints(Structure::Window, &needs);
    }
    let items = vec!["a", "b"];
    {
        use mayhap::Xor8;
        let seen = Xor8::from_items(&items)?;
        assert!(seen.may_contain("a"));
        prints(Structure::Xor, &needs);
    }
    {
        use mayhap::BinaryFuse16;
        let seen = BinaryFuse16::from_items(&items)?;
        assert!(seen.may_contain("a"));
        prints(Structure::BinaryFuse, &Needs::new(200_000, 1e-3));
    }
    {
        use mayhap::Ribbon;
        let seen = Ribbon::from_items(&items, 0.01)?;
        assert!(seen.may_contain("a"));
        prints(Structure::Ribbon, &needs);
    }
    {
        use mayhap::Gcs;
        let seen = Gcs::from_items(&items, 0.01)?;
        assert!(seen.may_contain("a"));
        prints(Structure::Gcs, &needs);
    }
    assert_eq!(items.len(), 2, "they can be used again");
    {
        use mayhap::Bitmap;
        let number = 13_800_138_000_u64;
        let mut seen = Bitmap::new(7_000_000_000)?;
        seen.set(number - 13_000_000_000)?;
        assert!(seen.get(800_138_000));
        prints(Structure::Bitmap, &Needs::new(1_000_000_000, 0.01).of(PHONES));
    }
    {
        use mayhap::Bitmap;
        let number = 5_u64;
        let mut seen = Bitmap::new(2_000_001)?;
        seen.set(number)?;
        assert!(seen.get(5));
        prints(
            Structure::Bitmap,
            &Needs::new(1_000_000, 0.01).of(ItemShape::IntegerRange { low: 0, high: 2_000_000 }),
        );
    }
    {
        use std::collections::HashSet;
        let mut seen: HashSet<Box<[u8]>> = HashSet::with_capacity(1_000);
        assert!(seen.insert(Box::from(*b"a")));
        prints(Structure::HashSet, &Needs::new(1_000, 0.01));
    }
    {
        use std::collections::HashSet;
        let mut seen: HashSet<u32> = HashSet::with_capacity(1_000);
        assert!(seen.insert(7));
        prints(
            Structure::HashSet,
            &Needs::new(1_000, 0.01).of(ItemShape::IntegerRange { low: 0, high: u32::MAX.into() }),
        );
    }
    let fixed = Needs::new(1_000, 1e-15).growing(Growth::AllAtOnce);
    {
        let (mut items, item) = (vec![3_u64, 1, 2], 2);
        items.sort_unstable();
        let seen = items.binary_search(&item).is_ok();
        assert!(seen);
        prints(Structure::SortedArray, &fixed.clone().of(ItemShape::IntegerRange { low: 0, high: u64::MAX }));
    }
    {
        use mayhap::HashScheme;
        let (items, item) = (["c", "a", "b"], "b");
        let scheme = HashScheme::random();
        let mut stored: Vec<u64> = items.iter().map(|item| scheme.hash(item).to_u128() as u64).collect();
        stored.sort_unstable();
        let seen = stored.binary_search(&(scheme.hash(item).to_u128() as u64)).is_ok();
        assert!(seen);
        prints(Structure::SortedArray, &fixed);
    }
    Ok(())
}
