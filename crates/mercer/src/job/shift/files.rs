//! The table of samples.

use super::work::PerSample;
use crate::csv::{Table, number};
use crate::job::surrogate::Ids;

/// All files that this job may write.
pub(super) const NAMES: [&str; 3] = ["samples.csv", "densities.svg", "tests.svg"];

/// Every sample of both sets, in order.
pub(super) fn samples(found: &PerSample, ids: &[Ids; 2], keep: f64) -> Table {
    let mut table = Table::new(&["set", "row", "pc1", "pc2", "classifier", "witness", "density_ratio", "kept", "id"]);
    for row in 0..found.witness.len() {
        let is_first = row < found.n_first;
        let own = if is_first { row } else { row - found.n_first };
        table.line(&[
            if is_first { "data" } else { "test" },
            &own.to_string(),
            &number(found.pc1[row]),
            &number(found.pc2[row]),
            &number(found.score[row]),
            &number(found.witness[row]),
            &number(found.ratio[row]),
            if found.ratio[row] >= keep { "1" } else { "0" },
            &ids[usize::from(!is_first)].name(own),
        ]);
    }
    table
}
