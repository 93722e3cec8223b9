//! The memory of kernel rows and the machine on them, before anything is computed.

use super::{Classified, KernelRows};
use crate::Error;
use crate::text::{bytes as shown, suggested};
use mercer_kernel::Real;
use mercer_kernel::gram::{FeatureRun, Gram};
use mercer_run::{Context, resident_memory};

/// Code, stacks and small arrays that are touched for the first time.
const REST: usize = 16 << 20;

/// Columns of all samples and classes that a solver holds: weights, directions, scores.
const COLUMNS: usize = 40;

/// The bytes of the rows of a kernel and a machine on them. A machine may need the Gram matrix of features.
pub(crate) fn needed_bytes<T: Real>(rows: &KernelRows<T>, known: &Classified, gram: bool) -> Result<usize, Error> {
    let (n, double) = (known.samples.n_samples, size_of::<f64>());
    let free = Context::new().with_memory(usize::MAX);
    let failed = |error| rows.spec.failure(error);
    let square = n.saturating_mul(n).saturating_mul(double);
    let solver = n.saturating_mul(known.classes.n_classes()).saturating_mul(COLUMNS * double);
    let own = match rows.map() {
        Some(map) => {
            let run = FeatureRun::new(&**map, &known.samples.inputs);
            let plan = run.plan(&run.layout().all_tiles(), &free).map_err(failed)?;
            let width = map.n_features();
            let held = n.saturating_mul(width).saturating_mul(size_of::<T>());
            // The products of features with each other, factorised.
            let side = width.saturating_mul(width).saturating_mul(4 * double);
            // With more features than samples, their Gram matrix and a copy of it for folds or a factorisation.
            let formed = if gram || width > n { square.saturating_mul(2) } else { side.min(square.saturating_mul(2)) };
            held.saturating_add(plan.least_bytes.max(formed.saturating_add(solver)))
        }
        None => {
            let run = Gram::new(&*rows.built.kernel, &known.samples.inputs);
            let plan = run.plan(&run.layout().all_tiles(), &free).map_err(failed)?;
            // Rows are copied once, for folds or for a factorisation.
            square.saturating_add(plan.least_bytes.max(square.saturating_add(solver)))
        }
    };
    Ok(own.saturating_add(resident_memory()).saturating_add(REST))
}

/// An error if it is more than may be used.
pub(crate) fn check_memory(needed: usize, n_train: usize, context: &Context) -> Result<(), Error> {
    // Without a promise, what the process holds already is no part of what is free.
    let allowed = context.promised_memory().unwrap_or_else(|| context.memory().saturating_add(resident_memory()));
    if needed <= allowed {
        return Ok(());
    }
    let text = format!(
        "the kernel of {n_train} training samples and its machine need about {}, but {} may be used",
        shown(needed),
        shown(allowed)
    );
    let hint = format!(
        "‹memory› {}; or fewer samples; or a kernel with features: ‹kernel› 'normalised(trace(sketch=sjlt:4096, total=true))'",
        suggested(needed)
    );
    Err(Error::with_code("memory", text).hint(hint))
}
