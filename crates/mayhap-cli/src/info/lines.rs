//! The lines that `mayhap info` prints for a filter in a file and for one in a server: the same words for the same figures.

use mayhap::say;

/// Where a filter is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Storage {
    File,
    Server,
}

impl Storage {
    const fn name(self) -> &'static str {
        match self {
            Self::File => "file",
            Self::Server => "server",
        }
    }
}

/// The figures of one filter. A figure that is not known is `None`.
#[derive(Debug)]
pub(crate) struct Figures<'a> {
    pub(crate) storage: Storage,
    pub(crate) kind: Option<&'a str>,
    pub(crate) shape: Option<&'a str>,
    pub(crate) format: &'a str,
    pub(crate) placement: Option<&'a str>,
    pub(crate) hash: Option<&'a str>,
    pub(crate) items_as: Option<&'a str>,
    pub(crate) items_as_unknown: bool,
    pub(crate) capacity: Option<u64>,
    pub(crate) inserted: Option<u64>,
    pub(crate) inserted_unknown: bool,
    pub(crate) target_fpr: Option<f64>,
    pub(crate) fpr_from_count: Option<f64>,
    pub(crate) fpr_from_fill: Option<f64>,
    /// The false-positive rate that a server reports.
    pub(crate) fpr_reported: Option<f64>,
    pub(crate) fill: Option<f64>,
    pub(crate) fill_of: Option<&'a str>,
    pub(crate) estimated_items: Option<u64>,
    pub(crate) fill_not_counted: bool,
    pub(crate) file_bytes: Option<u64>,
    pub(crate) memory_bytes: Option<u64>,
    pub(crate) bits_per_item: Option<f64>,
    pub(crate) bits_per_inserted: Option<f64>,
    pub(crate) bound_bits_per_item: Option<f64>,
}

impl Figures<'_> {
    /// Name and text of every line, in the order in which they are printed.
    pub(crate) fn lines(&self) -> impl Iterator<Item = (&'static str, String)> {
        let lines = [
            ("kind", self.kind_line()),
            ("format", Some(self.format_line())),
            ("hash", self.hash.map(str::to_owned)),
            ("items", Some(self.items_line())),
            ("capacity", self.capacity_line()),
            ("inserted", self.inserted_line()),
            ("FPR now", self.fpr_line()),
            ("fill", self.fill_line()),
            ("size", self.size_line()),
            ("bits per item", self.bits_line()),
        ];
        lines.into_iter().filter_map(|(name, text)| Some((name, text?)))
    }

    fn kind_line(&self) -> Option<String> {
        let kind = self.kind?;
        Some(self.shape.map_or_else(|| kind.to_owned(), |shape| format!("{kind}: {shape}")))
    }

    fn format_line(&self) -> String {
        match (self.format, self.placement) {
            ("mayhap", _) | (_, None) => self.format.to_owned(),
            (format, Some(placement)) if placement == format => format.to_owned(),
            (format, Some(placement)) => format!("{format}, placement {placement}"),
        }
    }

    fn items_line(&self) -> String {
        match (self.items_as, self.items_as_unknown) {
            (_, true) => {
                format!("encoding not stored in the {}: `check` needs --items-as", self.storage.name())
            }
            (Some(encoding), _) => format!("as {encoding}"),
            (None, _) if self.kind == Some("bitmap") => "decimal numbers".into(),
            (None, _) => "raw bytes".into(),
        }
    }

    fn capacity_line(&self) -> Option<String> {
        Some(match (self.capacity, self.target_fpr) {
            (Some(capacity), Some(rate)) if rate > 0.0 => {
                format!("{} at an FPR of {}", say::items(capacity), say::rate(rate))
            }
            (Some(capacity), Some(_)) => format!("{} numbers, no false positives", say::count(capacity)),
            (Some(capacity), None) => say::items(capacity),
            (None, _) if self.storage == Storage::File && self.inserted_unknown => {
                "not stored in the file".into()
            }
            (None, _) => return None,
        })
    }

    fn inserted_line(&self) -> Option<String> {
        Some(match (self.inserted, self.capacity) {
            (Some(inserted), None | Some(0)) => say::items(inserted),
            (Some(inserted), Some(capacity)) => {
                format!("{} ({})", say::items(inserted), load(inserted as f64 / capacity as f64))
            }
            (None, _) if !self.inserted_unknown => "not counted; --fill reads the whole file".into(),
            (None, _) => match (self.estimated_items, self.storage) {
                (Some(items), storage) => {
                    let storage = storage.name();
                    format!("about {}, from the bits: the {storage} stores no count", say::items(items))
                }
                (None, Storage::File) => "the file stores no count".into(),
                (None, Storage::Server) => return None,
            },
        })
    }

    fn fpr_line(&self) -> Option<String> {
        if self.target_fpr == Some(0.0) {
            return None;
        }
        let mut rates = Vec::new();
        rates.extend(self.fpr_from_count.map(|rate| format!("{} (from the item count)", fpr(rate))));
        rates.extend(self.fpr_reported.map(|rate| format!("{} (from the server)", fpr(rate))));
        let has_other = !rates.is_empty();
        let from_fill = self.fpr_from_fill.filter(|rate| *rate > 0.0 || !has_other);
        rates.extend(from_fill.map(|rate| format!("{} (from the bits)", fpr(rate))));
        (!rates.is_empty()).then(|| rates.join(", "))
    }

    fn fill_line(&self) -> Option<String> {
        let Some(fill) = self.fill else {
            let bytes = self.memory_bytes.filter(|_| self.fill_not_counted)?;
            return Some(format!("not counted ({}); --fill reads the whole file", say::bytes(bytes)));
        };
        let of = self.fill_of.map(|of| format!(" of the {of}")).unwrap_or_default();
        let items = self.estimated_items.map(|items| format!(" (about {})", say::items(items)));
        Some(format!("{:.1}%{of}{}", fill * 100.0, items.unwrap_or_default()))
    }

    fn size_line(&self) -> Option<String> {
        let memory = say::bytes(self.memory_bytes?);
        Some(match self.file_bytes {
            Some(file) => format!("{} in the file, {memory} in memory", say::bytes(file)),
            None => format!("{memory} in memory"),
        })
    }

    fn bits_line(&self) -> Option<String> {
        let now = self.bits_per_inserted.map(|now| format!("{now:.2}"));
        let Some(at_capacity) = self.bits_per_item else { return now.map(|now| format!("{now} now")) };
        if self.capacity == Some(0) {
            return None;
        }
        let full = format!("{at_capacity:.2}");
        let mut text = format!("{full} at capacity");
        if let Some(bound) = self.bound_bits_per_item {
            let times = at_capacity / bound;
            text += &format!(", {times:.2} × the information-theoretic minimum of {bound:.2}");
        }
        // Of a nearly empty filter the figure says nothing.
        let is_used = self.bits_per_inserted.is_some_and(|now| now <= 10.0 * at_capacity);
        if let Some(now) = now.filter(|now| is_used && *now != full) {
            text += &format!("; {now} now");
        }
        Some(text)
    }
}

/// Inserted ÷ capacity, which may be far above 1.
fn load(share: f64) -> String {
    if share >= 10.0 { format!("{share:.1} × the capacity") } else { format!("load {:.1}%", share * 100.0) }
}

/// A false-positive rate as text: `0.997%`, `1 in 1,180,000`, `0%`.
pub(crate) fn fpr(rate: f64) -> String {
    if rate > 0.0 { say::rate(rate) } else { "0%".into() }
}
