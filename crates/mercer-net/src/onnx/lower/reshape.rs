//! Changing shapes, and tracking the batch axis.

use super::constant::Host;
use super::scope::{Operand, Results, Scope};
use crate::error::Result;
use crate::graph::{Batch, Position};
use crate::op::{Expand, Reshape};
use crate::shape::{broadcast, numel};

pub(super) fn lower(scope: &mut Scope<'_, '_>) -> Result<Option<Results>> {
    match scope.op() {
        "Reshape" => reshape(scope),
        "Flatten" => flatten(scope),
        "Squeeze" => squeeze(scope),
        "Unsqueeze" => unsqueeze(scope),
        "Expand" => expand(scope),
        "Shape" => {
            let x = scope.input(0)?;
            let shape = scope.shape(&x);
            let host = part_of_shape(scope, &shape);
            scope.result(Operand::Constant(host))
        }
        "Size" => {
            let x = scope.input(0)?;
            let host = size_of_shape(&scope.shape(&x));
            scope.result(Operand::Constant(host))
        }
        _ => Ok(None),
    }
}

/// The dimensions between the attributes `start` and `end`.
fn part_of_shape(scope: &Scope<'_, '_>, shape: &[usize]) -> Host {
    let rank = shape.len() as i64;
    let bound = |value: i64| (if value < 0 { value + rank } else { value }).clamp(0, rank) as usize;
    let (start, end) = (bound(scope.int("start", 0)), bound(scope.int("end", rank)));
    Host::integers(shape[start..end.max(start)].iter().copied())
}

fn size_of_shape(shape: &[usize]) -> Host {
    Host::new(vec![], vec![numel(shape) as f64], super::NumberKind::Int)
}

impl Scope<'_, '_> {
    /// For a Shape or Size node: its result for two samples, where the batch axis is known.
    pub(super) fn shape_of_two(&mut self) -> Result<Option<Host>> {
        let x = self.input(0)?;
        let shape = self.shape(&x);
        // A constant that depends on the batch size has a different shape for two samples.
        let doubled = match self.batch(&x) {
            Some(batch) => for_samples(&shape, &batch, 2),
            None => Some(shape),
        };
        let part = |shape: Vec<usize>| match self.op() {
            "Size" => size_of_shape(&shape),
            _ => part_of_shape(self, &shape),
        };
        Ok(doubled.map(part))
    }
}

/// The file's shape for a number of samples, if the batch axis is known.
fn for_samples(shape: &[usize], batch: &Batch, samples: usize) -> Option<Vec<usize>> {
    let Batch::At(places) = batch else { return None };
    let [place] = places.as_slice() else { return None };
    let mut shape = shape.to_vec();
    shape[place.axis] *= samples;
    Some(shape)
}

/// The target of a reshape with 0 (unchanged) and −1 (inferred) resolved, if it is valid.
fn resolve(target: &[i64], shape: &[usize], zero_is_zero: bool) -> Option<Vec<usize>> {
    let total = numel(shape);
    let mut resolved = Vec::with_capacity(target.len());
    let mut free = None;
    for (axis, &size) in target.iter().enumerate() {
        resolved.push(match size {
            -1 if free.is_none() => {
                free = Some(axis);
                1
            }
            0 if !zero_is_zero => *shape.get(axis)?,
            size => usize::try_from(size).ok()?,
        });
    }
    if let Some(axis) = free {
        let others = resolved.iter().try_fold(1usize, |count, &size| count.checked_mul(size))?;
        if others == 0 || !total.is_multiple_of(others) {
            return None;
        }
        resolved[axis] = total / others;
    }
    let count = resolved.iter().try_fold(1usize, |count, &size| count.checked_mul(size));
    (count == Some(total)).then_some(resolved)
}

/// Where the batch of `samples` samples is in a reshaped file shape: the axis, and how much of it is outside the batch.
fn batch_in(shape: &[usize], outside: usize, samples: usize) -> Option<Position> {
    let mut before = 1;
    for (axis, &size) in shape.iter().enumerate() {
        if before > 0 && outside.is_multiple_of(before) {
            let major = outside / before;
            if major > 0 && size.is_multiple_of(major * samples) {
                return Some(Position { axis, major });
            }
        }
        before *= size;
    }
    None
}

fn outside(shape: &[usize], batch: &Batch) -> Option<usize> {
    let Batch::At(places) = batch else { return None };
    let mut all = places.iter().map(|place| numel(&shape[..place.axis]) * place.major);
    let first = all.next()?;
    all.all(|other| other == first).then_some(first)
}

fn reshape(scope: &mut Scope<'_, '_>) -> Result<Option<Results>> {
    let x = scope.input(0)?;
    let Some(target) = scope.integers_or(1, "shape")? else { return Err(scope.misshapen("the shape is missing")) };
    let zero_is_zero = scope.int("allowzero", 0) != 0;
    let second = scope.second(1).map_or_else(|| target.clone(), |host| host.to_integers());
    let from_shape = scope.second(1).is_some();
    to_shape(scope, &x, from_shape, |shape, two| resolve(if two { &second } else { &target }, shape, zero_is_zero))
        .and_then(|y| match y {
            Some(y) => scope.result(y),
            None => {
                let shape = scope.shape(&x);
                Err(scope.misshapen(format!("cannot reshape {shape:?} to {target:?}")))
            }
        })
}

/// Reshapes to `target(file shape, for two samples)`, and finds the batch axis again.
fn to_shape(
    scope: &mut Scope<'_, '_>,
    x: &Operand,
    follows_batch: bool,
    target: impl Fn(&[usize], bool) -> Option<Vec<usize>>,
) -> Result<Option<Operand>> {
    let shape = scope.shape(x);
    let batch = scope.batch(x);
    let around = batch.as_ref().and_then(|batch| outside(&shape, batch));
    // A batch size fixed in the file: reshape as the file does, then remove the batch again.
    if let (Some(samples), Some(batch), Some(around), false) = (scope.baked(), &batch, around, follows_batch)
        && let Batch::At(places) = batch
        && let Some(place) = places.first()
    {
        let mut whole = shape.clone();
        whole[place.axis] *= samples;
        if let Some(mut result) = target(&whole, false)
            && let Some(place) = batch_in(&result, around, samples)
        {
            result[place.axis] /= samples;
            let y = scope.emit(Reshape { shape: result }, &[x])?;
            scope.set_batch(&y, Some(Batch::At(vec![place])));
            return Ok(Some(y));
        }
    }
    let Some(result) = target(&shape, false) else { return Ok(None) };
    let y = scope.emit(Reshape { shape: result.clone() }, &[x])?;
    // The same for two samples: the axis that doubled is the batch.
    let doubled = batch.as_ref().and_then(|batch| for_samples(&shape, batch, 2));
    if let (Some(around), Some(doubled)) = (around, doubled.and_then(|shape| target(&shape, true)))
        && doubled.len() == result.len()
    {
        let differs: Vec<usize> = (0..result.len()).filter(|&axis| doubled[axis] != result[axis]).collect();
        let [axis] = differs[..] else { return Err(scope.mixes()) };
        // What lies outside the batch must be whole axes before this one and a part of it.
        let before = numel(&result[..axis]);
        let major = around.checked_div(before).unwrap_or(0);
        if major == 0 || major * before != around || !result[axis].is_multiple_of(major) {
            return Err(scope.mixes());
        }
        scope.set_batch(&y, Some(Batch::At(vec![Position { axis, major }])));
    }
    Ok(Some(y))
}

fn flatten(scope: &mut Scope<'_, '_>) -> Result<Option<Results>> {
    let x = scope.input(0)?;
    let rank = scope.shape(&x).len();
    let axis = scope.int("axis", 1);
    let axis = if axis == rank as i64 { rank } else { scope.axis(axis, rank)? };
    let y = to_shape(scope, &x, true, |shape, _| Some(vec![numel(&shape[..axis]), numel(&shape[axis..])]))?;
    match y {
        Some(y) => scope.result(y),
        None => Err(scope.misshapen("cannot flatten")),
    }
}

fn squeeze(scope: &mut Scope<'_, '_>) -> Result<Option<Results>> {
    let x = scope.input(0)?;
    let shape = scope.shape(&x);
    let batch = scope.batch(&x);
    let is_batch = |axis: usize| match &batch {
        Some(Batch::At(places)) => places.len() == 1 && places[0].axis == axis,
        _ => false,
    };
    let gone: Vec<usize> = match scope.integers_or(1, "axes")? {
        Some(axes) => scope.axes(&axes, shape.len())?,
        // All axes of size one except the batch, which only appears to have size one.
        None => (0..shape.len()).filter(|&axis| shape[axis] == 1 && !is_batch(axis)).collect(),
    };
    if let Some(&axis) = gone.iter().find(|&&axis| shape[axis] != 1) {
        return Err(scope.misshapen(format!("cannot squeeze axis {axis} of {shape:?}")));
    }
    let kept: Vec<usize> = (0..shape.len()).filter(|axis| !gone.contains(axis)).collect();
    let y = scope.emit(Reshape { shape: kept.iter().map(|&axis| shape[axis]).collect() }, &[&x])?;
    let moved = batch.map(|batch| {
        let moved = batch.moved(|axis| kept.iter().position(|&k| k == axis));
        moved.unwrap_or(Batch::Untracked)
    });
    scope.set_batch(&y, moved);
    scope.result(y)
}

fn unsqueeze(scope: &mut Scope<'_, '_>) -> Result<Option<Results>> {
    let x = scope.input(0)?;
    let shape = scope.shape(&x);
    let Some(axes) = scope.integers_or(1, "axes")? else { return Err(scope.misshapen("the axes are missing")) };
    let rank = shape.len() + axes.len();
    let new = scope.axes(&axes, rank)?;
    let old: Vec<usize> = (0..rank).filter(|axis| !new.contains(axis)).collect();
    if old.len() != shape.len() {
        return Err(scope.misshapen(format!("axes {axes:?} repeat")));
    }
    let mut widened = vec![1; rank];
    old.iter().zip(&shape).for_each(|(&axis, &size)| widened[axis] = size);
    let batch = scope.batch(&x).map(|batch| batch.moved(|axis| Some(old[axis])).unwrap_or(Batch::Untracked));
    let y = scope.emit(Reshape { shape: widened }, &[&x])?;
    scope.set_batch(&y, batch);
    scope.result(y)
}

fn expand(scope: &mut Scope<'_, '_>) -> Result<Option<Results>> {
    let x = scope.input(0)?;
    let shape = scope.shape(&x);
    let Some(target) = scope.integers(1)? else { return Err(scope.misshapen("the shape is missing")) };
    let sizes: Option<Vec<usize>> = target.iter().map(|&size| usize::try_from(size).ok()).collect();
    let Some(mut sizes) = sizes else { return Err(scope.misshapen(format!("cannot expand to {target:?}"))) };
    // A fixed batch size stands for a single sample.
    if let (Some(samples), Some(Batch::At(places))) = (scope.baked(), scope.batch(&x)) {
        let shift = sizes.len().saturating_sub(shape.len());
        for place in places {
            if let Some(size) = sizes.get_mut(place.axis + shift)
                && *size == samples
            {
                *size = 1;
            }
        }
    }
    let Some(result) = broadcast(&shape, &sizes) else {
        return Err(scope.misshapen(format!("cannot expand {shape:?} to {target:?}")));
    };
    if let (Some(two), Some(batch)) = (scope.second(1), scope.batch(&x)) {
        only_the_batch_grows(scope, &shape, &batch, &result, &two)?;
    }
    scope.check_result(&result)?;
    if result == shape {
        return scope.result(x);
    }
    let y = scope.emit(Expand { shape: result }, &[&x])?;
    scope.result(y)
}

/// Whether an expansion by the batch size is along the batch itself. Anything else would repeat each sample for every
/// other.
fn only_the_batch_grows(
    scope: &Scope<'_, '_>,
    shape: &[usize],
    batch: &Batch,
    result: &[usize],
    target: &Host,
) -> Result<()> {
    let Batch::At(places) = batch else { return Ok(()) };
    let sizes: Vec<usize> = target.to_integers().iter().map(|&size| usize::try_from(size).unwrap_or(0)).collect();
    let missing = result.len().saturating_sub(shape.len());
    let fits = places.iter().any(|place| {
        let mut doubled = shape.to_vec();
        doubled[place.axis] *= 2;
        let mut wanted = result.to_vec();
        wanted[place.axis + missing] *= 2;
        broadcast(&doubled, &sizes).is_some_and(|found| found == wanted)
    });
    if fits { Ok(()) } else { Err(scope.mixes()) }
}
