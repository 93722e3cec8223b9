//! The matrices of kernels.

use crate::Error;
use crate::spec::{KernelSpec, NetworkSource};
use mercer_data::Dataset;
use mercer_kernel::empirical::NtkKind;
use mercer_kernel::gram::Gram;
use mercer_kernel::{Built, Real, Recipe};
use mercer_run::Context;
use ndarray::Array2;

/// A kernel of a network or of the data.
#[derive(Clone, Debug)]
pub(super) struct NamedKernel {
    pub(super) spec: KernelSpec,
}

/// A kernel that was built for a network.
pub(super) struct BuiltKernel<T: Real> {
    spec: KernelSpec,
    built: Built<T>,
    /// What its values are multiplied by.
    pub(super) factor: f64,
    /// Whether it is the same for all weights.
    pub(super) is_fixed: bool,
}

impl NamedKernel {
    /// Reads the text. A function of the data does not use the network.
    pub(super) fn new(spec: KernelSpec) -> Result<Self, Error> {
        let alone = KernelSpec { net: None, arch: None, ..spec.clone() };
        let spec = match alone.recipe(&NetworkSource::Absent)?.needs_network() {
            true => spec,
            false => alone,
        };
        // The settings of the kernel suit the network, whose weights do not matter here.
        spec.open()?;
        Ok(Self { spec })
    }

    pub(super) fn name(&self) -> String {
        self.spec.name()
    }

    /// The kernel of a network; the seed decides what else is random.
    pub(super) fn build<T: Real>(
        &self,
        source: &NetworkSource,
        shapes: &[Vec<usize>],
        n_outputs: usize,
    ) -> Result<BuiltKernel<T>, Error> {
        let recipe = self.spec.recipe(source)?;
        let network = source.network().filter(|_| recipe.needs_network());
        let built = recipe.build::<T>(network, shapes).map_err(|error| self.spec.failure(error))?;
        let factor = if sums_outputs(&recipe) { 1.0 / n_outputs.max(1) as f64 } else { 1.0 };
        let is_fixed = !recipe.needs_network() || recipe.draws_weights();
        Ok(BuiltKernel { spec: self.spec.clone(), built, factor, is_fixed })
    }

    /// Notes about the kernel.
    pub(super) fn tell(&self, source: &NetworkSource, shapes: &[Vec<usize>], context: &Context) -> Result<(), Error> {
        self.spec.tell(&self.spec.recipe(source)?, source, shapes, context);
        Ok(())
    }
}

/// Whether a kernel is the sum over the outputs of a tangent kernel, or a multiple of it.
fn sums_outputs(recipe: &Recipe) -> bool {
    match recipe {
        Recipe::Tangent { kind, .. } | Recipe::Directions { kind, .. } => *kind == NtkKind::Trace,
        Recipe::Sketch(spec) => spec.kind == NtkKind::Trace,
        Recipe::Scaled { kernel, .. } => sums_outputs(kernel),
        _ => false,
    }
}

impl<T: Real> BuiltKernel<T> {
    /// Rows per sample.
    pub(super) fn per_sample(&self) -> usize {
        self.built.kernel.per_sample()
    }

    /// What its numbers depend on.
    pub(super) fn identity(&self) -> String {
        self.built.kernel.identity().to_string()
    }

    fn gram<'a>(&'a self, rows: &'a [Dataset], columns: Option<&'a [Dataset]>) -> Gram<'a, T> {
        let gram = Gram::new(&*self.built.kernel, rows);
        match columns {
            Some(columns) => gram.against(columns),
            None => gram,
        }
    }

    /// Checks that the matrix can be computed in the memory of the context, besides the matrix itself.
    pub(super) fn check(&self, rows: &[Dataset], columns: Option<&[Dataset]>, context: &Context) -> Result<(), Error> {
        let gram = self.gram(rows, columns);
        gram.plan(&gram.layout().all_tiles(), context).map_err(|error| self.spec.failure(error))?;
        Ok(())
    }

    /// The matrix of samples with each other, or with other samples, in double precision.
    pub(super) fn matrix(
        &self,
        rows: &[Dataset],
        columns: Option<&[Dataset]>,
        context: &Context,
    ) -> Result<Array2<f64>, Error> {
        let failed = |error| self.spec.failure(error);
        let array = self.gram(rows, columns).to_kernel(context).map_err(failed)?;
        let n_rows = array.shape()[..array.ndim() / 2].iter().product();
        let n_columns = array.shape()[array.ndim() / 2..].iter().product();
        let wide: Vec<f64> = array.iter().map(|value| value.wide() * self.factor).collect();
        let wrong = |error| Error::new(format!("‹kernel› {}: {error}", self.spec.name()));
        Array2::from_shape_vec((n_rows, n_columns), wide).map_err(wrong)
    }
}
