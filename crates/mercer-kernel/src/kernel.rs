//! What a kernel is: two phases, and what they cost.

use crate::error::Result;
use std::any::Any;
use std::fmt::Debug;

/// A scalar that data are read into and kernels are computed in: `f32` or `f64`.
pub trait Real: mercer_net::Element + mercer_data::DataScalar {}

impl Real for f32 {}
impl Real for f64 {}

/// A kernel `κ(x, x')` between samples, computed in two phases.
///
/// *Prepare* runs once per block of samples and is parallel inside; *contract* runs once per pair of blocks, on one thread
/// (unless [`Cost::contract_alone`]).
/// The results of both depend on the samples of the blocks alone: not on the number of threads, not on other samples.
///
/// A kernel may be matrix-valued ([`per_sample`](Self::per_sample) rows and columns for every sample), and it may come in
/// several [`parts`](Self::parts) whose sum it is.
pub trait Kernel<T: Real>: Debug + Send + Sync {
    /// Rows of the Gram matrix per sample: 1, or the number of outputs of a matrix-valued kernel.
    fn per_sample(&self) -> usize {
        1
    }

    /// The names of the matrices that [`contract`](Self::contract) writes; the kernel is their sum.
    fn parts(&self) -> Vec<String> {
        vec!["kernel".to_owned()]
    }

    /// The names of further matrices that [`contract`](Self::contract) writes behind the parts, which are not summands of the
    /// kernel but say something of it: its standard errors.
    fn beside(&self) -> Vec<String> {
        Vec::new()
    }

    /// What the two phases need.
    fn cost(&self) -> Cost;

    /// What this kernel is, for manifests: two kernels with the same identity give the same numbers.
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

/// An identity with its precision, where that is single: other numbers have another identity. Double precision has no mark, as
/// when the fingerprint of a network told the two apart.
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
    /// Wraps what a kernel wants to remember of some samples.
    pub fn new(samples: usize, content: impl Any + Send + Sync) -> Self {
        Self { samples, content: Box::new(content) }
    }

    /// The number of samples.
    pub fn samples(&self) -> usize {
        self.samples
    }

    /// What the kernel put in.
    ///
    /// # Panics
    /// If it was something else: blocks of different kernels cannot be mixed.
    pub fn content<C: Any>(&self) -> &C {
        self.content.downcast_ref().expect("a block belongs to the kind of kernel that prepared it")
    }
}

/// What the two phases of a kernel need, so that a planner can promise memory and time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cost {
    /// Bytes of a prepared sample.
    pub sample_bytes: usize,
    /// Bytes that every thread needs to prepare and keeps, whatever the size of the block.
    pub prepare_bytes: usize,
    /// Bytes beside that which all threads share while they prepare, whatever the size of the block.
    pub shared_bytes: usize,
    /// The same, per sample of the block.
    pub shared_sample_bytes: usize,
    /// Bytes beside the tile that a thread needs per sample of the second block while it contracts.
    pub contract_bytes: usize,
    /// Tiles of the same size (all parts) that a thread needs beside the tile while it contracts.
    pub contract_tiles: usize,
    /// Whether contracting is parallel inside, so that tiles are made one after the other.
    pub contract_alone: bool,
    /// Operations to prepare a sample.
    pub prepare_flops: f64,
    /// Operations to contract a pair of samples.
    pub pair_flops: f64,
}

impl Cost {
    /// The cost of two kernels whose blocks are kept together.
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
