//! Which filter is built, and for which rate: the kind from `--kind`, or the best of mayhap's filters by the advice.

use mayhap::{Kind, say};
use mayhap_advise::{Advice, ItemShape, Needs, NeedsError, Price, Structure, Unsuitable, advise, price_list};

use crate::error::CliError;
use crate::kind_name::{self, KindName};

/// The filter to build.
#[derive(Clone, Debug)]
pub(super) struct Choice {
    pub(super) structure: Structure,
    /// The needs it is built for. The rate is the structure's own if it follows from the memory.
    pub(super) needs: Needs,
    /// Why this kind was chosen; `None` if it was named with `--kind`.
    pub(super) why: Option<String>,
}

impl Choice {
    /// Returns `true` if each copy of an item is stored separately and must be removed separately.
    pub(super) fn counts_copies(&self) -> bool {
        counts_copies(self.structure)
    }

    /// The kind, named as in `--kind`.
    pub(super) fn name(&self) -> String {
        kind_name::name_of(self.structure)
    }
}

/// Returns `true` if the structure stores each copy of an item separately.
pub(super) fn counts_copies(structure: Structure) -> bool {
    matches!(
        structure,
        Structure::CountingBloom
            | Structure::DLeft
            | Structure::Cuckoo
            | Structure::CuckooSemiSorted
            | Structure::GrowableCuckoo
            | Structure::Quotient
            | Structure::Growing
    )
}

/// Chooses the filter to build for `needs`.
///
/// # Errors
/// [`CliError`] if the needs are invalid, or if the named kind, or no filter of mayhap, meets them.
pub(super) fn choose(named: Option<KindName>, needs: &Needs) -> Result<Choice, CliError> {
    match named {
        Some(named) => choose_named(named, needs),
        None => choose_best(needs),
    }
}

fn choose_named(named: KindName, needs: &Needs) -> Result<Choice, CliError> {
    let structure = named.structure(needs)?;
    let needs = needs.clone().growing(kind_name::growth_of(structure, needs.growth));
    let prices = price_list(&needs)?;
    let Some(price) = prices.into_iter().find(|price| price.structure == structure) else {
        return Err(CliError::Usage(format!("--kind: {structure} is not a filter")));
    };
    match price.unsuitable.iter().find(|reason| matters(reason)) {
        Some(Unsuitable::Unbuildable(error)) => Err(NeedsError::from(error.clone()).into()),
        Some(reason) => Err(CliError::Usage(format!("--kind {}: {reason}", kind_name::name_of(structure)))),
        None => Ok(Choice { structure, needs: at_its_rate(&price, &needs), why: None }),
    }
}

/// A kind named by the user is rejected only for a requirement that the user gave and that it cannot meet.
const fn matters(reason: &Unsuitable) -> bool {
    matches!(
        reason,
        Unsuitable::CannotDelete
            | Unsuitable::CannotGrow
            | Unsuitable::NeverForgets
            | Unsuitable::NeedsRange
            | Unsuitable::NoProbesToChoose
            | Unsuitable::OverMemory { .. }
            | Unsuitable::Unbuildable(_)
    )
}

fn choose_best(needs: &Needs) -> Result<Choice, CliError> {
    let advice = advise(needs)?;
    let ours = |price: &&Price| price.suits() && price.structure.kind().is_some();
    let Some(price) = advice.prices.iter().find(ours) else {
        return Err(nothing_suits(&advice));
    };
    Ok(Choice {
        structure: price.structure,
        needs: at_its_rate(price, needs),
        why: Some(why(price, &advice, needs)),
    })
}

/// `blocked-bloom-split, 1.20 MiB for 1,000,000 items (10.1 bits each), one cache line per lookup`.
fn why(price: &Price, advice: &Advice, needs: &Needs) -> String {
    let Some(cost) = price.cost else { return String::new() };
    let name = kind_name::name_of(price.structure);
    let bytes = say::bytes(cost.memory_bytes);
    let mut said = match (price.structure.kind(), needs.item) {
        (Some(Kind::Bitmap), ItemShape::IntegerRange { low, high }) => {
            format!("{name} of {low} to {high}, {bytes}, exact")
        }
        _ => {
            let (items, bits) = (say::items(needs.items), cost.bits_per_item);
            format!("{name}, {bytes} for {items} ({bits:.1} bits each)")
        }
    };
    let better = advice.recommended().filter(|best| best.structure != price.structure);
    if let Some((better, bytes)) = better.and_then(|best| Some((best.structure, best.cost?.memory_bytes))) {
        said +=
            &format!("; for a set this small, an exact {better} of {} is an alternative", say::bytes(bytes));
    }
    said
}

/// The advice for needs that no filter meets, as one clause.
fn nothing_suits(advice: &Advice) -> CliError {
    let exact = advice
        .recommended()
        .map(|best| format!("only a {} meets these needs, and it is not a filter", best.structure));
    let said = exact.or_else(|| advice.why.first().cloned()).unwrap_or_default();
    let mut letters = said.trim_end_matches('.').chars();
    CliError::Usage(
        letters.next().map(|first| first.to_lowercase().chain(letters).collect()).unwrap_or_default(),
    )
}

/// `needs` with the false-positive rate that this structure is sized for.
fn at_its_rate(price: &Price, needs: &Needs) -> Needs {
    let mut needs = needs.clone();
    if let Some(cost) = price.cost.filter(|_| needs.rate_from_memory && price.structure.is_filter()) {
        needs.target_fpr = cost.target_fpr;
    }
    needs
}
