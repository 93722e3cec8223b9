//! `Attention` of opset 23: `softmax(q·kᵀ·scale + bias)·v` over heads.
//!
//! Masked scores are very negative instead of −∞, and masked weights are exactly zero, so that a fully masked row has
//! finite values and derivatives.

use super::constant::{Host, NumberKind};
use super::scope::{Operand, Results, Scope};
use crate::error::Result;
use crate::graph::Batch;
use crate::op::{Binary, Combine, Concat, Expand, Function, MatMul, Reshape, Softmax, Transpose, Unary, Where};

/// A score with zero weight in both precisions.
const MASKED: f64 = -1e30;

pub(super) fn lower(scope: &mut Scope<'_, '_>) -> Result<Option<Results>> {
    if scope.op() != "Attention" || scope.node.domain == "com.microsoft" {
        return Ok(None);
    }
    if scope.optional(6).is_some() || scope.node.outputs.get(3).is_some_and(|name| !name.is_empty()) {
        return Err(scope.unsupported("padded caches, and scores as an output"));
    }
    if scope.int("left_window_size", -1) >= 0 || scope.int("right_window_size", -1) >= 0 {
        return Err(scope.unsupported("sliding windows"));
    }
    let [q, k, v] = [scope.input(0)?, scope.input(1)?, scope.input(2)?];
    let merged = scope.shape(&q).len() == 3;
    let q = heads(scope, q, "q_num_heads")?;
    let mut k = heads(scope, k, "kv_num_heads")?;
    let mut v = heads(scope, v, "kv_num_heads")?;
    let mut past = 0;
    if let (Some(past_k), Some(past_v)) = (scope.optional(4), scope.optional(5)) {
        past = scope.shape(&past_k).get(2).copied().unwrap_or(0);
        k = scope.emit(Concat { axis: 2 }, &[&past_k, &k])?;
        v = scope.emit(Concat { axis: 2 }, &[&past_v, &v])?;
    }
    let (present_k, present_v) = (k.clone(), v.clone());
    let (q_shape, k_shape) = (scope.shape(&q), scope.shape(&k));
    let groups = k_shape[1].max(1);
    if !q_shape[1].is_multiple_of(groups) || scope.shape(&v)[1] != k_shape[1] {
        return Err(scope.misshapen(format!("{} query heads for {groups} key heads", q_shape[1])));
    }
    let repeats = q_shape[1] / groups;
    let (k, v) = (repeated(scope, k, repeats)?, repeated(scope, v, repeats)?);
    let scale = scope.float("scale", 1.0 / (q_shape[3].max(1) as f64).sqrt());
    let q = scope.emit(Unary(Function::Affine { scale, shift: 0.0 }), &[&q])?;
    let mut scores = scope.emit(MatMul { transposed: true }, &[&q, &k])?;
    let cap = scope.float("softcap", 0.0);
    if cap > 0.0 {
        scores = scope.emit(Unary(Function::Affine { scale: 1.0 / cap, shift: 0.0 }), &[&scores])?;
        scores = scope.emit(Unary(Function::Tanh), &[&scores])?;
        scores = scope.emit(Unary(Function::Affine { scale: cap, shift: 0.0 }), &[&scores])?;
    }
    let mut masks = Vec::new();
    if let Some(mask) = scope.optional(3) {
        let mask = padded(scope, mask, k_shape[2])?;
        if scope.kind(&mask) == NumberKind::Bool {
            masks.push(mask);
        } else {
            // Infinities would give NaN where a whole row is masked.
            let finite = Function::Clip { low: MASKED, high: f64::INFINITY };
            let mask = scope.emit(Unary(finite), &[&mask])?;
            scores = scope.emit(Binary(Combine::Add), &[&scores, &mask])?;
            let half = Scope::scalar(MASKED / 2.0);
            masks.push(scope.emit_as(NumberKind::Bool, Binary(Combine::Less), &[&half, &mask])?);
        }
    }
    if scope.int("is_causal", 0) != 0 {
        masks.push(causal(scope, q_shape[2], k_shape[2], past)?);
    }
    for mask in &masks {
        scores = scope.emit_as(NumberKind::Float, Where, &[mask, &scores, &Scope::scalar(MASKED)])?;
    }
    let mut weights = scope.emit(Softmax { axis: 3, log: false }, &[&scores])?;
    for mask in &masks {
        weights = scope.emit_as(NumberKind::Float, Where, &[mask, &weights, &Scope::scalar(0.0)])?;
    }
    let mut y = scope.emit(MatMul { transposed: false }, &[&weights, &v])?;
    if merged {
        y = scope.emit(Transpose { perm: vec![0, 2, 1, 3] }, &[&y])?;
        let batch = scope.batch_off(&y, &[2, 3])?;
        let [n, tokens, heads, size] = scope.shape(&y)[..] else { return Err(scope.misshapen("of four axes")) };
        y = scope.emit(Reshape { shape: vec![n, tokens, heads * size] }, &[&y])?;
        scope.set_batch(&y, batch);
    }
    Ok(Some(vec![(y, NumberKind::Float), (present_k, NumberKind::Float), (present_v, NumberKind::Float)]))
}

/// `[n, tokens, heads·size]` as `[n, heads, tokens, size]`, unless it already has that shape.
fn heads(scope: &mut Scope<'_, '_>, x: Operand, attribute: &str) -> Result<Operand> {
    let shape = scope.shape(&x);
    let [n, tokens, width] = match shape[..] {
        [_, _, _, _] => return Ok(x),
        [n, tokens, width] => [n, tokens, width],
        _ => return Err(scope.misshapen(format!("attention over {shape:?}"))),
    };
    let heads = usize::try_from(scope.int(attribute, 0)).unwrap_or(0);
    if heads == 0 || !width.is_multiple_of(heads) {
        return Err(scope.misshapen(format!("{heads} heads of {width} numbers")));
    }
    let batch = scope.batch_off(&x, &[2])?;
    let apart = scope.emit(Reshape { shape: vec![n, tokens, heads, width / heads] }, &[&x])?;
    scope.set_batch(&apart, batch);
    scope.emit(Transpose { perm: vec![0, 2, 1, 3] }, &[&apart])
}

/// Repeats each head of keys or values for its group of query heads.
fn repeated(scope: &mut Scope<'_, '_>, x: Operand, repeats: usize) -> Result<Operand> {
    let [n, heads, tokens, size] = scope.shape(&x)[..] else { return Err(scope.misshapen("heads of four axes")) };
    if repeats == 1 {
        return Ok(x);
    }
    let batch = scope.batch_off(&x, &[1, 2, 3])?;
    scope.check_result(&[n, heads, repeats, tokens, size])?;
    let follow = |scope: &mut Scope<'_, '_>, y: &Operand, batch: &Option<Batch>| scope.set_batch(y, batch.clone());
    let apart = scope.emit(Reshape { shape: vec![n, heads, 1, tokens, size] }, &[&x])?;
    follow(scope, &apart, &batch);
    let wide = scope.emit(Expand { shape: vec![n, heads, repeats, tokens, size] }, &[&apart])?;
    let y = scope.emit(Reshape { shape: vec![n, heads * repeats, tokens, size] }, &[&wide])?;
    follow(scope, &y, &batch);
    Ok(y)
}

/// A mask that is shorter than the keys masks the remaining keys.
fn padded(scope: &mut Scope<'_, '_>, mask: Operand, tokens: usize) -> Result<Operand> {
    let mut rest = scope.shape(&mask);
    let rank = rest.len();
    let Some(last) = rest.last_mut() else { return Ok(mask) };
    if *last == 1 || *last >= tokens {
        return Ok(mask);
    }
    *last = tokens - *last;
    let kind = scope.kind(&mask);
    let value = if kind == NumberKind::Bool { 0.0 } else { MASKED };
    scope.spend_constant(&rest)?;
    let count = rest.iter().product();
    let rest = Operand::Constant(Host::new(rest, vec![value; count], kind));
    scope.emit_as(kind, Concat { axis: rank - 1 }, &[&mask, &rest])
}

/// Whether a query sees a key: cached keys, and keys up to its own position.
fn causal(scope: &mut Scope<'_, '_>, queries: usize, keys: usize, past: usize) -> Result<Operand> {
    scope.spend_constant(&[queries, keys])?;
    let seen = |at: usize| f64::from(u8::from(at % keys <= at / keys + past));
    let data = (0..queries * keys).map(seen).collect();
    Ok(Operand::Constant(Host::new(vec![queries, keys], data, NumberKind::Bool)))
}
