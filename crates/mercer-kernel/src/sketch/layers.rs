//! Sketches layer by layer: the Hadamard transform of gradients, and products of projected activations and deltas.
//!
//! A layer's gradient is `G = Σₚ δₚ aₚᵀ`, with `P` positions. With signs `u_k`, `v_k` drawn for each layer,
//!
//! ```text
//! Khatri–Rao    φ_k = Σₚ (v_k·δₚ)(u_k·aₚ) / √K = v_kᵀ G u_k / √K
//! Kronecker     φ_ij = Σₚ (v_j·δₚ)(u_i·aₚ) / √(K₁K₂),   i ≤ K₁, j ≤ K₂,   K₁ ≈ K₂ ≈ √K
//! ```
//!
//! and the features of all layers add up: layers have their own signs, so mixed terms have mean zero. Parameters
//! without outer form (biases, scales) are projected as they are. In a total sketch the deltas of all outputs are one
//! long vector.
//!
//! The left side is cheaper if a layer has fewer positions than outputs (dense layers: the gradient is never formed).
//! The right side is cheaper for convolutions, whose gradient is small compared with the patches of an image; it is
//! formed for one sample at a time. Both give the same numbers up to rounding.
//!
//! `v_k` of Khatri–Rao is a row of a [`SignMatrix`], so that a projection takes `K log r` additions instead of `K r`
//! multiplications. `u_k` too, and where there are only `n < K` rows for activations of length `l ≤ n` they are used in turn: they
//! are orthogonal, so all of them together keep the activations' products exactly, and more of them would not help. For a gradient
//! of rank one, `Var⟨φ(x), φ(x)⟩` is `8/K · κ²` with independent signs, 4 to 6 with these, and 2 for a Gaussian sketch; a
//! convolution's gradient has a higher rank and comes closer to it.

use super::Rows;
use super::hadamard::{After, LEAST, SignMatrix};
use super::method::SketchMethod;
use super::signs::{SignTable, bytes_for, coins};
use crate::empirical::Gradients;
use crate::kernel::Real;
use mercer_data::random::{ChaCha8Rng, stream};
use mercer_linalg::{gemm, simd};
use mercer_net::op::OuterShape;
use mercer_net::run::Factor;

/// The time of an addition in a transform, in multiplications of a matrix product.
const ADDITION: f64 = 4.0;

#[derive(Debug)]
pub(super) struct Layers<T> {
    k: usize,
    rows: Rows,
    table: SignTable<T>,
    parameters: Vec<Option<Projection<T>>>,
}

#[derive(Debug)]
enum Projection<T> {
    Plain(SignMatrix),
    KhatriRao { shape: OuterShape, factored: bool, left: SignMatrix, right: SignMatrix, rows: Vec<u8> },
    Kronecker { shape: OuterShape, factored: bool, left: Vec<T>, right: Vec<T>, sizes: (usize, usize) },
}

impl<T: Real> Layers<T> {
    pub(super) fn new(gradients: &Gradients<T>, rows: Rows, method: SketchMethod, k: usize, seed: u64) -> Self {
        let (shapes, table) = (gradients.outer_shapes(), SignTable::new());
        let projection = |parameter: usize| {
            let mut stream = stream(seed, &format!("sketch/{method}/{parameter}"));
            // A parameter without elements has no factors either.
            let shape = shapes[parameter].filter(|shape| shape.positions * shape.left * shape.right > 0);
            match (method, shape) {
                (SketchMethod::KhatriRao, Some(shape)) => khatri_rao(shape, rows, k, &table, &mut stream),
                (SketchMethod::Kronecker, Some(shape)) => kronecker(shape, rows, k, &mut stream),
                _ => {
                    let length = rows.copies * gradients.numel(parameter);
                    Projection::Plain(SignMatrix::new(length, k, After::Always, &mut stream))
                }
            }
        };
        let chosen = gradients.chosen();
        let parameters = (0..chosen.len()).map(|at| chosen[at].then(|| projection(at))).collect();
        Self { k, rows, table, parameters }
    }

    /// For each parameter, whether its factors are needed.
    pub(super) fn outer(&self) -> Vec<bool> {
        let factored = |projection: &Option<Projection<T>>| match projection {
            Some(Projection::KhatriRao { factored, .. } | Projection::Kronecker { factored, .. }) => *factored,
            _ => false,
        };
        self.parameters.iter().map(factored).collect()
    }

    /// Bytes of a thread's largest scratch.
    pub(super) fn bytes(&self) -> usize {
        let scratch = self.parameters.iter().flatten().map(|projection| self.scratch(projection).iter().sum());
        scratch.max().unwrap_or(0) * size_of::<T>()
    }

    /// Operations per sample.
    pub(super) fn flops(&self) -> f64 {
        let seeds = self.rows.per_sample * self.rows.copies;
        let own = |projection: &Projection<T>| match projection {
            Projection::Plain(matrix) => self.rows.per_sample as f64 * matrix.flops(),
            Projection::KhatriRao { shape, factored, left, right, .. } => {
                khatri_rao_flops(shape, self.rows, self.k, left, right)[usize::from(!factored)]
            }
            Projection::Kronecker { shape, factored, sizes, .. } => {
                kronecker_flops(shape, seeds, *sizes)[usize::from(!factored)]
            }
        };
        self.parameters.iter().flatten().map(own).sum()
    }

    /// Numbers of scratch: three regions.
    fn scratch(&self, projection: &Projection<T>) -> [usize; 3] {
        match projection {
            Projection::Plain(matrix) => [matrix.padded(), 0, matrix.scratch()],
            Projection::KhatriRao { shape, left, right, .. } => {
                let stacked = (self.rows.copies * shape.right).max(shape.left * shape.right);
                [
                    shape.right * left.padded(),
                    right.padded().max(stacked),
                    left.scratch().max(right.scratch()) + stacked,
                ]
            }
            Projection::Kronecker { shape, sizes: (first, second), .. } => {
                let rows = shape.positions.max(self.rows.copies * shape.right);
                [rows * first, shape.positions * second, 0]
            }
        }
    }

    /// Adds the features of one parameter, `[rows, k]`.
    pub(super) fn add(&self, parameter: usize, factor: &Factor<T>, samples: usize, out: &mut [T]) {
        let Some(projection) = &self.parameters[parameter] else { return };
        let sizes = self.scratch(projection);
        let mut scratch = vec![T::zero(); sizes.iter().sum()];
        let (first, rest) = scratch.split_at_mut(sizes[0]);
        let (second, third) = rest.split_at_mut(sizes[1]);
        let scratch = [first, second, third];
        let n_rows = samples * self.rows.per_sample;
        match (projection, factor) {
            (Projection::Plain(matrix), Factor::Explicit(gradient)) => {
                self.plain(matrix, gradient, n_rows, out, scratch)
            }
            (Projection::KhatriRao { left: matrix, rows, shape, .. }, Factor::Explicit(gradient)) => {
                self.bilinear(matrix, rows, shape, gradient, n_rows, out, scratch);
            }
            (Projection::KhatriRao { left: u, right: v, .. }, Factor::Outer { shape, left, right }) => {
                self.products(u, v, shape, (left, right), out, scratch);
            }
            (Projection::Kronecker { left: u, right: v, sizes, shape, .. }, Factor::Explicit(gradient)) => {
                let (width, (first, second)) = (self.rows.copies * shape.right, *sizes);
                for (gradient, out) in gradient.chunks_exact(width * shape.left).zip(out.chunks_exact_mut(self.k)) {
                    let projected = &mut *scratch[0];
                    for (gradient, projected) in gradient
                        .chunks_exact(shape.right * shape.left)
                        .zip(projected.chunks_exact_mut(shape.right * first))
                    {
                        let strides = if shape.right_major { (shape.left, 1) } else { (1, shape.right) };
                        let sizes = [shape.right, first, shape.left];
                        gemm(sizes, (gradient, strides.0, strides.1), (u, first, 1), false, projected);
                    }
                    gemm([first, second, width], (projected, 1, first), (v, second, 1), true, out);
                }
            }
            (Projection::Kronecker { left: u, right: v, sizes, .. }, Factor::Outer { shape, left, right }) => {
                let factors = Factors { shape, left, right };
                self.all_products(u, v, *sizes, &factors, out, scratch);
            }
            (Projection::Plain(_), Factor::Outer { .. }) => unreachable!("asked for as it is"),
        }
    }

    fn plain(&self, matrix: &SignMatrix, gradient: &[T], rows: usize, out: &mut [T], scratch: [&mut [T]; 3]) {
        let width = (gradient.len() / rows.max(1)).max(1);
        let [features, _, scratch] = scratch;
        simd::dispatch(
            #[inline(always)]
            || {
                for (gradient, out) in gradient.chunks_exact(width).zip(out.chunks_exact_mut(self.k)) {
                    matrix.apply(&self.table, gradient, scratch, features);
                    out.iter_mut().zip(&*features).for_each(|(out, &x)| *out += x);
                }
            },
        );
    }

    /// `v_kᵀ G u_k` from the gradient: every row of it is projected, and added with the sign that `v_k` has there.
    #[allow(clippy::too_many_arguments)]
    fn bilinear(
        &self,
        left: &SignMatrix,
        rows: &[u8],
        shape: &OuterShape,
        gradient: &[T],
        n_rows: usize,
        out: &mut [T],
        [features, turned, scratch]: [&mut [T]; 3],
    ) {
        let (l, r) = (shape.left, shape.right);
        let width = (gradient.len() / n_rows.max(1)).max(1);
        let (signs, period, padded) = (bytes_for(self.k), left.outputs(), left.padded());
        simd::dispatch(
            #[inline(always)]
            || {
                for (gradient, out) in gradient.chunks_exact(width).zip(out.chunks_exact_mut(self.k)) {
                    for (copy, gradient) in gradient.chunks_exact(l * r).enumerate() {
                        let gradient = if shape.right_major { gradient } else { transposed(gradient, l, r, turned) };
                        for (gradient, features) in gradient.chunks_exact(l).zip(features.chunks_exact_mut(padded)) {
                            left.apply(&self.table, gradient, scratch, features);
                        }
                        self.table.add_rows(&rows[copy * r * signs..][..r * signs], features, padded, period, out);
                    }
                }
            },
        );
    }

    /// `Σₚ (v_k·δₚ)(u_k·aₚ)`, position by position.
    fn products(
        &self,
        u: &SignMatrix,
        v: &SignMatrix,
        shape: &OuterShape,
        (left, right): (&[T], &[T]),
        out: &mut [T],
        [activations, deltas, scratch]: [&mut [T]; 3],
    ) {
        let (positions, r, copies) = (shape.positions, shape.right, self.rows.copies);
        let per_left = if shape.one_hot { 1 } else { shape.left };
        let lefts = left.chunks_exact(positions * per_left);
        let rights = right.chunks_exact(self.rows.per_sample * copies * positions * r);
        let (stacked, scratch) = scratch.split_at_mut(copies * r);
        let period = u.outputs();
        simd::dispatch(
            #[inline(always)]
            || {
                let outs = out.chunks_exact_mut(self.rows.per_sample * self.k);
                for ((left, right), out) in lefts.zip(rights).zip(outs) {
                    for (position, a) in left.chunks_exact(per_left).enumerate() {
                        if shape.one_hot {
                            u.column(&self.table, a[0].to_usize().unwrap_or(0), activations);
                        } else {
                            u.apply(&self.table, a, scratch, activations);
                        }
                        let seeds = right.chunks_exact(copies * positions * r);
                        for (right, out) in seeds.zip(out.chunks_exact_mut(self.k)) {
                            for (copy, stacked) in stacked.chunks_exact_mut(r).enumerate() {
                                stacked.copy_from_slice(&right[(copy * positions + position) * r..][..r]);
                            }
                            v.apply(&self.table, stacked, scratch, deltas);
                            for (out, deltas) in out.chunks_mut(period).zip(deltas.chunks(period)) {
                                let both = activations.iter().zip(deltas);
                                out.iter_mut().zip(both).for_each(|(out, (&a, &b))| *out += a * b);
                            }
                        }
                    }
                }
            },
        );
    }

    /// `Σₚ (u·aₚ) ⊗ (v·δₚ)`.
    fn all_products(
        &self,
        u: &[T],
        v: &[T],
        (first, second): (usize, usize),
        factors: &Factors<'_, T>,
        out: &mut [T],
        [activations, deltas, _]: [&mut [T]; 3],
    ) {
        let shape = factors.shape;
        let (positions, l, r, copies) = (shape.positions, shape.left, shape.right, self.rows.copies);
        let per_left = if shape.one_hot { 1 } else { l };
        let lefts = factors.left.chunks_exact(positions * per_left);
        let rights = factors.right.chunks_exact(self.rows.per_sample * copies * positions * r);
        for ((left, right), out) in lefts.zip(rights).zip(out.chunks_exact_mut(self.rows.per_sample * self.k)) {
            let activations = &mut activations[..positions * first];
            if shape.one_hot {
                for (row, at) in activations.chunks_exact_mut(first).zip(left) {
                    let at = at.to_usize().unwrap_or(0).min(l - 1);
                    row.copy_from_slice(&u[at * first..][..first]);
                }
            } else {
                gemm([positions, first, l], (left, l, 1), (u, first, 1), false, activations);
            }
            for (right, out) in right.chunks_exact(copies * positions * r).zip(out.chunks_exact_mut(self.k)) {
                for (copy, right) in right.chunks_exact(positions * r).enumerate() {
                    let v = &v[copy * r * second..][..r * second];
                    gemm([positions, second, r], (right, r, 1), (v, second, 1), copy > 0, deltas);
                }
                gemm([first, second, positions], (activations, 1, first), (deltas, second, 1), true, out);
            }
        }
    }
}

/// The factors of some samples.
struct Factors<'a, T> {
    shape: &'a OuterShape,
    left: &'a [T],
    right: &'a [T],
}

fn khatri_rao<T: Real>(
    shape: OuterShape,
    rows: Rows,
    k: usize,
    table: &SignTable<T>,
    stream: &mut ChaCha8Rng,
) -> Projection<T> {
    let distinct = k.min(LEAST.max(shape.left.next_power_of_two()));
    let left = SignMatrix::new(shape.left, distinct, After::IfNeeded, stream);
    let width = rows.copies * shape.right;
    let right = SignMatrix::new(width, k, After::Always, stream).shuffled(stream);
    let [products, gradient] = khatri_rao_flops(&shape, rows, k, &left, &right);
    let factored = products <= gradient;
    let rows = if factored { Vec::new() } else { columns(&right, width, table) };
    Projection::KhatriRao { shape, factored, left, right, rows }
}

/// The signs of a matrix column by column.
fn columns<T: Real>(matrix: &SignMatrix, width: usize, table: &SignTable<T>) -> Vec<u8> {
    let mut column = vec![T::zero(); matrix.padded()];
    let mut signs = Vec::with_capacity(width * bytes_for(matrix.outputs()));
    for at in 0..width {
        matrix.column(table, at, &mut column);
        let byte = |signs: &[T]| signs.iter().rev().fold(0u8, |byte, &x| byte << 1 | u8::from(x < T::zero()));
        signs.extend(column[..matrix.outputs()].chunks(8).map(byte));
    }
    signs
}

/// Operations per sample: of the products of projections, and of the gradient's projection.
fn khatri_rao_flops(shape: &OuterShape, rows: Rows, k: usize, left: &SignMatrix, right: &SignMatrix) -> [f64; 2] {
    let (positions, k) = (shape.positions as f64, k as f64);
    let one_hot = if shape.one_hot { k } else { left.flops() };
    let products = positions * ADDITION * (one_hot + rows.per_sample as f64 * (right.flops() + k));
    let seeds = (rows.per_sample * rows.copies) as f64;
    let size = (shape.left * shape.right) as f64;
    let formed = if shape.one_hot { size } else { positions * size };
    [products, seeds * (formed + shape.right as f64 * ADDITION * (left.flops() + k))]
}

fn kronecker<T: Real>(shape: OuterShape, rows: Rows, k: usize, stream: &mut ChaCha8Rng) -> Projection<T> {
    let first = k.isqrt();
    let second = k / first;
    let mut signs = |count: usize, size: T| -> Vec<T> {
        let coins = coins(stream, bytes_for(count));
        (0..count).map(|at| if coins[at / 8] >> (at % 8) & 1 == 0 { size } else { -size }).collect()
    };
    let left = signs(shape.left * first, T::one());
    // All sketches are divided by √K at the end; here the divisor should be √(K₁K₂).
    let size = T::narrow((k as f64 / (first * second) as f64).sqrt());
    let right = signs(rows.copies * shape.right * second, size);
    let [products, gradient] = kronecker_flops(&shape, rows.per_sample * rows.copies, (first, second));
    Projection::Kronecker { shape, factored: products <= gradient, left, right, sizes: (first, second) }
}

/// As [`khatri_rao_flops`].
fn kronecker_flops(shape: &OuterShape, seeds: usize, (first, second): (usize, usize)) -> [f64; 2] {
    let (positions, left, right) = (shape.positions as f64, shape.left as f64, shape.right as f64);
    let (seeds, first, second) = (seeds as f64, first as f64, second as f64);
    let one_hot = if shape.one_hot { 1.0 } else { left };
    let formed = if shape.one_hot { left * right } else { positions * left * right };
    [
        positions * (one_hot * first + seeds * (right * second + first * second)),
        seeds * (formed + right * first * (left + second)),
    ]
}

/// `[l, r]` → `[r, l]`.
#[inline(always)]
fn transposed<'a, T: Copy>(from: &[T], l: usize, r: usize, to: &'a mut [T]) -> &'a [T] {
    for (column, row) in to[..l * r].chunks_exact_mut(l).enumerate() {
        row.iter_mut().zip(from[column..].iter().step_by(r)).for_each(|(to, &from)| *to = from);
    }
    &to[..l * r]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::empirical::{NtkKind, Selection};
    use mercer_data::Source;
    use mercer_net::Network;
    use std::path::PathBuf;

    /// Convolutions, embeddings, weights of both orders and with many positions: products of projections against the
    /// projection of gradients.
    #[test]
    fn both_ways_give_the_same_features() {
        let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/nets");
        for name in ["conv_zoo_legacy", "tiny_bert"] {
            let network = Network::from_onnx(folder.join(format!("{name}.onnx"))).expect("a fixture");
            let x = Source::new(folder.join(format!("{name}.npz")), Some("x")).open().expect("a fixture");
            let shape = vec![x.sample_shape().to_vec()];
            let x: Vec<f64> = x.read::<f64>().expect("a fixture").into_iter().collect();
            let gradients =
                Gradients::<f64>::new(&network, &shape, NtkKind::Trace, &Selection::default()).expect("gradients");
            let seeds = gradients.n_seeds();
            for rows in [Rows { per_sample: seeds, copies: 1 }, Rows { per_sample: 1, copies: seeds }] {
                for (method, k) in
                    [(SketchMethod::KhatriRao, 100), (SketchMethod::KhatriRao, 20), (SketchMethod::Kronecker, 70)]
                {
                    let [products, projected] = [true, false].map(|way| {
                        let layers = forced(Layers::new(&gradients, rows, method, k, 4), way);
                        features(&gradients, &layers, &x, k * rows.per_sample)
                    });
                    let size = products.iter().fold(0.0, |size: f64, x| size.max(x.abs()));
                    assert!(size > 0.0, "{name}");
                    for (a, b) in products.iter().zip(&projected) {
                        // Sums of some thousand terms in another order.
                        assert!((a - b).abs() <= 1e-11 * size, "{name}, {method}: {a} and {b}");
                    }
                }
            }
        }
    }

    fn forced(mut layers: Layers<f64>, way: bool) -> Layers<f64> {
        let copies = layers.rows.copies;
        for projection in layers.parameters.iter_mut().flatten() {
            match projection {
                Projection::Plain(_) => {}
                Projection::KhatriRao { shape, factored, right, rows, .. } => {
                    *factored = way;
                    *rows = columns(right, copies * shape.right, &layers.table);
                }
                Projection::Kronecker { factored, .. } => *factored = way,
            }
        }
        layers
    }

    fn features(gradients: &Gradients<f64>, layers: &Layers<f64>, x: &[f64], width: usize) -> Vec<f64> {
        let mut out = vec![0.0; 6 * width];
        let places = out.chunks_mut(gradients.grain() * width).collect();
        let each = |place: &mut [f64], factors: &mercer_net::run::Factors<f64>| {
            for (parameter, factor) in factors.parameters.iter().enumerate() {
                layers.add(parameter, factor.as_ref().expect("all are chosen"), factors.samples, place);
            }
            Ok(())
        };
        gradients.sweep(&[x], 6, &layers.outer(), places, each).expect("runs");
        out
    }
}
