//! Eigenfunctions of kernels with finitely many features: `ψ(x) = φ(x)·W`, from the singular value decomposition of the
//! features.

use crate::basis::{self, Basis};
use crate::error::Result;
use crate::exact::Solver;
use crate::folder::other_kernel;
use crate::functions::Eigenfunctions;
use crate::memory::MemoryNeeds;
use crate::samples;
use crate::spectrum::Spectrum;
use mercer_data::Dataset;
use mercer_data::folder::{Part, PartWriter};
use mercer_kernel::{FeatureMap, Real, same_kernel};
use mercer_run::Context;
use serde_json::{Value, json};
use std::sync::Arc;

/// The features of a map as a basis, such as those of sketches, hidden layers and random networks.
#[derive(Clone, Debug)]
pub struct Mapped<T: Real> {
    map: Arc<dyn FeatureMap<T>>,
    shapes: Vec<Vec<usize>>,
}

impl<T: Real> Mapped<T> {
    /// A map for samples of these shapes.
    pub fn new(map: Arc<dyn FeatureMap<T>>, shapes: &[Vec<usize>]) -> Self {
        Self { map, shapes: shapes.to_vec() }
    }

    /// The map of a saved folder, rebuilt.
    pub(crate) fn read(
        part: &Part<'_>,
        description: &Value,
        inputs: &[Vec<usize>],
        built: Option<Arc<dyn FeatureMap<T>>>,
    ) -> Result<Self> {
        let other = |reason: &str| other_kernel(part, reason);
        let map = built.ok_or_else(|| other("it was saved without the information needed to rebuild its features"))?;
        if !same_kernel(&map.identity(), &description["map"]) {
            return Err(other("its features differ from those that were saved"));
        }
        Ok(Self::new(map, inputs))
    }
}

/// The type in descriptions.
pub(crate) const TYPE: &str = "features";

impl<T: Real> Basis<T> for Mapped<T> {
    fn input_shapes(&self) -> &[Vec<usize>] {
        &self.shapes
    }

    fn n_functions(&self) -> usize {
        self.map.n_features()
    }

    fn eval(&self, inputs: &[&[T]], samples: usize, out: &mut [T], _: &Context) -> Result<()> {
        Ok(self.map.features(inputs, samples, out)?)
    }

    fn write(&self, _: &PartWriter<'_>) -> Result<Value> {
        Ok(json!({ "type": TYPE, "map": self.map.identity() }))
    }
}

/// The leading eigenfunctions of the kernel `b(x)·b(x')` of a basis of features, on data.
pub fn of_features<T: Real>(
    basis: Arc<dyn Basis<T>>,
    data: &[Dataset],
    k: usize,
    solver: Solver,
    context: &Context,
) -> Result<(Eigenfunctions<T>, Spectrum<T>)> {
    let rows = samples::count(data) * basis.per_sample();
    MemoryNeeds::features("features", rows, basis.n_functions()).check(context)?;
    let values = basis::on_data(&*basis, data, context)?;
    let (spectrum, weights) = Spectrum::of_features(values.view(), k, solver, context)?;
    Ok((Eigenfunctions::from_spectrum(&spectrum, basis, weights)?, spectrum))
}
