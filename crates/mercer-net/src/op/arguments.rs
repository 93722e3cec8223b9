//! The arguments of a primitive.

use crate::shape::numel;
use mercer_linalg::Scalar;

/// An operand or a result: `[samples, …shape]` if each sample has its own, else `[…shape]`.
#[derive(Clone, Copy, Debug)]
pub struct Arg<'a, T> {
    /// The elements.
    pub data: &'a [T],
    /// The shape for one sample.
    pub shape: &'a [usize],
    /// Whether each sample has its own.
    pub batched: bool,
}

impl<'a, T> Arg<'a, T> {
    /// The number of elements for one sample.
    pub fn numel(&self) -> usize {
        numel(self.shape)
    }

    /// The part that belongs to one sample; everything if the value is shared.
    pub fn sample(&self, index: usize) -> &'a [T] {
        if self.batched {
            let size = self.numel();
            &self.data[index * size..(index + 1) * size]
        } else {
            self.data
        }
    }
}

/// Looks up operands without allocating a list.
pub(crate) trait Operands<T> {
    fn operand(&self, index: usize) -> Arg<'_, T>;
    fn count(&self) -> usize;
    fn result(&self) -> Arg<'_, T>;
}

/// One application of a primitive.
pub struct Call<'a, T> {
    operands: &'a dyn Operands<T>,
    /// The number of samples; 1 when everything is shared and the value is computed once.
    pub samples: usize,
}

impl<'a, T> Call<'a, T> {
    pub(crate) fn new(operands: &'a dyn Operands<T>, samples: usize) -> Self {
        Self { operands, samples }
    }

    /// An operand.
    pub fn arg(&self, index: usize) -> Arg<'a, T> {
        self.operands.operand(index)
    }

    /// The number of operands.
    pub fn n_args(&self) -> usize {
        self.operands.count()
    }

    /// The result. Its data are available in derivative readings and empty in `apply`.
    pub fn result(&self) -> Arg<'a, T> {
        self.operands.result()
    }

    /// How many results `apply` and `jvp` have to write: one per sample, or one in all.
    pub fn n_results(&self) -> usize {
        if self.result().batched { self.samples } else { 1 }
    }
}

/// The tangents of the operands of a call. An operand without a tangent is held fixed.
pub struct Tangents<'a, T> {
    directions: &'a dyn Directions<T>,
}

/// Looks up tangents without allocating a list.
pub(crate) trait Directions<T> {
    fn direction(&self, index: usize) -> Option<&[T]>;
}

impl<'a, T> Tangents<'a, T> {
    pub(crate) fn new(directions: &'a dyn Directions<T>) -> Self {
        Self { directions }
    }

    /// The tangent of an operand, in the operand's layout.
    pub fn operand<'b>(&'b self, call: &'b Call<'_, T>, index: usize) -> Option<Arg<'b, T>> {
        let arg = call.arg(index);
        self.directions.direction(index).map(|data| Arg { data, ..arg })
    }
}

/// Memory for intermediate results. It grows as needed and is kept.
#[derive(Debug, Default)]
pub struct Scratch<T> {
    memory: Vec<T>,
}

/// Grows the memory to this length if it is shorter.
pub(crate) fn grow<T: Scalar>(memory: &mut Vec<T>, length: usize) {
    if memory.capacity() < length {
        // The old content is not needed, and fresh zeros cost nothing until they are touched.
        *memory = mercer_linalg::memory::zeros(length);
    } else if memory.len() < length {
        memory.resize(length, T::zero());
    }
}

impl<T: Scalar> Scratch<T> {
    /// Bytes that are allocated.
    pub(crate) fn allocated(&self) -> usize {
        self.memory.capacity() * size_of::<T>()
    }

    /// Slices of these lengths, with unspecified content.
    pub fn take<const N: usize>(&mut self, lengths: [usize; N]) -> [&mut [T]; N] {
        let total: usize = lengths.iter().sum();
        grow(&mut self.memory, total);
        let mut rest = self.memory.as_mut_slice();
        lengths.map(|length| {
            let (head, tail) = std::mem::take(&mut rest).split_at_mut(length);
            rest = tail;
            head
        })
    }
}
