//! The memory of a fit, before anything is computed.

use super::machine::MachineSpec;
use super::training::Opened;
use crate::Error;
use crate::spec::Known;
use crate::text::{bytes as shown, suggested};
use mercer_learn::SampleKind;
use mercer_run::{Context, resident_memory};

/// Copies of the rows while folds are made: all rows against those that are kept, and those against themselves.
const FOLDED: usize = 2;

/// Code, stacks and small arrays that a fit touches for the first time. Without it, of 15 fits near their smallest
/// memory, one exceeded it by 3 %.
const REST: usize = 6 << 20;

/// The bytes of rows and solver together.
pub(super) fn bytes(machine: &MachineSpec, training: &Opened, known: &Known) -> Result<usize, Error> {
    let (n, width) = training.dim();
    let n_classes = match known {
        Known::Classes(classes) => classes.n_classes(),
        Known::Numbers(_) => 0,
    };
    let mut held = machine.held(n_classes);
    if machine.is_selected() && machine.name().is_classifier() {
        held.rows += FOLDED;
    }
    let (rows, square) = (n.saturating_mul(width), n.saturating_mul(n));
    let formed = usize::from(held.forms_gram && training.basis() == SampleKind::Features);
    let solver = rows.saturating_mul(held.rows).saturating_add(square.saturating_mul(held.squares + formed));
    let most = solver.max(rows.saturating_mul(training.copies() - 1));
    let fitting = rows.saturating_add(most).saturating_mul(size_of::<f64>()).saturating_add(resident_memory());
    Ok(fitting.saturating_add(REST).max(training.least_bytes()?))
}

/// An error if it is more than may be used.
pub(super) fn check(needed: usize, machine: &MachineSpec, context: &Context) -> Result<(), Error> {
    // Without a promise what the process holds already is no part of what is free.
    let allowed = context.promised_memory().unwrap_or_else(|| context.memory().saturating_add(resident_memory()));
    if needed <= allowed {
        return Ok(());
    }
    let text = format!(
        "{} needs about {} for the rows and its solver, but {} may be used",
        machine.name(),
        shown(needed),
        shown(allowed)
    );
    Err(Error::with_code("memory", text).hint(format!("‹memory› {}, or fewer samples", suggested(needed))))
}
