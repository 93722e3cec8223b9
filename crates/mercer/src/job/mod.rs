//! Jobs: one piece of work, whoever asks for it.
//!
//! A job is data: a plain struct that can be written down and read again. [`Job::open`] reads headers, builds what is needed once and
//! checks memory and destination, so that a dry run and a run share one path. [`Opened::plan`] says what would be done, and
//! [`Opened::run`] does it. What comes out is an [`Outcome`]: findings, which are the same for the same job, artefacts, and
//! measurements, which are not.
//!
//! Where results go ([`Destination`]), how much memory and how many threads there are ([`Context`]) is not part
//! of a job, because results do not depend on it.
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
//! let job = CompareJob { grams: vec![file("a.npy"), file("b.npy")] };
//! let context = Context::new();
//! let opened = job.open(&Destination::default(), Opening { inputs: &Inputs::none(), context: &context })?;
//! assert_eq!(opened.plan().n_rows, 5);
//! let outcome = opened.run(&context)?;
//! assert!((outcome.findings.pairs[0].likeness.cka.unwrap() - 1.0).abs() < 1e-12);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod compare;
mod destination;
pub mod eigen;
pub mod fit;
mod folder;
pub mod kernel;
mod outcome;
pub mod predict;
mod record;
mod rows;
pub mod train;
pub mod uncertainty;

pub use compare::CompareJob;
pub use destination::Destination;
pub use eigen::EigenJob;
pub use fit::FitJob;
pub use kernel::KernelJob;
pub use outcome::{Artefact, Measurements, Outcome, PhaseTime, Stopwatch};
pub use predict::PredictJob;
pub use record::{AnyJob, InputRecord, OutputRecord, Record, Replayed, replay};
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
    /// The name of the job, as of the command that runs it.
    const NAME: &'static str;

    /// The job with everything opened.
    type Opened: Opened;

    /// Opens what the job names, and refuses what could not be done in the end.
    ///
    /// # Errors
    /// For settings that make no sense together, files that cannot be read, memory that does not suffice, and a destination that
    /// cannot be written to.
    fn open(&self, destination: &Destination, opening: Opening<'_>) -> Result<Self::Opened, Error>;
}

/// A job with everything opened.
pub trait Opened {
    /// What would be done.
    type Plan: Serialize;

    /// What is found.
    type Findings: Serialize;

    /// What would be done, and what it takes.
    fn plan(&self) -> &Self::Plan;

    /// Does it.
    ///
    /// # Errors
    /// What goes wrong on the way. Results that were there before stay.
    fn run(self, context: &Context) -> Result<Outcome<Self::Findings>, Error>;
}

/// Says how the parameters of a file differ from its module's, where a result depends on them.
pub(crate) fn remark(network: Option<&Network>, context: &Context) {
    for text in network.map(Network::remarks).unwrap_or_default() {
        context.note(&text);
    }
}

/// Seeds as text: numbers above 2⁵³ lose digits in many readers of JSON.
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
