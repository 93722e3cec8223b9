//! What decompositions take, refused before the work begins.

use crate::error::{Result, SpectralError};
use crate::exact::FORMED;
use mercer_run::Context;

/// So many times the bytes of the matrix, in double precision, are held at the highest: the matrix, its scaled copy, what the
/// decomposition works on, vectors, and their ordered copy. Measured: 6.8 for 4000 rows.
const WHOLE: usize = 7;

/// The same for features of which a few functions are wanted: these, and their copy in double precision, beside the square of
/// the smaller side. Measured: 2.3 to 2.7 for 20,000 × 2000; 2.9 for Nyström's features.
const FEATURES: usize = 3;

/// An error if the whole decomposition of a matrix, or of features, does not fit.
pub(crate) fn check_whole(what: &'static str, rows: usize, columns: usize, context: &Context) -> Result<()> {
    check(what, rows, columns, whole(rows, columns), context)
}

/// Bytes of the whole decomposition of a matrix, or of features.
pub(crate) fn whole(rows: usize, columns: usize) -> usize {
    [columns, WHOLE, size_of::<f64>()].into_iter().fold(rows, usize::saturating_mul)
}

/// An error if a few functions of features do not fit.
pub(crate) fn check_features(what: &'static str, rows: usize, columns: usize, context: &Context) -> Result<()> {
    check(what, rows, columns, features(rows, columns), context)
}

/// Bytes of a few functions of features.
pub(crate) fn features(rows: usize, columns: usize) -> usize {
    let side = rows.min(columns).min(FORMED);
    let numbers = rows.saturating_mul(columns).saturating_mul(FEATURES);
    numbers.saturating_add(WHOLE * side * side).saturating_mul(size_of::<f64>())
}

fn check(what: &'static str, rows: usize, columns: usize, needed: usize, context: &Context) -> Result<()> {
    let allowed = context.memory();
    if needed <= allowed { Ok(()) } else { Err(SpectralError::Memory { what, rows, columns, needed, allowed }) }
}
