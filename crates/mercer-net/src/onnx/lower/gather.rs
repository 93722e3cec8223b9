//! Lookups by index.

use super::constant::{Host, NumberKind};
use super::samples::{along, doubled_axis};
use super::scope::{Operand, Results, Scope};
use crate::error::Result;
use crate::graph::{Batch, Position};
use crate::op::{Binary, Combine, Function, Gather, GatherElements, Reshape, Unary, Where};
use crate::shape::strides;

pub(super) fn lower(scope: &mut Scope<'_, '_>) -> Result<Option<Results>> {
    match scope.op() {
        "Gather" => gather(scope),
        "GatherElements" => elements(scope),
        "GatherND" => gather_nd(scope),
        "OneHot" => one_hot(scope),
        _ => Ok(None),
    }
}

/// Indices that are known must be in range.
fn check(scope: &Scope<'_, '_>, indices: &Operand, size: usize) -> Result<()> {
    if let Operand::Constant(host) = indices {
        let outside = host.to_integers().into_iter().find(|&i| i >= size as i64 || i < -(size as i64));
        if let Some(index) = outside {
            return Err(scope.misshapen(format!("index {index} along an axis of size {size}")));
        }
    }
    Ok(())
}

fn gather(scope: &mut Scope<'_, '_>) -> Result<Option<Results>> {
    let (mut data, indices) = (scope.input(0)?, scope.input(1)?);
    let axis = scope.int("axis", 0);
    let axis = scope.axis(axis, scope.shape(&data).len())?;
    let found = match (&indices, scope.batch(&data)) {
        // Indices computed from the batch size may run over the batch: each sample looks up itself.
        (Operand::Constant(one), Some(batch)) if is_only(&batch, axis) => {
            let minor = scope.shape(&data)[axis];
            Some(walk(scope, one, (1, 0), minor).ok_or_else(|| scope.mixes())?)
        }
        _ => None,
    };
    check(scope, &indices, scope.shape(&data)[axis])?;
    if found.is_some() {
        let shape = scope.shape(&data);
        data = scope.emit(Reshape { shape }, &[&data])?;
        scope.set_batch(&data, Some(Batch::Untracked));
    } else {
        scope.same_for_all(&indices)?;
    }
    let y = scope.emit(Gather { axis }, &[&data, &indices])?;
    if let Some(place) = found {
        scope.set_batch(&y, Some(Batch::axis(axis + place)));
    }
    scope.result(y)
}

/// Whether this axis is the only candidate for the batch.
fn is_only(batch: &Batch, axis: usize) -> bool {
    matches!(batch, Batch::At(places) if places.iter().all(|place| *place == Position { axis, major: 1 }))
}

/// The axis along which constant indices count samples. In tuples of `depth` numbers, the one at `component` is the
/// sample's index times `minor` (the rows per sample) plus its value for the first sample. The other numbers are the
/// same for all samples.
fn walk(scope: &Scope<'_, '_>, one: &Host, (depth, component): (usize, usize), minor: usize) -> Option<usize> {
    let two = scope.second(1)?;
    let axis = doubled_axis(one, &two).filter(|&axis| one.shape[axis] == 1)?;
    let counts = along(&two, axis, |of_two, of_one, sample| {
        let own = one.data[of_one];
        let inside = own >= 0.0 && own < minor as f64;
        let wanted = if of_two % depth == component { (sample * minor) as f64 + own } else { own };
        two.data[of_two] == wanted && (inside || of_two % depth != component)
    });
    counts.then_some(axis)
}

fn elements(scope: &mut Scope<'_, '_>) -> Result<Option<Results>> {
    let (data, indices) = (scope.input(0)?, scope.input(1)?);
    let axis = scope.int("axis", 0);
    let axis = scope.axis(axis, scope.shape(&data).len())?;
    check(scope, &indices, scope.shape(&data)[axis])?;
    let y = scope.emit(GatherElements { axis }, &[&data, &indices])?;
    scope.result(y)
}

/// A lookup by index tuples becomes a lookup along a flattened axis.
fn gather_nd(scope: &mut Scope<'_, '_>) -> Result<Option<Results>> {
    let data = scope.input(0)?;
    if scope.int("batch_dims", 0) != 0 {
        return Err(scope.unsupported("batch_dims"));
    }
    let Some(indices) = scope.constant(1)? else { return Err(scope.misshapen("indices are missing")) };
    let shape = scope.shape(&data);
    let fits = indices.shape.split_last().filter(|(depth, _)| (1..=shape.len()).contains(*depth));
    let Some((&depth, lead)) = fits else { return Err(scope.misshapen("index tuples do not fit the data")) };
    let tuples = &indices.data;
    // Where the batch is indexed, each sample must look up itself. Otherwise the batch moves with its axis.
    let mut found = None;
    let batch = match scope.batch(&data) {
        Some(batch @ Batch::At(_)) => match (0..depth).find(|&axis| is_only(&batch, axis)) {
            Some(axis) => {
                found = Some(walk(scope, &indices, (depth, axis), shape[axis]).ok_or_else(|| scope.mixes())?);
                Some(Batch::Untracked)
            }
            None => {
                let moved = batch.moved(|axis| axis.checked_sub(depth).map(|axis| axis + 1));
                Some(moved.map_err(|_| scope.mixes())?)
            }
        },
        other => other,
    };
    if found.is_none() {
        scope.same_for_all(&Operand::Constant(indices.clone()))?;
    }
    scope.spend_constant(lead)?;
    let steps = strides(&shape[..depth]);
    let mut flat = Vec::with_capacity(tuples.len() / depth.max(1));
    for tuple in tuples.chunks(depth.max(1)) {
        let mut at = 0;
        for ((&index, &size), &step) in tuple.iter().zip(&shape).zip(&steps) {
            let index = if index < 0.0 { index + size as f64 } else { index };
            if index < 0.0 || index >= size as f64 {
                return Err(scope.misshapen(format!("index {index} along an axis of size {size}")));
            }
            at += index as usize * step;
        }
        flat.push(at as f64);
    }
    let mut folded = vec![shape[..depth].iter().product::<usize>()];
    folded.extend(&shape[depth..]);
    let rows = scope.emit(Reshape { shape: folded }, &[&data])?;
    scope.set_batch(&rows, batch);
    let flat = Operand::Constant(Host::new(lead.to_vec(), flat, NumberKind::Int));
    let y = scope.emit(Gather { axis: 0 }, &[&rows, &flat])?;
    if let Some(axis) = found {
        scope.set_batch(&y, Some(Batch::axis(axis)));
    }
    scope.result(y)
}

/// `off + (on − off)·[index = class]`, with the classes along the new axis.
fn one_hot(scope: &mut Scope<'_, '_>) -> Result<Option<Results>> {
    let indices = scope.input(0)?;
    let depth = scope.integers(1)?.and_then(|d| d.first().copied()).unwrap_or(0);
    let depth = usize::try_from(depth).map_err(|_| scope.misshapen("the depth of a one-hot is not a size"))?;
    let values = scope.constant(2)?.filter(|host| host.data.len() == 2);
    let Some(values) = values else { return Err(scope.misshapen("a one-hot needs two values")) };
    let shape = scope.shape(&indices);
    let axis = scope.int("axis", -1);
    let axis = scope.axis(axis, shape.len() + 1)?;
    let mut sizes = shape.clone();
    sizes.push(depth);
    scope.check_result(&sizes)?;
    let mut class_shape = vec![1; shape.len() + 1];
    class_shape[axis] = depth;
    scope.spend_constant(&class_shape)?;
    let classes = Host::new(class_shape, (0..depth).map(|c| c as f64).collect(), NumberKind::Int);
    scope.fixed(1)?;
    // Negative indices count from the end. Indices out of range match no class.
    let depth_value = Unary(Function::Affine { scale: 1.0, shift: depth as f64 });
    let (from_end, zero) = (scope.emit(depth_value, &[&indices])?, Scope::scalar(0.0));
    let negative = scope.emit_as(NumberKind::Bool, Binary(Combine::Less), &[&indices, &zero])?;
    let indices = scope.emit_as(NumberKind::Int, Where, &[&negative, &from_end, &indices])?;
    let mut with_axis = shape;
    with_axis.insert(axis, 1);
    let batch = scope.batch(&indices).map(|b| b.moved(|a| Some(if a < axis { a } else { a + 1 })));
    let spread = scope.emit(Reshape { shape: with_axis }, &[&indices])?;
    scope.set_batch(&spread, batch.and_then(|b| b.ok()));
    let hit = scope.emit(Binary(Combine::Equal), &[&spread, &Operand::Constant(classes)])?;
    let (off, on) = (values.data[0], values.data[1]);
    let scaled = Unary(Function::Affine { scale: on - off, shift: off });
    let y = scope.emit_as(values.kind, scaled, &[&hit])?;
    scope.result(y)
}
