//! The identity of a run: named facts that must not change when it is resumed.

use super::{Trainer, TrainingSamples, TrainingSettings};
use crate::element::Element;
use crate::error::{NetError, Result};
use crate::graph::Graph;
use mercer_data::Labels;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::fmt::Write as _;
use std::path::Path;

/// Facts with their names, in a fixed order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Fingerprint(Vec<(String, String)>);

/// Rows that are read and digested at a time.
const ROWS: usize = 4096;

impl Fingerprint {
    /// Reads all samples once.
    pub(super) fn compute<T>(
        trainer: &Trainer<T>,
        settings: &TrainingSettings,
        batch: usize,
        samples: TrainingSamples<'_>,
    ) -> Result<Self>
    where
        T: Element + mercer_data::DataScalar,
    {
        // The precision comes first, because the weights also differ in another precision.
        let mut facts = vec![
            ("precision", T::NAME.to_owned()),
            ("network", network(trainer.graph())),
            ("initial weights", initial(trainer)),
            ("loss", format!("{:?}", trainer.loss())),
            ("optimiser", format!("{:?}", trainer.optimiser())),
            ("schedule", format!("{:?}", settings.schedule)),
            ("batch size", batch.to_string()),
            ("seed", settings.seed.to_string()),
            ("data", data::<T>(samples)?),
            ("labels", labels(samples.labels)),
        ];
        if !settings.augmentation.is_none() {
            facts.push(("augmentation", settings.augmentation.to_string()));
        }
        if settings.schedule.needs_length() {
            facts.push(("number of epochs", settings.epochs.to_string()));
        }
        Ok(Self(facts.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()))
    }

    /// Returns an error that says what differs from a stored fingerprint.
    pub(super) fn check(&self, stored: &Self, path: &Path) -> Result<()> {
        let extra = stored.0.iter().filter(|(name, _)| self.find(name).is_none());
        for (name, _) in self.0.iter().chain(extra) {
            let [stored, given] = [stored.find(name), self.find(name)];
            if stored != given {
                let text = |value: Option<&str>| value.unwrap_or("none").to_owned();
                return Err(NetError::OtherRun {
                    path: path.to_owned(),
                    what: name.clone(),
                    stored: text(stored),
                    given: text(given),
                });
            }
        }
        Ok(())
    }

    fn find(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(other, _)| other == name).map(|(_, value)| value.as_str())
    }
}

/// The first bytes of a digest, in hexadecimal: enough to tell runs apart, short enough to read.
fn short(digest: Sha256) -> String {
    digest.finalize()[..8].iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Primitives, shapes and names of a graph.
fn network(graph: &Graph) -> String {
    let mut digest = Sha256::new();
    for value in graph.values() {
        digest.update(format!("{} {:?} {:?}\n", value.name, value.meta.shape, value.origin));
    }
    for node in graph.nodes() {
        digest.update(format!("{:?} {:?} {:?}\n", node.op, node.inputs, node.output));
    }
    let n_params: usize = graph.parameters().iter().map(|&id| graph.value(id).meta.numel()).sum();
    format!("{n_params} parameters, digest {}", short(digest))
}

fn initial<T: Element>(trainer: &Trainer<T>) -> String {
    let mut digest = Sha256::new();
    let statistics = trainer.weights().statistics(trainer.graph());
    for values in trainer.weights().parameters.iter().map(Vec::as_slice).chain(statistics) {
        values.iter().for_each(|x| digest.update(x.wide().to_le_bytes()));
    }
    format!("digest {}", short(digest))
}

fn data<T>(samples: TrainingSamples<'_>) -> Result<String>
where
    T: Element + mercer_data::DataScalar,
{
    let mut digests = Vec::new();
    for set in samples.inputs {
        let n_samples = set.n_samples();
        let mut digest = Sha256::new();
        for start in (0..n_samples).step_by(ROWS) {
            let rows = set.rows::<T>(start..(start + ROWS).min(n_samples))?;
            let mut bytes = Vec::with_capacity(rows.len() * size_of::<f64>());
            rows.iter().for_each(|&x| bytes.extend_from_slice(&mercer_linalg::Scalar::wide(x).to_le_bytes()));
            digest.update(&bytes);
        }
        digests.push(format!("of shape {:?}, digest {}", set.shape(), short(digest)));
    }
    Ok(digests.join("; "))
}

fn labels(labels: &Labels) -> String {
    let mut digest = Sha256::new();
    match labels {
        Labels::Classes(classes) => {
            classes.indices().iter().for_each(|&index| digest.update((index as u64).to_le_bytes()));
            format!("{} classes, digest {}", classes.n_classes(), short(digest))
        }
        Labels::Targets(targets) => {
            targets.iter().for_each(|&x| digest.update(x.to_le_bytes()));
            format!("{} targets, digest {}", targets.ncols(), short(digest))
        }
    }
}
