//! Inputs: what the file declares, and which samples match it.

use crate::error::{NetError, Result};
use crate::graph::{Batch, Value};
use crate::onnx::{Dimension, NumberKind, ValueInfo};
use crate::shape::numel;

/// What the inputs of a file hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Batching {
    /// Samples along a batch axis (the first, unless the file names another).
    #[default]
    Samples,
    /// A single sample without a batch axis: any function of tensors.
    Whole,
}

/// An input of a network.
#[derive(Clone, Debug)]
pub struct Input {
    /// Its name.
    pub name: String,
    /// The sizes declared in the file; `None` where they are free.
    pub shape: Option<Vec<Option<usize>>>,
    /// The batch axis in that shape; `None` if the whole input is one sample.
    pub batch_axis: Option<usize>,
    /// The batch size that is fixed in the file.
    pub fixed_batch: Option<usize>,
    /// The kind of its numbers.
    pub kind: NumberKind,
}

impl Input {
    pub(super) fn of_file(info: &ValueInfo, batching: Batching) -> Self {
        let named_batch = |dimension: &Dimension| matches!(dimension, Dimension::Named(name) if name.to_lowercase().contains("batch") || name == "N");
        let sizes = info.shape.as_ref().map(|shape| {
            let size = |d: &Dimension| if let Dimension::Fixed(size) = d { Some(*size) } else { None };
            shape.iter().map(size).collect::<Vec<_>>()
        });
        let named = info.shape.as_ref().and_then(|shape| shape.iter().position(named_batch));
        let has_axes = info.shape.as_ref().is_none_or(|shape| !shape.is_empty());
        let batch_axis = (batching == Batching::Samples && has_axes).then(|| named.unwrap_or(0));
        let fixed_batch = batch_axis.and_then(|axis| sizes.as_ref().and_then(|sizes| sizes[axis]));
        // ONNX numbers the integer types 2–7, 12 and 13, and bool 9.
        let kind = match info.element {
            9 => NumberKind::Bool,
            2..=7 | 12 | 13 => NumberKind::Int,
            _ => NumberKind::Float,
        };
        Self { name: info.name.clone(), shape: sizes, batch_axis, fixed_batch, kind }
    }

    pub(super) fn of_value(value: &Value) -> Self {
        let sizes: Vec<_> = value.meta.shape.iter().map(|&size| Some(size)).collect();
        let (batch_axis, kind) = (Some(0), NumberKind::Float);
        Self { name: value.name.clone(), shape: Some(sizes), batch_axis, fixed_batch: None, kind }
    }

    /// Whether it takes integers, such as token ids.
    pub fn is_integer(&self) -> bool {
        self.kind != NumberKind::Float
    }

    /// The declared sizes without the batch axis.
    pub fn sample(&self) -> Option<Vec<Option<usize>>> {
        let mut sizes = self.shape.clone()?;
        if let Some(axis) = self.batch_axis {
            sizes.remove(axis);
        }
        Some(sizes)
    }

    /// The shape of a sample, if it is fully declared.
    pub fn declared_sample(&self) -> Result<Vec<usize>> {
        let sizes = self.sample().and_then(|sizes| sizes.into_iter().collect::<Option<Vec<_>>>());
        sizes.ok_or_else(|| NetError::Input {
            input: self.name.clone(),
            reason: "the file leaves some sizes free; give data, or the shape of a sample".into(),
        })
    }

    /// Whether samples of this shape match. If the declared shape is complete, any shape with the same number of
    /// elements matches.
    pub fn check(&self, sample: &[usize]) -> Result<()> {
        let Some(declared) = self.sample() else { return Ok(()) };
        let fits = declared.len() == sample.len()
            && declared.iter().zip(sample).all(|(declared, &size)| declared.is_none_or(|d| d == size));
        let complete: Option<Vec<usize>> = declared.iter().copied().collect();
        let same_count = complete.as_ref().is_some_and(|d| {
            let flat = d.len() == 1
                || sample.len() == 1
                || d.iter().filter(|&&s| s != 1).eq(sample.iter().filter(|&&s| s != 1));
            flat && numel(d) == numel(sample)
        });
        if fits || same_count {
            return Ok(());
        }
        let text: Vec<String> = declared.iter().map(|d| d.map_or("any".into(), |d| d.to_string())).collect();
        let mut reason = format!("samples have shape {sample:?}, but the network needs [{}]", text.join(", "));
        if let (Some(d), [h, w, c]) = (&complete, sample)
            && d[..] == [*c, *h, *w]
        {
            reason += "; channels come last in the data and first in the network (try --layout nhwc)";
        }
        Err(NetError::Input { input: self.name.clone(), reason })
    }

    /// The shape of one sample as the file sees it, with size one at the batch axis.
    pub(super) fn file_shape(&self, sample: &[usize]) -> Vec<usize> {
        let declared = self.sample().and_then(|sizes| sizes.into_iter().collect::<Option<Vec<usize>>>());
        let mut shape = match declared {
            Some(declared) => declared,
            None => sample.to_vec(),
        };
        if let Some(axis) = self.batch_axis {
            shape.insert(axis.min(shape.len()), 1);
        }
        shape
    }

    /// What is known about the batch axis. A file made for a single sample is already a function of one sample.
    pub(super) fn batch(&self) -> Batch {
        match (self.batch_axis, self.fixed_batch) {
            (Some(axis), None) => Batch::axis(axis),
            (Some(axis), Some(size)) if size > 1 => Batch::axis(axis),
            _ => Batch::Untracked,
        }
    }
}
