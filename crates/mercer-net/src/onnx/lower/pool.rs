//! Pools.

use super::linear::{MAX_STEP, window};
use super::scope::{Results, Scope};
use crate::error::Result;
use crate::op::{Pool, Pooling, Reduce, Reduction};

pub(super) fn lower(scope: &mut Scope<'_, '_>) -> Result<Option<Results>> {
    let average = match scope.op() {
        "MaxPool" => false,
        "AveragePool" => true,
        "GlobalAveragePool" => return global(scope, Reduction::Mean),
        "GlobalMaxPool" => return global(scope, Reduction::Max),
        _ => return Ok(None),
    };
    let x = scope.input(0)?;
    let shape = scope.shape(&x);
    let kernel: Option<Vec<usize>> =
        scope.ints("kernel_shape").and_then(|k| k.iter().map(|&k| usize::try_from(k).ok()).collect());
    let Some(kernel) = kernel.filter(|kernel| shape.len() >= 3 && kernel.len() + 2 == shape.len()) else {
        return Err(scope.misshapen(format!("a pool over {shape:?} needs a kernel per axis of space")));
    };
    if kernel.iter().any(|&size| size > MAX_STEP) {
        return Err(scope.unsupported(format!("a kernel of {kernel:?}")));
    }
    scope.check_result(&kernel)?;
    if scope.node.outputs.get(1).is_some_and(|name| !name.is_empty()) {
        return Err(scope.unsupported("the indices of a max pool as an output"));
    }
    let window = window(scope, &shape[2..], &kernel)?;
    let kind =
        if average { Pooling::Average { count_padding: scope.int("count_include_pad", 0) != 0 } } else { Pooling::Max };
    let round_up = scope.int("ceil_mode", 0) != 0;
    let y = scope.emit(Pool { kind, kernel, window, round_up }, &[&x])?;
    scope.result(y)
}

fn global(scope: &mut Scope<'_, '_>, kind: Reduction) -> Result<Option<Results>> {
    let x = scope.input(0)?;
    let axes = (2..scope.shape(&x).len()).collect();
    let y = scope.emit(Reduce { kind, axes, keep: true }, &[&x])?;
    scope.result(y)
}
