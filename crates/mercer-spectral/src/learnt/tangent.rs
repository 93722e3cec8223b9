//! Function networks that start as eigenfunctions of a network's tangent kernel.
//!
//! An eigenfunction of the NTK of a scalar output `f` is a derivative of `f`: with `κ(x, x') = ∂f(x)·∂f(x')`,
//!
//! ```text
//! ψ(x) = (1/μm) Σ_i κ(x, x_i) ψ(x_i) = ∂f(x)·v,    v = (1/μm) Σ_i ψ(x_i) ∂f(x_i)
//! ```
//!
//! (Nyström's extension from `m` samples). Hence `f(x; θ + εv) − f(x; θ)` is `ε ψ(x)` to first order. Two copies of the
//! network therefore form a function network that starts where Nyström's method ends, costs two forward passes per
//! function instead of `m` kernel values, and can be trained further on all of the data.

use super::draws::same_samples;
use super::join::{combined, side_by_side};
use super::passes::Passes;
use crate::error::{Result, SpectralError};
use crate::exact::Solver;
use crate::spectrum::Spectrum;
use mercer_data::Dataset;
use mercer_kernel::{Ntk, NtkKind, Selection};
use mercer_net::Network;
use mercer_run::Context;
use ndarray::{Array2, ArrayView2};

/// The length of the step away from the network's weights, relative to their norm. On a CNN of 24,000 parameters in
/// single precision, ten eigenvalues are within 1.5 % with this step, and up to 18 % off with a step ten times as long.
const STEP: f64 = 1e-4;

/// The number of samples whose gradients are summed at a time.
const BLOCK: usize = 256;

/// Functions `f(x; θ + v_j) − f(x; θ)` for the first eigenfunctions of the tangent kernel on some of the samples, where
/// `f` is the weighted sum of the network's outputs.
///
/// # Errors
/// [`SpectralError::Setting`] if there are fewer samples than functions, or the numbers of weights and outputs differ;
/// [`SpectralError::NoSpectrum`] if the kernel is zero on the samples.
pub fn tangents(
    network: &Network,
    data: &[Dataset],
    outputs: &[f64],
    landmarks: &[usize],
    functions: usize,
    context: &Context,
) -> Result<Network> {
    let (samples, m) = (same_samples(data)?, landmarks.len());
    if functions == 0 || m < functions || landmarks.iter().any(|&row| row >= samples) {
        return Err(SpectralError::Setting(format!(
            "{functions} functions from {m} of {samples} samples; accepted: at least 1 function, and no more than samples"
        )));
    }
    let column = ArrayView2::from_shape((outputs.len(), 1), outputs)
        .map_err(|error| SpectralError::Setting(error.to_string()))?;
    let scalar = combined(network, 1, column)?;
    let shapes: Vec<Vec<usize>> = data.iter().map(|set| set.sample_shape().to_vec()).collect();
    let graph = scalar.graph(&shapes)?;
    let weights = scalar.weights::<f64>(&graph);
    let read = |rows: &[usize]| -> Result<Vec<Vec<f64>>> {
        data.iter().map(|set| Ok(set.select::<f64>(rows)?.iter().copied().collect())).collect()
    };
    let inputs = read(landmarks)?;
    let slices: Vec<&[f64]> = inputs.iter().map(Vec::as_slice).collect();
    let gram = Ntk::<f64>::with_selection(&scalar, &shapes, NtkKind::Trace, &Selection::default())?.gram(&slices, m)?;
    let gram = ArrayView2::from_shape((m, m), &gram).map_err(|error| SpectralError::Setting(error.to_string()))?;
    let spectrum = Spectrum::of_matrix(gram, functions, Solver::Full, context)?;
    let mut passes = Passes::<f64>::new(&graph);
    let mut directions = vec![vec![0.0; passes.n_params()]; spectrum.values.len()];
    for (block, rows) in landmarks.chunks(BLOCK).enumerate() {
        passes.forward(&weights, &read(rows)?, rows.len(), &mut vec![0.0; rows.len()])?;
        for (direction, psi) in directions.iter_mut().zip(spectrum.functions.columns()) {
            let cotangents: Vec<f64> = psi.iter().skip(block * BLOCK).take(rows.len()).copied().collect();
            let gradient = passes.reverse(&weights, &cotangents);
            direction.iter_mut().zip(gradient).for_each(|(sum, x)| *sum += x);
        }
    }
    let norm = |numbers: &mut dyn Iterator<Item = &f64>| numbers.map(|x| x * x).sum::<f64>().sqrt();
    let length = norm(&mut weights.parameters.iter().flatten());
    let mut networks = Vec::new();
    for direction in &directions {
        let step = STEP * length.max(f64::MIN_POSITIVE) / norm(&mut direction.iter()).max(f64::MIN_POSITIVE);
        let mut own = combined(network, 1, column)?;
        let mut moved = own.weights::<f64>(&graph);
        moved.parameters.iter_mut().flatten().zip(direction).for_each(|(x, v)| *x += step * v);
        own.set_weights(&moved);
        networks.push(own);
    }
    networks.push(scalar);
    let k = directions.len();
    let less = Array2::from_shape_fn((k + 1, k), |(i, j)| f64::from(i == j) - f64::from(i == k));
    combined(&side_by_side(&networks)?, 1, less.view())
}
