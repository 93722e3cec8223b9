//! `mercer compare`: how similar two kernels are.

use crate::console::Console;
use crate::format::table;
use mercer::Error;
use mercer::job::compare::CompareFindings;
use mercer::job::{CompareJob, Destination, Job, Opened, Outcome};
use mercer::text::duration;

const EXAMPLES: &str = "\
Examples:
  mercer compare trace.npy pseudo.npy                         can the cheap kernel replace the other?
  mercer compare exact.zarr sketch.zarr limit.npy             all pairs

The matrices must belong to the same samples in the same order. `distance` is ‖A − B‖/‖A‖. `CKA` is the debiased centred
kernel alignment: 1 if one kernel is a multiple of the other, 0 on average if they have nothing in common.";

/// Compare Gram matrices of the same samples: distance, alignment, extreme eigenvalues
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct CompareArguments {
    /// Gram matrices: .npy files or .zarr stores
    #[arg(value_name = "GRAM", required = true, num_args = 2..)]
    grams: Vec<String>,
}

impl CompareArguments {
    pub(crate) fn run(&self, console: &Console) -> Result<(), Error> {
        let job = CompareJob { grams: self.grams.clone() };
        let outcome = job.open(&Destination::default(), console.opening())?.run(console.context())?;
        console.result(&outcome, || text(&outcome))
    }
}

fn text(outcome: &Outcome<CompareFindings>) -> String {
    let row = |cells: &[&str]| cells.iter().map(|&cell| cell.to_owned()).collect::<Vec<_>>();
    let found = &outcome.findings;
    let mut pairs = vec![row(&["", "", "distance", "CKA"])];
    pairs.extend(found.pairs.iter().map(|pair| {
        let cka = pair.likeness.cka.map_or("–".to_owned(), |cka| format!("{cka:.4}"));
        vec![pair.a.clone(), pair.b.clone(), format!("{:.4}", pair.likeness.frobenius), cka]
    }));
    let mut matrices = vec![row(&["", "largest λ", "smallest λ", "condition"])];
    matrices.extend(found.matrices.iter().map(|matrix| {
        let extent = &matrix.extent;
        let condition = extent.condition.map_or("–".to_owned(), |condition| format!("{condition:.3e}"));
        vec![matrix.name.clone(), format!("{:.4e}", extent.lambda_max), format!("{:.4e}", extent.lambda_min), condition]
    }));
    let seconds = duration(outcome.measurements.seconds);
    format!("{}\n{}compared in {seconds}\n", table(&pairs, &[2, 3]), table(&matrices, &[1, 2, 3]))
}
