//! Reads the output back before it is put in place, and compares it with the input.

use mayhap::{Answers, Filter, ForeignHash, HashScheme, ItemEncoding};
use mayhap_formats::cassandra::BitOrder;
use mayhap_formats::{Format, ReadOptions, block_filter, redisson};

use crate::filter_file;
use crate::item_form::ItemForm;
use crate::whole_file::Bytes;

/// The number of items to compare.
const PROBES: u64 = 100_000;

/// Reads `bytes` in `format` and compares the result with `filter`: the answers for many items, and the bytes when written again. Returns
/// the number of items compared.
///
/// # Errors
/// The difference, in one clause.
pub(super) fn compare(filter: &Filter, format: Format, attached: &[u8], bytes: &[u8]) -> Result<u64, String> {
    let read = format.read(bytes, &options(filter)).map_err(|error| error.to_string())?;
    let mut again = Bytes::default();
    filter_file::write(&read, format, attached, &mut again).map_err(|error| error.to_string())?;
    if again.0 != bytes {
        return Err("its bytes differ when it is written again".into());
    }
    let form = ItemForm::of(filter);
    let texts: Vec<String> = (0..PROBES).map(|number| number.to_string()).collect();
    let items: Vec<_> = texts.iter().filter_map(|text| form.item(text.as_bytes()).ok()).collect();
    let (mut ours, mut theirs) = (Answers::new(), Answers::new());
    filter.may_contain_batch(&items, &mut ours);
    read.may_contain_batch(&items, &mut theirs);
    match ours.iter().zip(theirs.iter()).position(|(ours, theirs)| ours != theirs) {
        Some(index) => Err(format!("the answers for {:?} differ", texts[index])),
        None => Ok(items.len() as u64),
    }
}

/// Takes what the new file does not store from the filter.
fn options(filter: &Filter) -> ReadOptions {
    let options = ReadOptions::default()
        .items(filter.items().unwrap_or(ItemEncoding::Bytes))
        .cassandra(BitOrder::Since40)
        .unpacked_limit(u64::MAX);
    match filter {
        Filter::Bloom(bloom) => match redisson::config(bloom) {
            Ok(config) => options.redisson(config),
            Err(_) => options,
        },
        Filter::Gcs(set) => match (block_filter::parameters(set), set.scheme()) {
            (Some(parameters), HashScheme::Foreign(foreign)) => match foreign.function() {
                ForeignHash::BlockFilter { key } => options.golomb(parameters, key),
                _ => options,
            },
            _ => options,
        },
        Filter::BinaryFuse8(_) => options.fingerprint_bits(8),
        Filter::BinaryFuse16(_) => options.fingerprint_bits(16),
        Filter::BinaryFuse32(_) => options.fingerprint_bits(32),
        _ => options,
    }
}
