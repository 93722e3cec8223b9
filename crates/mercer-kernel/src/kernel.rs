//! The kernel trait: two phases and their cost.

use crate::error::Result;
use crate::gram::{Gram, GramOutcome, Sink};
use crate::recipe::{Built, Recipe};
use crate::store::Tiles;
use mercer_net::Network;
use mercer_run::Context;
use std::any::Any;
use std::fmt::Debug;

/// A scalar that data are read into and kernels are computed in: `f32` or `f64`.
///
/// The hidden methods are compiled here, once per scalar. With them all kernels are, and no other crate compiles them
/// again.
pub trait Real: mercer_net::Element + mercer_data::DataScalar {
    /// The kernel of a recipe.
    #[doc(hidden)]
    fn build_recipe(recipe: &Recipe, network: Option<&Network>, shapes: &[Vec<usize>]) -> Result<Built<Self>>;

    /// [`Gram::run`].
    #[doc(hidden)]
    fn run_gram(gram: &Gram<'_, Self>, tiles: &Tiles, sink: &dyn Sink<Self>, context: &Context) -> Result<GramOutcome>;
}

macro_rules! real {
    ($t:ident) => {
        impl Real for $t {
            fn build_recipe(recipe: &Recipe, network: Option<&Network>, shapes: &[Vec<usize>]) -> Result<Built<Self>> {
                recipe.compose(network, shapes)
            }

            fn run_gram(
                gram: &Gram<'_, Self>,
                tiles: &Tiles,
                sink: &dyn Sink<Self>,
                context: &Context,
            ) -> Result<GramOutcome> {
                gram.compute(tiles, sink, context)
            }
        }
    };
}

real!(f32);
real!(f64);

/// A kernel `κ(x, x')` between samples, computed in two phases.
///
/// *Prepare* runs once per block of samples and is parallel inside; *contract* runs once per pair of blocks, on one thread
/// (unless [`Cost::contract_alone`]).
/// The results of both depend only on the samples of the blocks, not on the number of threads or on other samples.
///
/// A kernel may be matrix-valued ([`per_sample`](Self::per_sample) rows and columns for every sample), and it may
/// consist of several [`parts`](Self::parts) that add up to it.
pub trait Kernel<T: Real>: Debug + Send + Sync {
    /// Rows of the Gram matrix per sample: 1, or the number of outputs of a matrix-valued kernel.
    fn per_sample(&self) -> usize {
        1
    }

    /// The names of the matrices that [`contract`](Self::contract) writes; the kernel is their sum.
    fn parts(&self) -> Vec<String> {
        vec!["kernel".to_owned()]
    }

    /// The names of further matrices that [`contract`](Self::contract) writes after the parts. They are not summands of
    /// the kernel but describe it, such as its standard errors.
    fn beside(&self) -> Vec<String> {
        Vec::new()
    }

    /// The cost of the two phases.
    fn cost(&self) -> Cost;

    /// The identity of this kernel, for manifests. Two kernels with the same identity give the same numbers.
    fn identity(&self) -> serde_json::Value;

    /// The first phase, for a block of samples; each input is `[samples, …]`, row-major.
    fn prepare(&self, inputs: &[&[T]], samples: usize) -> Result<Block>;

    /// The second phase: writes `[parts and beside, rows of a, rows of b]`, row-major. A block with itself gives symmetric matrices.
    ///
    /// # Panics
    /// If a block was prepared by another kind of kernel, or the tile has another size.
    fn contract(&self, a: &Block, b: &Block, tile: &mut [T]);

    /// `κ(x, x)` of every sample of a block: `samples · per_sample` numbers, the diagonal of the matrix.
    fn diagonal(&self, a: &Block) -> Vec<T>;
}

/// An identity marked with single precision, because its numbers differ. Double precision has no mark, as in versions
/// in which the fingerprint of the network distinguished the two.
pub(crate) fn with_precision<T: Real>(mut identity: serde_json::Value) -> serde_json::Value {
    if size_of::<T>() == size_of::<f32>() {
        identity["precision"] = T::NAME.into();
    }
    identity
}

/// Prepared samples. Only the kernel that made a block can look into it.
#[derive(Debug)]
pub struct Block {
    samples: usize,
    content: Box<dyn Any + Send + Sync>,
}

impl Block {
    /// Wraps the data that a kernel prepares for some samples.
    pub fn new(samples: usize, content: impl Any + Send + Sync) -> Self {
        Self { samples, content: Box::new(content) }
    }

    /// The number of samples.
    pub fn samples(&self) -> usize {
        self.samples
    }

    /// The prepared data.
    ///
    /// # Panics
    /// If it has another type: blocks of different kernels cannot be mixed.
    pub fn content<C: Any>(&self) -> &C {
        self.content.downcast_ref().expect("a block belongs to the kind of kernel that prepared it")
    }
}

/// The cost of the two phases of a kernel, from which a planner promises memory and time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cost {
    /// Bytes of a prepared sample.
    pub sample_bytes: usize,
    /// Bytes that every thread needs for preparing and keeps, for any block size.
    pub prepare_bytes: usize,
    /// Further bytes that all threads share while preparing, for any block size.
    pub shared_bytes: usize,
    /// The same, per sample of the block.
    pub shared_sample_bytes: usize,
    /// Bytes besides the tile that a thread needs per sample of the second block while contracting.
    pub contract_bytes: usize,
    /// Further tiles of the same size (all parts) that a thread needs while contracting.
    pub contract_tiles: usize,
    /// Whether contracting is parallel inside, so that tiles are computed one after the other.
    pub contract_alone: bool,
    /// Operations to prepare a sample.
    pub prepare_flops: f64,
    /// Operations to contract a pair of samples.
    pub pair_flops: f64,
}

impl Cost {
    /// The cost of two kernels whose blocks are in memory together.
    pub fn and(self, other: Self) -> Self {
        Self {
            sample_bytes: self.sample_bytes + other.sample_bytes,
            prepare_bytes: self.prepare_bytes + other.prepare_bytes,
            shared_bytes: self.shared_bytes.max(other.shared_bytes),
            shared_sample_bytes: self.shared_sample_bytes.max(other.shared_sample_bytes),
            contract_bytes: self.contract_bytes.max(other.contract_bytes),
            contract_tiles: self.contract_tiles.max(other.contract_tiles),
            contract_alone: self.contract_alone || other.contract_alone,
            prepare_flops: self.prepare_flops + other.prepare_flops,
            pair_flops: self.pair_flops + other.pair_flops,
        }
    }
}
