//! Rearranging numbers (transpose, concat, tile, space to depth) and creating them (constants, ranges).

use super::constant::{Host, NumberKind};
use super::scope::{Operand, Results, Scope};
use crate::error::Result;
use crate::graph::Batch;
use crate::onnx::model::Attribute;
use crate::op::{Concat, Expand, Function, Reshape, Transpose, Unary};
use crate::shape::numel;

/// The largest constant that is materialised when a file is read.
const MAX_FILLED: usize = 1 << 20;

pub(super) fn lower(scope: &mut Scope<'_, '_>) -> Result<Option<Results>> {
    match scope.op() {
        "Identity" => {
            let x = scope.input(0)?;
            scope.result(x)
        }
        "Dropout" => dropout(scope),
        "Constant" => constant(scope),
        "ConstantOfShape" => filled(scope),
        "Range" => range(scope),
        "Transpose" => transpose(scope),
        "Concat" => concat(scope),
        "Slice" => super::cut::slice(scope),
        "Split" => super::cut::split(scope),
        "Pad" => super::cut::pad(scope),
        "Tile" => tile(scope),
        "DepthToSpace" => depth_to_space(scope),
        "SpaceToDepth" => space_to_depth(scope),
        "Resize" | "Upsample" => super::resize::lower(scope),
        "Trilu" => triangle(scope),
        "EyeLike" => identity_like(scope),
        _ => Ok(None),
    }
}

/// The identity, since the network is not being trained. Its mask is all ones.
fn dropout(scope: &mut Scope<'_, '_>) -> Result<Option<Results>> {
    let x = scope.input(0)?;
    let training = scope.constant(2)?.is_some_and(|host| host.first() != 0.0);
    let ratio = scope.constant(1)?.map_or(0.5, |host| host.first());
    if training && ratio != 0.0 {
        return Err(scope.unsupported("dropout in training mode"));
    }
    let kind = scope.kind(&x);
    if scope.node.outputs.len() < 2 {
        return Ok(Some(vec![(x, kind)]));
    }
    let mask = scope.emit_as(NumberKind::Bool, Unary(Function::Affine { scale: 0.0, shift: 1.0 }), &[&x])?;
    Ok(Some(vec![(x, kind), (mask, NumberKind::Bool)]))
}

fn constant(scope: &mut Scope<'_, '_>) -> Result<Option<Results>> {
    let vector = |values: Vec<f64>, kind| Host::new(vec![values.len()], values, kind);
    let value = scope.node.attributes.first().map(|(_, value)| value);
    let count = match value {
        Some(Attribute::Tensor(tensor)) => tensor.numel(),
        Some(Attribute::Floats(values)) => values.len(),
        Some(Attribute::Ints(values)) => values.len(),
        _ => 1,
    };
    scope.spend_constant(&[count])?;
    let host = match value {
        Some(Attribute::Tensor(tensor)) => Host::from_tensor(tensor),
        Some(Attribute::Float(value)) => Host::new(vec![], vec![f64::from(*value)], NumberKind::Float),
        Some(Attribute::Int(value)) => Host::new(vec![], vec![*value as f64], NumberKind::Int),
        Some(Attribute::Floats(values)) => vector(values.iter().map(|&x| f64::from(x)).collect(), NumberKind::Float),
        Some(Attribute::Ints(values)) => vector(values.iter().map(|&x| x as f64).collect(), NumberKind::Int),
        _ => return Err(scope.unsupported("a constant of this kind")),
    };
    scope.result(Operand::Constant(host))
}

fn filled(scope: &mut Scope<'_, '_>) -> Result<Option<Results>> {
    let Some(sizes) = scope.integers(0)? else { return Err(scope.misshapen("the shape is missing")) };
    let shape: Option<Vec<usize>> = sizes.iter().map(|&size| usize::try_from(size).ok()).collect();
    let Some(shape) = shape else { return Err(scope.misshapen(format!("shape {sizes:?}"))) };
    scope.check_result(&shape)?;
    let (value, kind) = match scope.node.attribute("value") {
        Some(Attribute::Tensor(tensor)) if tensor.numel() == 1 => {
            let host = Host::from_tensor(tensor);
            (host.first(), host.kind)
        }
        Some(Attribute::Tensor(tensor)) => {
            return Err(scope.misshapen(format!("a value of shape {:?} instead of one number", tensor.shape)));
        }
        _ => (0.0, NumberKind::Float),
    };
    let count = numel(&shape);
    if count <= MAX_FILLED {
        scope.spend_constant(&shape)?;
        return scope.result(Operand::Constant(Host::new(shape, vec![value; count], kind)));
    }
    // A constant this large is not shape arithmetic. It is created when the network runs.
    let scalar = Operand::Constant(Host::new(vec![], vec![value], kind));
    let id = scope.value(&scalar)?;
    let y = scope.emit_as(kind, Expand { shape }, &[&Operand::Value(id)])?;
    scope.result(y)
}

fn range(scope: &mut Scope<'_, '_>) -> Result<Option<Results>> {
    let (Some(start), Some(limit), Some(delta)) = (scope.constant(0)?, scope.constant(1)?, scope.constant(2)?) else {
        return Err(scope.misshapen("a range needs start, limit and step"));
    };
    let count = ((limit.first() - start.first()) / delta.first()).ceil().max(0.0);
    if !count.is_finite() {
        return Err(scope.misshapen("a range without end"));
    }
    scope.spend_constant(&[count as usize])?;
    let values: Vec<f64> = (0..count as usize).map(|i| start.first() + i as f64 * delta.first()).collect();
    scope.result(Operand::Constant(Host::new(vec![values.len()], values, start.kind)))
}

fn transpose(scope: &mut Scope<'_, '_>) -> Result<Option<Results>> {
    let x = scope.input(0)?;
    let rank = scope.shape(&x).len();
    let perm = match scope.ints("perm") {
        Some(perm) => scope.axes(&perm, rank)?,
        None => (0..rank).rev().collect(),
    };
    let mut sorted = perm.clone();
    sorted.sort_unstable();
    if sorted != (0..rank).collect::<Vec<_>>() {
        return Err(scope.misshapen(format!("{perm:?} does not order {rank} axes")));
    }
    if sorted == perm {
        return scope.result(x);
    }
    let y = scope.emit(Transpose { perm }, &[&x])?;
    scope.result(y)
}

/// The most operands that are concatenated at once. More are concatenated in steps, because a reverse pass finds the
/// place of each operand by adding up those before it.
const JOINED_AT_ONCE: usize = 256;

fn concat(scope: &mut Scope<'_, '_>) -> Result<Option<Results>> {
    let mut parts: Vec<Operand> = (0..scope.n_inputs()).map(|index| scope.input(index)).collect::<Result<_>>()?;
    // Old exporters concatenate an empty vector with anything.
    let is_nothing = |part: &Operand| scope.shape(part) == [0];
    if parts.iter().any(|part| !is_nothing(part)) {
        parts.retain(|part| !is_nothing(part));
    }
    let Some(first) = parts.first() else { return Err(scope.misshapen("nothing to concatenate")) };
    let rank = scope.shape(first).len();
    let axis = scope.int("axis", 1);
    let axis = scope.axis(axis, rank)?;
    scope.unbake(&mut parts)?;
    if parts.len() > 1 {
        // The concatenated rows of several samples belong to no single sample.
        for part in &parts {
            scope.batch_off(part, &[axis])?;
        }
        scope.one_for_all(&parts)?;
    }
    let off_axis = |part: &Operand| {
        let mut shape = scope.shape(part);
        if let Some(size) = shape.get_mut(axis) {
            *size = 0;
        }
        shape
    };
    let first = off_axis(&parts[0]);
    if parts.iter().any(|part| off_axis(part) != first) {
        return Err(scope.misshapen(format!("shapes differ outside axis {axis}")));
    }
    // Parts of length zero occur in shape arithmetic.
    let (empty, full): (Vec<&Operand>, Vec<&Operand>) = parts.iter().partition(|part| scope.shape(part)[axis] == 0);
    let y = match full.as_slice() {
        [] => (*empty[0]).clone(),
        several => joined(scope, axis, several)?,
    };
    scope.result(y)
}

fn joined(scope: &mut Scope<'_, '_>, axis: usize, parts: &[&Operand]) -> Result<Operand> {
    if let [only] = parts {
        return Ok((*only).clone());
    }
    if parts.len() <= JOINED_AT_ONCE {
        return scope.emit(Concat { axis }, parts);
    }
    let pieces: Result<Vec<Operand>> = parts.chunks(JOINED_AT_ONCE).map(|piece| joined(scope, axis, piece)).collect();
    let pieces = pieces?;
    joined(scope, axis, &pieces.iter().collect::<Vec<_>>())
}

/// Repeats along each axis: a new axis before it, expanded and merged.
fn tile(scope: &mut Scope<'_, '_>) -> Result<Option<Results>> {
    let x = scope.input(0)?;
    let shape = scope.shape(&x);
    let repeats: Option<Vec<usize>> =
        scope.integers(1)?.and_then(|r| r.iter().map(|&r| usize::try_from(r).ok()).collect());
    let Some(repeats) = repeats.filter(|repeats| repeats.len() == shape.len()) else {
        return Err(scope.misshapen("the repeats do not match the shape"));
    };
    if scope.batch(&x).is_some() {
        scope.fixed(1)?;
    }
    let batch = scope.batch(&x);
    let mut y = x;
    for (axis, &repeat) in repeats.iter().enumerate().filter(|&(_, &repeat)| repeat != 1) {
        let own = scope.shape(&y);
        let along = scope.batch(&y).map(|b| b.not_along(&[axis])).transpose();
        along.map_err(|_| crate::NetError::MixesSamples { node: scope.node.label() })?;
        let mut wide = own.clone();
        wide.insert(axis, 1);
        y = scope.emit(Reshape { shape: wide.clone() }, &[&y])?;
        wide[axis] = repeat;
        scope.check_result(&wide)?;
        y = scope.emit(Expand { shape: wide }, &[&y])?;
        let mut merged = own;
        merged[axis] *= repeat;
        y = scope.emit(Reshape { shape: merged }, &[&y])?;
        scope.set_batch(&y, batch.clone());
    }
    scope.result(y)
}

/// Depth to space: blocks of channels become blocks of pixels.
fn depth_to_space(scope: &mut Scope<'_, '_>) -> Result<Option<Results>> {
    let x = scope.input(0)?;
    let shape = scope.shape(&x);
    let block = usize::try_from(scope.int("blocksize", 1)).unwrap_or(0);
    let blocks = block.checked_mul(block).unwrap_or(0);
    if shape.len() != 4 || blocks == 0 || !shape[1].is_multiple_of(blocks) {
        return Err(scope.misshapen(format!("blocks of size {block} do not divide shape {shape:?}")));
    }
    let [n, c, h, w] = [shape[0], shape[1] / (block * block), shape[2], shape[3]];
    let batch = outer_batch(scope, &x)?;
    let (split, perm) = if scope.text("mode") == Some("CRD") {
        (vec![n, c, block, block, h, w], vec![0, 1, 4, 2, 5, 3])
    } else {
        (vec![n, block, block, c, h, w], vec![0, 3, 4, 1, 5, 2])
    };
    rearranged(scope, &x, split, perm, vec![n, c, h * block, w * block], batch)
}

fn space_to_depth(scope: &mut Scope<'_, '_>) -> Result<Option<Results>> {
    let x = scope.input(0)?;
    let shape = scope.shape(&x);
    let block = usize::try_from(scope.int("blocksize", 1)).unwrap_or(0);
    if shape.len() != 4 || block == 0 || !shape[2].is_multiple_of(block) || !shape[3].is_multiple_of(block) {
        return Err(scope.misshapen(format!("blocks of size {block} do not divide shape {shape:?}")));
    }
    let [n, c, h, w] = [shape[0], shape[1], shape[2] / block, shape[3] / block];
    let batch = outer_batch(scope, &x)?;
    let split = vec![n, c, h, block, w, block];
    let perm = if scope.text("mode") == Some("CRD") { vec![0, 1, 3, 5, 2, 4] } else { vec![0, 3, 5, 1, 2, 4] };
    rearranged(scope, &x, split, perm, vec![n, c * block * block, h, w], batch)
}

/// The batch of an operand after an operation along all axes but the first.
fn outer_batch(scope: &Scope<'_, '_>, x: &Operand) -> Result<Option<Batch>> {
    let axes: Vec<usize> = (1..scope.shape(x).len()).collect();
    scope.batch_off(x, &axes)
}

fn rearranged(
    scope: &mut Scope<'_, '_>,
    x: &Operand,
    split: Vec<usize>,
    perm: Vec<usize>,
    shape: Vec<usize>,
    batch: Option<Batch>,
) -> Result<Option<Results>> {
    let split = scope.emit(Reshape { shape: split }, &[x])?;
    scope.set_batch(&split, batch.clone());
    let turned = scope.emit(Transpose { perm }, &[&split])?;
    let y = scope.emit(Reshape { shape }, &[&turned])?;
    scope.set_batch(&y, batch);
    scope.result(y)
}

/// One triangle of the last two axes: a product with a constant mask.
fn triangle(scope: &mut Scope<'_, '_>) -> Result<Option<Results>> {
    let x = scope.input(0)?;
    let shape = scope.shape(&x);
    let [.., rows, cols] = shape[..] else { return Err(scope.misshapen("a triangle of a vector")) };
    let batch = scope.batch_off(&x, &[shape.len() - 2, shape.len() - 1])?;
    let shift = scope.integers(1)?.and_then(|k| k.first().copied()).unwrap_or(0);
    let upper = scope.int("upper", 1) != 0;
    scope.spend_constant(&[rows, cols])?;
    let keep = |at: usize| {
        let distance = (at % cols.max(1)) as i64 - (at / cols.max(1)) as i64;
        f64::from(u8::from(if upper { distance >= shift } else { distance <= shift }))
    };
    let mask = Operand::Constant(Host::new(vec![rows, cols], (0..rows * cols).map(keep).collect(), NumberKind::Bool));
    let kind = scope.kind(&x);
    let zero = Operand::Constant(Host::new(vec![], vec![0.0], kind));
    let y = scope.emit_as(kind, crate::op::Where, &[&mask, &x, &zero])?;
    scope.set_batch(&y, batch);
    scope.result(y)
}

fn identity_like(scope: &mut Scope<'_, '_>) -> Result<Option<Results>> {
    let x = scope.input(0)?;
    let shape = scope.shape(&x);
    let [rows, cols] = shape[..] else { return Err(scope.misshapen("an identity needs a matrix")) };
    scope.batch_off(&x, &[0, 1])?;
    scope.spend_constant(&shape)?;
    let shift = scope.int("k", 0);
    let one = |at: usize| f64::from(u8::from((at % cols) as i64 - (at / cols) as i64 == shift));
    let data = (0..rows * cols).map(one).collect();
    scope.result(Operand::Constant(Host::new(shape, data, NumberKind::Float)))
}
