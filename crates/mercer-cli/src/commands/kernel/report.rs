//! What a run says about itself.

use super::KernelArguments;
use super::target::Room;
use crate::format::{bytes, count, duration, grouped, rounded_up, shape, table};
use crate::options::{Precision, Real, Samples};
use mercer::kernel::empirical::{Choice, Form};
use mercer::kernel::gram::{Estimate, Listing, Outcome, Plan};
use mercer::kernel::store::Layout;
use mercer::kernel::{Built, KernelError};
use serde::Serialize;
use std::path::PathBuf;

/// What `--json` shows.
#[derive(Debug, Serialize)]
pub(super) struct KernelReport {
    network: Option<String>,
    kind: String,
    sketch: Option<String>,
    /// Random networks that the kernel is a mean over.
    networks: Option<usize>,
    precision: Precision,
    data: String,
    against: Option<String>,
    shape: Vec<usize>,
    #[serde(skip)]
    by_layer: bool,
    /// The names of the matrices; one, one per layer, or one and its standard errors.
    matrices: Vec<String>,
    tiles: usize,
    pub(super) tiles_done: usize,
    pub(super) complete: bool,
    pub(super) output: Option<String>,
    pub(super) files: Vec<String>,
    /// Of work; reading and writing apart.
    seconds: Option<f64>,
    reading_seconds: Option<f64>,
    writing_seconds: Option<f64>,
    gflop: Option<f64>,
    gflop_per_second: Option<f64>,
    peak_bytes: Option<usize>,
    /// What `--memory` promised, or the default.
    promised_bytes: Option<usize>,
    /// Whether the peak was above the promise.
    pub(super) promise_broken: Option<bool>,
    pub(super) plan: Option<Plan>,
    /// Of the numbers of all matrices.
    result_bytes: u64,
    /// What the result takes of the disk, and what there is, before the run.
    pub(super) disk: Option<Room>,
    /// Only of a plan.
    pub(super) estimate: Option<Estimate>,
    /// What was chosen per parameter.
    layers: Vec<Choice>,
}

impl KernelReport {
    pub(super) fn begin<T: Real>(
        arguments: &KernelArguments,
        layout: &Layout,
        built: &Built<T>,
        rows: &Samples,
        columns: Option<&Samples>,
    ) -> Self {
        Self {
            network: arguments.kernel.file().map(|file| file.display().to_string()),
            kind: arguments.kernel.name(),
            sketch: arguments.kernel.sketch().map(str::to_owned),
            networks: arguments.kernel.networks(),
            by_layer: arguments.by_layer,
            precision: arguments.precision,
            data: rows.places(),
            against: columns.map(Samples::places),
            shape: layout.shape(),
            matrices: layout.arrays.clone(),
            tiles: layout.n_tiles(),
            tiles_done: 0,
            complete: false,
            output: None,
            files: Vec::new(),
            seconds: None,
            reading_seconds: None,
            writing_seconds: None,
            gflop: None,
            gflop_per_second: None,
            peak_bytes: None,
            promised_bytes: None,
            promise_broken: None,
            plan: None,
            result_bytes: layout.bytes(),
            disk: None,
            estimate: None,
            layers: built.choices.clone(),
        }
    }

    pub(super) fn finish(&mut self, outcome: Outcome, plan: Plan) {
        self.seconds = Some(outcome.seconds);
        self.reading_seconds = Some(outcome.reading);
        self.writing_seconds = Some(outcome.writing);
        self.gflop = Some(outcome.gflop);
        self.gflop_per_second = Some(outcome.gflop / outcome.seconds.max(1e-9));
        self.peak_bytes = Some(outcome.peak);
        self.promised_bytes = Some(outcome.promised);
        self.promise_broken = Some(outcome.peak > outcome.promised);
        self.plan = Some(plan);
    }

    /// The list of the matrices, with all that `--json` shows.
    pub(super) fn listing(&self) -> Listing {
        let files = self.files.iter().map(PathBuf::from).collect();
        let mut listing = Listing::new(self.matrices.clone(), files);
        if let Ok(serde_json::Value::Object(mut about)) = serde_json::to_value(self) {
            about.retain(|name, _| name != "matrices" && name != "files");
            listing.about = about;
        }
        listing
    }

    /// Refuses a result that the disk has no room for.
    pub(super) fn check_disk(&self) -> Result<(), KernelError> {
        match &self.disk {
            // A run that is over has found its room.
            Some(room) if !self.complete && self.output.is_none() => room.check(),
            _ => Ok(()),
        }
    }

    pub(super) fn text(&self) -> String {
        let mut text = String::new();
        if let (Some(plan), Some(estimate)) = (&self.plan, &self.estimate) {
            text += &self.plan_text(plan, estimate);
        }
        if let (Some(seconds), Some(gflop), Some(rate)) = (self.seconds, self.gflop, self.gflop_per_second) {
            let tiles = self.plan.as_ref().map_or(0, |plan| plan.tiles);
            text += &format!(
                "{} in {} ({gflop:.*} GFLOP, {rate:.0} GF/s",
                count(tiles, "tile"),
                duration(seconds),
                if gflop < 10.0 { 3 } else { 0 }
            );
            if let Some(peak) = self.peak_bytes.filter(|&peak| peak > 0) {
                text += &format!(", {} at the peak", bytes(peak));
            }
            text += ")\n";
        }
        let what = if self.layers.is_empty() || self.sketch.is_some() { String::new() } else { self.forms() };
        text += &what;
        if let Some(output) = &self.output {
            let (what, size) = (&self.kind, shape(&self.shape));
            text += &match self.matrices.len() {
                layers if self.by_layer => {
                    format!(
                        "{what} of {layers} layers, each of shape {size}; listed in {}\n",
                        Listing::path(output.as_ref()).display()
                    )
                }
                _ => format!("{what} of shape {size} in {output}\n"),
            };
            if !self.complete {
                let (done, all) = (grouped(self.tiles_done), grouped(self.tiles));
                text += &format!("{done} of {all} tiles are there; --resume computes the others\n");
            }
        }
        if self.matrices.len() > 1 {
            let rows: Vec<Vec<String>> =
                self.matrices.iter().zip(&self.files).map(|(layer, file)| vec![layer.clone(), file.clone()]).collect();
            text += &table(&rows, &[]);
        }
        text
    }

    fn plan_text(&self, plan: &Plan, estimate: &Estimate) -> String {
        let room = match &self.disk {
            None => String::new(),
            Some(Room { needed, free: None, .. }) => format!("; {} to write", bytes(*needed as usize)),
            Some(Room { needed, free: Some(free), .. }) => {
                format!("; {} to write, {} are free", bytes(*needed as usize), bytes(*free as usize))
            }
        };
        let rows = [
            ["result".to_owned(), format!("{} of shape {}, {:?}", self.kind, shape(&self.shape), self.precision)],
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
            ["disk".to_owned(), format!("{} of numbers{room}", bytes(self.result_bytes as usize))],
            ["work".to_owned(), format!("{:.1} GFLOP", plan.gflop)],
            [
                "time".to_owned(),
                format!("about {} at {:.0} GF/s", duration(estimate.seconds), estimate.gflop_per_second),
            ],
        ];
        table(&rows.map(|row| row.to_vec()), &[])
    }

    /// How many parameters are kept in which form.
    fn forms(&self) -> String {
        let number = |form: Form| self.layers.iter().filter(|choice| choice.form == form).count();
        let (factored, explicit) = (number(Form::Factored), number(Form::Explicit));
        let absorbed = number(Form::Absorbed);
        let mut text = format!("{} contracted factored", count(factored + absorbed, "parameter"));
        text += &format!(", {explicit} as explicit gradients\n");
        text
    }
}
