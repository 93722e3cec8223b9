//! Functions of one number as ONNX operators of opset 17.

use super::onnx::Writer;
use super::primitives::{finish, plain, unsupported};
use super::proto::Attribute;
use crate::error::Result;
use crate::graph::Node;
use crate::op::Function;

pub(super) fn write(writer: &mut Writer<'_>, node: &Node, function: Function) -> Result<()> {
    let x = writer.name(node.inputs[0]).to_owned();
    let alpha = |value: f64| [("alpha", Attribute::Float(value))];
    let written = match function {
        Function::LeakyRelu(a) => plain(writer, node, "LeakyRelu", &alpha(a)),
        Function::Elu(a) => plain(writer, node, "Elu", &alpha(a)),
        Function::Celu(a) => plain(writer, node, "Celu", &alpha(a)),
        Function::ThresholdedRelu(a) => plain(writer, node, "ThresholdedRelu", &alpha(a)),
        Function::Selu { alpha, gamma } => {
            let attributes = [("alpha", Attribute::Float(alpha)), ("gamma", Attribute::Float(gamma))];
            plain(writer, node, "Selu", &attributes)
        }
        Function::HardSigmoid { alpha, beta } => {
            let attributes = [("alpha", Attribute::Float(alpha)), ("beta", Attribute::Float(beta))];
            plain(writer, node, "HardSigmoid", &attributes)
        }
        Function::Shrink { lambda, bias } => {
            let attributes = [("lambd", Attribute::Float(lambda)), ("bias", Attribute::Float(bias))];
            plain(writer, node, "Shrink", &attributes)
        }
        Function::Clip { low, high } => {
            let inputs = [x, writer.scalar(node, low), writer.scalar(node, high)];
            finish(writer, node, "Clip", &inputs, &[])
        }
        Function::Power(p) => {
            let inputs = [x, writer.scalar(node, p)];
            finish(writer, node, "Pow", &inputs, &[])
        }
        Function::Affine { scale, shift } => affine(writer, node, x, scale, shift),
        Function::Swish(beta) => {
            let inner = if beta == 1.0 { x.clone() } else { times(writer, node, &x, beta) };
            let sigmoid = writer.inner("Sigmoid", node, &[inner]);
            finish(writer, node, "Mul", &[x, sigmoid], &[])
        }
        Function::Mish => {
            let softplus = writer.inner("Softplus", node, std::slice::from_ref(&x));
            let tanh = writer.inner("Tanh", node, &[softplus]);
            finish(writer, node, "Mul", &[x, tanh], &[])
        }
        Function::Gelu => {
            let inner = times(writer, node, &x, std::f64::consts::FRAC_1_SQRT_2);
            gelu(writer, node, x, "Erf", inner)
        }
        Function::GeluTanh => {
            // √(2/π) (x + 0.044715 x³)
            let three = writer.scalar(node, 3.0);
            let cube = writer.inner("Pow", node, &[x.clone(), three]);
            let cube = times(writer, node, &cube, 0.044_715);
            let sum = writer.inner("Add", node, &[x.clone(), cube]);
            let inner = times(writer, node, &sum, (2.0 / std::f64::consts::PI).sqrt());
            gelu(writer, node, x, "Tanh", inner)
        }
        other => simple(other).and_then(|op| plain(writer, node, op, &[])),
    };
    written.ok_or_else(|| unsupported(node, &format!("{function:?}")))
}

/// `½ x (1 + f(inner))`.
fn gelu(writer: &mut Writer<'_>, node: &Node, x: String, function: &str, inner: String) -> Option<()> {
    let value = writer.inner(function, node, &[inner]);
    let one = writer.scalar(node, 1.0);
    let sum = writer.inner("Add", node, &[value, one]);
    let product = writer.inner("Mul", node, &[x, sum]);
    let half = writer.scalar(node, 0.5);
    finish(writer, node, "Mul", &[product, half], &[])
}

fn times(writer: &mut Writer<'_>, node: &Node, x: &str, factor: f64) -> String {
    let factor = writer.scalar(node, factor);
    writer.inner("Mul", node, &[x.to_owned(), factor])
}

fn affine(writer: &mut Writer<'_>, node: &Node, x: String, scale: f64, shift: f64) -> Option<()> {
    if shift == 0.0 {
        let scale = writer.scalar(node, scale);
        return finish(writer, node, "Mul", &[x, scale], &[]);
    }
    let scaled = if scale == 1.0 { x } else { times(writer, node, &x, scale) };
    let shift = writer.scalar(node, shift);
    finish(writer, node, "Add", &[scaled, shift], &[])
}

/// Functions that correspond to one operator without attributes.
fn simple(function: Function) -> Option<&'static str> {
    Some(match function {
        Function::Relu => "Relu",
        Function::Sigmoid => "Sigmoid",
        Function::Tanh => "Tanh",
        Function::Erf => "Erf",
        Function::HardSwish => "HardSwish",
        Function::Softplus => "Softplus",
        Function::Softsign => "Softsign",
        Function::Sin => "Sin",
        Function::Cos => "Cos",
        Function::Tan => "Tan",
        Function::Asin => "Asin",
        Function::Acos => "Acos",
        Function::Atan => "Atan",
        Function::Sinh => "Sinh",
        Function::Cosh => "Cosh",
        Function::Asinh => "Asinh",
        Function::Acosh => "Acosh",
        Function::Atanh => "Atanh",
        Function::Abs => "Abs",
        Function::Neg => "Neg",
        Function::Exp => "Exp",
        Function::Log => "Log",
        Function::Sqrt => "Sqrt",
        Function::Reciprocal => "Reciprocal",
        Function::Floor => "Floor",
        Function::Ceil => "Ceil",
        Function::Round => "Round",
        Function::Sign => "Sign",
        _ => return None,
    })
}
