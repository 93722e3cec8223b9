//! Products with weights: Gemm, MatMul, Conv.

use super::scope::{Operand, Results, Scope};
use crate::error::Result;
use crate::graph::Origin;
use crate::op::{Binary, Combine, Conv, Function, MatMul, Reshape, Transpose, Unary, Window};

pub(super) fn lower(scope: &mut Scope<'_, '_>) -> Result<Option<Results>> {
    match scope.op() {
        "Gemm" => gemm(scope),
        "MatMul" => matmul(scope),
        "FusedMatMul" => Err(scope.unsupported("fused products are not supported")),
        "Conv" => conv(scope),
        _ => Ok(None),
    }
}

fn transpose(scope: &mut Scope<'_, '_>, x: &Operand) -> Result<Operand> {
    let rank = scope.shape(x).len();
    let mut perm: Vec<usize> = (0..rank).collect();
    perm.swap(rank - 1, rank - 2);
    scope.emit(Transpose { perm }, &[x])
}

fn scaled(scope: &mut Scope<'_, '_>, x: Operand, scale: f64) -> Result<Operand> {
    if scale == 1.0 { Ok(x) } else { scope.emit(Unary(Function::Affine { scale, shift: 0.0 }), &[&x]) }
}

fn gemm(scope: &mut Scope<'_, '_>) -> Result<Option<Results>> {
    let (mut a, b) = (scope.input(0)?, scope.input(1)?);
    if scope.shape(&a).len() != 2 || scope.shape(&b).len() != 2 {
        return Err(scope.misshapen("Gemm multiplies matrices"));
    }
    if scope.int("transA", 0) != 0 {
        a = transpose(scope, &a)?;
    }
    let transposed = scope.int("transB", 0) != 0;
    let mut y = scope.emit(MatMul { transposed }, &[&a, &b])?;
    let (alpha, beta) = (scope.float("alpha", 1.0), scope.float("beta", 1.0));
    y = scaled(scope, y, alpha)?;
    if let Some(c) = scope.optional(2)
        && beta != 0.0
    {
        let c = scaled(scope, c, beta)?;
        y = scope.emit(Binary(Combine::Add), &[&y, &c])?;
    }
    scope.result(y)
}

fn matmul(scope: &mut Scope<'_, '_>) -> Result<Option<Results>> {
    let (mut a, mut b) = (scope.input(0)?, scope.input(1)?);
    // Vectors become matrices with one row or column.
    let (rank_a, rank_b) = (scope.shape(&a).len(), scope.shape(&b).len());
    if rank_a == 0 || rank_b == 0 {
        return Err(scope.misshapen("MatMul of a scalar"));
    }
    if rank_a == 1 {
        let shape = vec![1, scope.shape(&a)[0]];
        a = scope.emit(Reshape { shape }, &[&a])?;
    }
    if rank_b == 1 {
        let shape = vec![scope.shape(&b)[0], 1];
        b = scope.emit(Reshape { shape }, &[&b])?;
    }
    let (b, transposed) = untransposed(scope, b);
    let mut y = scope.emit(MatMul { transposed }, &[&a, &b])?;
    if rank_a == 1 || rank_b == 1 {
        let mut shape = scope.shape(&y);
        if rank_b == 1 {
            shape.pop();
        }
        if rank_a == 1 {
            shape.remove(shape.len() - if rank_b == 1 { 1 } else { 2 });
        }
        y = scope.emit(Reshape { shape }, &[&y])?;
    }
    scope.result(y)
}

/// A weight that the file transposes before the product is used as stored, so that its gradient stays an outer product.
fn untransposed(scope: &Scope<'_, '_>, b: Operand) -> (Operand, bool) {
    let Operand::Value(id) = b else { return (b, false) };
    let graph = scope.lowering.builder.graph();
    let Origin::Node(index) = graph.value(id).origin else { return (b, false) };
    let node = &graph.nodes()[index];
    let turned = node.op.as_any().downcast_ref::<Transpose>().is_some_and(|t| t.perm == [1, 0]);
    let source = node.inputs[0];
    if turned && matches!(graph.value(source).origin, Origin::Parameter(_)) {
        (Operand::Value(source), true)
    } else {
        (b, false)
    }
}

/// The largest stride, dilation, padding or kernel: products of two of them do not overflow.
pub(super) const MAX_STEP: usize = 1 << 24;

/// The sliding window of a Conv or pool node over input of these sizes.
pub(super) fn window(scope: &Scope<'_, '_>, input: &[usize], kernel: &[usize]) -> Result<Window> {
    let axes = input.len();
    let sizes = |name: &str, default: i64, count: usize| -> Result<Vec<usize>> {
        let values = scope.ints(name).unwrap_or_else(|| vec![default; count]);
        let size = |&value: &i64| usize::try_from(value).ok().filter(|&value| value <= MAX_STEP);
        let sizes: Option<Vec<usize>> = values.iter().map(size).collect();
        match sizes {
            Some(sizes) if sizes.len() == count => Ok(sizes),
            _ => Err(scope.unsupported(format!("{name} of {values:?} for {axes} axes of space"))),
        }
    };
    let mut window = Window {
        strides: sizes("strides", 1, axes)?,
        dilations: sizes("dilations", 1, axes)?,
        before: vec![0; axes],
        after: vec![0; axes],
    };
    match scope.text("auto_pad").unwrap_or("NOTSET") {
        "NOTSET" | "" => {
            let pads = sizes("pads", 0, 2 * axes)?;
            window.before.copy_from_slice(&pads[..axes]);
            window.after.copy_from_slice(&pads[axes..]);
        }
        "VALID" => {}
        mode @ ("SAME_UPPER" | "SAME_LOWER") => {
            for axis in 0..axes {
                let stride = window.strides[axis].max(1);
                let out = input[axis].div_ceil(stride);
                let extent = (kernel[axis].max(1) - 1) * window.dilations[axis] + 1;
                let total = (out.max(1) - 1) * stride + extent;
                let total = total.saturating_sub(input[axis]);
                let (small, large) = (total / 2, total - total / 2);
                let upper = mode == "SAME_UPPER";
                window.before[axis] = if upper { small } else { large };
                window.after[axis] = if upper { large } else { small };
            }
        }
        other => return Err(scope.unsupported(format!("auto_pad {other:?}"))),
    }
    Ok(window)
}

fn conv(scope: &mut Scope<'_, '_>) -> Result<Option<Results>> {
    let (x, w) = (scope.input(0)?, scope.input(1)?);
    let (x_shape, w_shape) = (scope.shape(&x), scope.shape(&w));
    if x_shape.len() < 3 || w_shape.len() != x_shape.len() {
        return Err(scope.misshapen(format!("Conv of {x_shape:?} with {w_shape:?}")));
    }
    if scope.batch(&w).is_some() || scope.optional(2).is_some_and(|bias| scope.batch(&bias).is_some()) {
        return Err(scope.unsupported("operand 1 or 2 depends on the data; it must be constant"));
    }
    if let Some(kernel) = scope.ints("kernel_shape")
        && !kernel.iter().map(|&size| usize::try_from(size).ok()).eq(w_shape[2..].iter().map(|&size| Some(size)))
    {
        return Err(scope.misshapen(format!("kernel_shape {kernel:?} with a weight of shape {w_shape:?}")));
    }
    let window = window(scope, &x_shape[2..], &w_shape[2..])?;
    let groups = usize::try_from(scope.int("group", 1)).unwrap_or(0).min(MAX_STEP);
    if w_shape[2..].iter().any(|&size| size > MAX_STEP) {
        return Err(scope.unsupported(format!("a kernel of {w_shape:?}")));
    }
    let conv = Conv { window, groups };
    let y = match scope.optional(2) {
        Some(bias) => scope.emit(conv, &[&x, &w, &bias])?,
        None => scope.emit(conv, &[&x, &w])?,
    };
    scope.result(y)
}
