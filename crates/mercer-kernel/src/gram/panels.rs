//! The traversal of a set of tiles: blocks of rows that stay in memory, and blocks of columns that pass by.
//!
//! A panel is described by runs of blocks, so planning takes memory and time proportional to the number of blocks, not
//! to that of tiles, which is its square.

use crate::kernel::Cost;
use crate::store::{StoreLayout, Tiles};
use std::ops::Range;

/// Blocks of rows that stay in memory, and the blocks of columns that pass by.
pub(super) struct Panel<'a> {
    layout: &'a StoreLayout,
    /// The blocks of rows, with the blocks of columns of their tiles.
    rows: Vec<(usize, Tiles)>,
    /// The blocks of rows alone.
    pub(super) resident: Tiles,
    /// The blocks of columns that are not resident as rows.
    pub(super) streamed: Tiles,
}

/// The panels that cover a set of tiles, with this many blocks of rows each.
pub(super) fn panels<'a>(
    layout: &'a StoreLayout,
    tiles: &'a Tiles,
    resident: usize,
) -> impl Iterator<Item = Panel<'a>> {
    let (blocks, resident) = (layout.row_blocks(), resident.max(1));
    (0..blocks)
        .step_by(resident)
        .map(move |first| Panel::new(layout, tiles, first..(first + resident).min(blocks)))
        .filter(|panel| !panel.rows.is_empty())
}

impl<'a> Panel<'a> {
    fn new(layout: &'a StoreLayout, tiles: &Tiles, blocks: Range<usize>) -> Self {
        let columns = |row: usize| {
            let (first, skipped) = (layout.first_of_row(row), if layout.is_symmetric() { row } else { 0 });
            let own = tiles.within(first..layout.first_of_row(row + 1));
            Tiles::of_runs(own.map(|run| run.start - first + skipped..run.end - first + skipped).collect())
        };
        let rows: Vec<(usize, Tiles)> =
            blocks.map(|row| (row, columns(row))).filter(|(_, columns)| !columns.is_empty()).collect();
        let resident: Tiles = rows.iter().map(|(row, _)| *row).collect();
        let all = Tiles::of_runs(rows.iter().flat_map(|(_, columns)| columns.runs().iter().cloned()).collect());
        let streamed = if layout.is_symmetric() { all.without(&resident) } else { all };
        Self { layout, rows, resident, streamed }
    }

    /// The tiles between resident blocks.
    pub(super) fn inside(&self) -> impl Iterator<Item = usize> + '_ {
        let symmetric = self.layout.is_symmetric();
        self.rows.iter().filter(move |_| symmetric).flat_map(|(row, columns)| {
            let own = self.resident.runs().iter().flat_map(|run| columns.within(run.clone())).flatten();
            own.map(|column| self.layout.tile_of(*row, column))
        })
    }

    /// The tiles of resident blocks with a block of columns that passes by.
    pub(super) fn passing(&self, column: usize) -> impl Iterator<Item = usize> + '_ {
        let own = self.rows.iter().filter(move |(_, columns)| columns.contains(column));
        own.map(move |(row, _)| self.layout.tile_of(*row, column))
    }

    /// The blocks that are prepared.
    pub(super) fn prepared(&self) -> usize {
        self.resident.len() + self.streamed.len()
    }

    /// The work in 10⁹ operations.
    pub(super) fn gflop(&self, cost: &Cost) -> f64 {
        let (rows, columns) = (self.layout.rows, self.layout.n_columns());
        let prepared = self.layout.samples(&self.resident, rows) + self.layout.samples(&self.streamed, columns);
        let pairs: f64 = self
            .rows
            .iter()
            .map(|(row, own)| {
                let height = self.layout.samples(&Tiles::range(*row..row + 1), rows) as f64;
                let on_diagonal = self.layout.is_symmetric() && own.contains(*row);
                height * (self.layout.samples(own, columns) as f64 - if on_diagonal { 0.5 * height } else { 0.0 })
            })
            .sum();
        (prepared as f64 * cost.prepare_flops + pairs * cost.pair_flops) / 1e9
    }
}
