//! Resizing images: a lookup (nearest) or a product with a matrix of weights (linear), axis by axis.

use super::constant::{Host, NumberKind};
use super::scope::{Operand, Results, Scope};
use crate::error::Result;
use crate::op::{Gather, MatMul, Transpose};

pub(super) fn lower(scope: &mut Scope<'_, '_>) -> Result<Option<Results>> {
    let x = scope.input(0)?;
    let shape = scope.shape(&x);
    let rank = shape.len();
    let (scales_at, sizes_at) = if scope.op() == "Upsample" || scope.opset() < 11 { (1, 9) } else { (2, 3) };
    let axes = match scope.ints("axes") {
        Some(axes) => scope.axes(&axes, rank)?,
        None => (0..rank).collect(),
    };
    let mut scales = vec![1.0; rank];
    let mut sizes = shape.clone();
    let given = match scope.node.attribute("scales") {
        Some(crate::onnx::model::Attribute::Floats(values)) => Some(values.iter().map(|&s| f64::from(s)).collect()),
        _ => scope.constant(scales_at)?.map(|host| host.data.to_vec()).filter(|data| !data.is_empty()),
    };
    if let Some(given) = given {
        let given: Vec<f64> = given;
        if given.len() != axes.len() {
            return Err(scope.misshapen("a scale per axis is needed"));
        }
        for (&axis, scale) in axes.iter().zip(given) {
            let size = shape[axis] as f64 * scale;
            // Implementations disagree on whether the last corner uses the size before or after rounding.
            if size != size.floor() && scope.text("coordinate_transformation_mode") == Some("align_corners") {
                return Err(scope.unsupported("aligned corners with a fractional size"));
            }
            scales[axis] = scale;
            sizes[axis] = size.floor() as usize;
        }
    } else if let Some(given) = scope.integers(sizes_at)? {
        if given.len() != axes.len() || scope.text("keep_aspect_ratio_policy").is_some_and(|p| p != "stretch") {
            return Err(scope.unsupported("these sizes"));
        }
        for (&axis, size) in axes.iter().zip(given) {
            sizes[axis] = usize::try_from(size).unwrap_or(0);
            scales[axis] = sizes[axis] as f64 / shape[axis] as f64;
        }
    } else {
        return Err(scope.misshapen("scales or sizes are needed"));
    }
    scope.check_result(&sizes)?;
    if shape.contains(&0) || sizes.contains(&0) {
        return Err(scope.misshapen(format!("cannot resize {shape:?} to {sizes:?}")));
    }
    let mode = scope.text("mode").unwrap_or("nearest");
    let old = scope.op() == "Upsample" || scope.opset() < 11;
    let transform =
        scope.text("coordinate_transformation_mode").unwrap_or(if old { "asymmetric" } else { "half_pixel" });
    let mut y = x;
    for axis in (0..rank).filter(|&axis| sizes[axis] != shape[axis] || scales[axis] != 1.0) {
        let (from, to, scale) = (shape[axis], sizes[axis], scales[axis]);
        let at = |index: usize| -> Option<f64> {
            let index = index as f64;
            Some(match transform {
                "asymmetric" => index / scale,
                "half_pixel" => (index + 0.5) / scale - 0.5,
                "pytorch_half_pixel" => {
                    if to > 1 {
                        (index + 0.5) / scale - 0.5
                    } else {
                        0.0
                    }
                }
                "align_corners" => {
                    if to > 1 {
                        index * (from as f64 - 1.0) / (to as f64 - 1.0)
                    } else {
                        0.0
                    }
                }
                _ => return None,
            })
        };
        scope.spend_constant(&[to])?;
        let places: Option<Vec<f64>> = (0..to).map(at).collect();
        let Some(places) = places else { return Err(scope.unsupported(format!("coordinates by {transform:?}"))) };
        y = match mode {
            "nearest" => {
                let rounding = scope.text("nearest_mode").unwrap_or(if old { "floor" } else { "round_prefer_floor" });
                let round = |p: f64| match rounding {
                    "floor" => p.floor(),
                    "ceil" => p.ceil(),
                    "round_prefer_ceil" => (p + 0.5).floor(),
                    _ => (p - 0.5).ceil(),
                };
                scope.spend_constant(&[to])?;
                let indices = places.iter().map(|&p| round(p).clamp(0.0, from as f64 - 1.0)).collect();
                let indices = Operand::Constant(Host::new(vec![to], indices, NumberKind::Int));
                scope.emit(Gather { axis }, &[&y, &indices])?
            }
            "linear" | "bilinear" | "trilinear" if scope.int("antialias", 0) == 0 => {
                interpolate(scope, &y, axis, from, &places)?
            }
            other => return Err(scope.unsupported(format!("resizing by {other:?}"))),
        };
    }
    scope.result(y)
}

/// `y = x · Wᵀ` along `axis`, with two non-zero weights in each row of `W`.
fn interpolate(scope: &mut Scope<'_, '_>, x: &Operand, axis: usize, from: usize, places: &[f64]) -> Result<Operand> {
    let to = places.len();
    scope.spend_constant(&[to, from])?;
    let mut weights = vec![0.0; to * from];
    for (row, &place) in places.iter().enumerate() {
        let place = place.clamp(0.0, from as f64 - 1.0);
        let low = place.floor() as usize;
        let high = (low + 1).min(from - 1);
        let part = place - low as f64;
        weights[row * from + low] += 1.0 - part;
        weights[row * from + high] += part;
    }
    let weights = Operand::Constant(Host::new(vec![to, from], weights, NumberKind::Float));
    let rank = scope.shape(x).len();
    let mut perm: Vec<usize> = (0..rank).collect();
    perm.swap(axis, rank - 1);
    let last = if axis + 1 == rank { x.clone() } else { scope.emit(Transpose { perm: perm.clone() }, &[x])? };
    let y = scope.emit(MatMul { transposed: true }, &[&last, &weights])?;
    if axis + 1 == rank { Ok(y) } else { scope.emit(Transpose { perm }, &[&y]) }
}
