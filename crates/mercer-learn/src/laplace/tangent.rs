//! The derivative of the outputs along the parameters themselves, `J(x) θ*`, and the feature weights that reproduce it.

use super::algebra::add_gram;
use super::source::Batch;
use crate::error::{LearnError, Result, check_size};
use mercer_kernel::Real;
use mercer_kernel::empirical::Gradients;
use mercer_linalg::{mirror_lower, symmetric_eigen};
use mercer_net::run::{Keep, Tangent, Workspace};
use ndarray::{Array1, Array2, ArrayView1, ArrayView2};
use rayon::prelude::*;
use std::sync::Arc;

/// `J(x) θ*` of some samples, output by output: along the chosen parameters only.
pub(super) fn along_parameters<T: Real>(gradients: &Gradients<T>, batch: &Batch<'_, T>) -> Result<Vec<f64>> {
    let Batch { inputs, samples, context, .. } = *batch;
    let (graph, weights) = (gradients.graph(), gradients.weights());
    let chosen = weights.parameters.iter().zip(gradients.chosen());
    let direction: Vec<&[T]> = chosen.map(|(own, &chosen)| if chosen { own.as_slice() } else { &[] }).collect();
    let output = gradients.output();
    let width = graph.value(output).meta.numel();
    let sizes: Vec<usize> = graph.inputs().iter().map(|&id| graph.value(id).meta.numel()).collect();
    let grain = gradients.grain();
    let mut rows = vec![0.0; samples * width];
    let memory = || (Workspace::new(Arc::clone(graph), &Keep::All), Tangent::new(Arc::clone(graph)));
    // Shards of fixed size: the same bits on any number of threads.
    let shards = rows.par_chunks_mut((grain * width).max(1)).enumerate();
    shards.try_for_each_init(memory, |(workspace, tangent), (at, to)| -> Result<()> {
        context.check()?;
        let shard = at * grain..(at * grain + grain).min(samples);
        let own: Vec<&[T]> =
            inputs.iter().zip(&sizes).map(|(data, size)| &data[shard.start * size..shard.end * size]).collect();
        workspace.forward(weights, &own, shard.len())?;
        tangent.run(workspace, weights, &direction, &[]);
        to.iter_mut().zip(tangent.get(output)).for_each(|(to, value)| *to = value.wide());
        Ok(())
    })?;
    Ok(rows)
}

/// The normal equations of `w* = argmin Σ ‖Jθ* − Ψw‖²`.
#[derive(Debug)]
pub(super) struct Projection<T> {
    gradients: Gradients<T>,
    /// `Σ ΨᵀΨ`, its lower triangle.
    square: Array2<f64>,
    /// `Σ ΨᵀJθ*`.
    right: Array1<f64>,
}

impl<T: Real> Projection<T> {
    pub(super) fn new(gradients: Gradients<T>, width: usize) -> Self {
        Self { gradients, square: Array2::zeros((width, width)), right: Array1::zeros(width) }
    }

    /// Adds some samples; `features` has a row for every output of every sample.
    pub(super) fn add(&mut self, features: ArrayView2<'_, f64>, batch: &Batch<'_, T>) -> Result<()> {
        let tangents = along_parameters(&self.gradients, batch)?;
        check_size("the number of outputs", tangents.len(), features.nrows())?;
        add_gram(&mut self.square, features);
        self.right += &features.t().dot(&ArrayView1::from(&tangents));
        Ok(())
    }

    /// `‖w*‖²` of the minimum-norm solution. Directions within the rounding of the features are left out.
    pub(super) fn squared_norm(&self) -> Result<f64> {
        let mut square = self.square.clone();
        mirror_lower(square.view_mut());
        let eigen = symmetric_eigen(square.view())?;
        let largest = eigen.values.iter().fold(0.0_f64, |most, value| most.max(value.abs()));
        let rounding = (10.0 * T::epsilon().wide()).max(4.0 * square.nrows() as f64 * f64::EPSILON);
        let least = largest * rounding;
        let coordinates: Array1<f64> = eigen.vectors.t().dot(&self.right);
        let solved = coordinates.iter().zip(&eigen.values).filter(|(_, value)| **value > least);
        let norm: f64 = solved.map(|(c, value)| (c / value).powi(2)).sum();
        if norm.is_finite() { Ok(norm) } else { Err(LearnError::NotFinite { what: "weights of features" }) }
    }
}
