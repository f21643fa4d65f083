//! The block kernels with AVX2. They use the same bits as `generic`, and tests compare them with it.
//!
//! Blocks are loaded with inline assembly and not with a plain vector load: an atomic twin may be setting
//! bits of the same block from another thread, and a plain load that races is undefined behaviour to the
//! compiler. The CPU performs the load as aligned 8-byte pieces, each of which is atomic: the same four
//! relaxed loads that the plain twin makes.

use std::arch::asm;
use std::arch::x86_64::*;
use std::sync::atomic::AtomicU64;

use super::generic::{LINE_MULTIPLIER, LINE_WORDS, SPLIT_SALTS, SPLIT_WORDS};
use crate::blocked::BlockPlace;

/// Loads 32 bytes like four relaxed atomic loads.
///
/// # Safety
/// There must be four readable words at `address`, aligned to 32 bytes, and the CPU must have AVX2.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn load(address: *const u64) -> __m256i {
    let block;
    // SAFETY: the caller guarantees 32 readable, aligned bytes; the instruction only reads them.
    unsafe {
        asm!("vmovdqa {block}, ymmword ptr [{address}]", block = lateout(ymm_reg) block, address = in(reg) address,
             options(readonly, nostack, preserves_flags));
    }
    block
}

/// Eight lanes, aligned for a vector instruction's memory operand.
#[repr(align(32))]
struct Lanes([u32; 8]);
static SALTS: Lanes = Lanes(SPLIT_SALTS);
static ONES: Lanes = Lanes([1; 8]);

/// Entirely in assembly, because a function with AVX2 enabled cannot be inlined into one without: with the
/// call a lookup in the cache took a quarter longer (8.1 ns against 6.5).
///
/// # Safety
/// There must be four readable words at `block`, aligned to 32 bytes, and the CPU must have AVX2.
#[inline(always)]
pub(super) unsafe fn split_covers(block: *const u64, bits: u32) -> bool {
    let covers: u8;
    // SAFETY: the caller guarantees AVX2 and 32 readable, aligned bytes at `block`; the statics are aligned
    // 32-byte constants. The code writes only the named registers and the flags.
    unsafe {
        asm!(
            "vmovd xmm0, {bits:e}",
            "vpbroadcastd ymm0, xmm0",
            "vpmulld ymm0, ymm0, ymmword ptr [{salts}]",
            "vpsrld ymm0, ymm0, 27",
            "vmovdqa ymm1, ymmword ptr [{ones}]",
            "vpsllvd ymm0, ymm1, ymm0",
            "vmovdqa ymm1, ymmword ptr [{block}]",
            "vptest ymm1, ymm0",
            "setc {covers}",
            "vzeroupper",
            bits = in(reg) bits,
            block = in(reg) block,
            salts = in(reg) &raw const SALTS.0,
            ones = in(reg) &raw const ONES.0,
            covers = lateout(reg_byte) covers,
            // `vzeroupper` clears the upper halves of all of them; a caller compiled for AVX may have something there.
            out("xmm0") _, out("xmm1") _, out("xmm2") _, out("xmm3") _, out("xmm4") _, out("xmm5") _, out("xmm6") _, out("xmm7") _,
            out("xmm8") _, out("xmm9") _, out("xmm10") _, out("xmm11") _, out("xmm12") _, out("xmm13") _, out("xmm14") _, out("xmm15") _,
            options(readonly, nostack),
        );
    }
    covers == 1
}

/// Sets the item's eight bits in its split block and returns whether all of them were set before. In assembly
/// for the reason above.
///
/// # Safety
/// There must be four writable words at `block` that no other thread uses, aligned to 32 bytes, and the CPU
/// must have AVX2.
#[inline(always)]
pub(super) unsafe fn split_set(block: *mut u64, bits: u32) -> bool {
    let covered: u8;
    // SAFETY: the caller guarantees AVX2 and 32 writable, aligned bytes at `block`; the statics are aligned
    // 32-byte constants. Apart from these bytes, the code writes only the named registers and the flags.
    unsafe {
        asm!(
            "vmovd xmm0, {bits:e}",
            "vpbroadcastd ymm0, xmm0",
            "vpmulld ymm0, ymm0, ymmword ptr [{salts}]",
            "vpsrld ymm0, ymm0, 27",
            "vmovdqa ymm1, ymmword ptr [{ones}]",
            "vpsllvd ymm0, ymm1, ymm0",
            "vmovdqa ymm1, ymmword ptr [{block}]",
            "vptest ymm1, ymm0",
            "setc {covered}",
            "vpor ymm1, ymm1, ymm0",
            "vmovdqa ymmword ptr [{block}], ymm1",
            "vzeroupper",
            bits = in(reg) bits,
            block = in(reg) block,
            salts = in(reg) &raw const SALTS.0,
            ones = in(reg) &raw const ONES.0,
            // Not `lateout`: it is written before the last use of `block`.
            covered = out(reg_byte) covered,
            // `vzeroupper` clears the upper halves of all of them; a caller compiled for AVX may have something there.
            out("xmm0") _, out("xmm1") _, out("xmm2") _, out("xmm3") _, out("xmm4") _, out("xmm5") _, out("xmm6") _, out("xmm7") _,
            out("xmm8") _, out("xmm9") _, out("xmm10") _, out("xmm11") _, out("xmm12") _, out("xmm13") _, out("xmm14") _, out("xmm15") _,
            options(nostack),
        );
    }
    covered == 1
}

/// # Safety
/// As [`split_covers`], whose twin with intrinsics this is.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn split_covers_inline(block: *const u64, bits: u32) -> bool {
    let salts = SPLIT_SALTS.map(u32::cast_signed);
    let salts =
        _mm256_setr_epi32(salts[0], salts[1], salts[2], salts[3], salts[4], salts[5], salts[6], salts[7]);
    let shifts = _mm256_srli_epi32::<27>(_mm256_mullo_epi32(_mm256_set1_epi32(bits.cast_signed()), salts));
    let mask = _mm256_sllv_epi32(_mm256_set1_epi32(1), shifts);
    // SAFETY: this function's caller guarantees it.
    _mm256_testc_si256(unsafe { load(block) }, mask) == 1
}

/// # Safety
/// AVX2.
#[target_feature(enable = "avx2")]
pub(super) unsafe fn split_covers_chunk(words: &[AtomicU64], places: &[BlockPlace]) -> u64 {
    let (blocks, _) = words.as_chunks::<SPLIT_WORDS>();
    let mut answers = 0;
    for (index, place) in places.iter().enumerate() {
        let block = &blocks[place.word / SPLIT_WORDS];
        // SAFETY: `block` is four words, and blocks start on multiples of 32 bytes of an aligned array.
        let covers = unsafe { split_covers_inline(block.as_ptr().cast(), place.bits) };
        answers |= u64::from(covers) << index;
    }
    answers
}

/// `LINE_MULTIPLIER` to the powers 1 to 8: the states of the first eight probes, all at once.
const POWERS: [i32; 8] = {
    let (mut powers, mut state, mut i) = ([0; 8], 1_u32, 0);
    while i < 8 {
        state = state.wrapping_mul(LINE_MULTIPLIER);
        powers[i] = state.cast_signed();
        i += 1;
    }
    powers
};

/// # Safety
/// Eight readable words at `line`, aligned to 64 bytes; AVX2.
#[target_feature(enable = "avx2")]
pub(super) unsafe fn line_covers(line: *const u64, bits: u32, probes: u32) -> bool {
    // SAFETY: this function's caller guarantees it.
    unsafe { line_covers_rounds(line, bits, probes) }
}

/// All ones in the first `probes` of eight lanes.
#[inline]
#[target_feature(enable = "avx2")]
fn first_lanes(probes: u32) -> __m256i {
    let numbers = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    _mm256_cmpgt_epi32(_mm256_set1_epi32(probes.cast_signed()), numbers)
}

/// Returns whether the bits of the next eight probes are set, for the lanes selected by `lanes`.
#[inline]
#[target_feature(enable = "avx2")]
fn eight_probes([low, high]: [__m256i; 2], bits: u32, lanes: __m256i) -> bool {
    let powers = _mm256_setr_epi32(
        POWERS[0], POWERS[1], POWERS[2], POWERS[3], POWERS[4], POWERS[5], POWERS[6], POWERS[7],
    );
    let states = _mm256_mullo_epi32(_mm256_set1_epi32(bits.cast_signed()), powers);
    // The top four bits select one of sixteen 32-bit words: the first bit the half, the other three the word
    // in it.
    let word_numbers = _mm256_srli_epi32::<28>(states);
    let picked = _mm256_castps_si256(_mm256_blendv_ps(
        _mm256_castsi256_ps(_mm256_permutevar8x32_epi32(low, word_numbers)),
        _mm256_castsi256_ps(_mm256_permutevar8x32_epi32(high, word_numbers)),
        _mm256_castsi256_ps(states),
    ));
    // The next five bits are the number of the bit in that word.
    let bit_numbers = _mm256_and_si256(_mm256_srli_epi32::<23>(states), _mm256_set1_epi32(31));
    // In each lane whose probe counts, a one shifted to the bit's position: that bit must be set in the
    // selected word.
    let mask = _mm256_sllv_epi32(_mm256_srli_epi32::<31>(lanes), bit_numbers);
    _mm256_testc_si256(picked, mask) == 1
}

/// # Safety
/// As [`line_covers`].
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn load_line(line: *const u64) -> [__m256i; 2] {
    // SAFETY: this function's caller guarantees it.
    unsafe { [load(line), load(line.add(LINE_WORDS / 2))] }
}

/// Any number of probes, eight at a time.
///
/// # Safety
/// As [`line_covers`].
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn line_covers_rounds(line: *const u64, mut bits: u32, mut probes: u32) -> bool {
    // SAFETY: this function's caller guarantees it.
    let halves = unsafe { load_line(line) };
    while probes > 8 {
        if !eight_probes(halves, bits, first_lanes(8)) {
            return false;
        }
        bits = bits.wrapping_mul(POWERS[7].cast_unsigned());
        probes -= 8;
    }
    eight_probes(halves, bits, first_lanes(probes))
}

/// # Safety
/// AVX2.
#[target_feature(enable = "avx2")]
pub(super) unsafe fn line_covers_chunk<const R: usize>(
    words: &[AtomicU64],
    places: &[[BlockPlace; R]],
    probes: u32,
) -> u64 {
    let (lines, _) = words.as_chunks::<LINE_WORDS>();
    let mut answers = 0;
    // Values that are the same for all items are computed once where one round is enough.
    let lanes = first_lanes(probes);
    for (index, item) in places.iter().enumerate() {
        let mut covers = true;
        for place in item {
            let line = lines[place.word / LINE_WORDS].as_ptr().cast();
            // SAFETY: `line` is eight words, and lines start on multiples of 64 bytes of an aligned array.
            covers &= unsafe {
                if probes <= 8 {
                    eight_probes(load_line(line), place.bits, lanes)
                } else {
                    line_covers_rounds(line, place.bits, probes)
                }
            };
        }
        answers |= u64::from(covers) << index;
    }
    answers
}
