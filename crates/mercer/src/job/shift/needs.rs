//! Memory: how many samples are worked on at a time, and whether features are kept between the two passes.

use crate::Error;
use crate::text::{bytes as shown, suggested};
use mercer_lens::shift::{Permutations, View};
use mercer_run::{Context, resident_memory};

/// Code, stacks, and pages of data files.
const REST: usize = 160 << 20;

/// The bytes of a block of samples, with all that is computed from it.
const BLOCK_BYTES: usize = 96 << 20;

/// More samples at a time have no benefit.
const MOST_ROWS: usize = 4096;

/// Sizes that memory depends on.
#[derive(Clone, Debug)]
pub(super) struct Sizes {
    pub(super) n_rows: usize,
    /// Numbers per sample of every view, after the reduction.
    pub(super) widths: Vec<usize>,
    /// Numbers per sample before the reduction, of all views that are computed at once.
    pub(super) raw: usize,
    /// Bytes of a number of the network.
    pub(super) element: usize,
    pub(super) permutations: usize,
    pub(super) frequencies: usize,
    /// Samples of a shard of the network.
    pub(super) grain: usize,
    /// Bytes that are held throughout: passes of the network, tables.
    pub(super) fixed: usize,
}

/// How the samples are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Reading {
    /// Samples of a block. It depends on the views alone, because the last bits of sums depend on it.
    pub(super) block: usize,
    /// Whether the features of all samples are kept for the second pass.
    pub(super) held: bool,
    /// Peak memory.
    pub(super) bytes: usize,
}

impl Sizes {
    /// The bytes of a sample in a block.
    fn sample(&self) -> usize {
        let widest = self.widths.iter().copied().max().unwrap_or(0);
        let doubles = widest
            .saturating_mul(4)
            .saturating_add(self.frequencies.saturating_mul(6))
            .saturating_add(self.permutations.saturating_add(1).saturating_mul(3));
        let own: usize = self.widths.iter().fold(self.raw, |sum, width| sum.saturating_add(*width));
        own.saturating_mul(self.element).saturating_add(doubles.saturating_mul(size_of::<f64>())).max(1)
    }

    /// Chooses how to read, or says that memory does not suffice.
    pub(super) fn reading(&self, context: &Context) -> Result<Reading, Error> {
        let rows = (BLOCK_BYTES / self.sample()).clamp(1, MOST_ROWS) / self.grain * self.grain;
        let block = rows.max(self.grain);
        let columns = self.permutations.saturating_add(1);
        let views = self.widths.iter().map(|&width| View::bytes(width, columns, self.frequencies));
        // Coordinates and scores of every view, and what is written about every sample.
        let each = self.widths.len() * 4 * size_of::<f64>() + 160;
        let needed = resident_memory()
            .saturating_add(REST)
            .saturating_add(self.fixed)
            .saturating_add(views.fold(0, usize::saturating_add))
            .saturating_add(Permutations::bytes(self.n_rows, self.permutations).saturating_mul(2))
            .saturating_add(self.n_rows.saturating_mul(each))
            .saturating_add(self.sample().saturating_mul(block.min(self.n_rows)));
        // Without a promise, what the process holds already is no part of what is free.
        let allowed = context.promised_memory().unwrap_or_else(|| context.memory().saturating_add(resident_memory()));
        if needed > allowed {
            let text = format!(
                "{} samples in {} views need about {}, but {} may be used",
                self.n_rows,
                self.widths.len(),
                shown(needed),
                shown(allowed)
            );
            let hint =
                format!("‹memory› {}; or fewer layers with ‹layer›; or a smaller ‹reduce-to›", suggested(needed));
            return Err(Error::with_code("memory", text).hint(hint));
        }
        let width = self.widths.iter().copied().fold(0, usize::saturating_add);
        let kept = self.n_rows.saturating_mul(width).saturating_mul(self.element);
        let held = needed.saturating_add(kept) <= allowed;
        Ok(Reading { block, held, bytes: if held { needed + kept } else { needed } })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_do_not_depend_on_memory() {
        let sizes = Sizes {
            n_rows: 1_000_000,
            widths: vec![512],
            raw: 512,
            element: 4,
            permutations: 199,
            frequencies: 256,
            grain: 1,
            fixed: 0,
        };
        let small = sizes.reading(&Context::new().with_memory(2 << 30)).unwrap();
        let large = sizes.reading(&Context::new().with_memory(1 << 40)).unwrap();
        assert!(!small.held && large.held && small.block == large.block, "{small:?} {large:?}");
        let error = sizes.reading(&Context::new().with_memory(100 << 20)).unwrap_err();
        assert!(error.to_string().contains("1000000 samples"), "{error}");
    }
}
