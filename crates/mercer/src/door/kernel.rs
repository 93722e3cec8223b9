//! A kernel as a function of arrays.

use super::arrays::{InputArrays, TargetArrays, shapes};
use super::machine::FittedMachine;
use super::recipe::IntoRecipe;
use crate::Error;
use crate::job::Destination;
use crate::job::kernel::{Target, facts};
use crate::spec::fingerprint_of_inputs;
use mercer_data::Dataset;
use mercer_data::folder::SavedSamples;
use mercer_kernel::gram::{FeatureRun, Gram, InMemory};
use mercer_kernel::store::Store;
use mercer_kernel::{Built, Real, Recipe, SavedKernel};
use mercer_learn::{Fit, KernelMachine, Machine, SampleRows};
use mercer_net::Network;
use mercer_net::network::SavedNetwork;
use mercer_run::Context;
use mercer_spectral::{Eigenfunctions, Landmarks, Nystrom, Solver, exact};
use ndarray::{Array2, ArrayD, Ix2};
use std::collections::BTreeSet;
use std::path::Path;

/// A kernel, with the network it belongs to.
///
/// ```
/// use mercer::prelude::*;
///
/// let x = ndarray::array![[0.0_f32], [1.0], [2.0]];
/// let rbf = KernelFn::new("rbf(lengthscale=2)", None)?;
/// assert_eq!(rbf.gram(&x)?[[0, 0]], 1.0);
/// assert_eq!(rbf.between(&x, &ndarray::array![[0.5]])?.dim(), (3, 1));
/// # Ok::<(), mercer::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct KernelFn<'a> {
    recipe: Recipe,
    network: Option<&'a Network>,
    context: Context,
}

impl<'a> KernelFn<'a> {
    /// A kernel as text or [`Recipe`], and its network; `None` for a kernel of the data alone.
    ///
    /// # Errors
    /// If the text is not valid in the kernel language, or the network of the kernel is missing.
    pub fn new(kernel: impl IntoRecipe, network: impl Into<Option<&'a Network>>) -> Result<Self, Error> {
        let (recipe, network) = (kernel.into_recipe()?, network.into());
        if recipe.needs_network() && network.is_none() {
            return Err(Error::new("this kernel needs a network").hint("‹net› MODEL.onnx"));
        }
        Ok(Self { recipe, network, context: Context::new() })
    }

    /// Uses the memory limit and the threads of this context, and reports to it.
    pub fn within(self, context: &Context) -> Self {
        Self { context: context.clone(), ..self }
    }

    /// Which kernel it is.
    pub fn recipe(&self) -> &Recipe {
        &self.recipe
    }

    /// The Gram matrix of samples with themselves: a row per sample, or per sample and output for a matrix-valued kernel such as `full`.
    ///
    /// # Errors
    /// If the samples do not fit the network or are not finite, or the matrix does not fit into memory.
    pub fn gram<X: InputArrays>(&self, x: X) -> Result<Array2<X::Scalar>, Error> {
        let inputs = x.into_datasets()?;
        let built = self.build(&inputs)?;
        matrix(gram_on(&built, &inputs, None, &self.context)?, built.kernel.per_sample())
    }

    /// The kernel between samples (rows) and other samples (columns).
    ///
    /// # Errors
    /// As [`gram`](Self::gram).
    pub fn between<X: InputArrays, Y: InputArrays>(&self, x: X, y: Y) -> Result<Array2<X::Scalar>, Error> {
        let (rows, columns) = (x.into_datasets()?, y.into_datasets()?);
        let built = self.build(&rows)?;
        matrix(gram_on(&built, &rows, Some(&columns), &self.context)?, built.kernel.per_sample())
    }

    /// The features of a kernel that has finitely many (`ck`, `embedding`, a sketch): a row per sample.
    ///
    /// # Errors
    /// As [`gram`](Self::gram), and for a kernel without features.
    pub fn features<X: InputArrays>(&self, x: X) -> Result<Array2<X::Scalar>, Error> {
        let inputs = x.into_datasets()?;
        let features = features_on(&self.build::<X::Scalar>(&inputs)?, &inputs, &self.context)?;
        features.into_dimensionality::<Ix2>().map_err(|error| Error::with_code("shape", error.to_string()))
    }

    /// The `k` leading eigenfunctions on these samples, from the whole Gram matrix. They can be evaluated on new samples.
    ///
    /// # Errors
    /// As [`gram`](Self::gram), and if the decomposition does not fit into memory.
    pub fn eigen<X: InputArrays>(&self, x: X, k: usize) -> Result<Eigenfunctions<X::Scalar>, Error> {
        let inputs = x.into_datasets()?;
        let (functions, _) = exact(self.build(&inputs)?.kernel, &inputs, k, Solver::Full, &self.context)?;
        Ok(functions.with_kernel(self.saved()?))
    }

    /// The `k` leading eigenfunctions by Nyström's method. It needs only the kernel between landmarks and samples.
    ///
    /// # Errors
    /// As [`gram`](Self::gram).
    pub fn nystrom<X: InputArrays>(
        &self,
        x: X,
        k: usize,
        landmarks: Landmarks,
    ) -> Result<Eigenfunctions<X::Scalar>, Error> {
        let inputs = x.into_datasets()?;
        let fit = Nystrom::new(landmarks).fit(self.build(&inputs)?.kernel, &inputs, k, &self.context)?;
        Ok(fit.functions.with_kernel(self.saved()?))
    }

    /// Fits a machine on the Gram matrix of samples: `kernel.fit(&Ridge::new(1e-3)?, &x, &y)`. Machines compute in double precision.
    ///
    /// # Errors
    /// As [`gram`](Self::gram), and if the number of labels differs or the machine rejects them.
    pub fn fit<X, Y, S>(&self, settings: &S, x: X, y: &Y) -> Result<FittedMachine<'a>, Error>
    where
        X: InputArrays,
        Y: TargetArrays + ?Sized,
        S: Fit<Y::Targets>,
        S::Machine: Into<Machine>,
    {
        let inputs = x.into_datasets()?;
        let built = self.build::<f64>(&inputs)?;
        if built.kernel.per_sample() != 1 {
            return Err(Error::new("a machine takes one number per pair of samples").hint("‹kernel› trace or pseudo"));
        }
        let gram = matrix(Gram::new(&*built.kernel, &inputs).to_kernel(&self.context)?, 1)?;
        let machine = settings.fit_within(&SampleRows::Gram(gram.view()), &y.targets()?, &self.context)?.into();
        let samples = SavedSamples { inputs, labels: Some(y.labels()?), ..SavedSamples::default() };
        let kernel = Some(SavedKernel::new(self.recipe.clone(), None));
        Ok(FittedMachine::new(KernelMachine { machine, kernel, samples }, self.clone()))
    }

    /// The Gram matrix in a store on disk, tile by tile within the memory of the context. An existing store of the same
    /// kernel and samples is completed.
    ///
    /// # Errors
    /// As [`gram`](Self::gram), except for the size of the matrix. Also if the path cannot be written to or holds
    /// something else.
    pub fn store<X: InputArrays>(&self, x: X, path: impl AsRef<Path>) -> Result<Store, Error> {
        let inputs = x.into_datasets()?;
        let built = self.build::<X::Scalar>(&inputs)?;
        let gram = Gram::new(&*built.kernel, &inputs);
        let layout = gram.layout();
        gram.plan(&layout.all_tiles(), &self.context)?;
        let manifest = facts(&layout, built.kernel.beside(), built.kernel.identity());
        let manifest = manifest.fact("data", fingerprint_of_inputs(&inputs)?);
        let destination = Destination { resume: true, ..Destination::new(path.as_ref()) };
        let (store, missing) = Target::store::<X::Scalar>(&destination, &layout, manifest, &self.context)?;
        gram.run(&missing, &store, &self.context)?;
        Ok(store)
    }

    /// The network, if the kernel has one.
    pub(super) fn network(&self) -> Option<&'a Network> {
        self.network
    }

    pub(super) fn context(&self) -> &Context {
        &self.context
    }

    /// The kernel in the form saved within a result, if its network can be written.
    pub(super) fn saved(&self) -> Result<Option<SavedKernel>, Error> {
        let Some(network) = self.network.filter(|_| self.recipe.needs_network()) else {
            return Ok(Some(SavedKernel::new(self.recipe.clone(), None)));
        };
        let saved = SavedNetwork::new(network.to_onnx_bytes()?);
        let parameters = |network: &Network| -> BTreeSet<(String, Vec<usize>)> {
            network.parameters().iter().map(|own| (own.name().to_owned(), own.shape().to_vec())).collect()
        };
        // In a file, the use of a tensor decides whether it is a parameter, so another choice cannot be written.
        let same = parameters(&saved.open()?) == parameters(network);
        Ok(same.then(|| SavedKernel::new(self.recipe.clone(), Some(saved))))
    }

    fn build<T: Real>(&self, inputs: &[Dataset]) -> Result<Built<T>, Error> {
        Ok(self.recipe.build::<T>(self.network, &shapes(inputs))?)
    }
}

/// A kernel of data sets, which may be files, with themselves or with others: `[rows, columns]`, or for a matrix-valued
/// kernel `[rows, outputs, columns, outputs]`.
///
/// # Errors
/// As [`KernelFn::between`].
pub fn gram_on<T: Real>(
    built: &Built<T>,
    rows: &[Dataset],
    columns: Option<&[Dataset]>,
    context: &Context,
) -> Result<ArrayD<T>, Error> {
    let gram = Gram::new(&*built.kernel, rows);
    let Some(columns) = columns else { return Ok(gram.to_kernel(context)?) };
    if shapes(rows) != shapes(columns) {
        let text = format!("samples of shape {:?} beside samples of shape {:?}", shapes(rows), shapes(columns));
        return Err(Error::with_code("shape", text));
    }
    Ok(gram.against(columns).to_kernel(context)?)
}

/// The features of data sets, which may be files.
///
/// # Errors
/// As [`KernelFn::features`].
pub fn features_on<T: Real>(built: &Built<T>, rows: &[Dataset], context: &Context) -> Result<ArrayD<T>, Error> {
    let missing = || {
        Error::new("this kernel has no finite features").hint("ck, embedding, directions and sketches have features")
    };
    let run = FeatureRun::new(built.map.as_deref().ok_or_else(missing)?, rows);
    let sink = InMemory::new(run.layout());
    run.run(&run.layout().all_tiles(), &sink, context)?;
    sink.into_arrays().pop().ok_or_else(missing)
}

/// The rows and columns of a kernel with several outputs are ordered by sample.
fn matrix<T>(kernel: ArrayD<T>, per_sample: usize) -> Result<Array2<T>, Error> {
    let (rows, columns) = match kernel.shape() {
        &[rows, columns] | &[rows, _, columns, _] => (rows * per_sample, columns * per_sample),
        other => return Err(Error::with_code("shape", format!("the kernel is an array of shape {other:?}"))),
    };
    kernel.into_shape_with_order((rows, columns)).map_err(|error| Error::with_code("shape", error.to_string()))
}
