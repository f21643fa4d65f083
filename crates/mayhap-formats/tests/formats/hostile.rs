//! Bytes that no program ever wrote: an error or some filter, never a panic, never memory out of proportion.

use mayhap::{DecodeError, HashScheme, ItemEncoding};
use mayhap_testkit::alloc_meter::AllocMeter;
use mayhap_testkit::corrupt::{Corruptor, Damage};

/// Random flips of one specimen.
const FLIPS: u64 = 1_000_000;

/// Passes damaged copies of `bytes` to `read`, which reads and then uses the filter: truncated anywhere, too long, every field in `fields` (offset,
/// length) at its extremes, a million random flips. `read` may accept a damaged filter; most formats have no checksum. It must reject truncated or
/// extended ones, unless `length_is_free` tells that the format cannot detect them.
pub(crate) fn survives(
    name: &str,
    bytes: &[u8],
    fields: &[(usize, usize)],
    length_is_free: bool,
    read: impl Fn(&[u8]) -> Result<(), DecodeError>,
) {
    read(bytes).unwrap_or_else(|cause| panic!("{name}: the undamaged specimen is rejected: {cause}"));
    let mut shown = 0_u64;
    let mut show = |bytes: &[u8], damage: &Damage| {
        shown += 1;
        let (result, used) = AllocMeter::measure(|| read(bytes));
        let limit = bytes.len() as u64 * 16 + (64 << 10);
        assert!(used.peak_bytes <= limit, "{name}, {damage}: {} bytes for {}", used.peak_bytes, bytes.len());
        let cut = matches!(damage, Damage::Truncated { .. } | Damage::Extended { .. });
        assert!(!cut || length_is_free || result.is_err(), "{name}: read although {damage}");
        if let Err(cause) = result {
            assert!(!cause.to_string().is_empty());
        }
    };
    let mut corruptor = Corruptor::new(bytes);
    corruptor.truncations(&mut show);
    corruptor.extensions(70, &mut show);
    corruptor.extremes(fields, &mut show);
    corruptor.flips(7, FLIPS, &mut show);
    println!("{name}: {shown} damaged copies survived");
}

/// Selects one in eight copies, by their bytes, for slow checks.
pub(crate) fn now_and_then<R>(bytes: &[u8], what: impl FnOnce() -> R) {
    if bytes.iter().fold(0_u8, |sum, &byte| sum.wrapping_add(byte)) % 8 == 0 {
        what();
    }
}

/// Writes correct checksums into the bytes of a `.mayhap` file, as an attacker would: of the payload, of the layers of a scalable filter, of
/// the header.
pub(crate) fn seal(bytes: &mut [u8]) {
    const SCALABLE: u8 = 6;
    let Some((header, mut payload)) = bytes.split_first_chunk_mut::<192>() else { return };
    let sum = |bytes: &[u8]| mayhap::hash::named::xxhash::xxh3_64(bytes, 0).to_le_bytes();
    let checksum = if header[10] == SCALABLE {
        let mut headers = Vec::new();
        while let Some(length) =
            payload.get(16..24).map(|length| u64::from_le_bytes(length.try_into().unwrap()))
            && payload.len() >= 192
        {
            let end = usize::try_from(length).unwrap_or(usize::MAX).saturating_add(192).min(payload.len());
            let (layer, rest) = payload.split_at_mut(end);
            seal(layer);
            headers.extend_from_slice(&layer[..192]);
            payload = rest;
        }
        sum(&headers)
    } else {
        sum(payload)
    };
    header[24..32].copy_from_slice(&checksum);
    let checksum = sum(&header[..184]);
    header[184..].copy_from_slice(&checksum);
}

/// The encoding a filter remembers; a forged one may remember another than it had.
pub(crate) fn encoding_of(scheme: &HashScheme) -> ItemEncoding {
    match scheme {
        HashScheme::Foreign(foreign) => foreign.items(),
        _ => ItemEncoding::Bytes,
    }
}

/// Shows copies of an encoded filter to `decode`, with every field of the header at its extremes and every checksum right.
pub(crate) fn survives_forged(name: &str, bytes: &[u8], decode: impl Fn(&[u8]) -> bool) {
    let mut sealed = bytes.to_vec();
    seal(&mut sealed);
    assert!(sealed == bytes && decode(bytes), "{name}: the specimen is rejected, or sealed differently");
    let fields = [(12, 2), (14, 2), (48, 8), (56, 8), (64, 8), (72, 8), (80, 8), (88, 8), (136, 2)];
    let (mut shown, mut decoded) = (0, 0);
    let mut show = |bytes: &[u8], damage: &Damage| {
        let (harmless, used) = AllocMeter::measure(|| decode(bytes));
        assert!(used.peak_bytes <= bytes.len() as u64 * 16 + (64 << 10), "{name}, {damage}");
        (shown, decoded) = (shown + 1, decoded + u64::from(harmless));
    };
    Corruptor::new(bytes).sealed_by(seal).extremes(&fields, &mut show);
    Corruptor::new(bytes).sealed_by(seal).flips(11, 20_000, &mut show);
    assert!(0 < decoded && decoded < shown, "{name}: {decoded} of {shown} forgeries decode");
}
