//! The import budget: one limit for everything that reading a network creates.
//!
//! A few hundred bytes can request gigabytes: a range, a constant of a given shape, a function that is called a
//! thousand times. Limits on single pieces do not help, because there can be many. So everything an import creates is
//! counted together before it is created: decoded tensors and nodes, computed constants (including those for two
//! samples), inlined functions, primitives, and results shared by all samples. The limit is sixteen times the size of
//! the file and its external data, or 256 MiB if that is more. The time spent on constants is bounded in the same way.

use crate::error::{NetError, Result};

/// The bytes that every network may take, however small its file.
pub const IMPORT_FLOOR: usize = 256 << 20;

/// Bytes allowed per byte on disk: a one-byte integer becomes eight bytes, and a constant is stored up to three times.
const MULTIPLE: usize = 16;

/// Operations on constants per byte of the limit.
const WORK: u64 = 16;

/// What the import may still create.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Budget {
    limit: usize,
    spent: usize,
    work: u64,
    /// Whether the limit grows with the bytes on disk.
    grows: bool,
    there: usize,
}

impl Budget {
    /// A budget for a file of this many bytes. A limit given by the user is used as it is.
    pub(crate) fn new(limit: Option<usize>, there: usize) -> Self {
        let mut budget = Self { limit: limit.unwrap_or(0), spent: 0, work: 0, grows: limit.is_none(), there: 0 };
        budget.found(there);
        budget
    }

    /// A budget for networks that are built in code.
    pub(crate) fn unlimited() -> Self {
        Self::new(Some(usize::MAX), 0)
    }

    /// Adds bytes found on disk, such as external data.
    pub(crate) fn found(&mut self, bytes: usize) {
        self.there = self.there.saturating_add(bytes);
        if self.grows {
            self.limit = self.there.saturating_mul(MULTIPLE).max(IMPORT_FLOOR);
        }
    }

    /// Spends bytes on something that is about to be created; `place` names it in the error.
    pub(crate) fn spend(&mut self, place: impl FnOnce() -> String, bytes: usize) -> Result<()> {
        let total = self.spent.saturating_add(bytes);
        if total > self.limit {
            return Err(NetError::OverBudget { place: place(), bytes, spent: self.spent, limit: self.limit });
        }
        self.spent = total;
        Ok(())
    }

    /// As [`spend`](Self::spend), for an array of numbers.
    pub(crate) fn spend_numbers(&mut self, place: impl FnOnce() -> String, count: usize) -> Result<()> {
        self.spend(place, count.saturating_mul(size_of::<f64>()))
    }

    /// Spends operations on constants.
    pub(crate) fn work(&mut self, place: impl FnOnce() -> String, operations: u64) -> Result<()> {
        self.work = self.work.saturating_add(operations);
        if self.work > WORK.saturating_mul(self.limit as u64) {
            return Err(NetError::TooMuchWork { place: place() });
        }
        Ok(())
    }
}

impl Default for Budget {
    fn default() -> Self {
        Self::unlimited()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_counted_together() {
        let mut budget = Budget::new(None, 100);
        let spend = |budget: &mut Budget, bytes| budget.spend(|| "node".to_owned(), bytes);
        assert!(spend(&mut budget, IMPORT_FLOOR / 2).is_ok());
        assert!(spend(&mut budget, IMPORT_FLOOR / 2).is_ok());
        let error = spend(&mut budget, 1).unwrap_err();
        assert!(matches!(error, NetError::OverBudget { bytes: 1, spent: IMPORT_FLOOR, .. }), "{error}");
        budget.found(IMPORT_FLOOR);
        assert!(spend(&mut budget, 1).is_ok());
        assert!(spend(&mut Budget::new(Some(10), 1 << 40), 11).is_err());
        assert!(spend(&mut Budget::unlimited(), usize::MAX).is_ok());
    }
}
