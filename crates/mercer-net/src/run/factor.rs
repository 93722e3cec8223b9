//! Per-sample cotangents of parameters, in the form that is cheapest to contract.

use crate::element::Element;
use crate::op::OuterShape;
use mercer_linalg::gemm;

/// The cotangents of one parameter, one per sample and seed.
#[derive(Clone, Debug)]
pub enum Factor<T> {
    /// `Σₚ leftₚ ⊗ rightₚ`, never formed.
    Outer {
        /// Positions and lengths.
        shape: OuterShape,
        /// `[samples, positions, left]`; for one-hot vectors just their indices, `[samples, positions]`.
        left: Vec<T>,
        /// `[samples, seeds, positions, right]`.
        right: Vec<T>,
    },
    /// `[samples, seeds, elements of the parameter]`.
    Explicit(Vec<T>),
}

/// The factors of all parameters of a network (`None` where not asked for), for one block of samples.
#[derive(Clone, Debug)]
pub struct Factors<T> {
    /// The number of samples.
    pub samples: usize,
    /// The number of seeds.
    pub seeds: usize,
    /// One per parameter, in the graph's order.
    pub parameters: Vec<Option<Factor<T>>>,
}

impl<T: Element> Factor<T> {
    /// The explicit cotangents, `[samples, seeds, elements]`.
    pub fn explicit(&self, samples: usize, seeds: usize) -> Vec<T> {
        let (shape, left, right) = match self {
            Self::Explicit(gradient) => return gradient.clone(),
            Self::Outer { shape, left, right } => (shape, left, right),
        };
        let (p, l, r) = (shape.positions, shape.left, shape.right);
        let size = l * r;
        let mut gradient = vec![T::zero(); samples * seeds * size];
        for sample in 0..samples {
            for seed in 0..seeds {
                let at = sample * seeds + seed;
                let out = &mut gradient[at * size..(at + 1) * size];
                let right = &right[at * p * r..(at + 1) * p * r];
                if shape.one_hot {
                    for (row, index) in right.chunks_exact(r).zip(&left[sample * p..]) {
                        let index = index.to_usize().unwrap_or(0);
                        out[index * r..(index + 1) * r].iter_mut().zip(row).for_each(|(o, &x)| *o += x);
                    }
                    continue;
                }
                let left = &left[sample * p * l..(sample + 1) * p * l];
                if shape.right_major {
                    gemm([r, l, p], (right, 1, r), (left, l, 1), false, out);
                } else {
                    gemm([l, r, p], (left, 1, l), (right, r, 1), false, out);
                }
            }
        }
        gradient
    }

    /// Appends the positions of another use of the same parameter.
    pub(super) fn join(&mut self, other: Self, samples: usize, seeds: usize) {
        let Self::Outer { shape, left, right } = self else { unreachable!("only outer forms are joined") };
        let Self::Outer { shape: shape2, left: left2, right: right2 } = other else {
            unreachable!("only outer forms are joined")
        };
        let width = if shape.one_hot { 1 } else { shape.left };
        *left = interleave(left, shape.positions * width, &left2, shape2.positions * width, samples);
        *right =
            interleave(right, shape.positions * shape.right, &right2, shape2.positions * shape2.right, samples * seeds);
        shape.positions += shape2.positions;
    }
}

fn interleave<T: Copy>(a: &[T], a_size: usize, b: &[T], b_size: usize, count: usize) -> Vec<T> {
    let mut joined = Vec::with_capacity(a.len() + b.len());
    for index in 0..count {
        joined.extend_from_slice(&a[index * a_size..(index + 1) * a_size]);
        joined.extend_from_slice(&b[index * b_size..(index + 1) * b_size]);
    }
    joined
}
