//! What a network was trained on: the names of its classes, the columns of its table, the steps before its inputs.
//!
//! An ONNX file keeps them in its `metadata_props`, each as JSON, under the keys
//!
//! * `mercer.classes`: a list of names, one for every output, or two for a single output,
//! * `mercer.columns`: per input, `null` or the [`Columns`] of the table it was trained from,
//! * `mercer.preprocess`: per input, the [`Preprocess`] between the file and the network.
//!
//! Files of other programs have none of them.

use super::Network;
use crate::error::{NetError, Result};
use mercer_data::{Columns, Preprocess};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// The prefix of our keys. Other metadata are not kept.
pub(crate) const OURS: &str = "mercer.";

const CLASSES: &str = "mercer.classes";
const COLUMNS: &str = "mercer.columns";
const PREPROCESS: &str = "mercer.preprocess";

/// What is known about the data on which a network was trained.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct TrainedOn {
    /// The names of the classes in the order of the outputs; `None` where classes are numbers. A single output has two:
    /// of low and of high values.
    pub classes: Option<Vec<String>>,
    /// The columns of each input that came from a table.
    pub columns: Vec<Option<Columns>>,
    /// The preprocessing of each input.
    pub preprocess: Option<Vec<Preprocess>>,
}

impl TrainedOn {
    /// The entries of the file, as keys and values.
    pub(crate) fn entries(&self) -> Result<Vec<(&'static str, String)>> {
        fn json(value: &impl Serialize) -> Result<String> {
            serde_json::to_string(value).map_err(|error| NetError::Setting(format!("metadata: {error}")))
        }
        let mut entries = Vec::new();
        if let Some(classes) = &self.classes {
            entries.push((CLASSES, json(classes)?));
        }
        if self.columns.iter().any(Option::is_some) {
            entries.push((COLUMNS, json(&self.columns)?));
        }
        if let Some(steps) = &self.preprocess {
            entries.push((PREPROCESS, json(steps)?));
        }
        Ok(entries)
    }

    /// Finds our entries among those of a file.
    pub(super) fn read(metadata: &[(String, String)], inputs: usize) -> Result<Self> {
        fn found<T: DeserializeOwned>(metadata: &[(String, String)], key: &str) -> Result<Option<T>> {
            let Some((_, text)) = metadata.iter().find(|(own, _)| own == key) else { return Ok(None) };
            let read = serde_json::from_str(text);
            read.map(Some).map_err(|error| malformed(format!("its metadata {key:?} cannot be read: {error}")))
        }
        let known = Self {
            classes: found(metadata, CLASSES)?,
            columns: found(metadata, COLUMNS)?.unwrap_or_default(),
            // These are only used for a hint, and a later version may know more steps.
            preprocess: found(metadata, PREPROCESS).unwrap_or_default(),
        };
        let counts = [(COLUMNS, known.columns.len()), (PREPROCESS, known.preprocess.as_ref().map_or(0, Vec::len))];
        if let Some((key, count)) = counts.iter().find(|(_, count)| ![0, inputs].contains(count)) {
            return Err(malformed(format!(
                "its metadata {key:?} describe {count} inputs, but the network has {inputs}"
            )));
        }
        Ok(known)
    }
}

fn malformed(reason: String) -> NetError {
    NetError::Malformed { reason }
}

impl Network {
    /// What the network records about its training data.
    pub fn trained_on(&self) -> &TrainedOn {
        &self.trained_on
    }

    /// Records what the network was trained on; [`save_onnx`](Network::save_onnx) writes it to the file.
    ///
    /// # Errors
    /// If columns or steps are not given for every input, or for none.
    pub fn set_trained_on(&mut self, known: TrainedOn) -> Result<()> {
        let counts = [known.columns.len(), known.preprocess.as_ref().map_or(0, Vec::len)];
        if counts.iter().any(|count| ![0, self.inputs.len()].contains(count)) {
            return Err(NetError::Setting(
                "columns and preprocessing must be given for every input or for none".into(),
            ));
        }
        self.trained_on = known;
        Ok(())
    }
}
