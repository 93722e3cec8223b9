//! Slice, split and pad.

use super::scope::{Results, Scope};
use crate::error::Result;
use crate::graph::Batch;
use crate::op::{Margin, Pad, Slice};

pub(super) fn slice(scope: &mut Scope<'_, '_>) -> Result<Option<Results>> {
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
        // No axis is long enough for a longer step to matter.
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
    /// Whether a slice takes a whole axis of any length: to the end, or to the end of the file's batch.
    fn takes_all(&self, axis: usize, size: usize, (start, end, step): (i64, i64, i64), index: usize) -> Result<bool> {
        if start != 0 || step != 1 {
            self.fixed(1)?;
            return Ok(false);
        }
        // Exporters write "to the end" as the largest number of some type.
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

pub(super) fn split(scope: &mut Scope<'_, '_>) -> Result<Option<Results>> {
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

pub(super) fn pad(scope: &mut Scope<'_, '_>) -> Result<Option<Results>> {
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
