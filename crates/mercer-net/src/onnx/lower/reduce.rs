//! Reductions along axes.

use super::constant::NumberKind;
use super::scope::{Operand, Results, Scope};
use crate::error::Result;
use crate::op::{ArgExtreme, Binary, Combine, CumSum, Function, Reduce, Reduction, Unary};

pub(super) fn lower(scope: &mut Scope<'_, '_>) -> Result<Option<Results>> {
    match scope.op() {
        "ArgMax" | "ArgMin" => return extreme(scope),
        "CumSum" => return cumulative(scope),
        op if !op.starts_with("Reduce") => return Ok(None),
        _ => {}
    }
    let x = scope.input(0)?;
    let rank = scope.shape(&x).len();
    scope.fixed(1)?;
    let axes = scope.integers_or(1, "axes")?.unwrap_or_default();
    let mut axes = scope.axes(&axes, rank)?;
    if axes.is_empty() {
        if scope.int("noop_with_empty_axes", 0) != 0
            && matches!(scope.op(), "ReduceSum" | "ReduceMean" | "ReduceMax" | "ReduceMin" | "ReduceProd")
        {
            return scope.result(x);
        }
        axes = (0..rank).collect();
    }
    let keep = scope.int("keepdims", 1) != 0;
    let square = |scope: &mut Scope<'_, '_>, x: &Operand| scope.emit(Unary(Function::Power(2.0)), &[x]);
    let reduce =
        |scope: &mut Scope<'_, '_>, kind, x: &Operand| scope.emit(Reduce { kind, axes: axes.clone(), keep }, &[x]);
    let y = match scope.op() {
        "ReduceSum" => reduce(scope, Reduction::Sum, &x)?,
        "ReduceMean" => reduce(scope, Reduction::Mean, &x)?,
        "ReduceMax" => reduce(scope, Reduction::Max, &x)?,
        "ReduceMin" => reduce(scope, Reduction::Min, &x)?,
        "ReduceProd" => reduce(scope, Reduction::Prod, &x)?,
        "ReduceL1" => norm_1(scope, &x, axes, keep)?,
        "ReduceL2" => norm_2(scope, &x, axes, keep)?,
        "ReduceSumSquare" => {
            let squares = square(scope, &x)?;
            reduce(scope, Reduction::Sum, &squares)?
        }
        "ReduceLogSum" => {
            let sum = reduce(scope, Reduction::Sum, &x)?;
            scope.emit(Unary(Function::Log), &[&sum])?
        }
        "ReduceLogSumExp" => log_sum_exp(scope, &x, axes, keep)?,
        _ => return Ok(None),
    };
    // The extremes over an empty set of truth values are truth values too.
    if scope.kind(&x) == NumberKind::Bool && matches!(scope.op(), "ReduceMax" | "ReduceMin") {
        let y = scope.emit(Unary(Function::Clip { low: 0.0, high: 1.0 }), &[&y])?;
        return scope.result(y);
    }
    scope.result(y)
}

pub(super) fn norm_1(scope: &mut Scope<'_, '_>, x: &Operand, axes: Vec<usize>, keep: bool) -> Result<Operand> {
    let absolute = scope.emit(Unary(Function::Abs), &[x])?;
    scope.emit(Reduce { kind: Reduction::Sum, axes, keep }, &[&absolute])
}

pub(super) fn norm_2(scope: &mut Scope<'_, '_>, x: &Operand, axes: Vec<usize>, keep: bool) -> Result<Operand> {
    let squares = scope.emit(Unary(Function::Power(2.0)), &[x])?;
    let sum = scope.emit(Reduce { kind: Reduction::Sum, axes, keep }, &[&squares])?;
    scope.emit(Unary(Function::Sqrt), &[&sum])
}

/// `max + ln Σ exp(x − max)`: subtracting the maximum changes neither value nor derivative.
fn log_sum_exp(scope: &mut Scope<'_, '_>, x: &Operand, axes: Vec<usize>, keep: bool) -> Result<Operand> {
    let largest = scope.emit(Reduce { kind: Reduction::Max, axes: axes.clone(), keep: true }, &[x])?;
    let below = scope.emit(Binary(Combine::Sub), &[x, &largest])?;
    let exponentials = scope.emit(Unary(Function::Exp), &[&below])?;
    let sum = scope.emit(Reduce { kind: Reduction::Sum, axes: axes.clone(), keep: true }, &[&exponentials])?;
    let log = scope.emit(Unary(Function::Log), &[&sum])?;
    let y = scope.emit(Binary(Combine::Add), &[&log, &largest])?;
    if keep {
        return Ok(y);
    }
    // A sum over axes of size one drops them and keeps track of the batch.
    scope.emit(Reduce { kind: Reduction::Sum, axes, keep: false }, &[&y])
}

fn extreme(scope: &mut Scope<'_, '_>) -> Result<Option<Results>> {
    let x = scope.input(0)?;
    let axis = scope.int("axis", 0);
    let axis = scope.axis(axis, scope.shape(&x).len())?;
    let keep = scope.int("keepdims", 1) != 0;
    let (max, last) = (scope.op() == "ArgMax", scope.int("select_last_index", 0) != 0);
    let y = scope.emit_as(NumberKind::Int, ArgExtreme { axis, keep, max, last }, &[&x])?;
    scope.result(y)
}

fn cumulative(scope: &mut Scope<'_, '_>) -> Result<Option<Results>> {
    let x = scope.input(0)?;
    let axis = scope.integers(1)?.and_then(|axes| axes.first().copied()).unwrap_or(0);
    let axis = scope.axis(axis, scope.shape(&x).len())?;
    let (exclusive, reverse) = (scope.int("exclusive", 0) != 0, scope.int("reverse", 0) != 0);
    let y = scope.emit(CumSum { axis, exclusive, reverse }, &[&x])?;
    scope.result(y)
}
