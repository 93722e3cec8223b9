//! Exact and near duplicates, and whether their labels agree.
//!
//! Samples are exact duplicates if their hashes are equal. They are near duplicates if `κ(x, x') ≥ 1 − ε` for a kernel
//! with `κ(x, x) = 1`, which is given as lists of candidates ([`neighbours`](crate::neighbours)). Groups are connected
//! components, found with union–find: if `a` resembles `b` and `b` resembles `c`, then all three are one group, even if
//! `κ(a, c)` is smaller. Groups are ordered by their first member.

use crate::checks::{check_neighbours, check_rows};
use crate::error::{LensError, Result};
use crate::neighbours::Neighbour;
use serde::Serialize;
use std::collections::HashMap;

/// How far above 1 a normalised kernel value may be by rounding, in single precision with room to spare.
const ROUNDING: f64 = 1e-3;

/// Samples that are copies of each other.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Group {
    /// The samples, ascending.
    pub members: Vec<usize>,
    /// Whether all of them have the same hash; `false` if hashes were not given.
    pub exact: bool,
    /// Whether their labels differ; `None` if labels were not given.
    pub conflict: Option<bool>,
}

/// All groups of two samples or more.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Duplicates {
    /// The groups, by their first member.
    pub groups: Vec<Group>,
    /// The number of samples that were looked at.
    pub samples: usize,
}

impl Duplicates {
    /// How many samples could be removed without losing a group.
    pub fn redundant(&self) -> usize {
        self.groups.iter().map(|group| group.members.len() - 1).sum()
    }

    /// The groups whose labels differ.
    pub fn conflicts(&self) -> impl Iterator<Item = &Group> {
        self.groups.iter().filter(|group| group.conflict == Some(true))
    }
}

/// Groups samples with equal hashes. No samples give no groups.
///
/// ```
/// let found = mercer_lens::duplicates::exact(&[7, 8, 7], Some(&[0, 0, 1]))?;
/// assert_eq!(found.groups[0].members, [0, 2]);
/// assert_eq!(found.groups[0].conflict, Some(true));
/// # Ok::<(), mercer_lens::LensError>(())
/// ```
///
/// # Errors
/// For another number of labels.
pub fn exact(hashes: &[u128], labels: Option<&[usize]>) -> Result<Duplicates> {
    let mut sets = Sets::new(hashes.len());
    join_equal(&mut sets, hashes);
    grouped(sets, Some(hashes), labels)
}

/// Groups samples with a kernel value of at least `1 − epsilon`, and samples with equal hashes if hashes are given. No
/// samples give no groups.
///
/// # Errors
/// For an `epsilon` outside 0 to 1, neighbours that do not exist, values above 1 (the kernel is not normalised), and
/// another number of hashes or labels.
pub fn near(
    neighbours: &[Vec<Neighbour>],
    epsilon: f64,
    hashes: Option<&[u128]>,
    labels: Option<&[usize]>,
) -> Result<Duplicates> {
    if !(0.0..=1.0).contains(&epsilon) {
        let reason = "it must be between 0 and 1";
        return Err(LensError::Setting { name: "‹epsilon›", value: epsilon.to_string(), reason });
    }
    let n = neighbours.len();
    check_neighbours(neighbours, n)?;
    let mut sets = Sets::new(n);
    if let Some(hashes) = hashes {
        check_rows("the list of hashes", n, hashes.len())?;
        join_equal(&mut sets, hashes);
    }
    for (row, list) in neighbours.iter().enumerate() {
        for &Neighbour { index, value } in list {
            if value > 1.0 + ROUNDING {
                let reason = "values must be normalised such that κ(x, x) = 1";
                return Err(LensError::Range { what: "a kernel value", row, value, reason });
            }
            if value >= 1.0 - epsilon {
                sets.join(row, index);
            }
        }
    }
    grouped(sets, hashes, labels)
}

fn join_equal(sets: &mut Sets, hashes: &[u128]) {
    let mut first = HashMap::with_capacity(hashes.len());
    for (index, hash) in hashes.iter().enumerate() {
        let earlier = *first.entry(hash).or_insert(index);
        sets.join(earlier, index);
    }
}

fn grouped(mut sets: Sets, hashes: Option<&[u128]>, labels: Option<&[usize]>) -> Result<Duplicates> {
    let samples = sets.parents.len();
    if let Some(labels) = labels {
        check_rows("the list of labels", samples, labels.len())?;
    }
    let mut members: Vec<Vec<usize>> = vec![Vec::new(); samples];
    for index in 0..samples {
        members[sets.root(index)].push(index);
    }
    let group = |members: Vec<usize>| {
        let first = members[0];
        let exact = hashes.is_some_and(|hashes| members.iter().all(|&i| hashes[i] == hashes[first]));
        let conflict = labels.map(|labels| members.iter().any(|&i| labels[i] != labels[first]));
        Group { members, exact, conflict }
    };
    let groups = members.into_iter().filter(|members| members.len() > 1).map(group).collect();
    Ok(Duplicates { groups, samples })
}

/// Union–find; the root of a set is its smallest member, so the order of joins does not matter.
struct Sets {
    parents: Vec<usize>,
}

impl Sets {
    fn new(n: usize) -> Self {
        Self { parents: (0..n).collect() }
    }

    fn root(&mut self, mut at: usize) -> usize {
        while self.parents[at] != at {
            self.parents[at] = self.parents[self.parents[at]];
            at = self.parents[at];
        }
        at
    }

    fn join(&mut self, a: usize, b: usize) {
        let (a, b) = (self.root(a), self.root(b));
        self.parents[a.max(b)] = a.min(b);
    }
}
