//! Contracts pairs of prepared blocks into a tile of the Gram matrix.
//!
//! Explicit gradients are one matrix product. A factored parameter contributes `Σ (leftₚ·left'ₚ')(rightₚ·right'ₚ')`: two
//! products and their elementwise product, in strips of rows that stay in the cache. For a block with itself, one
//! triangle is computed and mirrored.

use super::block::{Outer, Part, Plan, Prepared};
use crate::kernel::Real;
use crate::products::{mirror, products, square};
use mercer_linalg::gemm;
use mercer_linalg::simd::dispatch;
use std::ops::Range;

/// Rows of a strip: pairs of samples, of samples and seeds, or of positions.
const STRIP: usize = 128;

/// A pair of blocks.
pub(super) struct Pair<'a, T: Real> {
    pub(super) plan: &'a Plan,
    pub(super) a: &'a Prepared<T>,
    pub(super) b: &'a Prepared<T>,
    pub(super) n: usize,
    pub(super) m: usize,
    pub(super) symmetric: bool,
}

/// Scratch memory of the strips, reused for all parameters of a tile.
#[derive(Default)]
struct Scratch<T> {
    lefts: Vec<T>,
    rights: Vec<T>,
    row: Vec<T>,
}

/// Bytes of scratch per sample of the second block.
pub(super) fn scratch_elements(plan: &Plan) -> usize {
    let one = |outer: &Outer| {
        let (p, s) = (outer.shape.positions, plan.seeds);
        let rows = samples_per_strip(plan, outer);
        match (plan.full, p) {
            (false, 1) => 2 * rows,
            (true, 1) => rows + rows * s * s + s,
            (false, _) => 2 * rows * p * p,
            (true, _) => rows * p * p + p * p,
        }
    };
    plan.outers.iter().map(one).max().unwrap_or(0)
}

fn samples_per_strip(plan: &Plan, outer: &Outer) -> usize {
    let rows_per_sample = outer.shape.positions * if plan.full { plan.seeds } else { 1 };
    (STRIP / rows_per_sample).max(1)
}

impl<T: Real> Pair<'_, T> {
    /// Writes `[parts, rows of a, rows of b]`.
    pub(super) fn contract(&self, tile: &mut [T]) {
        let rows = if self.plan.full { self.plan.seeds } else { 1 };
        let (height, width) = (self.n * rows, self.m * rows);
        let mut scratch = Scratch::default();
        for (part, tile) in self.plan.parts.iter().zip(tile.chunks_exact_mut((height * width).max(1))) {
            self.explicit(part, tile);
            for at in part.outers.clone() {
                self.outer(at, tile, &mut scratch);
            }
            if self.symmetric && !part.outers.is_empty() {
                mirror(tile, height);
            }
        }
    }

    fn explicit(&self, part: &Part, tile: &mut [T]) {
        let (s, width) = (self.plan.seeds, self.plan.width);
        let (x, y) = (&self.a.explicit[..], &self.b.explicit[..]);
        if part.columns.is_empty() {
            tile.fill(T::zero());
        } else if self.plan.full {
            let (x, y) = (&x[part.columns.start..], &y[part.columns.start..]);
            products((x, self.n * s, width), (y, self.m * s, width), part.columns.len(), false, tile);
        } else if part.columns.len() == width {
            products((x, self.n, s * width), (y, self.m, s * width), s * width, false, tile);
        } else {
            for seed in 0..s {
                let from = seed * width + part.columns.start;
                let (x, y) = ((&x[from..], self.n, s * width), (&y[from..], self.m, s * width));
                products(x, y, part.columns.len(), seed > 0, tile);
            }
        }
    }

    /// Adds the contribution of a factored parameter; for a symmetric tile, only above the diagonal of strips.
    fn outer(&self, at: usize, tile: &mut [T], scratch: &mut Scratch<T>) {
        let outer = &self.plan.outers[at];
        let ((la, ra), (lb, rb)) = (&self.a.outers[at], &self.b.outers[at]);
        let pair = Factored { pair: self, outer, la, ra, lb, rb };
        let step = samples_per_strip(self.plan, outer);
        for start in (0..self.n).step_by(step) {
            let rows = start..(start + step).min(self.n);
            let columns = if self.symmetric { start..self.m } else { 0..self.m };
            match (self.plan.full, outer.shape.positions) {
                (false, 1) => pair.single(rows, columns, tile, scratch),
                (true, 1) => pair.single_full(rows, columns, tile, scratch),
                (false, _) => pair.many(rows, columns, tile, scratch),
                (true, _) => pair.many_full(rows, columns, tile, scratch),
            }
        }
    }
}

/// The factors of one parameter in two blocks.
struct Factored<'a, T: Real> {
    pair: &'a Pair<'a, T>,
    outer: &'a Outer,
    la: &'a [T],
    ra: &'a [T],
    lb: &'a [T],
    rb: &'a [T],
}

impl<T: Real> Factored<'_, T> {
    /// The length of a delta, including the seeds if they are summed.
    fn inner(&self) -> usize {
        self.outer.seeds(self.pair.plan.seeds) * self.outer.shape.right
    }

    /// `left · left'` of all positions of some samples, `[rows · positions, columns · positions]`.
    fn lefts<'s>(&self, rows: &Range<usize>, columns: &Range<usize>, to: &'s mut Vec<T>) -> &'s [T] {
        let p = self.outer.shape.positions;
        let (height, width) = (rows.len() * p, columns.len() * p);
        let to = sized(to, height * width);
        if self.outer.shape.one_hot {
            let (la, lb) = (&self.la[rows.start * p..rows.end * p], &self.lb[columns.start * p..columns.end * p]);
            for (row, x) in to.chunks_exact_mut(width).zip(la) {
                row.iter_mut().zip(lb).for_each(|(to, y)| *to = if x == y { T::one() } else { T::zero() });
            }
        } else {
            let inner = self.outer.shape.left;
            let (la, lb) = (&self.la[rows.start * p * inner..], &self.lb[columns.start * p * inner..]);
            gemm([height, width, inner], (la, inner, 1), (lb, 1, inner), false, to);
        }
        if self.outer.bias {
            dispatch(
                #[inline(always)]
                || to.iter_mut().for_each(|x| *x += T::one()),
            );
        }
        to
    }

    /// `right · right'` of rows that have `per_sample` entries of length `inner`.
    fn rights<'s>(
        &self,
        rows: &Range<usize>,
        columns: &Range<usize>,
        per_sample: usize,
        inner: usize,
        to: &'s mut Vec<T>,
    ) -> &'s [T] {
        let (height, width) = (rows.len() * per_sample, columns.len() * per_sample);
        let to = sized(to, height * width);
        let (ra, rb) = (&self.ra[rows.start * per_sample * inner..], &self.rb[columns.start * per_sample * inner..]);
        gemm([height, width, inner], (ra, inner, 1), (rb, 1, inner), false, to);
        to
    }

    /// One position per sample, equal seeds summed by the product over (seed, right).
    fn single(&self, rows: Range<usize>, columns: Range<usize>, tile: &mut [T], scratch: &mut Scratch<T>) {
        let lefts = self.lefts(&rows, &columns, &mut scratch.lefts);
        let rights = self.rights(&rows, &columns, 1, self.inner(), &mut scratch.rights);
        let (m, width) = (self.pair.m, columns.len());
        dispatch(
            #[inline(always)]
            || {
                for (at, row) in rows.enumerate() {
                    let to = &mut tile[row * m + columns.start..row * m + columns.end];
                    let (left, right) = (&lefts[at * width..][..width], &rights[at * width..][..width]);
                    to.iter_mut().zip(left.iter().zip(right)).for_each(|(to, (&l, &r))| *to += l * r);
                }
            },
        );
    }

    /// One position per sample, all pairs of seeds.
    fn single_full(&self, rows: Range<usize>, columns: Range<usize>, tile: &mut [T], scratch: &mut Scratch<T>) {
        let s = self.pair.plan.seeds;
        let lefts = self.lefts(&rows, &columns, &mut scratch.lefts);
        let rights = self.rights(&rows, &columns, s, self.outer.shape.right, &mut scratch.rights);
        let (m, width) = (self.pair.m * s, columns.len() * s);
        let repeated = sized(&mut scratch.row, width);
        dispatch(
            #[inline(always)]
            || {
                for (at, sample) in rows.enumerate() {
                    let lefts = &lefts[at * columns.len()..][..columns.len()];
                    repeated.chunks_exact_mut(s).zip(lefts).for_each(|(to, &left)| to.fill(left));
                    for seed in 0..s {
                        let to = &mut tile[(sample * s + seed) * m + columns.start * s..][..width];
                        let right = &rights[(at * s + seed) * width..][..width];
                        to.iter_mut().zip(repeated.iter().zip(right)).for_each(|(to, (&l, &r))| *to += l * r);
                    }
                }
            },
        );
    }

    /// Several positions, equal seeds summed.
    fn many(&self, rows: Range<usize>, columns: Range<usize>, tile: &mut [T], scratch: &mut Scratch<T>) {
        let p = self.outer.shape.positions;
        let inner = self.inner();
        let lefts = self.lefts(&rows, &columns, &mut scratch.lefts);
        let rights = self.rights(&rows, &columns, p, inner, &mut scratch.rights);
        let (m, width) = (self.pair.m, columns.len() * p);
        for (at, sample) in rows.enumerate() {
            for position in 0..p {
                let from = (at * p + position) * width;
                let pairs = lefts[from..from + width].chunks_exact(p).zip(rights[from..from + width].chunks_exact(p));
                let to = &mut tile[sample * m + columns.start..sample * m + columns.end];
                to.iter_mut().zip(pairs).for_each(|(to, (left, right))| *to += dot(left, right));
            }
        }
    }

    /// Several positions, all pairs of seeds: one product per pair of (sample, seed).
    fn many_full(&self, rows: Range<usize>, columns: Range<usize>, tile: &mut [T], scratch: &mut Scratch<T>) {
        let (p, s, inner) = (self.outer.shape.positions, self.pair.plan.seeds, self.outer.shape.right);
        let (m, width) = (self.pair.m * s, columns.len() * p);
        let lefts = self.lefts(&rows, &columns, &mut scratch.lefts);
        let rights = sized(&mut scratch.rights, p * p);
        for (at, sample) in rows.enumerate() {
            for (to_right, column) in columns.clone().enumerate() {
                for (sa, sb) in (0..s * s).map(|pair| (pair / s, pair % s)) {
                    let ra = &self.ra[(sample * s + sa) * p * inner..];
                    let rb = &self.rb[(column * s + sb) * p * inner..];
                    gemm([p, p, inner], (ra, inner, 1), (rb, 1, inner), false, rights);
                    let terms = (0..p).map(|position| {
                        let left = &lefts[(at * p + position) * width + to_right * p..][..p];
                        dot(left, &rights[position * p..][..p])
                    });
                    tile[(sample * s + sa) * m + column * s + sb] += terms.sum::<T>();
                }
            }
        }
    }
}

/// `κ(x, x)` of every row of a block: the contraction of each sample with itself.
pub(super) fn diagonal<T: Real>(plan: &Plan, a: &Prepared<T>, n: usize) -> Vec<T> {
    let s = plan.seeds;
    let rows = if plan.full { s } else { 1 };
    let mut diagonal = vec![T::zero(); n * rows];
    if plan.width > 0 {
        let per_row = s * plan.width / rows;
        diagonal.iter_mut().zip(a.explicit.chunks_exact(per_row)).for_each(|(to, row)| *to = square(row));
    }
    let mut scratch = Scratch::default();
    for (at, outer) in plan.outers.iter().enumerate() {
        let pair = Pair { plan, a, b: a, n, m: n, symmetric: true };
        let (left, right) = &a.outers[at];
        let factored = Factored { pair: &pair, outer, la: left, ra: right, lb: left, rb: right };
        let (p, r) = (outer.shape.positions, outer.shape.right);
        for sample in 0..n {
            let one = sample..sample + 1;
            let lefts = factored.lefts(&one, &one, &mut scratch.lefts);
            for row in 0..rows {
                // Full: the deltas of this seed, [positions, right]; summed: [positions, seeds · right].
                let inner = if plan.full { r } else { outer.seeds(s) * r };
                let deltas = &right[(sample * rows + row) * p * inner..][..p * inner];
                let rights = sized(&mut scratch.rights, p * p);
                gemm([p, p, inner], (deltas, inner, 1), (deltas, 1, inner), false, rights);
                diagonal[sample * rows + row] += dot(lefts, rights);
            }
        }
    }
    diagonal
}

fn sized<T: Real>(buffer: &mut Vec<T>, length: usize) -> &mut [T] {
    if buffer.len() < length {
        buffer.resize(length, T::zero());
    }
    &mut buffer[..length]
}

fn dot<T: Real>(x: &[T], y: &[T]) -> T {
    const LANES: usize = 8;
    dispatch(
        #[inline(always)]
        || {
            let mut sums = [T::zero(); LANES];
            let (xs, ys) = (x.chunks_exact(LANES), y.chunks_exact(LANES));
            let rest: T = xs.remainder().iter().zip(ys.remainder()).map(|(&x, &y)| x * y).sum();
            for (x, y) in xs.zip(ys) {
                sums.iter_mut().zip(x.iter().zip(y)).for_each(|(sum, (&x, &y))| *sum += x * y);
            }
            sums.iter().fold(rest, |total, &sum| total + sum)
        },
    )
}
