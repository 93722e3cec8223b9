//! Pairs of prepared blocks become a tile of the Gram matrix.

use mercer_linalg::gemm;
use mercer_linalg::simd::dispatch;
use mercer_net::Element;
use mercer_net::op::OuterShape;
use mercer_net::run::{Factor, Factors};

/// Adds `Σ over parameters ⟨gradient, gradient'⟩`: per pair of seeds (`full`) or summed over equal seeds.
pub(super) fn contract<T: Element>(a: &Factors<T>, b: &Factors<T>, full: bool, gram: &mut [T]) {
    for (left, right) in a.parameters.iter().zip(&b.parameters) {
        match (left, right) {
            (Some(Factor::Explicit(ga)), Some(Factor::Explicit(gb))) => explicit(a, b, ga, gb, full, gram),
            (Some(Factor::Outer { shape, left: la, right: ra }), Some(Factor::Outer { left: lb, right: rb, .. })) => {
                let pair = Outer { shape: *shape, n: a.samples, m: b.samples, seeds: a.seeds, la, lb, ra, rb };
                if shape.positions == 1 { pair.single(full, gram) } else { pair.many(full, gram) }
            }
            _ => {}
        }
    }
}

fn explicit<T: Element>(a: &Factors<T>, b: &Factors<T>, ga: &[T], gb: &[T], full: bool, gram: &mut [T]) {
    let (rows, cols) = if full { (a.samples * a.seeds, b.samples * b.seeds) } else { (a.samples, b.samples) };
    let inner = ga.len() / rows.max(1);
    gemm([rows, cols, inner], (ga, inner, 1), (gb, 1, inner), true, gram);
}

/// The factors of one parameter in two blocks of `n` and `m` samples.
struct Outer<'a, T> {
    shape: OuterShape,
    n: usize,
    m: usize,
    seeds: usize,
    la: &'a [T],
    lb: &'a [T],
    ra: &'a [T],
    rb: &'a [T],
}

impl<T: Element> Outer<'_, T> {
    /// `A[i, j] = left_i · left_j` for vectors `from..` of the first block and all of the second.
    fn lefts(&self, from: usize, rows: usize, to: &mut [T]) {
        let cols = self.m * self.shape.positions;
        if self.shape.one_hot {
            for (row, x) in to.chunks_exact_mut(cols).zip(&self.la[from..from + rows]) {
                row.iter_mut().zip(self.lb).for_each(|(a, y)| *a = if x == y { T::one() } else { T::zero() });
            }
            return;
        }
        let width = self.shape.left;
        gemm([rows, cols, width], (&self.la[from * width..], width, 1), (self.lb, 1, width), false, to);
    }

    /// One position per sample: `(A Aᵀ) ∘ (Δ Δᵀ)`.
    fn single(&self, full: bool, gram: &mut [T]) {
        let (n, m, s) = (self.n, self.m, self.seeds);
        let mut lefts = vec![T::zero(); n * m];
        self.lefts(0, n, &mut lefts);
        if !full {
            // Equal seeds are summed by one product over (seed, right).
            let inner = s * self.shape.right;
            let mut rights = vec![T::zero(); n * m];
            gemm([n, m, inner], (self.ra, inner, 1), (self.rb, 1, inner), false, &mut rights);
            dispatch(
                #[inline(always)]
                || {
                    gram.iter_mut().zip(lefts.iter().zip(&rights)).for_each(|(g, (&l, &r))| *g += l * r);
                },
            );
            return;
        }
        let inner = self.shape.right;
        let cols = m * s;
        let mut rights = vec![T::zero(); s * cols];
        for i in 0..n {
            let ra = &self.ra[i * s * inner..];
            gemm([s, cols, inner], (ra, inner, 1), (self.rb, 1, inner), false, &mut rights);
            dispatch(
                #[inline(always)]
                || {
                    for (row, rights) in
                        gram[i * s * cols..(i + 1) * s * cols].chunks_exact_mut(cols).zip(rights.chunks_exact(cols))
                    {
                        for ((g, r), &left) in row.chunks_exact_mut(s).zip(rights.chunks_exact(s)).zip(&lefts[i * m..])
                        {
                            g.iter_mut().zip(r).for_each(|(g, &r)| *g += left * r);
                        }
                    }
                },
            );
        }
    }

    /// Several positions: for each sample of the first block, all pairs of positions with the second.
    fn many(&self, full: bool, gram: &mut [T]) {
        let (m, s, p, inner) = (self.m, self.seeds, self.shape.positions, self.shape.right);
        let cols = m * p;
        let side = if full { m * s } else { m };
        let mut lefts = vec![T::zero(); p * cols];
        let mut rights = vec![T::zero(); p * p];
        for i in 0..self.n {
            self.lefts(i * p, p, &mut lefts);
            for j in 0..m {
                for sa in 0..s {
                    for sb in 0..s {
                        if !full && sa != sb {
                            continue;
                        }
                        let ra = &self.ra[(i * s + sa) * p * inner..][..p * inner];
                        let rb = &self.rb[(j * s + sb) * p * inner..][..p * inner];
                        gemm([p, p, inner], (ra, inner, 1), (rb, 1, inner), false, &mut rights);
                        let total = dispatch(
                            #[inline(always)]
                            || {
                                let mut total = T::zero();
                                for (left, right) in lefts.chunks_exact(cols).zip(rights.chunks_exact(p)) {
                                    let terms = left[j * p..(j + 1) * p].iter().zip(right);
                                    total += terms.map(|(&l, &r)| l * r).sum::<T>();
                                }
                                total
                            },
                        );
                        let at = if full { (i * s + sa) * side + j * s + sb } else { i * side + j };
                        gram[at] += total;
                    }
                }
            }
        }
    }
}
