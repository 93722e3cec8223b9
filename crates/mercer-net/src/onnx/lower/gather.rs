//! Looking things up by index.

use super::constant::{Host, Kind};
use super::scope::{Operand, Results, Scope};
use crate::error::Result;
use crate::graph::Batch;
use crate::op::{Binary, Combine, Gather, GatherElements, Reshape};
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
    check(scope, &indices, scope.shape(&data)[axis])?;
    // Indices computed from the batch size walk over the batch in the file's own way: each sample finds itself.
    let walks = scope.second(1).is_some();
    if walks && let (Operand::Value(_), Some(_)) = (&data, scope.batch(&data)) {
        let shape = scope.shape(&data);
        data = scope.emit(Reshape { shape }, &[&data])?;
        scope.set_batch(&data, Some(Batch::Untracked));
    }
    let y = scope.emit(Gather { axis }, &[&data, &indices])?;
    scope.result(y)
}

fn elements(scope: &mut Scope<'_, '_>) -> Result<Option<Results>> {
    let (data, indices) = (scope.input(0)?, scope.input(1)?);
    let axis = scope.int("axis", 0);
    let axis = scope.axis(axis, scope.shape(&data).len())?;
    check(scope, &indices, scope.shape(&data)[axis])?;
    let y = scope.emit(GatherElements { axis }, &[&data, &indices])?;
    scope.result(y)
}

/// A lookup by index tuples becomes one along a flattened axis.
fn gather_nd(scope: &mut Scope<'_, '_>) -> Result<Option<Results>> {
    let (data, indices) = (scope.input(0)?, scope.input(1)?);
    if scope.int("batch_dims", 0) != 0 {
        return Err(scope.unsupported("batch_dims"));
    }
    let (shape, tuple_shape) = (scope.shape(&data), scope.shape(&indices));
    let Some((&depth, lead)) = tuple_shape.split_last().filter(|(depth, _)| **depth <= shape.len()) else {
        return Err(scope.misshapen("index tuples do not fit the data"));
    };
    let Some(Host { data: tuples, .. }) = scope.constant(1)? else {
        return Err(scope.misshapen("indices are missing"));
    };
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
    let untracked = scope.second(1).is_some();
    let rows = scope.emit(Reshape { shape: folded }, &[&data])?;
    if untracked {
        scope.set_batch(&rows, Some(Batch::Untracked));
    }
    let indices = Operand::Constant(Host::new(lead.to_vec(), flat, Kind::Int));
    let y = scope.emit(Gather { axis: 0 }, &[&rows, &indices])?;
    scope.result(y)
}

/// `off + (on − off)·[index = class]`, with the classes along the new axis.
fn one_hot(scope: &mut Scope<'_, '_>) -> Result<Option<Results>> {
    let indices = scope.input(0)?;
    let depth = scope.integers(1)?.and_then(|d| d.first().copied()).unwrap_or(0);
    let depth = usize::try_from(depth).map_err(|_| scope.misshapen("depth of a one-hot"))?;
    let values = scope.constant(2)?.filter(|host| host.data.len() == 2);
    let Some(values) = values else { return Err(scope.misshapen("a one-hot needs two values")) };
    let shape = scope.shape(&indices);
    let axis = scope.int("axis", -1);
    let axis = scope.axis(axis, shape.len() + 1)?;
    scope.check_size(&[depth])?;
    let mut class_shape = vec![1; shape.len() + 1];
    class_shape[axis] = depth;
    let classes = Host::new(class_shape, (0..depth).map(|c| c as f64).collect(), Kind::Int);
    let mut with_axis = shape;
    with_axis.insert(axis, 1);
    let batch = scope.batch(&indices).map(|b| b.moved(|a| Some(if a < axis { a } else { a + 1 })));
    let spread = scope.emit(Reshape { shape: with_axis }, &[&indices])?;
    scope.set_batch(&spread, batch.and_then(|b| b.ok()));
    let hit = scope.emit(Binary(Combine::Equal), &[&spread, &Operand::Constant(classes)])?;
    let (off, on) = (values.data[0], values.data[1]);
    let scaled = crate::op::Unary(crate::op::Function::Affine { scale: on - off, shift: off });
    let y = scope.emit_as(values.kind, scaled, &[&hit])?;
    scope.result(y)
}
