//! Sets of tiles, as ranges of consecutive numbers: all tiles of a matrix are one range, however many there are.

use serde::Serialize;
use std::ops::Range;

/// A set of tiles.
///
/// ```
/// use mercer_kernel::store::Tiles;
///
/// let tiles: Tiles = [7, 0, 1, 2].into_iter().collect();
/// assert_eq!(tiles.runs(), [0..3, 7..8]);
/// assert_eq!(tiles.common(&Tiles::range(2..1_000_000_000)).iter().collect::<Vec<_>>(), [2, 7]);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Tiles {
    /// In order, none of them empty, with gaps between them.
    runs: Vec<Range<usize>>,
}

impl Tiles {
    /// Consecutive tiles.
    pub fn range(tiles: Range<usize>) -> Self {
        Self::of_runs(vec![tiles])
    }

    /// The union of some runs.
    pub(crate) fn of_runs(mut runs: Vec<Range<usize>>) -> Self {
        runs.retain(|run| !run.is_empty());
        runs.sort_unstable_by_key(|run| run.start);
        let mut union: Vec<Range<usize>> = Vec::new();
        for run in runs {
            match union.last_mut() {
                Some(last) if run.start <= last.end => last.end = last.end.max(run.end),
                _ => union.push(run),
            }
        }
        Self { runs: union }
    }

    /// The runs, in order.
    pub fn runs(&self) -> &[Range<usize>] {
        &self.runs
    }

    /// How many tiles there are.
    pub fn len(&self) -> usize {
        self.runs.iter().map(Range::len).sum()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// The tiles, in order.
    pub fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        self.runs.iter().cloned().flatten()
    }

    /// Whether a tile is one of them.
    pub fn contains(&self, tile: usize) -> bool {
        self.within(tile..tile + 1).next().is_some()
    }

    /// The parts of runs that lie in a range.
    pub(crate) fn within(&self, range: Range<usize>) -> impl Iterator<Item = Range<usize>> + '_ {
        let first = self.runs.partition_point(|run| run.end <= range.start);
        let inside = move |run: &Range<usize>| run.start.max(range.start)..run.end.min(range.end);
        self.runs[first..].iter().map(inside).take_while(|run| !run.is_empty())
    }

    /// The tiles that are in both.
    pub fn common(&self, other: &Self) -> Self {
        Self { runs: other.runs.iter().flat_map(|run| self.within(run.clone())).collect() }
    }

    /// The tiles that are in either.
    pub fn and(mut self, other: &Self) -> Self {
        self.runs.extend_from_slice(&other.runs);
        Self::of_runs(self.runs)
    }

    /// The tiles that are not in the other.
    pub fn without(&self, other: &Self) -> Self {
        let mut runs = Vec::new();
        for run in &self.runs {
            let mut start = run.start;
            for gone in other.within(run.clone()) {
                runs.push(start..gone.start);
                start = gone.end;
            }
            runs.push(start..run.end);
        }
        Self::of_runs(runs)
    }
}

impl FromIterator<usize> for Tiles {
    fn from_iter<I: IntoIterator<Item = usize>>(tiles: I) -> Self {
        let mut runs: Vec<Range<usize>> = Vec::new();
        for tile in tiles {
            match runs.last_mut() {
                Some(last) if last.end == tile => last.end += 1,
                _ => runs.push(tile..tile + 1),
            }
        }
        Self::of_runs(runs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// All subsets of six tiles against sets of numbers.
    #[test]
    fn sets_are_sets() {
        let subset = |bits: usize| (0..6).filter(move |tile| bits >> tile & 1 == 1);
        for left in 0..64 {
            let (tiles, set): (Tiles, BTreeSet<usize>) = (subset(left).collect(), subset(left).collect());
            assert_eq!((tiles.len(), tiles.is_empty()), (set.len(), set.is_empty()));
            assert!(tiles.runs().windows(2).all(|pair| pair[0].end < pair[1].start));
            assert!((0..8).all(|tile| tiles.contains(tile) == set.contains(&tile)));
            let backwards: Vec<usize> = subset(left).collect();
            assert_eq!(backwards.into_iter().rev().collect::<Tiles>(), tiles);
            for right in 0..64 {
                let (others, other): (Tiles, BTreeSet<usize>) = (subset(right).collect(), subset(right).collect());
                assert!(tiles.common(&others).iter().eq(set.intersection(&other).copied()));
                assert!(tiles.without(&others).iter().eq(set.difference(&other).copied()));
                assert!(tiles.clone().and(&others).iter().eq(set.union(&other).copied()));
            }
        }
    }
}
