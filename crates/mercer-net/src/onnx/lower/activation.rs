//! Elementwise functions of one number.

use super::constant::NumberKind;
use super::scope::{Operand, Results, Scope};
use crate::error::Result;
use crate::op::{Binary, Combine, Function, Unary};

pub(super) fn lower(scope: &mut Scope<'_, '_>) -> Result<Option<Results>> {
    use Function::*;
    let function = match scope.op() {
        "Relu" => Relu,
        "LeakyRelu" => LeakyRelu(scope.float("alpha", 0.01)),
        "Elu" => Elu(scope.float("alpha", 1.0)),
        "Selu" => Selu {
            alpha: scope.float("alpha", 1.673_263_192_176_818_8),
            gamma: scope.float("gamma", 1.050_700_982_093_8),
        },
        "Celu" => Celu(scope.float("alpha", 1.0)),
        "Sigmoid" => Sigmoid,
        "HardSigmoid" => HardSigmoid { alpha: scope.float("alpha", 0.2), beta: scope.float("beta", 0.5) },
        "HardSwish" => HardSwish,
        "Tanh" => Tanh,
        "Erf" => Erf,
        "Gelu" | "FastGelu" if scope.text("approximate") == Some("tanh") || scope.op() == "FastGelu" => GeluTanh,
        "Gelu" => Gelu,
        "QuickGelu" => Swish(scope.float("alpha", 1.702)),
        "Swish" | "Silu" => Swish(scope.float("alpha", 1.0)),
        "Mish" => Mish,
        "Softplus" => Softplus,
        "Softsign" => Softsign,
        "Sin" => Sin,
        "Cos" => Cos,
        "Tan" => Tan,
        "Asin" => Asin,
        "Acos" => Acos,
        "Atan" => Atan,
        "Sinh" => Sinh,
        "Cosh" => Cosh,
        "Asinh" => Asinh,
        "Acosh" => Acosh,
        "Atanh" => Atanh,
        "Abs" => Abs,
        "Neg" => Neg,
        "Exp" => Exp,
        "Log" => Log,
        "Sqrt" => Sqrt,
        "Reciprocal" => Reciprocal,
        "ThresholdedRelu" => ThresholdedRelu(scope.float("alpha", 1.0)),
        "Shrink" => Shrink { lambda: scope.float("lambd", 0.5), bias: scope.float("bias", 0.0) },
        "Floor" => Floor,
        "Ceil" => Ceil,
        "Round" => Round,
        "Sign" => Sign,
        "Not" => Not,
        "IsNaN" => IsNan,
        "IsInf" => return infinite(scope),
        "Clip" => return clip(scope),
        _ => return Ok(None),
    };
    let mut x = scope.input(0)?;
    if let ("FastGelu", Some(bias)) = (scope.op(), scope.optional(1)) {
        x = scope.emit(Binary(Combine::Add), &[&x, &bias])?;
    }
    let kind = match function {
        Not | IsNan => NumberKind::Bool,
        _ => scope.kind(&x),
    };
    let y = scope.emit_as(kind, Unary(function), &[&x])?;
    scope.result(y)
}

fn infinite(scope: &mut Scope<'_, '_>) -> Result<Option<Results>> {
    let (negative, positive) = (scope.int("detect_negative", 1), scope.int("detect_positive", 1));
    let x = scope.input(0)?;
    let mut y = scope.emit_as(NumberKind::Bool, Unary(Function::IsInf), &[&x])?;
    if negative == 0 || positive == 0 {
        let zero = Scope::scalar(0.0);
        let pair = if negative == 0 { [&zero, &x] } else { [&x, &zero] };
        let side = scope.emit_as(NumberKind::Bool, Binary(Combine::Less), &pair)?;
        y = scope.emit_as(NumberKind::Bool, Binary(Combine::And), &[&y, &side])?;
    }
    scope.result(y)
}

/// The limits may be attributes, constants, or values.
fn clip(scope: &mut Scope<'_, '_>) -> Result<Option<Results>> {
    let x = scope.input(0)?;
    let limit = |scope: &Scope<'_, '_>, index: usize, name: &str, default: f64| match scope.optional(index) {
        None => Some(scope.float(name, default)),
        Some(Operand::Constant(host)) => Some(if host.data.is_empty() { default } else { host.first() }),
        Some(Operand::Value(_)) => None,
    };
    let low = limit(scope, 1, "min", f64::NEG_INFINITY);
    let high = limit(scope, 2, "max", f64::INFINITY);
    if let (Some(low), Some(high)) = (low, high) {
        // ONNX: if the limits cross, the upper one wins.
        let low = low.min(high);
        let y = scope.emit(Unary(Function::Clip { low, high }), &[&x])?;
        return scope.result(y);
    }
    let mut y = x;
    if let Some(low) = scope.optional(1) {
        y = scope.emit(Binary(Combine::Max), &[&y, &low])?;
    }
    if let Some(high) = scope.optional(2) {
        y = scope.emit(Binary(Combine::Min), &[&y, &high])?;
    }
    scope.result(y)
}
