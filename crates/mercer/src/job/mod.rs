//! Jobs: pieces of work, shared by all interfaces.
//!
//! A job is data: a plain struct that can be serialised. [`Job::open`] reads headers, builds the network and the kernel
//! once, and checks memory and destination, so that a dry run and a run share one path. [`Opened::plan`] describes the
//! work, and [`Opened::run`] does it. The result is an [`Outcome`]: findings, which are the same for the same job,
//! artefacts, and measurements, which vary.
//!
//! The destination ([`Destination`]), the memory limit and the threads ([`Context`]) are not part of a job, because
//! results do not depend on them.
//!
//! ```
//! use mercer::data::{Existing, write_npy};
//! use mercer::job::{CompareJob, Destination, Job, Opened};
//! use mercer::prelude::Context;
//! use mercer::spec::{Inputs, Opening};
//!
//! let folder = tempfile::tempdir()?;
//! let gram = ndarray::Array2::from_shape_fn((5, 5), |(i, j)| 1.0 / (1.0 + i.abs_diff(j) as f64));
//! let file = |name: &str| folder.path().join(name).display().to_string();
//! write_npy(file("a.npy").as_ref(), &gram, Existing::Refuse)?;
//! write_npy(file("b.npy").as_ref(), &(2.0 * &gram), Existing::Refuse)?;
//!
//! let job = CompareJob::of_files([file("a.npy"), file("b.npy")]);
//! let context = Context::new();
//! let opened = job.open(&Destination::default(), Opening { inputs: &Inputs::none(), context: &context })?;
//! assert_eq!(opened.plan().n_samples, 5);
//! let outcome = opened.run(&context)?;
//! assert!((outcome.findings.pairs[0].likeness.cka.unwrap() - 1.0).abs() < 1e-12);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod audit;
pub mod compare;
mod destination;
pub mod eigen;
pub mod explain;
pub mod fit;
mod folder;
pub mod kernel;
mod outcome;
pub mod predict;
pub mod probe;
mod record;
pub mod report;
mod rows;
pub mod shift;
pub mod spectrum;
mod surrogate;
pub mod train;
pub mod uncertainty;

pub use audit::AuditJob;
pub use compare::CompareJob;
pub use destination::Destination;
pub use eigen::EigenJob;
pub use explain::ExplainJob;
pub use fit::FitJob;
pub use kernel::{KernelJob, Share};
pub use outcome::{Artefact, Measurements, Outcome, PhaseTime, Stopwatch};
pub use predict::PredictJob;
pub use probe::ProbeJob;
pub(crate) use record::RUN;
pub use record::{AnyJob, InputRecord, OutputRecord, Record, Replayed, replay};
pub use report::ReportJob;
pub use shift::ShiftJob;
pub use spectrum::SpectrumJob;
pub use train::TrainJob;
pub use uncertainty::UncertaintyJob;

use crate::Error;
use crate::spec::Opening;
use mercer_net::Network;
use mercer_run::Context;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// A piece of work as data.
pub trait Job: Serialize + DeserializeOwned {
    /// The name of the job, which is that of its command.
    const NAME: &'static str;

    /// The job with everything opened.
    type Opened: Opened;

    /// Opens the inputs of the job, and rejects a job that could not finish.
    ///
    /// # Errors
    /// If settings contradict each other, files cannot be read, memory does not suffice, or the destination cannot be
    /// written to.
    fn open(&self, destination: &Destination, opening: Opening<'_>) -> Result<Self::Opened, Error>;
}

/// A job with everything opened.
pub trait Opened {
    /// The planned work.
    type Plan: Serialize;

    /// What is found.
    type Findings: Serialize;

    /// Describes the work and its cost.
    fn plan(&self) -> &Self::Plan;

    /// Runs the job.
    ///
    /// # Errors
    /// Any failure of the run. Existing results are kept.
    fn run(self, context: &Context) -> Result<Outcome<Self::Findings>, Error>;
}

/// Notes how the parameters of a file differ from those of the original module, if a result depends on them.
pub(crate) fn remark(network: Option<&Network>, context: &Context) {
    for text in network.map(Network::remarks).unwrap_or_default() {
        context.note(&text);
    }
}

/// Seeds as text, because many JSON readers lose digits of numbers above 2⁵³.
pub(crate) mod seed {
    use serde::{Deserialize, Deserializer, Serializer};

    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Either {
        Number(u64),
        Text(String),
    }

    pub(crate) fn serialize<S: Serializer>(seed: &u64, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&seed.to_string())
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
        match Either::deserialize(deserializer)? {
            Either::Number(seed) => Ok(seed),
            Either::Text(text) => text.parse().map_err(serde::de::Error::custom),
        }
    }
}
