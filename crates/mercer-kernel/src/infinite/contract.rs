//! The second phase: pairs of samples, many at once.

use super::limit::{Limit, LimitKind};
use super::prepare::{Prepared, is_dense};
use super::run::{Known, Machine, Pairs, Side};
use super::series;
use crate::kernel::{Block, Real};
use crate::products::mirror;
use mercer_linalg::gemm_rows;
use mercer_linalg::simd::dispatch;
use std::ops::Range;

/// Rows of the matrix whose input products are computed at once.
pub(super) const STRIP: usize = 64;

/// A pair of blocks.
pub(super) struct Tiles<'a, T> {
    limit: &'a Limit<T>,
    a: &'a Prepared<T>,
    b: &'a Prepared<T>,
    symmetric: bool,
}

/// Neighbouring pairs: one left sample, and right samples in a row.
#[derive(Clone, Debug)]
struct Run {
    left: usize,
    right: Range<usize>,
}

/// Memory of runs, reused for the next.
struct Room<T> {
    machine: Machine<T>,
    left: Side<T>,
    right: Side<T>,
    distances: Vec<Vec<T>>,
}

impl<'a, T: Real> Tiles<'a, T> {
    pub(super) fn new(limit: &'a Limit<T>, a: &'a Block, b: &'a Block) -> Self {
        let symmetric = std::ptr::eq(a, b);
        Self { limit, a: a.content::<Prepared<T>>(), b: b.content::<Prepared<T>>(), symmetric }
    }

    fn room(&self) -> Room<T> {
        let nodes = self.limit.net.nodes().len();
        let side = || Side { nodes: vec![None; nodes], inputs: vec![Vec::new(); nodes] };
        Room { machine: Machine::default(), left: side(), right: side(), distances: vec![Vec::new(); nodes] }
    }

    /// Writes one or both kernels.
    pub(super) fn contract(&self, mut nngp: Option<&mut [T]>, mut ntk: Option<&mut [T]>) {
        let (n, m) = (self.a.samples, self.b.samples);
        [&nngp, &ntk].into_iter().flatten().for_each(|tile| assert_eq!(tile.len(), n * m, "size of a tile"));
        let mut room = self.room();
        let mut products: Vec<Vec<T>> = vec![Vec::new(); self.limit.net.nodes().len()];
        for start in (0..n).step_by(STRIP) {
            let rows = start..(start + STRIP).min(n);
            let first = if self.symmetric { start } else { 0 };
            self.products(&rows, first, &mut products);
            let pairs = rows.flat_map(|left| {
                let from = if self.symmetric { left } else { 0 };
                (from < m).then_some(Run { left, right: from..m })
            });
            for runs in pack(pairs, self.limit.lanes) {
                self.gather(&runs, &mut room);
                for (products, distances) in
                    products.iter().zip(&mut room.distances).filter(|(from, _)| !from.is_empty())
                {
                    distances.clear();
                    for run in &runs {
                        let row = &products[(run.left - start) * m..][..m];
                        distances.extend_from_slice(&row[run.right.clone()]);
                    }
                }
                let (value, theta) = self.run(&runs, &mut room, ntk.is_some());
                for (tile, found) in [(nngp.as_deref_mut(), value), (ntk.as_deref_mut(), theta)] {
                    let Some(tile) = tile else { continue };
                    let mut at = 0;
                    for Run { left, right } in &runs {
                        tile[left * m + right.start..left * m + right.end]
                            .copy_from_slice(&found[at..at + right.len()]);
                        at += right.len();
                    }
                }
            }
        }
        if self.symmetric {
            [nngp, ntk].into_iter().flatten().for_each(|tile| mirror(tile, n));
        }
    }

    /// The kernel of each sample with itself.
    pub(super) fn diagonal(&self, of: LimitKind) -> Vec<T> {
        let mut room = self.room();
        let mut diagonal = Vec::with_capacity(self.a.samples);
        for runs in pack((0..self.a.samples).map(|i| Run { left: i, right: i..i + 1 }), self.limit.lanes) {
            self.gather(&runs, &mut room);
            for node in 0..self.limit.net.nodes().len() {
                if is_dense(self.limit, node).is_some() {
                    room.distances[node] = vec![T::zero(); runs.len()];
                }
            }
            let (value, theta) = self.run(&runs, &mut room, of == LimitKind::Ntk);
            diagonal.extend_from_slice(if of == LimitKind::Nngp { value } else { theta });
        }
        diagonal
    }

    fn run<'r>(&self, runs: &[Run], room: &'r mut Room<T>, tangent: bool) -> (&'r [T], &'r [T]) {
        let lanes = runs.iter().map(|run| run.right.len()).sum();
        let pairs = Pairs { lanes, left: &room.left, right: &room.right, distances: &room.distances, tangent };
        room.machine.run(&self.limit.net, &self.limit.program, &pairs)
    }

    /// Half the squared distances of dense inputs, for rows of the matrix from column `first` on.
    fn products(&self, rows: &Range<usize>, first: usize, products: &mut [Vec<T>]) {
        let (m, n) = (self.b.samples, rows.len());
        for (node, products) in products.iter_mut().enumerate() {
            let Some(input) = is_dense(self.limit, node) else { continue };
            let width = input.channels;
            products.resize(n * m, T::zero());
            let (x, y) = (&self.a.inputs[node], &self.b.inputs[node]);
            let (left, right) = (&x[rows.start * width..], &y[first * width..]);
            gemm_rows([n, m - first, width], (left, width, 1), (right, 1, width), false, &mut products[first..], m);
            for row in 0..n {
                let left = (&x[(rows.start + row) * width..][..width], self.a.squares[node][rows.start + row]);
                let line = &mut products[row * m..][first..m];
                distances(left, &y[first * width..], &self.b.squares[node][first..], line);
            }
        }
    }

    /// Gathers the data of both samples of each pair into lanes.
    fn gather(&self, runs: &[Run], room: &mut Room<T>) {
        let Room { left: left_side, right: right_side, .. } = room;
        for node in 0..self.limit.net.nodes().len() {
            if is_dense(self.limit, node).is_none() {
                let (a, b) = (&self.a.inputs[node], &self.b.inputs[node]);
                spread(a, self.a.samples, runs, &mut left_side.inputs[node], true);
                spread(b, self.b.samples, runs, &mut right_side.inputs[node], false);
            }
            let (Some(a), Some(b)) = (&self.a.known[node], &self.b.known[node]) else { continue };
            let positions = a.variance.len() / self.a.samples.max(1);
            let rows = positions * self.terms(a, b, runs);
            for (from, samples, side, is_left) in
                [(a, self.a.samples, &mut *left_side, true), (b, self.b.samples, &mut *right_side, false)]
            {
                let to = side.nodes[node].get_or_insert_with(Known::default);
                spread(&from.variance, samples, runs, &mut to.variance, is_left);
                spread(&from.deviation, samples, runs, &mut to.deviation, is_left);
                let series = &from.series[..(rows * samples).min(from.series.len())];
                spread(series, samples, runs, &mut to.series, is_left);
            }
        }
    }
}

impl<T: Real> Tiles<'_, T> {
    /// The number of rows of a series that some pairs need: those of the longest series among their samples.
    fn terms(&self, a: &Known<T>, b: &Known<T>, runs: &[Run]) -> usize {
        if a.series.is_empty() {
            return 0;
        }
        let mut most = T::zero();
        for (known, samples, is_left) in [(a, self.a.samples, true), (b, self.b.samples, false)] {
            let lengths = &known.series[..known.variance.len()];
            for row in lengths.chunks_exact(samples) {
                for run in runs {
                    let own = if is_left { &row[run.left..=run.left] } else { &row[run.right.clone()] };
                    most = own.iter().fold(most, |most, &length| if length > most { length } else { most });
                }
            }
        }
        series::BESIDE + most.wide() as usize
    }
}

/// Cuts runs so that groups of them have as many pairs as there are lanes.
fn pack(runs: impl Iterator<Item = Run>, lanes: usize) -> impl Iterator<Item = Vec<Run>> {
    let mut runs = runs.peekable();
    let mut rest: Option<Run> = None;
    std::iter::from_fn(move || {
        let (mut group, mut room) = (Vec::new(), lanes);
        while room > 0 {
            let Some(run) = rest.take().or_else(|| runs.next()) else { break };
            let count = run.right.len().min(room);
            let middle = run.right.start + count;
            if middle < run.right.end {
                rest = Some(Run { left: run.left, right: middle..run.right.end });
            }
            group.push(Run { left: run.left, right: run.right.start..middle });
            room -= count;
        }
        (!group.is_empty()).then_some(group)
    })
}

/// `[rows, samples]` → `[rows, lanes]`: the left sample repeated, or the right samples in a row.
fn spread<T: Real>(from: &[T], samples: usize, runs: &[Run], to: &mut Vec<T>, left: bool) {
    to.clear();
    for row in from.chunks_exact(samples.max(1)) {
        for run in runs {
            if left {
                to.resize(to.len() + run.right.len(), row[run.left]);
            } else {
                to.extend_from_slice(&row[run.right.clone()]);
            }
        }
    }
}

/// Products become `½‖x − y‖²/width`. If that is small compared with the lengths, it is computed from the differences,
/// because the product has lost its digits.
fn distances<T: Real>((x, square): (&[T], T), others: &[T], squares: &[T], line: &mut [T]) {
    let width = x.len();
    let (half, scale) = (T::narrow(0.5), T::narrow(1.0 / width as f64));
    let small = T::epsilon().cbrt();
    let mut any = false;
    dispatch(
        #[inline(always)]
        || {
            for (value, &other) in line.iter_mut().zip(squares) {
                let sum = half * (square + other);
                let distance = sum - *value;
                any |= distance < small * sum;
                *value = distance * scale;
            }
        },
    );
    if !any {
        return;
    }
    for (at, (value, &other)) in line.iter_mut().zip(squares).enumerate() {
        if *value < small * half * (square + other) * scale {
            *value = half * scale * difference(x, &others[at * width..][..width]);
        }
    }
}

/// `‖x − y‖²`.
fn difference<T: Real>(x: &[T], y: &[T]) -> T {
    const LANES: usize = 16;
    dispatch(
        #[inline(always)]
        || {
            let mut sums = [T::zero(); LANES];
            let (xs, ys) = (x.chunks_exact(LANES), y.chunks_exact(LANES));
            let rest: T = xs.remainder().iter().zip(ys.remainder()).map(|(&x, &y)| (x - y) * (x - y)).sum();
            for (x, y) in xs.zip(ys) {
                for lane in 0..LANES {
                    sums[lane] += (x[lane] - y[lane]) * (x[lane] - y[lane]);
                }
            }
            sums.iter().fold(rest, |total, &sum| total + sum)
        },
    )
}
