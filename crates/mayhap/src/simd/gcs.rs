//! Looks up a value among Golomb–Rice codes. Every code takes one count of leading zeroes and two shifts,
//! each dependent on the one before. The baseline x86-64 instructions for these are slow, so the same plain
//! code is compiled a second time for CPUs with LZCNT and BMI2.

use std::sync::atomic::AtomicU64;

use crate::gcs::{Stretch, stretch_holds as plain};

/// Returns whether the value at `place` is among the codes of `stretch`.
#[inline(always)]
pub(crate) fn stretch_holds(words: &[AtomicU64], stretch: Stretch, low: u32, place: u64) -> bool {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    if is_x86_feature_detected!("lzcnt") && is_x86_feature_detected!("bmi2") {
        // SAFETY: the function requires LZCNT and BMI2, checked on the line above.
        return unsafe { with_lzcnt(words, stretch, low, place) };
    }
    plain(words, stretch, low, place)
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
#[target_feature(enable = "lzcnt,bmi2")]
fn with_lzcnt(words: &[AtomicU64], stretch: Stretch, low: u32, place: u64) -> bool {
    plain(words, stretch, low, place)
}

#[cfg(test)]
mod tests {
    use super::*;
    use mayhap_testkit::rng::Rng;

    #[test]
    fn both_compilations_answer_alike_on_anything() {
        let mut rng = Rng::new(11);
        for round in 0..2_000 {
            let dense = rng.below(4);
            let words: Vec<AtomicU64> = (0..40)
                .map(|_| {
                    let (a, b) = (rng.next_u64(), rng.next_u64());
                    AtomicU64::new([a, a & b, a | b, u64::MAX][dense as usize])
                })
                .collect();
            let start = rng.below(700);
            let stretch = Stretch { start, end: start + rng.below(3_000) };
            for low in [0, 1, 5, 7, 12, 19, 30, 56] {
                let place = rng.next_u64() >> (63 - low.min(50) - rng.below(8) as u32);
                let (fast, plain) =
                    (stretch_holds(&words, stretch, low, place), plain(&words, stretch, low, place));
                assert_eq!(fast, plain, "round {round}, {low} low bits");
            }
        }
    }
}
