//! Small problems with a known answer: the decomposition of the whole Gram matrix.

use mercer_data::{Dataset, random};
use mercer_kernel::{Block, Cost, Kernel, Result};
use mercer_run::Context;
use mercer_spectral::{Solver, Spectrum, gram_matrix};
use ndarray::Array2;
use rand::RngExt;
use std::sync::Arc;

/// A kernel of vectors, from a function of two of them that writes `outputs × outputs` numbers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plain {
    pub(crate) name: &'static str,
    pub(crate) outputs: usize,
    pub(crate) function: fn(&[f64], &[f64], &mut [f64]),
}

impl Kernel<f64> for Plain {
    fn per_sample(&self) -> usize {
        self.outputs
    }

    fn cost(&self) -> Cost {
        Cost { sample_bytes: 64, pair_flops: 10.0, ..Cost::default() }
    }

    fn identity(&self) -> serde_json::Value {
        serde_json::json!({ "kernel": self.name })
    }

    fn prepare(&self, inputs: &[&[f64]], samples: usize) -> Result<Block> {
        Ok(Block::new(samples, inputs[0].to_vec()))
    }

    fn contract(&self, a: &Block, b: &Block, tile: &mut [f64]) {
        let (x, y) = (a.content::<Vec<f64>>(), b.content::<Vec<f64>>());
        let (width, outputs) = (x.len() / a.samples(), self.outputs);
        let mut values = vec![0.0; outputs * outputs];
        for (i, x) in x.chunks(width).enumerate() {
            for (j, y) in y.chunks(width).enumerate() {
                (self.function)(x, y, &mut values);
                for (c, row) in values.chunks(outputs).enumerate() {
                    let at = (i * outputs + c) * b.samples() * outputs + j * outputs;
                    tile[at..at + outputs].copy_from_slice(row);
                }
            }
        }
    }

    fn diagonal(&self, a: &Block) -> Vec<f64> {
        let x = a.content::<Vec<f64>>();
        let mut values = vec![0.0; self.outputs * self.outputs];
        let mut diagonal = Vec::new();
        for x in x.chunks(x.len() / a.samples()) {
            (self.function)(x, x, &mut values);
            diagonal.extend((0..self.outputs).map(|c| values[c * self.outputs + c]));
        }
        diagonal
    }
}

fn dot(x: &[f64], y: &[f64]) -> f64 {
    x.iter().zip(y).map(|(x, y)| x * y).sum()
}

fn distance(x: &[f64], y: &[f64]) -> f64 {
    x.iter().zip(y).map(|(x, y)| (x - y) * (x - y)).sum()
}

/// `(x·x' + 1.5)⁴`, of rank five in one dimension.
pub(crate) const POLYNOMIAL: Plain =
    Plain { name: "polynomial", outputs: 1, function: |x, y, out| out[0] = (dot(x, y) + 1.5).powi(4) };

/// `exp(-‖x - x'‖²/2)`.
pub(crate) const RBF: Plain =
    Plain { name: "rbf", outputs: 1, function: |x, y, out| out[0] = (-distance(x, y) / 2.0).exp() };

/// Two outputs that share part of their kernel, unlike on the diagonal and beside it.
pub(crate) const COREGIONAL: Plain = Plain {
    name: "coregional",
    outputs: 2,
    function: |x, y, out| {
        let (rbf, linear) = ((-distance(x, y)).exp(), dot(x, y));
        out.copy_from_slice(&[2.0 * rbf + linear, 0.5 * rbf, 0.5 * rbf, rbf]);
    },
};

/// The partners of a point on a circle of [`CIRCLE`] points, by how many points they are further: the sum of two steps, each from
/// a box of six, so that all eigenvalues are squares.
pub(crate) const PARTNERS: [isize; 36] = {
    let mut partners = [0; 36];
    let mut at = 0;
    while at < 36 {
        partners[at] = (at % 6) as isize - (at / 6) as isize;
        at += 1;
    }
    partners
};

pub(crate) const CIRCLE: usize = 36;

/// `p(x, x')/(p(x)p(x')) - 1` of these pairs.
pub(crate) const PAIRS: Plain = Plain {
    name: "pairs",
    outputs: 1,
    function: |x, y, out| {
        let angle = |x: &[f64]| x[1].atan2(x[0]) * CIRCLE as f64 / std::f64::consts::TAU;
        let apart = (angle(y) - angle(x)).round() as isize;
        let same = |d: &&isize| (**d - apart).rem_euclid(CIRCLE as isize) == 0;
        out[0] = PARTNERS.iter().filter(same).count() as f64 * CIRCLE as f64 / PARTNERS.len() as f64 - 1.0;
    },
};

fn circle() -> Array2<f64> {
    Array2::from_shape_fn((CIRCLE, 2), |(row, column)| {
        let angle = std::f64::consts::TAU * row as f64 / CIRCLE as f64;
        if column == 0 { angle.cos() } else { angle.sin() }
    })
}

/// A kernel, data, and how many components are asked for.
#[derive(Debug)]
pub(crate) struct Problem {
    pub(crate) name: &'static str,
    pub(crate) kernel: Arc<dyn Kernel<f64>>,
    pub(crate) data: Vec<Dataset>,
    pub(crate) points: Array2<f64>,
    pub(crate) gram: Array2<f64>,
    pub(crate) k: usize,
    /// All eigenpairs that are not rounding.
    pub(crate) truth: Spectrum<f64>,
}

impl Problem {
    pub(crate) fn new(name: &'static str, kernel: Plain, points: Array2<f64>, k: usize) -> Self {
        let kernel: Arc<dyn Kernel<f64>> = Arc::new(kernel);
        let data = vec![Dataset::from_array("x", points.view().into_dyn()).expect("data")];
        let gram = gram_matrix(&*kernel, &data, &Context::new()).expect("a matrix");
        let truth = Spectrum::of_matrix(gram.view(), gram.nrows(), Solver::Full, &Context::new()).expect("a spectrum");
        Self { name, kernel, data, points, gram, k, truth }
    }

    pub(crate) fn samples(&self) -> usize {
        self.points.nrows()
    }

    /// The first samples as a kernel takes them.
    pub(crate) fn rows(&self, count: usize) -> &[f64] {
        &self.points.as_slice().expect("row-major")[..count * self.points.ncols()]
    }
}

/// Points spread over a cube.
pub(crate) fn points(samples: usize, width: usize, half: f64) -> Array2<f64> {
    let mut stream = random::stream(3, "points");
    Array2::from_shape_simple_fn((samples, width), || half * (2.0 * stream.random::<f64>() - 1.0))
}

/// All problems.
pub(crate) fn problems() -> Vec<Problem> {
    let mut twice = points(60, 2, 2.0);
    twice.append(ndarray::Axis(0), twice.clone().view()).expect("same width");
    vec![
        Problem::new("polynomial", POLYNOMIAL, points(128, 1, 1.0), 4),
        Problem::new("rbf", RBF, points(120, 2, 2.0), 6),
        Problem::new("rbf, every point twice", RBF, twice, 6),
        Problem::new("two outputs", COREGIONAL, points(70, 2, 1.5), 5),
        Problem::new("more components than rank", POLYNOMIAL, points(40, 1, 1.0), 10),
        Problem::new("pairs on a circle", PAIRS, circle(), 4),
    ]
}
