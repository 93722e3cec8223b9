//! Dividing the tiles of a matrix among processes that do not share memory.
//!
//! Every process prepares the blocks that its tiles need, so rows of tiles would be a poor choice: each of them needs
//! almost every block. A triangle of tiles is cut into two triangles and the square between them, and a rectangle into
//! two halves. The parts then have equal work and few common blocks.

use crate::kernel::Cost;
use crate::store::{StoreLayout, Tiles};
use std::ops::Range;

/// More regions than this, per part, are not tried.
const REGIONS: usize = 6;

/// A finer division must be this much faster, because it prepares more blocks.
const GAIN: f64 = 0.98;

/// Tiles that need few blocks for their number.
#[derive(Clone, Debug)]
enum Region {
    /// The tiles on and above the diagonal between these blocks.
    Triangle(Range<usize>),
    /// The tiles of blocks of rows with blocks of columns.
    Rectangle(Range<usize>, Range<usize>),
}

impl Region {
    /// Operations for preparing its blocks and contracting its tiles.
    fn work(&self, side: f64, cost: &Cost) -> f64 {
        let (blocks, pairs) = match self {
            Self::Triangle(blocks) => {
                let samples = blocks.len() as f64 * side;
                (samples, samples * samples / 2.0)
            }
            Self::Rectangle(rows, columns) => {
                let (height, width) = (rows.len() as f64 * side, columns.len() as f64 * side);
                (height + width, height * width)
            }
        };
        blocks * cost.prepare_flops + pairs * cost.pair_flops
    }

    /// Its pieces, or none if it is a single tile.
    fn cut(&self) -> Vec<Self> {
        let halves = |range: &Range<usize>| {
            let middle = range.start + range.len().div_ceil(2);
            (range.start..middle, middle..range.end)
        };
        match self {
            Self::Triangle(blocks) if blocks.len() > 1 => {
                let (first, second) = halves(blocks);
                vec![Self::Rectangle(first.clone(), second.clone()), Self::Triangle(first), Self::Triangle(second)]
            }
            Self::Rectangle(rows, columns) if rows.len() * columns.len() > 1 => {
                if rows.len() >= columns.len() {
                    let (first, second) = halves(rows);
                    vec![Self::Rectangle(first, columns.clone()), Self::Rectangle(second, columns.clone())]
                } else {
                    let (first, second) = halves(columns);
                    vec![Self::Rectangle(rows.clone(), first), Self::Rectangle(rows.clone(), second)]
                }
            }
            _ => Vec::new(),
        }
    }

    /// The numbers of its tiles, a run per row of tiles.
    fn runs(&self, layout: &StoreLayout) -> Vec<Range<usize>> {
        let run = |row: usize, columns: Range<usize>| match columns.is_empty() {
            true => 0..0,
            false => layout.tile_of(row, columns.start)..layout.tile_of(row, columns.end - 1) + 1,
        };
        match self {
            Self::Triangle(blocks) => blocks.clone().map(|row| run(row, row..blocks.end)).collect(),
            Self::Rectangle(rows, columns) => rows.clone().map(|row| run(row, columns.clone())).collect(),
        }
    }
}

/// Divides all tiles into this many parts, some of them empty if there are too few tiles. The parts depend on the kernel
/// and the numbers of samples alone, so that every process finds the same.
pub(super) fn partition(layout: &StoreLayout, cost: &Cost, parts: usize) -> Vec<Tiles> {
    let parts = parts.max(1);
    let side = layout.tile as f64;
    let (rows, columns) = (0..layout.row_blocks(), 0..layout.column_blocks());
    let whole = if layout.is_symmetric() { Region::Triangle(rows) } else { Region::Rectangle(rows, columns) };
    let mut regions = vec![whole];
    let mut best: Option<(f64, Vec<Vec<Region>>)> = None;
    loop {
        let (slowest, assigned) = assign(&regions, side, cost, parts);
        if best.as_ref().is_none_or(|(least, _)| slowest < GAIN * least) {
            best = Some((slowest, assigned));
        }
        let largest = (0..regions.len())
            .filter(|&at| !regions[at].cut().is_empty())
            .max_by(|&a, &b| regions[a].work(side, cost).total_cmp(&regions[b].work(side, cost)));
        match largest {
            Some(at) if parts > 1 && regions.len() < REGIONS * parts => {
                let pieces = regions.swap_remove(at).cut();
                regions.extend(pieces);
            }
            _ => break,
        }
    }
    let assigned = best.map(|(_, assigned)| assigned).unwrap_or_default();
    let tiles = |own: Vec<Region>| Tiles::of_runs(own.iter().flat_map(|region| region.runs(layout)).collect());
    assigned.into_iter().map(tiles).collect()
}

/// Gives every region, the largest first, to the part with the least work; and the work of the slowest part.
fn assign(regions: &[Region], side: f64, cost: &Cost, parts: usize) -> (f64, Vec<Vec<Region>>) {
    let mut order: Vec<&Region> = regions.iter().collect();
    order.sort_by(|a, b| b.work(side, cost).total_cmp(&a.work(side, cost)));
    let mut found = vec![(0.0_f64, Vec::new()); parts];
    for region in order {
        if let Some((work, own)) = found.iter_mut().min_by(|a, b| a.0.total_cmp(&b.0)) {
            *work += region.work(side, cost);
            own.push(region.clone());
        }
    }
    let slowest = found.iter().map(|(work, _)| *work).fold(0.0, f64::max);
    (slowest, found.into_iter().map(|(_, own)| own).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::StoreColumns;
    use mercer_data::DType;

    fn layout(rows: usize, columns: StoreColumns) -> StoreLayout {
        StoreLayout { arrays: vec!["kernel".to_owned()], rows, columns, per_sample: 1, tile: 4, precision: DType::F32 }
    }

    /// Every tile is in exactly one part, for every number of parts, for matrices of any shape.
    #[test]
    fn parts_are_a_partition() {
        let cost = Cost { prepare_flops: 50.0, pair_flops: 1.0, ..Cost::default() };
        for samples in [0, 1, 4, 9, 30, 83] {
            for symmetric in [true, false] {
                let count = if symmetric { samples } else { samples / 2 };
                let layout = layout(samples, StoreColumns::Samples { count, symmetric });
                for parts in [1, 2, 3, 4, 7, 40] {
                    let found = partition(&layout, &cost, parts);
                    assert_eq!(found.len(), parts);
                    let all = found.iter().fold(Tiles::default(), |all, own| all.and(own));
                    assert_eq!(all, layout.all_tiles(), "{samples} {symmetric} {parts}");
                    assert_eq!(found.iter().map(Tiles::len).sum::<usize>(), layout.n_tiles());
                }
            }
        }
    }

    /// Four parts of a triangle: two triangles and two halves of the square between them. They prepare two and a half
    /// times as many blocks as one process; rows of tiles of equal work would prepare more than three times as many.
    #[test]
    fn four_parts_of_a_symmetric_matrix() {
        let layout = layout(32 * 4, StoreColumns::Samples { count: 32 * 4, symmetric: true });
        let cost = Cost { prepare_flops: 1.0, pair_flops: 1.0, ..Cost::default() };
        let found = partition(&layout, &cost, 4);
        let blocks = |tiles: &Tiles| {
            let places = tiles.iter().filter_map(|tile| layout.tile(tile));
            let both = places.flat_map(|place| [place.row_block, place.column_block]);
            both.collect::<std::collections::BTreeSet<_>>().len()
        };
        assert_eq!(found.iter().map(blocks).sum::<usize>(), 80);
        let sizes: Vec<usize> = found.iter().map(Tiles::len).collect();
        assert!(sizes.iter().all(|&size| size.abs_diff(528 / 4) <= 8), "{sizes:?}");
    }
}
