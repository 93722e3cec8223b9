//! Memory of a comparison.

use crate::Error;
use crate::text::{bytes as shown, suggested};
use mercer_run::{Context, resident_memory};

/// Matrices with at most this many rows are decomposed, larger ones are factorised.
const SMALL: usize = 1024;

/// Code, stacks and small arrays that are touched for the first time.
const REST: usize = 32 << 20;

/// The sizes of a matrix: rows, columns, bytes of a number in the engine.
#[derive(Clone, Copy, Debug)]
pub(super) struct Held {
    pub(super) rows: usize,
    pub(super) test_rows: usize,
    /// Bytes of a number while it is computed; zero for a file, which is read when it is needed.
    pub(super) element: usize,
}

/// The bytes of a matrix in double precision.
fn numbers(rows: usize, columns: usize) -> usize {
    rows.saturating_mul(columns).saturating_mul(size_of::<f64>())
}

impl Held {
    /// Held while all pairs are compared; a kernel without weights is kept with its test samples.
    fn throughout(&self) -> usize {
        if self.element == 0 { 0 } else { numbers(self.rows.saturating_add(self.test_rows), self.rows) }
    }

    /// While it is computed: in the precision of the engine, and with the test samples.
    fn computing(&self) -> usize {
        let test = numbers(self.test_rows, self.rows);
        let engine = (self.rows.max(self.test_rows)).saturating_mul(self.rows).saturating_mul(self.element);
        test.saturating_add(engine)
    }

    /// While it is decomposed or factorised, or compared with another one of its size.
    fn working(&self) -> usize {
        let copies = if self.rows <= SMALL { 9 } else { 6 };
        numbers(self.rows, self.rows).saturating_mul(copies)
    }
}

/// Peak memory of the matrices. An error if it is more than may be used; otherwise also what the engine may use.
///
/// # Errors
/// Says what is needed.
pub(super) fn check(all: &[Held], training: usize, context: &Context) -> Result<(usize, Context), Error> {
    let sum = |of: fn(&Held) -> usize| all.iter().map(of).fold(0, usize::saturating_add);
    let most = |of: fn(&Held) -> usize| all.iter().map(of).max().unwrap_or(0);
    let matrices = sum(Held::throughout).saturating_add(most(Held::computing).max(most(Held::working)));
    let held = matrices.max(training).saturating_add(REST);
    let base = resident_memory();
    let needed = base.saturating_add(held);
    let allowed = context.promised_memory().unwrap_or_else(|| context.memory().saturating_add(base));
    if needed > allowed {
        let side = all.iter().map(|own| own.rows).max().unwrap_or(0);
        let text = format!(
            "‹memory› {} is too little: {} are needed for matrices of side {side}",
            shown(allowed),
            shown(needed)
        );
        let hint = format!("‹memory› {}, the smallest that would do; or fewer samples", suggested(needed));
        return Err(Error::with_code("memory", text).hint(hint));
    }
    let left = context.memory().saturating_sub(sum(Held::throughout)).saturating_sub(most(Held::computing));
    Ok((needed, context.with_memory(left)))
}
