//! Reads words that begin at any byte of an array.

use std::sync::atomic::AtomicU64;
#[cfg(any(test, miri, not(target_endian = "little")))]
use std::sync::atomic::Ordering;

/// Returns `N` words from byte `byte` on, the first byte lowest on every machine.
///
/// One load per word, where the plain twin needs two and combines them: without its hash, a cuckoo lookup in
/// the cache took 9.3 ns with the twin and 6.1 ns without.
///
/// For words that no thread writes meanwhile: those of a filter that only changes through `&mut`.
///
/// # Panics
/// If they end after the last word.
#[inline(always)]
pub(crate) fn read<const N: usize>(words: &[AtomicU64], byte: usize) -> [u64; N] {
    #[cfg(all(target_endian = "little", not(miri)))]
    {
        // A slice has at most `isize::MAX` bytes, so this cannot overflow.
        assert!(byte < (words.len() * 8 + 1).saturating_sub(N * 8));
        // SAFETY: the `N` words from `byte` on lie in `words`, checked on the line above. By the contract no
        // thread writes to them meanwhile, and any bits make a `u64`.
        unsafe { words.as_ptr().cast::<u8>().add(byte).cast::<[u64; N]>().read_unaligned() }
    }
    #[cfg(not(all(target_endian = "little", not(miri))))]
    plain(words, byte)
}

/// [`read`] for one word.
#[inline(always)]
pub(crate) fn word_at_byte(words: &[AtomicU64], byte: usize) -> u64 {
    let [word] = read(words, byte);
    word
}

/// The plain twin of [`read`]: combines two words.
#[cfg(any(test, miri, not(target_endian = "little")))]
fn plain<const N: usize>(words: &[AtomicU64], byte: usize) -> [u64; N] {
    let shift = byte % 8 * 8;
    let load = |word: usize| words[word].load(Ordering::Relaxed);
    std::array::from_fn(|k| {
        let word = byte / 8 + k;
        if shift == 0 { load(word) } else { load(word) >> shift | load(word + 1) << (64 - shift) }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn agree<const N: usize>(words: &[AtomicU64]) {
        for byte in 0..=(words.len() - N) * 8 {
            assert_eq!(read::<N>(words, byte), plain::<N>(words, byte), "{N} words at {byte}");
        }
    }

    #[test]
    fn one_load_or_two_are_the_same() {
        let mixed = |i| crate::hash::ItemHash::from_unmixed(i).to_u128() as u64;
        let words: Vec<AtomicU64> = (0..20).map(|i| AtomicU64::new(mixed(i))).collect();
        agree::<1>(&words);
        agree::<2>(&words);
        agree::<3>(&words);
        agree::<5>(&words);
    }

    #[test]
    fn past_the_end_is_caught() {
        for (words, byte) in [(0, 0), (0, 8), (1, 1), (2, 9), (2, 16), (2, usize::MAX)] {
            let words: Vec<AtomicU64> = (0..words).map(|_| AtomicU64::new(0)).collect();
            assert!(std::panic::catch_unwind(|| word_at_byte(&words, byte)).is_err(), "byte {byte}");
            assert!(std::panic::catch_unwind(|| read::<3>(&words, byte)).is_err(), "byte {byte}");
        }
    }
}
