//! Normalisations and softmax. Affine parts become multiply and add.

use super::constant::NumberKind;
use super::scope::{Operand, Results, Scope};
use crate::error::Result;
use crate::op::{
    Binary, Combine, Function, Normalise, Pool, Pooling, Reduce, Reduction, Reshape, Softmax, Unary, Where, Window,
};

/// The widest window of a local response normalisation.
const MAX_CHANNELS: usize = 1 << 16;

pub(super) fn lower(scope: &mut Scope<'_, '_>) -> Result<Option<Results>> {
    match scope.op() {
        "BatchNormalization" => batch(scope),
        "LayerNormalization" => layer(scope, true),
        "RMSNormalization" | "SimplifiedLayerNormalization" => layer(scope, false),
        "InstanceNormalization" => instance(scope),
        "GroupNormalization" => group(scope),
        "LpNormalization" => length(scope),
        "MeanVarianceNormalization" => mean_variance(scope),
        "LRN" => local_response(scope),
        "Softmax" => softmax(scope, false),
        "LogSoftmax" => softmax(scope, true),
        _ => Ok(None),
    }
}

fn affine(scope: &mut Scope<'_, '_>, x: Operand, scale: Option<Operand>, shift: Option<Operand>) -> Result<Operand> {
    let mut y = x;
    if let Some(scale) = scale {
        y = scope.emit(Binary(Combine::Mul), &[&y, &scale])?;
    }
    if let Some(shift) = shift {
        y = scope.emit(Binary(Combine::Add), &[&y, &shift])?;
    }
    Ok(y)
}

/// A vector over channels as `[C, 1, …]`, to broadcast with `[n, C, …space]`.
fn per_channel(scope: &mut Scope<'_, '_>, x: Option<Operand>, rank: usize) -> Result<Option<Operand>> {
    let Some(x) = x else { return Ok(None) };
    let mut shape = vec![scope.shape(&x).iter().product()];
    shape.resize(rank.max(2) - 1, 1);
    if scope.shape(&x) == shape {
        return Ok(Some(x));
    }
    scope.emit(Reshape { shape }, &[&x]).map(Some)
}

fn batch(scope: &mut Scope<'_, '_>) -> Result<Option<Results>> {
    if scope.int("training_mode", 0) != 0 || (scope.opset() < 7 && scope.int("is_test", 1) == 0) {
        return Err(crate::NetError::MixesSamples { node: scope.node.label() });
    }
    let x = scope.input(0)?;
    let rank = scope.shape(&x).len();
    let epsilon = scope.float("epsilon", 1e-5);
    let scale = scope.optional(1);
    let scale = per_channel(scope, scale, rank)?;
    let shift = scope.optional(2);
    let shift = per_channel(scope, shift, rank)?;
    let (mean, variance) = (scope.input(3)?, scope.input(4)?);
    let mean = per_channel(scope, Some(mean), rank)?.expect("given");
    let variance = per_channel(scope, Some(variance), rank)?.expect("given");
    let variance = scope.emit(Unary(Function::Affine { scale: 1.0, shift: epsilon }), &[&variance])?;
    let inverse = scope.emit(Unary(Function::Power(-0.5)), &[&variance])?;
    let centred = scope.emit(Binary(Combine::Sub), &[&x, &mean])?;
    let unit = scope.emit(Binary(Combine::Mul), &[&centred, &inverse])?;
    let y = affine(scope, unit, scale, shift)?;
    scope.result(y)
}

fn layer(scope: &mut Scope<'_, '_>, centred: bool) -> Result<Option<Results>> {
    let x = scope.input(0)?;
    let rank = scope.shape(&x).len();
    let first = scope.int("axis", -1);
    let first = scope.axis(first, rank)?;
    let epsilon = scope.float("epsilon", 1e-5);
    let axes: Vec<usize> = (first..rank).collect();
    let y = scope.emit(Normalise { axes: axes.clone(), epsilon, centred }, &[&x])?;
    let (scale, shift) = (scope.optional(1), scope.optional(2));
    let y = affine(scope, y, scale, shift)?;
    let mut results = vec![(y, NumberKind::Float)];
    if scope.node.outputs.iter().skip(1).any(|name| !name.is_empty()) {
        results.extend(statistics(scope, &x, axes, epsilon, centred)?);
    }
    Ok(Some(results))
}

/// The additional outputs of a layer normalisation: the mean, if there is one, and 1/σ.
fn statistics(
    scope: &mut Scope<'_, '_>,
    x: &Operand,
    axes: Vec<usize>,
    epsilon: f64,
    centred: bool,
) -> Result<Results> {
    let mean_of = Reduce { kind: Reduction::Mean, axes, keep: true };
    let mean = scope.emit(mean_of.clone(), &[x])?;
    let deviation = if centred { scope.emit(Binary(Combine::Sub), &[x, &mean])? } else { x.clone() };
    let square = scope.emit(Unary(Function::Power(2.0)), &[&deviation])?;
    let variance = scope.emit(mean_of, &[&square])?;
    let shifted = scope.emit(Unary(Function::Affine { scale: 1.0, shift: epsilon }), &[&variance])?;
    let inverse = scope.emit(Unary(Function::Power(-0.5)), &[&shifted])?;
    let mut results = vec![(mean, NumberKind::Float), (inverse, NumberKind::Float)];
    if !centred {
        results.remove(0);
    }
    Ok(results)
}

fn instance(scope: &mut Scope<'_, '_>) -> Result<Option<Results>> {
    let x = scope.input(0)?;
    let rank = scope.shape(&x).len();
    let epsilon = scope.float("epsilon", 1e-5);
    let y = scope.emit(Normalise { axes: (2..rank).collect(), epsilon, centred: true }, &[&x])?;
    let (scale, shift) = (scope.optional(1), scope.optional(2));
    let (scale, shift) = (per_channel(scope, scale, rank)?, per_channel(scope, shift, rank)?);
    let y = affine(scope, y, scale, shift)?;
    scope.result(y)
}

fn group(scope: &mut Scope<'_, '_>) -> Result<Option<Results>> {
    let x = scope.input(0)?;
    let shape = scope.shape(&x);
    let groups = usize::try_from(scope.int("num_groups", 1)).unwrap_or(0);
    if shape.len() < 2 || groups == 0 || !shape[1].is_multiple_of(groups) {
        return Err(scope.misshapen(format!("{groups} groups of {shape:?}")));
    }
    let epsilon = scope.float("epsilon", 1e-5);
    let rest: usize = shape[1..].iter().product::<usize>() / groups;
    let batch = scope.batch(&x);
    let grouped = scope.emit(Reshape { shape: vec![shape[0], groups, rest] }, &[&x])?;
    let outer = batch.as_ref().and_then(|b| b.not_along(&(1..shape.len()).collect::<Vec<_>>()).ok());
    scope.set_batch(&grouped, outer);
    let unit = scope.emit(Normalise { axes: vec![2], epsilon, centred: true }, &[&grouped])?;
    let rank = shape.len();
    let (scale, shift) = (scope.optional(1), scope.optional(2));
    // Up to opset 20 the affine part is per group, afterwards per channel.
    let per_group = |scope: &Scope<'_, '_>, x: &Option<Operand>| {
        x.as_ref().is_some_and(|x| scope.shape(x).iter().product::<usize>() == groups && groups != shape[1])
    };
    let y = if per_group(scope, &scale) || per_group(scope, &shift) {
        let (scale, shift) = (per_channel(scope, scale, 3)?, per_channel(scope, shift, 3)?);
        let y = affine(scope, unit, scale, shift)?;
        let y = scope.emit(Reshape { shape }, &[&y])?;
        scope.set_batch(&y, batch);
        y
    } else {
        let back = scope.emit(Reshape { shape }, &[&unit])?;
        scope.set_batch(&back, batch);
        let (scale, shift) = (per_channel(scope, scale, rank)?, per_channel(scope, shift, rank)?);
        affine(scope, back, scale, shift)?
    };
    scope.result(y)
}

/// `x / ‖x‖ₚ` along an axis.
fn length(scope: &mut Scope<'_, '_>) -> Result<Option<Results>> {
    let x = scope.input(0)?;
    let axis = scope.int("axis", -1);
    let axis = scope.axis(axis, scope.shape(&x).len())?;
    let norm = match scope.int("p", 2) {
        1 => super::reduce::norm_1(scope, &x, vec![axis], true)?,
        2 => super::reduce::norm_2(scope, &x, vec![axis], true)?,
        p => return Err(scope.unsupported(format!("p = {p}"))),
    };
    // A zero vector has no direction and stays zero.
    let zero = Scope::scalar(0.0);
    let nothing = scope.emit_as(NumberKind::Bool, Binary(Combine::Equal), &[&norm, &zero])?;
    let norm = scope.emit_as(NumberKind::Float, Where, &[&nothing, &Scope::scalar(1.0), &norm])?;
    let y = scope.emit(Binary(Combine::Div), &[&x, &norm])?;
    scope.result(y)
}

fn mean_variance(scope: &mut Scope<'_, '_>) -> Result<Option<Results>> {
    let x = scope.input(0)?;
    let axes = scope.ints("axes").unwrap_or_else(|| vec![0, 2, 3]);
    let axes = scope.axes(&axes, scope.shape(&x).len())?;
    let y = scope.emit(Normalise { axes, epsilon: 1e-9, centred: true }, &[&x])?;
    scope.result(y)
}

/// `x / (bias + alpha/size · Σ x²)^beta` over a window of channels: the sum is an average pool along the channel axis.
fn local_response(scope: &mut Scope<'_, '_>) -> Result<Option<Results>> {
    let x = scope.input(0)?;
    let shape = scope.shape(&x);
    let size = usize::try_from(scope.int("size", 1)).unwrap_or(0);
    if size == 0 || size > MAX_CHANNELS {
        return Err(scope.unsupported(format!("a window of {size} channels")));
    }
    if shape.len() < 3 {
        return Err(scope.misshapen("LRN needs [n, channels, …space]"));
    }
    let (alpha, beta, bias) = (scope.float("alpha", 1e-4), scope.float("beta", 0.75), scope.float("bias", 1.0));
    let batch = scope.batch(&x);
    let outer = batch.as_ref().map(|b| b.not_along(&(1..shape.len()).collect::<Vec<_>>())).transpose();
    let outer = outer.map_err(|_| crate::NetError::MixesSamples { node: scope.node.label() })?;
    let square = scope.emit(Unary(Function::Power(2.0)), &[&x])?;
    let plane = vec![shape[0], 1, shape[1], shape[2..].iter().product()];
    let rows = scope.emit(Reshape { shape: plane }, &[&square])?;
    scope.set_batch(&rows, outer);
    let before = (size - 1) / 2;
    let window = Window { before: vec![before, 0], after: vec![size - 1 - before, 0], ..Window::plain(2) };
    let kind = Pooling::Average { count_padding: true };
    let mean = scope.emit(Pool { kind, kernel: vec![size, 1], window, round_up: false }, &[&rows])?;
    let back = scope.emit(Reshape { shape }, &[&mean])?;
    scope.set_batch(&back, batch);
    let inner = scope.emit(Unary(Function::Affine { scale: alpha, shift: bias }), &[&back])?;
    let factor = scope.emit(Unary(Function::Power(-beta)), &[&inner])?;
    let y = scope.emit(Binary(Combine::Mul), &[&x, &factor])?;
    scope.result(y)
}

fn softmax(scope: &mut Scope<'_, '_>, log: bool) -> Result<Option<Results>> {
    let x = scope.input(0)?;
    let shape = scope.shape(&x);
    let rank = shape.len();
    let modern = scope.opset() >= 13;
    let axis = scope.int("axis", if modern { -1 } else { 1 });
    let axis = if !modern && axis == rank as i64 { rank } else { scope.axis(axis, rank)? };
    let coerced = !modern && axis + 1 != rank;
    if !coerced {
        let y = scope.emit_as(NumberKind::Float, Softmax { axis, log }, &[&x])?;
        return scope.result(y);
    }
    // Before opset 13 everything from the axis on is one distribution.
    let batch = scope.batch(&x);
    let rows = shape[..axis].iter().product();
    let flat = scope.emit(Reshape { shape: vec![rows, shape[axis..].iter().product()] }, &[&x])?;
    let y = scope.emit_as(NumberKind::Float, Softmax { axis: 1, log }, &[&flat])?;
    let y = scope.emit(Reshape { shape }, &[&y])?;
    scope.set_batch(&y, batch);
    scope.result(y)
}
