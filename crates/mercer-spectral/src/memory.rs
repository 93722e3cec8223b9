//! The memory of decompositions, checked before the work begins.

use crate::error::{Result, SpectralError};
use crate::exact::FORMED;
use mercer_run::Context;
use serde::Serialize;

/// Peak memory in multiples of the bytes of the matrix in double precision: the matrix, its scaled copy, the workspace
/// of the decomposition, the vectors, and their sorted copy. Measured: 6.8 for 4000 rows.
const WHOLE: usize = 7;

/// The same for a few functions of features: the features, their copy in double precision, and the square of the
/// smaller side. Measured: 2.3 to 2.7 for 20,000 × 2000; 2.9 for Nyström's features.
const FEATURES: usize = 3;

/// The memory that a decomposition needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct MemoryNeeds {
    /// What it is.
    pub what: &'static str,
    /// Its rows.
    pub rows: usize,
    /// Its columns.
    pub columns: usize,
    /// Peak bytes.
    pub bytes: usize,
}

impl MemoryNeeds {
    /// For a matrix that is only multiplied with, in this many copies.
    pub fn matrix<T>(what: &'static str, rows: usize, copies: usize) -> Self {
        let bytes = rows.saturating_mul(rows).saturating_mul(copies.max(1)).saturating_mul(size_of::<T>());
        Self { what, rows, columns: rows, bytes }
    }

    /// For the whole decomposition of a matrix, or of features.
    pub fn whole(what: &'static str, rows: usize, columns: usize) -> Self {
        let numbers = rows.saturating_mul(columns).saturating_mul(WHOLE);
        Self { what, rows, columns, bytes: numbers.saturating_mul(size_of::<f64>()) }
    }

    /// For a few functions of features.
    pub fn features(what: &'static str, rows: usize, columns: usize) -> Self {
        let side = rows.min(columns).min(FORMED);
        let numbers = rows.saturating_mul(columns).saturating_mul(FEATURES).saturating_add(WHOLE * side * side);
        Self { what, rows, columns, bytes: numbers.saturating_mul(size_of::<f64>()) }
    }

    /// The larger of both.
    pub fn or(self, other: Self) -> Self {
        if other.bytes > self.bytes { other } else { self }
    }

    /// Returns an error if it does not fit.
    ///
    /// # Errors
    /// [`SpectralError::Memory`].
    pub fn check(&self, context: &Context) -> Result<()> {
        let (Self { what, rows, columns, bytes: needed }, allowed) = (*self, context.memory());
        if needed <= allowed { Ok(()) } else { Err(SpectralError::Memory { what, rows, columns, needed, allowed }) }
    }
}
