//! Elementwise functions of two or more numbers, and casts.

use super::constant::{Host, NumberKind};
use super::scope::{Operand, Results, Scope};
use crate::error::Result;
use crate::op::{Binary, Combine, Function, Reshape, Unary, Where};

pub(super) fn lower(scope: &mut Scope<'_, '_>) -> Result<Option<Results>> {
    use Combine::*;
    let combine = match scope.op() {
        "Add" => Add,
        "Sub" => Sub,
        "Mul" => Mul,
        "Div" => Div,
        "Pow" => return power(scope),
        "PRelu" => PRelu,
        "Mod" => {
            if scope.int("fmod", 0) != 0 {
                Rem
            } else {
                Mod
            }
        }
        "Equal" => Equal,
        "Less" => Less,
        "LessOrEqual" => LessOrEqual,
        "Greater" | "GreaterOrEqual" => {
            let (a, b) = pair(scope)?;
            let combine = if scope.op() == "Greater" { Less } else { LessOrEqual };
            let y = scope.emit_as(NumberKind::Bool, Binary(combine), &[&b, &a])?;
            return scope.result(y);
        }
        "And" => And,
        "Or" => Or,
        "Xor" => Xor,
        "Sum" | "Mean" | "Min" | "Max" => return many(scope),
        "Where" => {
            let mut operands = [scope.input(0)?, scope.input(1)?, scope.input(2)?];
            scope.unbake(&mut operands)?;
            let [condition, a, b] = operands;
            let kind = scope.kind(&a);
            let y = scope.emit_as(kind, Where, &[&condition, &a, &b])?;
            return scope.result(y);
        }
        "Cast" | "CastLike" => return cast(scope),
        "BiasGelu" => {
            let (a, b) = pair(scope)?;
            let sum = scope.emit(Binary(Add), &[&a, &b])?;
            let y = scope.emit(Unary(Function::Gelu), &[&sum])?;
            return scope.result(y);
        }
        _ => return Ok(None),
    };
    let (a, b) = pair(scope)?;
    let kind = match combine {
        Equal | Less | LessOrEqual | And | Or | Xor => NumberKind::Bool,
        _ => scope.kind(&a),
    };
    let combine = if combine == Div && kind == NumberKind::Int { IntegerDiv } else { combine };
    let y = scope.emit_as(kind, Binary(combine), &[&a, &b])?;
    scope.result(y)
}

/// The two operands. Before opset 7 an attribute aligns the second one.
fn pair(scope: &mut Scope<'_, '_>) -> Result<(Operand, Operand)> {
    let (a, mut b) = (scope.input(0)?, scope.input(1)?);
    let (rank, own) = (scope.shape(&a).len(), scope.shape(&b));
    if scope.opset() < 7 && scope.int("broadcast", 0) == 1 {
        let axis = scope.int("axis", -1);
        if axis >= 0 {
            let axis = scope.axis(axis, rank)?;
            let mut shape = own;
            shape.resize(rank.saturating_sub(axis).max(shape.len()), 1);
            b = scope.emit(Reshape { shape }, &[&b])?;
        }
    }
    // By convention, PRelu's slope of shape [C] belongs to axis 1.
    if scope.op() == "PRelu" {
        let own = scope.shape(&b);
        let x = scope.shape(&a);
        if own.len() == 1 && own[0] > 1 && rank > 2 && own[0] == x[1] && own[0] != x[rank - 1] {
            let mut shape = own;
            shape.resize(rank - 1, 1);
            b = scope.emit(Reshape { shape }, &[&b])?;
        }
    }
    let mut operands = [a, b];
    scope.unbake(&mut operands)?;
    let [a, b] = operands;
    Ok((a, b))
}

fn power(scope: &mut Scope<'_, '_>) -> Result<Option<Results>> {
    let (a, b) = pair(scope)?;
    let y = match &b {
        Operand::Constant(host) if host.data.len() == 1 && host.shape.len() <= scope.shape(&a).len() => {
            scope.emit(Unary(Function::Power(host.first())), &[&a])?
        }
        _ => scope.emit(Binary(Combine::Pow), &[&a, &b])?,
    };
    scope.result(y)
}

fn many(scope: &mut Scope<'_, '_>) -> Result<Option<Results>> {
    let combine = match scope.op() {
        "Min" => Combine::Min,
        "Max" => Combine::Max,
        _ => Combine::Add,
    };
    let mut y = scope.input(0)?;
    for index in 1..scope.n_inputs() {
        let next = scope.input(index)?;
        y = scope.emit(Binary(combine), &[&y, &next])?;
    }
    if scope.op() == "Mean" {
        let scale = 1.0 / scope.n_inputs() as f64;
        y = scope.emit(Unary(Function::Affine { scale, shift: 0.0 }), &[&y])?;
    }
    scope.result(y)
}

fn cast(scope: &mut Scope<'_, '_>) -> Result<Option<Results>> {
    let x = scope.input(0)?;
    let to = if scope.op() == "CastLike" {
        let like = scope.input(1)?;
        scope.kind(&like)
    } else {
        let code = if let Some(text) = scope.text("to") { element_code(text) } else { scope.int("to", 1) };
        match code {
            1 | 10 | 11 | 16 => NumberKind::Float,
            2..=7 | 12 | 13 => NumberKind::Int,
            9 => NumberKind::Bool,
            other => return Err(scope.unsupported(format!("a cast to element type {other}"))),
        }
    };
    let y = match (scope.kind(&x), to) {
        (NumberKind::Float, NumberKind::Int) => scope.emit_as(to, Unary(Function::Trunc), &[&x])?,
        (NumberKind::Float | NumberKind::Int, NumberKind::Bool) => {
            let zero = scope.emit_as(to, Unary(Function::Not), &[&x])?;
            scope.emit_as(to, Unary(Function::Not), &[&zero])?
        }
        _ => match x {
            Operand::Constant(host) => Operand::Constant(Host { kind: to, ..host }),
            value => return Ok(Some(vec![(value, to)])),
        },
    };
    Ok(Some(vec![(y, to)]))
}

/// Opset 6 and before wrote the element type as text.
fn element_code(text: &str) -> i64 {
    match text {
        "FLOAT" => 1,
        "FLOAT16" => 10,
        "DOUBLE" => 11,
        "BOOL" => 9,
        "INT32" => 6,
        "INT64" => 7,
        _ => 0,
    }
}
