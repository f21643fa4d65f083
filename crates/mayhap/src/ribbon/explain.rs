//! The rows of one item, for [`explain`](crate::explain).

use std::sync::atomic::Ordering;

use super::Ribbon;
use super::layout::next_key;
use crate::explain::{ColumnProbe, RowLayer, RowLookup};
use crate::hash::ItemHash;
use crate::sizing::ribbon::{BLOCK_ROWS, BUCKET_ROWS};
use crate::statics;

impl Ribbon {
    /// Traces what [`may_contain_hash`](Self::may_contain_hash) reads.
    pub(crate) fn trace(&self, hash: ItemHash) -> RowLookup {
        let (all, mut key, mut asked) = (self.layers(), statics::key(hash), Vec::new());
        let none = RowLookup { layers: Vec::new(), coefficients: 0, columns: Vec::new() };
        let Some((last, before)) = self.layout.layers().split_last() else { return none };
        let mut found = None;
        for layer in before {
            let start = layer.start(key);
            let (threshold, bumped) = (Some(all.threshold(layer, start)), all.is_bumped(layer, start));
            asked.push(RowLayer {
                rows: layer.starts,
                start,
                threshold,
                in_bucket: start % BUCKET_ROWS,
                bumped,
            });
            if !bumped {
                found = Some(layer.probe(key, start));
                break;
            }
            key = next_key(key);
        }
        let probe = found.unwrap_or_else(|| {
            let key = self.layout.last_key(key);
            let start = last.start(key);
            let in_bucket = start % BUCKET_ROWS;
            asked.push(RowLayer { rows: last.starts, start, threshold: None, in_bucket, bumped: false });
            last.probe(key, start)
        });
        let row = asked.last().map_or(0, |layer| layer.start % BLOCK_ROWS);
        // The 64 rows from the first one on, from one block and the next.
        let joined = |block: u64, next: u64| block >> row | next << 1 << (63 - row);
        let load = |word: usize| self.lines.words()[word].load(Ordering::Relaxed);
        let column = |column: usize| {
            let (block, next) = (load(probe.word + column), load(probe.next_word + column));
            let counted = (block & probe.coefficients) ^ (next & probe.next_coefficients);
            ColumnProbe {
                rows: joined(block, next),
                parity: counted.count_ones() % 2 == 1,
                wanted: probe.fingerprint >> column & 1 == 1,
            }
        };
        RowLookup {
            layers: asked,
            coefficients: joined(probe.coefficients, probe.next_coefficients),
            columns: (0..probe.columns).map(column).collect(),
        }
    }
}
