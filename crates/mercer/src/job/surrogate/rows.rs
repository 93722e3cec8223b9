//! Kernel values of samples with the training samples, row by row.
//!
//! A kernel with features keeps the features of the training samples, and its values are products. Any other kernel
//! computes its values from the samples, in strips of as many rows as fit into memory. Neither depends on the memory or
//! the threads: products are of [`PRODUCT_ROWS`] rows at a time, and strips consist of whole tiles.

use super::Classified;
use super::stores::{Filled, KernelStores, StoredKernel};
use crate::Error;
use crate::job::Share;
use crate::spec::{KernelSpec, NetworkSource};
use mercer_data::Dataset;
use mercer_kernel::gram::{FeatureRun, Gram, InMemory};
use mercer_kernel::store::Tiles;
use mercer_kernel::{Built, FeatureMap, KernelError, Real, Recipe};
use mercer_learn::surrogate::DualRows;
use mercer_linalg::matmul;
use mercer_run::Context;
use ndarray::{Array2, ArrayView2, Axis, Ix2};
use std::sync::Arc;

/// Rows of one product with features.
const PRODUCT_ROWS: usize = 64;

/// The share of the memory that a strip may take.
const STRIP: usize = 4;

/// Receives the kernel values of one sample with all training samples.
pub(crate) type RowVisitor<'a> = dyn FnMut(usize, ArrayView2<'_, f64>) -> Result<(), Error> + 'a;

/// A kernel with its training samples.
pub(crate) struct KernelRows<T: Real> {
    pub(crate) spec: KernelSpec,
    pub(crate) recipe: Recipe,
    pub(crate) built: Built<T>,
    values: Values<T>,
    /// Where values are kept, if they are.
    stores: Option<KernelStores>,
    /// The kernel whose values are kept, if it has no features.
    stored: Option<StoredKernel<T>>,
}

/// What is known of the training samples.
enum Values<T> {
    /// Nothing yet.
    None,
    /// Their kernel values with each other.
    Gram(Array2<f64>),
    /// Their features.
    Features(Array2<T>),
}

impl<T: Real> KernelRows<T> {
    /// Builds the kernel of a text.
    pub(crate) fn build(spec: KernelSpec, source: &NetworkSource, shapes: &[Vec<usize>]) -> Result<Self, Error> {
        let recipe = spec.recipe(source)?;
        Self::from_recipe(spec, recipe, source, shapes)
    }

    /// Builds a kernel.
    pub(crate) fn from_recipe(
        spec: KernelSpec,
        recipe: Recipe,
        source: &NetworkSource,
        shapes: &[Vec<usize>],
    ) -> Result<Self, Error> {
        let network = source.network().filter(|_| recipe.needs_network());
        let built = recipe.build::<T>(network, shapes).map_err(|error| spec.failure(error))?;
        if built.kernel.per_sample() != 1 {
            let text = format!("‹kernel› {}: this kernel has a matrix per pair of samples", spec.name());
            return Err(Error::new(text).hint("‹kernel› trace or pseudo: one number per pair is needed"));
        }
        Ok(Self { spec, recipe, built, values: Values::None, stores: None, stored: None })
    }

    /// Keeps kernel values and features in a folder, if there is one, and uses those that are there.
    pub(crate) fn keep(mut self, stores: Option<&KernelStores>, known: &Classified) -> Result<Self, Error> {
        let Some(stores) = stores else { return Ok(self) };
        self.stores = Some(stores.clone());
        if self.map().is_none() {
            let network = known.source.network().filter(|_| self.recipe.needs_network());
            let (kernel, normalised) = match &self.recipe {
                Recipe::Normalised(inner) => {
                    let built = inner.build::<T>(network, &known.samples.shapes());
                    (built.map_err(|error| self.spec.failure(error))?.kernel, true)
                }
                _ => (Arc::clone(&self.built.kernel), false),
            };
            self.stored = Some(StoredKernel::new(stores.clone(), kernel, normalised));
        }
        Ok(self)
    }

    /// Its feature map, if it has one.
    pub(crate) fn map(&self) -> Option<&Arc<dyn FeatureMap<T>>> {
        self.built.map.as_ref()
    }

    /// The number of features, if it has any.
    pub(crate) fn n_features(&self) -> Option<usize> {
        self.map().map(|map| map.n_features())
    }

    /// Computes the features or the kernel values of the training samples.
    pub(crate) fn compute(&mut self, train: &[Dataset], context: &Context) -> Result<(), Error> {
        if let Some(stored) = &mut self.stored {
            self.values = Values::Gram(stored.own(train, context)?);
            return Ok(());
        }
        let failed = |error: KernelError| self.spec.failure(error);
        self.values = match (self.map(), &self.stores) {
            (Some(map), Some(stores)) => Values::Features(stores.features(&**map, train, context)?),
            (Some(map), None) => Values::Features(features(&**map, train, context).map_err(failed)?),
            (None, _) => Values::Gram(Gram::new(&*self.built.kernel, train).to_wide_kernel(context).map_err(failed)?),
        };
        Ok(())
    }

    /// Computes a part of what is kept: the features of the training samples, or their kernel values with each other and
    /// with other samples. Nothing if nothing is kept.
    pub(crate) fn fill(
        &self,
        train: &[Dataset],
        others: &[&[Dataset]],
        share: Share,
        context: &Context,
    ) -> Result<Vec<Filled>, Error> {
        match (&self.stored, self.map(), &self.stores) {
            (Some(stored), ..) => std::iter::once(None)
                .chain(others.iter().copied().map(Some))
                .map(|samples| stored.fill(samples, train, share, context))
                .collect(),
            (None, Some(map), Some(stores)) => Ok(vec![stores.fill_features(&**map, train, share, context)?]),
            _ => Ok(Vec::new()),
        }
    }

    /// Uses features that were computed before.
    pub(crate) fn with_features(mut self, features: Array2<T>) -> Self {
        self.values = Values::Features(features);
        self
    }

    /// The features of the training samples, if the kernel has any.
    pub(crate) fn features(&self) -> Option<&Array2<T>> {
        match &self.values {
            Values::Features(features) => Some(features),
            _ => None,
        }
    }

    /// Drops the kernel values of the training samples with each other. Features are kept, because new samples need
    /// them.
    pub(crate) fn forget(&mut self) {
        if matches!(self.values, Values::Gram(_)) {
            self.values = Values::None;
        }
    }

    /// The training samples as a machine takes them.
    pub(crate) fn dual(&self) -> Result<DualRows<'_>, Error> {
        match &self.values {
            Values::Gram(gram) => Ok(DualRows::Gram(gram.view())),
            Values::Features(features) => dual_features(features),
            Values::None => Err(Error::new("the kernel of the training samples is missing")),
        }
    }

    /// The training samples as a solver takes them: a Gram matrix where there are more features than samples.
    pub(crate) fn fitted_on<R>(&self, work: impl FnOnce(DualRows<'_>) -> Result<R, Error>) -> Result<R, Error> {
        let rows = self.dual()?;
        let gram = rows.condensed();
        work(gram.as_ref().map_or(rows, |gram| DualRows::Gram(gram.view())))
    }

    /// The mean of `κ(x, x)` over the training samples.
    pub(crate) fn mean_diagonal(&self) -> Result<f64, Error> {
        let square = |row: ndarray::ArrayView1<'_, T>| row.iter().map(|x| x.wide() * x.wide()).sum::<f64>();
        match &self.values {
            Values::Gram(gram) => Ok(gram.diag().mean().unwrap_or(0.0)),
            Values::Features(features) => {
                Ok(features.outer_iter().map(square).sum::<f64>() / features.nrows().max(1) as f64)
            }
            Values::None => Err(Error::new("the kernel of the training samples is missing")),
        }
    }

    /// The Gram matrix of the training samples; features are multiplied.
    pub(crate) fn gram(&self) -> Result<ndarray::CowArray<'_, f64, Ix2>, Error> {
        match &self.values {
            Values::Gram(gram) => Ok(gram.view().into()),
            Values::Features(features) => {
                let mut gram = Array2::zeros((features.nrows(), features.nrows()));
                for (start, rows) in product_rows(features.view()) {
                    let product = matmul(rows, features.t());
                    for (at, row) in product.outer_iter().enumerate() {
                        gram.row_mut(start + at).iter_mut().zip(row).for_each(|(slot, value)| *slot = value.wide());
                    }
                }
                // Products of single precision are symmetric but for rounding.
                for i in 0..gram.nrows() {
                    for j in 0..i {
                        gram[(i, j)] = gram[(j, i)];
                    }
                }
                Ok(gram.into())
            }
            Values::None => Err(Error::new("the kernel of the training samples is missing")),
        }
    }

    /// Visits the kernel values of new samples with all training samples, in order, several rows at a time.
    pub(crate) fn visit(
        &self,
        samples: &[Dataset],
        train: &[Dataset],
        context: &Context,
        visit: &mut RowVisitor<'_>,
    ) -> Result<(), Error> {
        let failed = |error: KernelError| self.spec.failure(error);
        if let (Some(map), Values::Features(own)) = (self.map(), &self.values) {
            let run = FeatureRun::new(&**map, samples);
            for block in 0..run.layout().row_blocks() {
                let new = feature_block(&run, block, context).map_err(failed)?;
                let first = block * run.layout().tile;
                for (start, rows) in product_rows(new.view()) {
                    context.check()?;
                    let values = matmul(rows, own.t()).mapv(|value| value.wide());
                    visit(first + start, values.view())?;
                }
            }
            return Ok(());
        }
        if let Some(stored) = &self.stored {
            return stored.visit(samples, train, context, visit);
        }
        let gram = Gram::new(&*self.built.kernel, samples).against(train);
        for blocks in gram.strips(1, context.memory() / STRIP).map_err(failed)? {
            let (rows, strip) = gram.strip(blocks, true, context).map_err(failed)?;
            visit(rows.start, strip.index_axis(Axis(0), 0))?;
        }
        Ok(())
    }

    /// Visits the kernel values of the training samples with each other, in order, several rows at a time.
    pub(crate) fn visit_own(&self, context: &Context, visit: &mut RowVisitor<'_>) -> Result<(), Error> {
        match &self.values {
            Values::Gram(gram) => {
                for (start, rows) in product_rows(gram.view()) {
                    context.check()?;
                    visit(start, rows)?;
                }
                Ok(())
            }
            Values::Features(features) => {
                for (start, rows) in product_rows(features.view()) {
                    context.check()?;
                    visit(start, matmul(rows, features.t()).mapv(|value| value.wide()).view())?;
                }
                Ok(())
            }
            Values::None => Err(Error::new("the kernel of the training samples is missing")),
        }
    }
}

/// Features in the precision they have.
fn dual_features<T: Real>(features: &Array2<T>) -> Result<DualRows<'_>, Error> {
    let features: &dyn std::any::Any = features;
    match (features.downcast_ref::<Array2<f32>>(), features.downcast_ref::<Array2<f64>>()) {
        (Some(single), _) => Ok(DualRows::Features32(single.view())),
        (_, Some(double)) => Ok(DualRows::Features(double.view())),
        _ => Err(Error::new("the features have an unknown precision")),
    }
}

/// Rows of a matrix, [`PRODUCT_ROWS`] at a time.
fn product_rows<T>(rows: ArrayView2<'_, T>) -> impl Iterator<Item = (usize, ArrayView2<'_, T>)> {
    let n_rows = rows.nrows();
    (0..n_rows).step_by(PRODUCT_ROWS).map(move |start| {
        let end = (start + PRODUCT_ROWS).min(n_rows);
        (start, rows.split_at(Axis(0), start).1.split_at(Axis(0), end - start).0)
    })
}

/// The features of all samples.
fn features<T: Real>(
    map: &dyn FeatureMap<T>,
    samples: &[Dataset],
    context: &Context,
) -> Result<Array2<T>, KernelError> {
    let run = FeatureRun::new(map, samples);
    let layout = run.layout();
    let held = layout.rows.saturating_mul(map.n_features()).saturating_mul(size_of::<T>());
    let left = context.with_memory(context.memory().saturating_sub(held));
    let (tiles, sink) = (layout.all_tiles(), InMemory::new(layout));
    run.run(&tiles, &sink, &left)?;
    first_matrix(sink)
}

/// The features of one block of samples.
fn feature_block<T: Real>(run: &FeatureRun<'_, T>, block: usize, context: &Context) -> Result<Array2<T>, KernelError> {
    let layout = run.layout();
    let sink = BlockSink(std::sync::Mutex::new(Vec::new()));
    run.run(&Tiles::range(block..block + 1), &sink, context)?;
    let values = sink.0.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    let width = layout.n_columns();
    Array2::from_shape_vec((values.len() / width.max(1), width), values)
        .map_err(|error| KernelError::Setting(format!("features: {error}")))
}

/// Keeps the numbers of one block.
struct BlockSink<T>(std::sync::Mutex<Vec<T>>);

impl<T: Real> mercer_kernel::gram::Sink<T> for BlockSink<T> {
    fn write(&self, _: usize, _: &mercer_kernel::store::TilePlace, matrices: &[&[T]]) -> Result<(), KernelError> {
        *self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = matrices.concat();
        Ok(())
    }
}

fn first_matrix<T: Real>(sink: InMemory<T>) -> Result<Array2<T>, KernelError> {
    let array = sink.into_arrays().into_iter().next();
    let array = array.ok_or_else(|| KernelError::Setting("there are no features".to_owned()))?;
    array.into_dimensionality::<Ix2>().map_err(|error| KernelError::Setting(format!("features: {error}")))
}
