//! Derivatives of a kernel with respect to its parameters, contracted with weights: `Σ_ij G_ij ∂κ(x_i, x_j)/∂log θ`.
//!
//! With `G = ½ (K⁻¹ − α αᵀ)`, `α = K⁻¹ y`, this is the gradient of a Gaussian process's negative log marginal likelihood
//! (Rasmussen and Williams 2006, equation 5.9). No matrix per parameter is formed: weights are pulled back through the
//! expression, strip by strip of rows. A product passes `G ∘ Π others` to each of its factors, a term contracts with
//! the derivative with respect to its distance, `M = G ∘ ∂κ/∂r²`, and all lengthscales of a term are one product `M X`,
//! from `Σ_ij M_ij (x_ik − x_jk)² = Σ_i (M1)_i x_ik² + Σ_j (Mᵀ1)_j x_jk² − 2 Σ_i x_ik (M X)_ik` on centred vectors.
//!
//! Strips are summed in their order: the same bits for any number of threads.

use super::catalogue::Family;
use super::expression::{Formula, Node};
use super::leaf::{Leaf, Prepared};
use crate::error::{KernelError, Result};
use crate::kernel::Kernel;
use mercer_linalg::gemm;
use mercer_linalg::simd::dispatch;
use ndarray::ArrayView2;
use rayon::prelude::*;
use std::ops::Range;

/// Rows per strip.
const STRIP: usize = 64;

impl Formula {
    /// `Σ_ij G_ij ∂κ(x_i, x_j)/∂log θ` for every one of the [parameters](Self::parameters). The weights need not be
    /// symmetric.
    pub fn gradient(&self, x: ArrayView2<'_, f64>, weights: ArrayView2<'_, f64>) -> Result<Vec<f64>> {
        let n = x.nrows();
        if weights.dim() != (n, n) {
            let shape = weights.shape();
            return Err(KernelError::Setting(format!("weights of shape {shape:?} for {n} samples")));
        }
        let data = x.as_standard_layout();
        let data = data.as_slice().unwrap_or(&[]);
        let ready = Ready::new(&self.0, data, (n, x.ncols()))?;
        let starts: Vec<usize> = (0..n).step_by(STRIP).collect();
        let strips: Vec<Vec<f64>> = starts
            .into_par_iter()
            .map(|start| {
                let rows = start..(start + STRIP).min(n);
                let strip = Strip { rows: rows.clone(), n };
                let own: Vec<f64> = weights.slice(ndarray::s![rows, ..]).iter().copied().collect();
                let mut gradient = Vec::new();
                ready.pull(&strip, &own, &mut gradient);
                gradient
            })
            .collect();
        let mut total = vec![0.0; self.parameters().len()];
        strips.iter().for_each(|strip| total.iter_mut().zip(strip).for_each(|(to, x)| *to += x));
        Ok(total)
    }
}

/// Some rows of the matrix, all columns.
struct Strip {
    rows: Range<usize>,
    n: usize,
}

/// An expression with its samples prepared.
enum Ready {
    Number(f64),
    Term(Box<Operand>),
    Sum(Vec<Ready>),
    Product(Vec<Ready>),
}

struct Operand {
    leaf: Leaf<f64>,
    all: Prepared<f64>,
    /// The data, for the period.
    data: Vec<f64>,
}

impl Ready {
    fn new(node: &Node, data: &[f64], (n, size): (usize, usize)) -> Result<Self> {
        let each = |nodes: &[Node]| nodes.iter().map(|node| Self::new(node, data, (n, size))).collect::<Result<_>>();
        Ok(match node {
            Node::Number(value) => Self::Number(*value),
            Node::Sum(nodes) => Self::Sum(each(nodes)?),
            Node::Product(nodes) => Self::Product(each(nodes)?),
            Node::Term(term) => {
                let leaf = Leaf::new(term, size)?;
                let block = leaf.prepare(&[data], n)?;
                let all = block.content::<Prepared<f64>>().clone();
                let data = if term.spec.family == Family::Periodic { data.to_vec() } else { Vec::new() };
                Self::Term(Box::new(Operand { leaf, all, data }))
            }
        })
    }

    /// The values of the kernel.
    fn values(&self, strip: &Strip) -> Vec<f64> {
        match self {
            Self::Number(value) => vec![*value; strip.rows.len() * strip.n],
            Self::Term(operand) => operand.values(strip).1,
            Self::Sum(operands) => fold(operands, strip, |x, y| x + y),
            Self::Product(operands) => fold(operands, strip, |x, y| x * y),
        }
    }

    /// Appends the gradient with respect to every parameter below.
    fn pull(&self, strip: &Strip, weights: &[f64], gradient: &mut Vec<f64>) {
        match self {
            Self::Number(value) => gradient.push(value * weights.iter().sum::<f64>()),
            Self::Sum(operands) => operands.iter().for_each(|operand| operand.pull(strip, weights, gradient)),
            Self::Term(operand) => operand.pull(strip, weights, gradient),
            Self::Product(operands) => {
                let values: Vec<Vec<f64>> = operands.iter().map(|operand| operand.values(strip)).collect();
                for (at, operand) in operands.iter().enumerate() {
                    let mut own = weights.to_vec();
                    let others = values.iter().enumerate().filter(|(other, _)| *other != at);
                    others.for_each(|(_, values)| multiply(&mut own, values));
                    operand.pull(strip, &own, gradient);
                }
            }
        }
    }
}

fn fold(operands: &[Ready], strip: &Strip, meet: impl Fn(f64, f64) -> f64) -> Vec<f64> {
    let mut values = operands.iter().map(|operand| operand.values(strip));
    let mut total = values.next().unwrap_or_default();
    for other in values {
        total.iter_mut().zip(&other).for_each(|(to, &y)| *to = meet(*to, y));
    }
    total
}

fn multiply(to: &mut [f64], by: &[f64]) {
    dispatch(
        #[inline(always)]
        || to.iter_mut().zip(by).for_each(|(to, x)| *to *= x),
    );
}

impl Operand {
    /// The inner products or distances of the pairs, and the kernel values.
    fn values(&self, strip: &Strip) -> (Vec<f64>, Vec<f64>) {
        let Prepared { rows, width, lengths } = &self.all;
        let own = Prepared {
            rows: rows[strip.rows.start * width..strip.rows.end * width].to_vec(),
            width: *width,
            lengths: lengths[strip.rows.clone()].to_vec(),
        };
        let (x, y) = ((&own, strip.rows.len()), (&self.all, strip.n));
        let mut seen = vec![0.0; x.1 * y.1];
        self.leaf.pairs(x, y, &mut seen);
        let mut values = seen.clone();
        self.leaf.finish(x, y, &mut values);
        (seen, values)
    }

    fn pull(&self, strip: &Strip, weights: &[f64], gradient: &mut Vec<f64>) {
        let term = &self.leaf.term;
        let pairs = |seen: &[f64], values: &[f64], f: &dyn Fn(f64, f64) -> f64| -> f64 {
            weights.iter().zip(seen).zip(values).map(|((w, &s), &k)| w * f(s, k)).sum()
        };
        match term.spec.family {
            Family::Linear | Family::Cosine | Family::ArcCosine => {}
            Family::Polynomial => {
                let (scale, bias, degree) = (term.one("scale"), term.one("bias"), term.one("degree"));
                let (seen, _) = self.values(strip);
                let slope =
                    |s: f64| if degree == 0.0 { 0.0 } else { degree * (scale * s + bias).powi(degree as i32 - 1) };
                gradient.push(pairs(&seen, &seen, &|s, _| slope(s) * scale * s));
                if bias > 0.0 {
                    gradient.push(pairs(&seen, &seen, &|s, _| slope(s) * bias));
                }
            }
            Family::Laplacian => {
                let (seen, values) = self.values(strip);
                if term.lengthscales().len() == 1 {
                    gradient.push(pairs(&seen, &values, &|s, k| s * k));
                } else {
                    let mut slopes = values;
                    multiply(&mut slopes, weights);
                    gradient.extend(self.absolute(strip, &slopes));
                }
            }
            family => {
                let (seen, values) = self.values(strip);
                let mut slopes: Vec<f64> = seen.iter().zip(&values).map(|(&s, &k)| slope(term, family, s, k)).collect();
                multiply(&mut slopes, weights);
                if term.lengthscales().len() == 1 {
                    gradient.push(-2.0 * slopes.iter().zip(&seen).map(|(m, s)| m * s).sum::<f64>());
                } else {
                    gradient.extend(self.squared(strip, &slopes).iter().map(|sum| -2.0 * sum));
                }
                if family == Family::RationalQuadratic {
                    let alpha = term.one("alpha");
                    let by_alpha = |s: f64, k: f64| {
                        let u = s / (2.0 * alpha);
                        k * (s / (2.0 * (1.0 + u)) - alpha * u.ln_1p())
                    };
                    gradient.push(pairs(&seen, &values, &by_alpha));
                }
                if family == Family::Periodic {
                    gradient.push(self.by_period(strip, &slopes));
                }
            }
        }
    }

    /// `Σ_ij M_ij (x_ik − x_jk)²` for every coordinate `k` of a sample, in units of its lengthscale.
    fn squared(&self, strip: &Strip, slopes: &[f64]) -> Vec<f64> {
        let (n, h, width) = (strip.n, strip.rows.len(), self.all.width);
        let mut mean = vec![0.0; width];
        self.all.rows.chunks_exact(width).for_each(|row| mean.iter_mut().zip(row).for_each(|(to, x)| *to += x));
        mean.iter_mut().for_each(|x| *x /= n as f64);
        let mut centred = self.all.rows.clone();
        centred.chunks_exact_mut(width).for_each(|row| row.iter_mut().zip(&mean).for_each(|(x, mean)| *x -= mean));
        let mut product = vec![0.0; h * width];
        gemm([h, width, n], (slopes, n, 1), (&centred, width, 1), false, &mut product);
        let mut sums = vec![0.0; width];
        let own = &centred[strip.rows.start * width..strip.rows.end * width];
        let mut columns = vec![0.0; n];
        for (at, row) in slopes.chunks_exact(n).enumerate() {
            let total: f64 = row.iter().sum();
            columns.iter_mut().zip(row).for_each(|(to, m)| *to += m);
            let (x, mx) = (&own[at * width..(at + 1) * width], &product[at * width..(at + 1) * width]);
            sums.iter_mut().zip(x).zip(mx).for_each(|((to, x), mx)| *to += x * (total * x - 2.0 * mx));
        }
        for (row, m) in centred.chunks_exact(width).zip(&columns) {
            sums.iter_mut().zip(row).for_each(|(to, x)| *to += m * x * x);
        }
        let size = self.leaf.scales().len();
        // A point on a circle has two coordinates: its cosine and its sine.
        (0..size).map(|k| sums.iter().skip(k).step_by(size).sum()).collect()
    }

    /// `Σ_ij M_ij |x_ik − x_jk|` for every coordinate `k` of a sample, in units of its lengthscale.
    fn absolute(&self, strip: &Strip, slopes: &[f64]) -> Vec<f64> {
        let width = self.all.width;
        let mut sums = vec![0.0; width];
        dispatch(
            #[inline(always)]
            || {
                for (own, row) in strip.rows.clone().zip(slopes.chunks_exact(strip.n)) {
                    let x = &self.all.rows[own * width..(own + 1) * width];
                    for (y, m) in self.all.rows.chunks_exact(width).zip(row) {
                        sums.iter_mut().zip(x).zip(y).for_each(|((to, x), y)| *to += m * (x - y).abs());
                    }
                }
            },
        );
        sums
    }

    /// `Σ_ij M_ij ∂r²/∂log period`, with `r² = Σ_k (2 − 2 cos(a − b))/ℓ²` of the angles `a = 2πx/period`:
    /// `∂r²/∂log period = −2 Σ_k (a − b) sin(a − b)/ℓ²`, and the sine comes from the points on circles.
    fn by_period(&self, strip: &Strip, slopes: &[f64]) -> f64 {
        let width = self.all.width;
        let size = width / 2;
        let turn = std::f64::consts::TAU / self.leaf.term.one("period");
        let mut total = 0.0;
        for (own, row) in strip.rows.clone().zip(slopes.chunks_exact(strip.n)) {
            let (cosines, sines) = self.all.rows[own * width..(own + 1) * width].split_at(size);
            let x = &self.data[own * size..(own + 1) * size];
            for ((other, y), m) in self.all.rows.chunks_exact(width).zip(self.data.chunks_exact(size)).zip(row) {
                let (other_cosines, other_sines) = other.split_at(size);
                let of = |k: usize| (x[k] - y[k]) * (sines[k] * other_cosines[k] - cosines[k] * other_sines[k]);
                total += m * (0..size).map(of).sum::<f64>();
            }
        }
        -2.0 * turn * total
    }
}

/// `∂κ/∂r²`, from the squared distance and the value.
fn slope(term: &super::expression::Term, family: Family, square: f64, value: f64) -> f64 {
    let r = square.sqrt();
    match family {
        // Not finite at 0, but its factor goes to zero faster.
        Family::Matern12 => {
            if r > 0.0 {
                -value / (2.0 * r)
            } else {
                0.0
            }
        }
        Family::Matern32 => -1.5 * value / (1.0 + 3f64.sqrt() * r),
        Family::Matern52 => {
            let linear = 1.0 + 5f64.sqrt() * r;
            -5.0 / 6.0 * linear * value / (linear + 5.0 / 3.0 * square)
        }
        Family::RationalQuadratic => -0.5 * value / (1.0 + square / (2.0 * term.one("alpha"))),
        _ => -0.5 * value,
    }
}
