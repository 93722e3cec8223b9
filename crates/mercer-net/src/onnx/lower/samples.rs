//! Keeping samples apart: the permitted uses of operands that are computed from the batch size.
//!
//! Constants are known for one and for two samples. An operand that is the same for every sample (a mask or a class
//! token expanded to the batch) is shared. An operand that differs between samples, or with the batch size, would make
//! the network a function of the batch.

use super::Lowering;
use super::constant::Host;
use super::scope::{Operand, Scope};
use crate::error::{NetError, Result};
use crate::graph::{Batch, Origin};
use crate::onnx::model::NodeDef;
use crate::op::{Expand, Slice};
use crate::shape::{numel, strides};
use std::collections::{BTreeMap, BTreeSet};

/// The axis along which a constant for two samples is twice as long, if that is the only difference of the shapes.
pub(super) fn doubled_axis(one: &Host, two: &Host) -> Option<usize> {
    if one.shape.len() != two.shape.len() {
        return None;
    }
    let mut differ = (0..one.shape.len()).filter(|&axis| one.shape[axis] != two.shape[axis]);
    let axis = differ.next()?;
    (differ.next().is_none() && two.shape[axis] == 2 * one.shape[axis]).then_some(axis)
}

/// Calls `body(element of two, element of one, index along the axis)` for every element of the longer constant.
pub(super) fn along(two: &Host, axis: usize, mut body: impl FnMut(usize, usize, usize) -> bool) -> bool {
    let (size, inner) = (two.shape[axis], strides(&two.shape)[axis]);
    (0..numel(&two.shape)).all(|at| {
        let (outer, index, rest) = (at / (inner * size), at / inner % size, at % inner);
        body(at, (outer * (size / 2) + index % (size / 2)) * inner + rest, index)
    })
}

/// Whether the constant for two samples repeats that for one sample.
fn repeats(one: &Host, two: &Host) -> bool {
    let Some(axis) = doubled_axis(one, two) else { return false };
    along(two, axis, |of_two, of_one, _| two.data[of_two] == one.data[of_one])
}

/// Whether an operand is an argument that the lowering itself reads.
fn is_argument(op: &str, which: usize) -> bool {
    match op {
        "Reshape" | "Expand" | "Slice" | "Tile" | "Gather" | "GatherND" => which > 0,
        _ => false,
    }
}

impl Lowering<'_> {
    /// Whether the operands of a node that depend on the batch size are the same for every sample.
    pub(super) fn check_operands(&self, node: &NodeDef) -> Result<()> {
        for (which, name) in node.inputs.iter().enumerate() {
            let Some(known) = self.names.get(name) else { continue };
            let (Operand::Constant(one), Some(two)) = (&known.one, &known.two) else { continue };
            if !is_argument(&node.op, which) && !repeats(one, two) {
                return Err(NetError::MixesSamples { node: node.label() });
            }
        }
        Ok(())
    }

    /// Whether an output is the same for every sample, if it was computed from the batch size alone.
    pub(super) fn check_output(&self, name: &str) -> Result<()> {
        let Some(known) = self.names.get(name) else { return Ok(()) };
        match (&known.one, &known.two) {
            (Operand::Constant(one), Some(two)) if !repeats(one, two) => {
                Err(NetError::MixesSamples { node: format!("of output {name:?}") })
            }
            _ => Ok(()),
        }
    }
}

impl Scope<'_, '_> {
    /// Whether the node is arithmetic on constants, which is done for one and for two samples anyway.
    fn is_folding(&self) -> bool {
        (0..self.n_inputs()).all(|index| !matches!(self.optional(index), Some(Operand::Value(_))))
    }

    pub(super) fn mixes(&self) -> NetError {
        NetError::MixesSamples { node: self.node.label() }
    }

    /// The batch of an operand after an operation along these axes.
    pub(super) fn batch_off(&self, x: &Operand, axes: &[usize]) -> Result<Option<Batch>> {
        self.batch(x).map(|batch| batch.not_along(axes)).transpose().map_err(|_| self.mixes())
    }

    /// Lookup indices must be the same for every sample.
    pub(super) fn same_for_all(&self, indices: &Operand) -> Result<()> {
        match (indices, self.second(1)) {
            (Operand::Constant(one), Some(two)) if !self.is_folding() && !repeats(one, &two) => Err(self.mixes()),
            _ => Ok(()),
        }
    }

    /// An argument that must not depend on the batch size.
    pub(super) fn fixed(&self, index: usize) -> Result<()> {
        if self.second(index).is_some() && !self.is_folding() { Err(self.mixes()) } else { Ok(()) }
    }

    /// Whether operands that all samples share have no more than one entry along the batch of the others.
    pub(super) fn one_for_all(&self, parts: &[Operand]) -> Result<()> {
        // By batch axis: the sizes of the operands that have it there, and of those that all samples share.
        let mut own: BTreeMap<usize, BTreeSet<Option<usize>>> = BTreeMap::new();
        let size = |part: &Operand, axis: usize| self.shape(part).get(axis).copied();
        for part in parts {
            if let Some(Batch::At(places)) = self.batch(part)
                && let [place] = places[..]
            {
                own.entry(place.axis).or_default().insert(size(part, place.axis));
            }
        }
        for (axis, mut sizes) in own {
            let shared = parts.iter().filter(|part| self.batch(part).is_none());
            let before = sizes.len();
            let mut others = shared.map(|part| size(part, axis)).peekable();
            if others.peek().is_some() && (before > 1 || others.any(|size| sizes.insert(size))) {
                return Err(self.mixes());
            }
        }
        Ok(())
    }

    /// Replaces operands that the file repeats for each sample of its fixed batch by a single copy.
    ///
    /// They meet the others elementwise, aligned at the last axis.
    pub(super) fn unbake(&mut self, operands: &mut [Operand]) -> Result<()> {
        let Some(samples) = self.baked() else { return Ok(()) };
        // The batch axis, counted from the last, where all operands that have one agree.
        let mut from_end = None;
        for operand in operands.iter() {
            if let Some(Batch::At(places)) = self.batch(operand) {
                from_end = places.first().map(|place| self.shape(operand).len() - place.axis);
            }
        }
        let Some(from_end) = from_end else { return Ok(()) };
        for operand in operands.iter_mut() {
            let shape = self.shape(operand);
            let Some(axis) = shape.len().checked_sub(from_end) else { continue };
            if self.batch(operand).is_none() && shape[axis] == samples && self.is_repeated(operand, axis) {
                *operand = self.emit(Slice::along(&shape, axis, 0, 1), &[operand])?;
            }
        }
        Ok(())
    }

    /// Whether all entries along an axis are known to be equal.
    fn is_repeated(&self, operand: &Operand, axis: usize) -> bool {
        match operand {
            Operand::Constant(host) => {
                let (size, inner) = (host.shape[axis], strides(&host.shape)[axis]);
                (0..host.data.len()).all(|at| host.data[at] == host.data[at - at / inner % size * inner])
            }
            Operand::Value(id) => {
                let graph = self.lowering.builder.graph();
                let Origin::Node(index) = graph.value(*id).origin else { return false };
                let node = &graph.nodes()[index];
                let from = &graph.value(node.inputs[0]).meta.shape;
                let missing = self.shape(operand).len().saturating_sub(from.len());
                node.op.as_any().is::<Expand>() && (axis < missing || from[axis - missing] == 1)
            }
        }
    }
}
