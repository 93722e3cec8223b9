//! Moving numbers about: transpose, slice, concat, split, pad, tile, resize; and making them: constants and ranges.

use super::constant::{Host, Kind};
use super::scope::{Operand, Results, Scope};
use crate::error::Result;
use crate::graph::Batch;
use crate::onnx::model::Attribute;
use crate::op::{Concat, Expand, Function, Margin, Pad, Reshape, Slice, Transpose, Unary};

/// The largest constant that is filled when a file is read.
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
        "Slice" => slice(scope),
        "Split" => split(scope),
        "Pad" => pad(scope),
        "Tile" => tile(scope),
        "DepthToSpace" => depth_to_space(scope),
        "SpaceToDepth" => space_to_depth(scope),
        "Resize" | "Upsample" => super::resize::lower(scope),
        "Trilu" => triangle(scope),
        "EyeLike" => identity_like(scope),
        _ => Ok(None),
    }
}

/// Nothing, in a network that is not being trained; its mask lets everything through.
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
    let mask = scope.emit_as(Kind::Bool, Unary(Function::Affine { scale: 0.0, shift: 1.0 }), &[&x])?;
    Ok(Some(vec![(x, kind), (mask, Kind::Bool)]))
}

fn constant(scope: &mut Scope<'_, '_>) -> Result<Option<Results>> {
    let vector = |values: Vec<f64>, kind| Host::new(vec![values.len()], values, kind);
    let host = match scope.node.attributes.first().map(|(_, value)| value) {
        Some(Attribute::Tensor(tensor)) => Host::from_tensor(tensor),
        Some(Attribute::Float(value)) => Host::new(vec![], vec![f64::from(*value)], Kind::Float),
        Some(Attribute::Int(value)) => Host::new(vec![], vec![*value as f64], Kind::Int),
        Some(Attribute::Floats(values)) => vector(values.iter().map(|&x| f64::from(x)).collect(), Kind::Float),
        Some(Attribute::Ints(values)) => vector(values.iter().map(|&x| x as f64).collect(), Kind::Int),
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
        Some(Attribute::Tensor(tensor)) => {
            let host = Host::from_tensor(tensor);
            (host.first(), host.kind)
        }
        _ => (0.0, Kind::Float),
    };
    let count = shape.iter().product();
    if count <= MAX_FILLED {
        return scope.result(Operand::Constant(Host::new(shape, vec![value; count], kind)));
    }
    // What is this large is no shape arithmetic: it is made when the network runs.
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
    scope.check_size(&[count as usize])?;
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

fn concat(scope: &mut Scope<'_, '_>) -> Result<Option<Results>> {
    let mut parts: Vec<Operand> = (0..scope.n_inputs()).map(|index| scope.input(index)).collect::<Result<_>>()?;
    let Some(first) = parts.first() else { return Err(scope.misshapen("nothing to join")) };
    let rank = scope.shape(first).len();
    let axis = scope.int("axis", 1);
    let axis = scope.axis(axis, rank)?;
    scope.unbake(&mut parts)?;
    if parts.len() > 1 {
        // Rows of several samples one after the other belong to no sample.
        for part in &parts {
            scope.batch_off(part, &[axis])?;
        }
        scope.one_for_all(&parts)?;
    }
    // Empty parts appear in shape arithmetic.
    let full: Vec<&Operand> = parts.iter().filter(|part| scope.shape(part).iter().all(|&size| size > 0)).collect();
    let y = match full.as_slice() {
        [] => parts[0].clone(),
        [only] => (*only).clone(),
        several => scope.emit(Concat { axis }, several)?,
    };
    scope.result(y)
}

fn slice(scope: &mut Scope<'_, '_>) -> Result<Option<Results>> {
    let x = scope.input(0)?;
    let shape = scope.shape(&x);
    let (Some(starts), Some(ends)) = (scope.integers_or(1, "starts")?, scope.integers_or(2, "ends")?) else {
        return Err(scope.misshapen("starts or ends are missing"));
    };
    let axes = scope.integers_or(3, "axes")?.unwrap_or_else(|| (0..starts.len() as i64).collect());
    let steps = scope.integers(4)?.unwrap_or_else(|| vec![1; starts.len()]);
    let axes = scope.axes(&axes, shape.len())?;
    if ends.len() != starts.len() || axes.len() != starts.len() || steps.len() != starts.len() {
        return Err(scope.misshapen("starts, ends, axes and steps differ in number"));
    }
    let mut cut = Slice { starts: vec![0; shape.len()], steps: vec![1; shape.len()], sizes: shape.clone() };
    let mut along = Vec::new();
    for (index, &axis) in axes.iter().enumerate() {
        if !scope.takes_all(axis, shape[axis], (starts[index], ends[index], steps[index]), index)? {
            along.push(axis);
        }
        let size = shape[axis] as i64;
        // No axis is so long that a longer step would make a difference.
        let step = steps[index].clamp(-i64::from(i32::MAX), i64::from(i32::MAX));
        if step == 0 {
            return Err(scope.misshapen("a step of zero"));
        }
        let from_end = |at: i64| if at < 0 { at.saturating_add(size) } else { at };
        let (low, high) = if step > 0 { (0, size) } else { (-1, size - 1) };
        let start = from_end(starts[index]).clamp(low.max(0), high);
        let end = if step < 0 && ends[index] < -size { -1 } else { from_end(ends[index]).clamp(low, high) };
        let span = if step > 0 { end - start } else { start - end };
        let count = if span <= 0 { 0 } else { (span + step.abs() - 1) / step.abs() };
        cut.starts[axis] = start.max(0) as usize;
        cut.steps[axis] = isize::try_from(step).unwrap_or(isize::MAX);
        cut.sizes[axis] = count as usize;
        if count <= 1 {
            cut.steps[axis] = 1;
        }
    }
    let batch = scope.batch_off(&x, &along)?;
    if cut.sizes == shape && cut.steps.iter().all(|&step| step == 1) && batch == scope.batch(&x) {
        return scope.result(x);
    }
    let y = scope.emit(cut, &[&x])?;
    scope.set_batch(&y, batch);
    scope.result(y)
}

impl Scope<'_, '_> {
    /// Whether a slice takes an axis whole however long it is: to the end, or to the end of the file's own batch.
    fn takes_all(&self, axis: usize, size: usize, (start, end, step): (i64, i64, i64), index: usize) -> Result<bool> {
        if start != 0 || step != 1 {
            self.fixed(1)?;
            return Ok(false);
        }
        // Writers mean "to the end" by the largest number of some type.
        if end >= i64::from(i32::MAX) {
            return Ok(true);
        }
        let x = self.input(0)?;
        let is_batch = matches!(self.batch(&x), Some(Batch::At(places)) if places.iter().any(|p| p.axis == axis));
        if let Some(two) = self.second(2) {
            let for_two = two.data.get(index).map_or(0, |&end| end as i64);
            if is_batch && end == size as i64 && for_two == 2 * end {
                return Ok(true);
            }
            if for_two != end {
                self.fixed(2)?;
            }
        }
        Ok(match self.baked() {
            Some(samples) if is_batch => end == (size * samples) as i64,
            _ => !is_batch && end >= size as i64,
        })
    }
}

fn split(scope: &mut Scope<'_, '_>) -> Result<Option<Results>> {
    let x = scope.input(0)?;
    let shape = scope.shape(&x);
    let axis = scope.int("axis", 0);
    let axis = scope.axis(axis, shape.len())?;
    let parts = scope.node.outputs.len();
    scope.fixed(1)?;
    let given = scope.integers_or(1, "split")?;
    if parts > 1 || given.as_ref().is_some_and(|sizes| sizes.len() > 1) {
        scope.batch_off(&x, &[axis])?;
    }
    let sizes = match given {
        Some(sizes) => sizes.iter().map(|&size| usize::try_from(size).unwrap_or(usize::MAX)).collect(),
        None => {
            let each = shape[axis].div_ceil(parts.max(1));
            (0..parts).map(|part| each.min(shape[axis].saturating_sub(part * each))).collect::<Vec<_>>()
        }
    };
    if sizes.len() != parts || sizes.iter().try_fold(0usize, |sum, &size| sum.checked_add(size)) != Some(shape[axis]) {
        return Err(scope.misshapen(format!("cannot split {} into {sizes:?}", shape[axis])));
    }
    let kind = scope.kind(&x);
    let mut results = Vec::with_capacity(parts);
    let mut start = 0;
    for size in sizes {
        let mut cut = Slice { starts: vec![0; shape.len()], steps: vec![1; shape.len()], sizes: shape.clone() };
        cut.starts[axis] = start;
        cut.sizes[axis] = size;
        results.push((scope.emit(cut, &[&x])?, kind));
        start += size;
    }
    Ok(Some(results))
}

fn pad(scope: &mut Scope<'_, '_>) -> Result<Option<Results>> {
    let x = scope.input(0)?;
    let shape = scope.shape(&x);
    let rank = shape.len();
    let pads = match scope.integers_or(1, "pads")? {
        Some(pads) => pads,
        None => scope.ints("paddings").unwrap_or_default(),
    };
    scope.fixed(1)?;
    let axes = match scope.integers(3)? {
        Some(axes) => scope.axes(&axes, rank)?,
        None => (0..rank).collect(),
    };
    if pads.len() != 2 * axes.len() {
        return Err(scope.misshapen(format!("pads {pads:?} for {} axes", axes.len())));
    }
    let value = match scope.constant(2)? {
        Some(host) => host.first(),
        None => scope.float("value", 0.0),
    };
    let mode = match scope.text("mode").unwrap_or("constant") {
        "constant" => Margin::Constant(value),
        "reflect" => Margin::Reflect,
        "edge" => Margin::Edge,
        "wrap" => Margin::Wrap,
        other => return Err(scope.unsupported(format!("padding mode {other:?}"))),
    };
    let (mut before, mut after) = (vec![0i64; rank], vec![0i64; rank]);
    for (index, &axis) in axes.iter().enumerate() {
        // Beyond this a value is too large anyway.
        let limited = |pad: i64| pad.clamp(-(1 << 40), 1 << 40);
        before[axis] = limited(pads[index]);
        after[axis] = limited(pads[index + axes.len()]);
    }
    // Negative padding crops.
    let mut cut = Slice { starts: vec![0; rank], steps: vec![1; rank], sizes: shape.clone() };
    for axis in 0..rank {
        let (front, back) =
            (before[axis].saturating_neg().max(0) as usize, after[axis].saturating_neg().max(0) as usize);
        let Some(left) = shape[axis].checked_sub(front.saturating_add(back)) else {
            return Err(scope.misshapen(format!("cannot crop {front} + {back} of {}", shape[axis])));
        };
        cut.starts[axis] = front;
        cut.sizes[axis] = left;
    }
    let x = if cut.sizes == shape { x } else { scope.emit(cut, &[&x])? };
    let size = |pads: &[i64]| pads.iter().map(|&p| p.max(0) as usize).collect::<Vec<_>>();
    let (before, after) = (size(&before), size(&after));
    if before.iter().chain(&after).all(|&p| p == 0) {
        return scope.result(x);
    }
    let padded: Vec<usize> = (0..rank).map(|a| shape[a].saturating_add(before[a]).saturating_add(after[a])).collect();
    scope.check_result(&padded)?;
    let y = scope.emit(Pad { before, after, mode }, &[&x])?;
    scope.result(y)
}

/// Repeats along each axis: a new axis before it, expanded and merged.
fn tile(scope: &mut Scope<'_, '_>) -> Result<Option<Results>> {
    let x = scope.input(0)?;
    let shape = scope.shape(&x);
    let repeats: Option<Vec<usize>> =
        scope.integers(1)?.and_then(|r| r.iter().map(|&r| usize::try_from(r).ok()).collect());
    let Some(repeats) = repeats.filter(|repeats| repeats.len() == shape.len()) else {
        return Err(scope.misshapen("the repeats do not fit the shape"));
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

/// Blocks of channels become blocks of space.
fn depth_to_space(scope: &mut Scope<'_, '_>) -> Result<Option<Results>> {
    let x = scope.input(0)?;
    let shape = scope.shape(&x);
    let block = usize::try_from(scope.int("blocksize", 1)).unwrap_or(0);
    let blocks = block.checked_mul(block).unwrap_or(0);
    if shape.len() != 4 || blocks == 0 || !shape[1].is_multiple_of(blocks) {
        return Err(scope.misshapen(format!("blocks of {block} of {shape:?}")));
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
        return Err(scope.misshapen(format!("blocks of {block} of {shape:?}")));
    }
    let [n, c, h, w] = [shape[0], shape[1], shape[2] / block, shape[3] / block];
    let batch = outer_batch(scope, &x)?;
    let split = vec![n, c, h, block, w, block];
    let perm = if scope.text("mode") == Some("CRD") { vec![0, 1, 3, 5, 2, 4] } else { vec![0, 3, 5, 1, 2, 4] };
    rearranged(scope, &x, split, perm, vec![n, c * block * block, h, w], batch)
}

/// The batch of an operand whose axes after the first are worked along.
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
    scope.check_size(&[rows, cols])?;
    let keep = |at: usize| {
        let distance = (at % cols.max(1)) as i64 - (at / cols.max(1)) as i64;
        f64::from(u8::from(if upper { distance >= shift } else { distance <= shift }))
    };
    let mask = Operand::Constant(Host::new(vec![rows, cols], (0..rows * cols).map(keep).collect(), Kind::Bool));
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
    scope.check_size(&shape)?;
    let shift = scope.int("k", 0);
    let one = |at: usize| f64::from(u8::from((at % cols) as i64 - (at / cols) as i64 == shift));
    let data = (0..rows * cols).map(one).collect();
    scope.result(Operand::Constant(Host::new(shape, data, Kind::Float)))
}
