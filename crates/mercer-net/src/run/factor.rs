//! Per-sample cotangents of parameters, in the form that is cheapest to contract.

use crate::element::Element;
use crate::op::{OuterShape, grow};
use mercer_linalg::gemm;

/// The cotangents of one parameter, one per sample and seed.
#[derive(Clone, Debug)]
pub enum Factor<T> {
    /// `Σₚ leftₚ ⊗ rightₚ`, never formed explicitly.
    Outer {
        /// Positions and lengths.
        shape: OuterShape,
        /// `[samples, positions, left]`; for one-hot vectors only their indices, `[samples, positions]`.
        left: Vec<T>,
        /// `[samples, seeds, positions, right]`.
        right: Vec<T>,
    },
    /// `[samples, seeds, elements of the parameter]`.
    Explicit(Vec<T>),
}

/// The factors of all parameters of a network (`None` where not requested), for one block of samples.
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

    /// Elements of the two parts of a factor of this form; without a form it is explicit and has one.
    pub(super) fn lengths(shape: Option<OuterShape>, size: usize, samples: usize, seeds: usize) -> [usize; 2] {
        match shape {
            None => [samples * seeds * size, 0],
            Some(shape) => {
                let width = if shape.one_hot { 1 } else { shape.left };
                [samples * shape.positions * width, samples * seeds * shape.positions * shape.right]
            }
        }
    }

    /// Turns a factor into one of this form and size, or into `None`. Reuses its memory if that is large enough.
    pub(super) fn fit(
        piece: &mut Option<Self>,
        form: Option<(Option<OuterShape>, usize)>,
        samples: usize,
        seeds: usize,
    ) {
        let Some((shape, size)) = form else { return *piece = None };
        let lengths = Self::lengths(shape, size, samples, seeds);
        let mut parts = match piece.take() {
            Some(Self::Explicit(gradient)) => [gradient, Vec::new()],
            Some(Self::Outer { left, right, .. }) => [left, right],
            None => [Vec::new(), Vec::new()],
        };
        for (part, length) in parts.iter_mut().zip(lengths) {
            grow(part, length);
            part.truncate(length);
        }
        let [left, right] = parts;
        *piece = Some(match shape {
            None => Self::Explicit(left),
            Some(shape) => Self::Outer { shape, left, right },
        });
    }

    /// Sets some samples to zero.
    pub(super) fn clear(&mut self, first: usize, samples: usize, seeds: usize, size: usize) {
        let clear = |part: &mut [T], each: usize| part[first * each..(first + samples) * each].fill(T::zero());
        match self {
            Self::Explicit(gradient) => clear(gradient, seeds * size),
            Self::Outer { shape, left, right } => {
                clear(left, shape.positions * if shape.one_hot { 1 } else { shape.left });
                clear(right, seeds * shape.positions * shape.right);
            }
        }
    }
}
