//! What decompositions take, refused before the work begins.

use crate::error::{Result, SpectralError};
use mercer_kernel::gram::default_memory;

/// So many times the bytes of the matrix, in double precision, are held at the highest: the matrix, its scaled copy, what the
/// decomposition works on, vectors, and their ordered copy. Measured: 6.8 for 4000 rows.
pub(crate) const WHOLE: usize = 7;

/// The same for features of which a few functions are wanted: these, and their copy in double precision. Measured: 2.3 to 2.7 for
/// 20,000 × 2000; 2.9 for Nyström's features.
pub(crate) const FEATURES: usize = 3;

/// An error if `copies` of a matrix of `f64` do not fit.
pub(crate) fn check(what: &'static str, rows: usize, columns: usize, copies: usize) -> Result<()> {
    let needed = rows.saturating_mul(columns).saturating_mul(copies * size_of::<f64>());
    let allowed = default_memory();
    if needed <= allowed { Ok(()) } else { Err(SpectralError::Memory { what, rows, columns, needed, allowed }) }
}
