//! The outcome of a job: findings, artefacts and measurements.

use mercer_run::{Context, Timed, peak_memory};
use serde::{Deserialize, Serialize};
use std::time::Instant;

/// The outcome of a job.
#[derive(Clone, Debug, Serialize)]
pub struct Outcome<F> {
    /// The findings, which are the same for the same job and inputs.
    #[serde(flatten)]
    pub findings: F,
    /// What was written.
    pub artefacts: Vec<Artefact>,
    /// Notes for the user.
    pub notes: Vec<String>,
    /// The measurements, which differ from run to run.
    pub measurements: Measurements,
}

/// A file or folder that was written.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Artefact {
    /// Its name within the outcome, such as `psi.npy`.
    pub name: String,
    /// The file or folder.
    pub path: String,
    /// Of an array.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub shape: Vec<usize>,
    /// The type of its numbers.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub dtype: Option<String>,
}

impl Artefact {
    /// A file.
    pub fn file(name: impl Into<String>, path: impl Into<String>) -> Self {
        Self { name: name.into(), path: path.into(), shape: Vec::new(), dtype: None }
    }

    /// An array in a file.
    pub fn array(name: impl Into<String>, path: impl Into<String>, shape: &[usize], dtype: &str) -> Self {
        Self { shape: shape.to_vec(), dtype: Some(dtype.to_owned()), ..Self::file(name, path) }
    }
}

/// Time and memory of a job.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Measurements {
    /// Seconds from beginning to end.
    pub seconds: f64,
    /// The seconds of each named phase.
    pub phases: Vec<PhaseTime>,
    /// The peak memory of the process so far.
    pub peak_bytes: usize,
    /// The memory limit, if there was one.
    pub promised_bytes: Option<usize>,
    /// Whether the peak exceeded the limit.
    pub promise_broken: bool,
    /// Other measurements, and choices that depend on the machine.
    #[serde(flatten)]
    pub others: serde_json::Map<String, serde_json::Value>,
}

/// A phase of the work.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PhaseTime {
    /// What was done.
    pub name: String,
    /// How long it took.
    pub seconds: f64,
}

impl Measurements {
    /// Adds another measurement.
    pub fn note(&mut self, name: &str, value: &impl Serialize) {
        if let Ok(value) = serde_json::to_value(value) {
            self.others.insert(name.to_owned(), value);
        }
    }

    /// Another measurement, if it is a number.
    pub fn number(&self, name: &str) -> Option<f64> {
        self.others.get(name).and_then(serde_json::Value::as_f64)
    }

    /// The seconds of one part.
    pub fn phase(&self, name: &str) -> f64 {
        self.phases.iter().find(|phase| phase.name == name).map_or(0.0, |phase| phase.seconds)
    }
}

/// Measures a job from the moment it is opened.
#[derive(Clone, Copy, Debug)]
pub struct Stopwatch {
    start: Instant,
}

impl Stopwatch {
    /// Begins.
    pub fn start() -> Self {
        Self { start: Instant::now() }
    }

    /// The measurements so far. A peak above the memory limit is noted.
    pub fn measure(self, context: &Context) -> Measurements {
        let phase = |Timed { name, seconds }| PhaseTime { name: name.to_owned(), seconds };
        let (peak_bytes, promised_bytes) = (peak_memory(), context.promised_memory());
        if let Some(promised) = promised_bytes.filter(|&promised| peak_bytes > promised) {
            use crate::text::bytes;
            context.note(&format!(
                "{} were used at the peak, more than the {} of ‹memory›",
                bytes(peak_bytes),
                bytes(promised)
            ));
        }
        Measurements {
            seconds: self.start.elapsed().as_secs_f64(),
            phases: context.phases().into_iter().map(phase).collect(),
            peak_bytes,
            promise_broken: promised_bytes.is_some_and(|promised| peak_bytes > promised),
            promised_bytes,
            others: serde_json::Map::new(),
        }
    }

    /// The outcome with these findings and artefacts, and all notes.
    pub fn outcome<F>(self, findings: F, artefacts: Vec<Artefact>, context: &Context) -> Outcome<F> {
        let measurements = self.measure(context);
        Outcome { findings, artefacts, notes: context.notes(), measurements }
    }
}
