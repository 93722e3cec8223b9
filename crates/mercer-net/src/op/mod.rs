//! Primitives: the operations of the graph, and the readings of each.
//!
//! A primitive `y = f(x₁, …, xₙ)` is one type in one file. It defines the shape of its result ([`Op`]) and, for each
//! scalar ([`OpKernel`]), how to compute the result and its derivatives:
//!
//! - `apply`: the value,
//! - `vjp`: the cotangent of one operand **per sample**, for `S` seeds at once,
//! - `accumulate`: the cotangent of a shared operand summed over the samples, where that is cheaper than `vjp`,
//! - `jvp`: the tangent of the result,
//! - `outer`: the cotangent of a shared operand as a sum of outer products, where it has that form.
//!
//! Batched values are `[samples, …shape]`, cotangents `[samples, seeds, …shape]`; shared operands are stored once. All
//! derivative readings of one primitive are checked against each other and against finite differences by the
//! conformance suite.
//!
//! ```
//! use mercer_net::graph::{Batch, GraphBuilder};
//! use mercer_net::network::{Network, Values};
//! use mercer_net::op::{Function, Unary};
//!
//! // A network of one primitive.
//! let mut builder = GraphBuilder::new();
//! let x = builder.input("x", [1, 2], Batch::axis(0));
//! let y = builder.node("relu", Unary(Function::Relu), &[x])?;
//! builder.output("y", y);
//! let network = Network::from_graph(builder.finish(), Vec::<Values>::new())?;
//! assert_eq!(network.predict(&[(&[1.0, -2.0], &[2])], 1, None, None)?.values, [1.0, 0.0]);
//! # Ok::<(), mercer_net::NetError>(())
//! ```

#![allow(clippy::too_many_arguments, reason = "the readings of a primitive take many arguments")]

mod arg_extreme;
mod arguments;
mod axes;
mod batch_norm;
mod binary;
mod concat;
#[cfg(test)]
pub(crate) mod conformance;
mod conv;
mod cumsum;
mod expand;
mod gather;
mod gather_elements;
mod linear;
mod loops;
mod math;
mod matmul;
mod normalise;
mod pad;
mod pool;
#[cfg(test)]
mod properties;
mod reduce;
mod select;
mod slice;
mod softmax;
mod transpose;
mod unary;
mod view;

pub use arguments::{Arg, Call, Scratch, Tangents};
pub(crate) use arguments::{Directions, Operands, grow};
pub(crate) use loops::MAX_RANK;

pub use arg_extreme::ArgExtreme;
pub use batch_norm::BatchNorm;
pub(crate) use batch_norm::Channels;
pub use binary::{Binary, Combine};
pub use concat::Concat;
pub use conv::{Conv, Window};
pub use cumsum::CumSum;
pub use expand::Expand;
pub use gather::Gather;
pub use gather_elements::GatherElements;
pub use matmul::MatMul;
pub use normalise::Normalise;
pub use pad::{Margin, Pad};
pub use pool::{Pool, Pooling};
pub use reduce::{Reduce, Reduction};
pub use select::Where;
pub use slice::Slice;
pub use softmax::Softmax;
pub use transpose::Transpose;
pub use unary::{Function, Unary};
pub use view::Reshape;

use crate::element::Element;
use crate::graph::{Meta, Mixes};
use std::fmt::Debug;

/// Why a primitive cannot be applied to operands of these shapes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InferError {
    /// It would work along the batch axis.
    Mixes,
    /// The shapes do not fit.
    Shape(String),
}

impl From<Mixes> for InferError {
    fn from(_: Mixes) -> Self {
        Self::Mixes
    }
}

/// The cotangent of a shared operand as `Σₚ leftₚ ⊗ rightₚ` over positions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OuterShape {
    /// The number of outer products per sample.
    pub positions: usize,
    /// The length of a left vector (the input).
    pub left: usize,
    /// The length of a right vector (the cotangent).
    pub right: usize,
    /// Whether the operand is stored `[right, left]` (as most weights are) instead of `[left, right]`.
    pub right_major: bool,
    /// Whether the left vectors are one-hot, and only their indices are kept (embeddings).
    pub one_hot: bool,
}

/// A primitive: its shapes and costs, which do not depend on the scalar.
pub trait Op: OpKernel<f32> + OpKernel<f64> + Debug + Send + Sync {
    /// Its name, as in the documentation.
    fn name(&self) -> &'static str;

    /// The result's shape, and where the batch is in it.
    fn infer(&self, inputs: &[&Meta]) -> Result<Meta, InferError>;

    /// Floating-point operations for one sample.
    fn flops(&self, _inputs: &[&Meta], output: &Meta) -> u64 {
        output.numel() as u64
    }

    /// Whether the result depends smoothly on this operand; indices and conditions do not.
    fn differentiable(&self, _which: usize) -> bool {
        true
    }

    /// Whether the result is the operand's memory under another shape.
    fn is_view(&self) -> bool {
        false
    }

    /// The form of [`OpKernel::outer`] for this operand, if it has one.
    fn outer_shape(&self, _which: usize, _inputs: &[&Meta], _output: &Meta) -> Option<OuterShape> {
        None
    }

    /// The most elements of [`Scratch`] that a reading takes, except [`OpKernel::accumulate`].
    fn scratch(&self, inputs: &[&Meta], output: &Meta) -> usize {
        let largest = inputs.iter().map(|meta| meta.numel()).max().unwrap_or(0);
        largest.saturating_add(output.numel().saturating_mul(3))
    }

    /// For downcasting to a particular primitive.
    fn as_any(&self) -> &dyn std::any::Any;
}

/// The arithmetic of a primitive in one scalar.
pub trait OpKernel<T: Element> {
    /// Computes the result: `[samples, …]`, or once if all operands are shared.
    fn apply(&self, call: &Call<'_, T>, y: &mut [T], scratch: &mut Scratch<T>);

    /// The cotangent of operand `which`, `[samples, seeds, …]`, from the result's; written to `dx`, or added to it.
    fn vjp(
        &self,
        call: &Call<'_, T>,
        dy: &[T],
        seeds: usize,
        which: usize,
        dx: &mut [T],
        add: bool,
        scratch: &mut Scratch<T>,
    );

    /// Adds the cotangent of a shared operand, summed over samples (one seed), to `dx`; `false` if `vjp` is just as
    /// cheap.
    fn accumulate(
        &self,
        _call: &Call<'_, T>,
        _dy: &[T],
        _which: usize,
        _dx: &mut [T],
        _scratch: &mut Scratch<T>,
    ) -> bool {
        false
    }

    /// The tangent of the result from those of the operands. At least one operand has a tangent.
    fn jvp(&self, call: &Call<'_, T>, tangents: &Tangents<'_, T>, dy: &mut [T], scratch: &mut Scratch<T>);

    /// The factors of the cotangent of operand `which`: `left` is `[samples, positions, left]`, `right` is
    /// `[samples, seeds, positions, right]`. Only called if [`Op::outer_shape`] is `Some`.
    fn outer(
        &self,
        _call: &Call<'_, T>,
        _dy: &[T],
        _seeds: usize,
        _which: usize,
        _left: &mut [T],
        _right: &mut [T],
        _scratch: &mut Scratch<T>,
    ) {
        unreachable!("called only for operands that have an outer form")
    }
}

/// `to = from`, or `to += from`.
pub(crate) fn write<T: Element>(to: &mut [T], from: &[T], add: bool) {
    if add {
        mercer_linalg::simd::dispatch(
            #[inline(always)]
            || to.iter_mut().zip(from).for_each(|(to, &from)| *to += from),
        );
    } else {
        to.copy_from_slice(from);
    }
}
