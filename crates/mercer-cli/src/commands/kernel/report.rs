//! Text output of the command.

use crate::format::table;
use mercer::job::Outcome;
use mercer::job::kernel::{KernelFindings, KernelPlan, Room};
use mercer::kernel::empirical::NtkForm;
use mercer::kernel::gram::Listing;
use mercer::text::{bytes, count, duration, grouped, rounded_up, shape};

/// Describes the result.
pub(super) fn outcome(outcome: &Outcome<KernelFindings>) -> String {
    let (found, measured) = (&outcome.findings, &outcome.measurements);
    let mut text = format!(
        "{} in {} ({:.*} GFLOP, {:.0} GF/s, {} at the peak)\n",
        count(found.tiles_computed, "tile"),
        duration(measured.seconds),
        if found.gflop < 10.0 { 3 } else { 0 },
        found.gflop,
        measured.number("gflop_per_second").unwrap_or(0.0),
        bytes(measured.peak_bytes)
    );
    if !found.layers.is_empty() {
        text += &forms(found);
    }
    let (what, size) = (&found.kernel, shape(&found.shape));
    text += &if found.by_layer {
        let (layers, listing) = (found.matrices.len(), Listing::path(found.output.as_ref()));
        format!("{what} of {layers} layers, each of shape {size}; listed in {}\n", listing.display())
    } else {
        format!("{what} of shape {size} in {}\n", found.output)
    };
    if !found.complete {
        let (done, all) = (grouped(found.tiles_done), grouped(found.tiles));
        text += &format!("{done} of {all} tiles are complete; --resume computes the others\n");
    }
    if found.matrices.len() > 1 {
        let rows = found.matrices.iter().zip(&found.files);
        let rows: Vec<Vec<String>> = rows.map(|(layer, file)| vec![layer.clone(), file.clone()]).collect();
        text += &table(&rows, &[]);
    }
    text
}

/// Describes the planned work.
pub(super) fn plan(planned: &KernelPlan) -> String {
    let (plan, estimate) = (&planned.plan, &planned.estimate);
    let room = match &planned.disk {
        None => String::new(),
        Some(Room { needed, free: None, .. }) => format!("; {} to write", bytes(*needed as usize)),
        Some(Room { needed, free: Some(free), .. }) => {
            format!("; {} to write, {} are free", bytes(*needed as usize), bytes(*free as usize))
        }
    };
    let rows = [
        ["result".to_owned(), format!("{} of shape {}, {}", planned.kernel, shape(&planned.shape), planned.precision)],
        ["tiles".to_owned(), format!("{} of {} × {} samples", grouped(plan.tiles), plan.tile, plan.tile)],
        [
            "blocks".to_owned(),
            format!(
                "{} × {}, {} each; {} stay in memory, {} prepared in all",
                plan.blocks[0],
                plan.blocks[1],
                bytes(plan.block_bytes),
                plan.resident_blocks,
                plan.prepared_blocks
            ),
        ],
        ["memory".to_owned(), format!("{}; at least {}", bytes(plan.bytes), rounded_up(plan.least_bytes))],
        ["disk".to_owned(), format!("{} of numbers{room}", bytes(planned.result_bytes as usize))],
        ["work".to_owned(), format!("{:.1} GFLOP", plan.gflop)],
        ["time".to_owned(), format!("about {} at {:.0} GF/s", duration(estimate.seconds), estimate.gflop_per_second)],
    ];
    table(&rows.map(|row| row.to_vec()), &[])
}

/// The number of parameters in each form.
fn forms(found: &KernelFindings) -> String {
    let number = |form: NtkForm| found.layers.iter().filter(|choice| choice.form == form).count();
    let (factored, explicit) = (number(NtkForm::Factored) + number(NtkForm::Absorbed), number(NtkForm::Explicit));
    format!("{} contracted factored, {explicit} as explicit gradients\n", count(factored, "parameter"))
}
