//! A saved explanation: the index that new samples are explained with.
//!
//! ```text
//! DIR/folder.json, DIR/objects/   the network, and the features of the training samples if the kernel has any
//! DIR/surrogate/                  the kernel machine, with its kernel and training samples
//! DIR/top.csv, …                  results
//! ```

use super::opened::{SURROGATE, SURROGATE_KIND};
use crate::Error;
use crate::job::Destination;
use crate::job::folder::ResultFolder;
use crate::job::surrogate::{Classified, Fitted, KernelRows, Surrogate, SurrogateForm, SurrogateSpec};
use crate::spec::{KernelSpec, Opening};
use mercer_data::Existing;
use mercer_data::folder::{Folder, FolderKind};
use mercer_kernel::{KernelError, Real};
use mercer_learn::{KernelMachine, Machine};
use mercer_lens::Line;
use mercer_net::network::SavedNetwork;
use ndarray::Array2;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// The kind of folder that an explanation is.
pub(crate) const KIND: FolderKind = FolderKind { name: "explanation", version: 1 };

/// The name of the features.
const FEATURES: &str = "features";

/// What the manifest of an explanation says.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Content {
    /// The network that is explained.
    pub(super) network: Value,
    /// The node of its logits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) node: Option<String>,
    /// The identity of the kernel that the features are of.
    pub(super) identity: Value,
    /// Whether there are features.
    pub(super) features: bool,
    /// How the surrogate was fitted.
    pub(super) surrogate: SurrogateSpec,
    /// Its penalty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) penalty: Option<f64>,
    /// From the surrogate's log-odds to the network's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) line: Option<Line>,
    /// A fingerprint of the surrogate's folder, which is written first. Indexes of earlier versions have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) machine: Option<String>,
}

/// An earlier explanation.
#[derive(Debug)]
pub(crate) struct SavedExplanation {
    folder: Folder,
    content: Content,
    machine: KernelMachine,
    path: PathBuf,
}

/// Begins the folder of an explanation. Files that were made by an earlier one may be replaced if the user says so.
pub(super) fn create(destination: &Destination, with_surrogate: bool) -> Result<ResultFolder, Error> {
    let folder = ResultFolder::create(destination, KIND, &super::files::NAMES)?;
    let surrogate = folder.path().join(SURROGATE);
    if with_surrogate && !destination.force && surrogate.symlink_metadata().is_ok() {
        let text = format!("{} exists already", surrogate.display());
        return Err(Error::with_code("exists", text).hint("‹force› replaces it, or choose another ‹out›"));
    }
    Ok(folder)
}

/// Writes the index into a folder.
pub(super) fn write<T: Real>(
    folder: &ResultFolder,
    network: &SavedNetwork,
    rows: &KernelRows<T>,
    (surrogate, penalty): (&SurrogateSpec, Option<f64>),
    (node, line): (Option<String>, Option<Line>),
) -> Result<Content, Error> {
    let objects = folder.writer().objects();
    if let Some(features) = rows.features() {
        objects.array(FEATURES, features)?;
    }
    Ok(Content {
        network: network.write(&objects.part("network"))?,
        node,
        identity: rows.built.kernel.identity(),
        features: rows.features().is_some(),
        surrogate: surrogate.clone(),
        penalty,
        line,
        machine: None,
    })
}

/// Saves the surrogate beside the index, and returns its fingerprint.
pub(super) fn save_surrogate(folder: &Path, machine: &KernelMachine, force: bool) -> Result<String, Error> {
    let existing = if force { Existing::Replace } else { Existing::Refuse };
    let place = folder.join(SURROGATE);
    machine.save(&place, existing)?;
    Ok(Folder::open(&place, Some(SURROGATE_KIND))?.fingerprint())
}

impl SavedExplanation {
    /// Opens an explanation with the network and the training samples it is of.
    pub(super) fn open(path: &Path, node: Option<&str>, opening: Opening<'_>) -> Result<(Classified, Self), Error> {
        let folder = (opening.inputs.folder(path, Some(KIND)))
            .map_err(|error| error.hint("‹from› names a folder that `mercer explain` wrote"))?;
        if let Some(first) = folder.content::<Value>()?.get("from").and_then(Value::as_str) {
            let text = format!("‹from› {}: it was made with the surrogate of {first}", path.display());
            return Err(Error::with_code("other-kind", text).hint(format!("‹from› {first}")));
        }
        let content: Content = folder.content()?;
        let beside = opening.inputs.folder(&path.join(SURROGATE), Some(SURROGATE_KIND))?;
        if content.machine.as_ref().is_some_and(|own| *own != beside.fingerprint()) {
            let text = format!("‹from› {}: its surrogate is not the one that its index was made with", path.display());
            return Err(Error::with_code("other-kind", text)
                .hint("restore the folder from a copy, or explain the network again with ‹force›"));
        }
        let machine = KernelMachine::read(&beside)?;
        let network = SavedNetwork::read(&folder.objects().part("network"), &content.network)?;
        let network = network.open().map_err(|error| Error::of_network(path, error))?;
        let node = node.or(content.node.as_deref());
        let known = Classified::saved(path, network, machine.samples.clone(), node, opening)?;
        Ok((known, Self { folder, content, machine, path: path.to_owned() }))
    }

    /// The line from the surrogate's log-odds to the network's.
    pub(super) fn line(&self) -> Option<Line> {
        self.content.line
    }

    /// The kernel with the features of the training samples.
    pub(super) fn kernel<T: Real>(&self, known: &Classified, shapes: &[Vec<usize>]) -> Result<KernelRows<T>, Error> {
        let Some(saved) = &self.machine.kernel else {
            return Err(Error::new(format!("‹from› {}: its surrogate has no kernel", self.path.display())));
        };
        let recipe = saved.recipe.clone();
        let spec = KernelSpec { kernel: Some(recipe.to_string()), ..KernelSpec::default() };
        let rows = KernelRows::<T>::from_recipe(spec, recipe, &known.source, shapes)?;
        if !mercer_kernel::same_kernel(&self.content.identity, &rows.built.kernel.identity()) {
            let text = format!("‹from› {}: the index was made with another network or precision", self.path.display());
            return Err(Error::from(KernelError::Setting(text.clone()))
                .with_message(text)
                .hint("use the ‹precision› it was made with, or explain the network again"));
        }
        Ok(rows)
    }

    /// The features of the training samples, if there are any.
    pub(super) fn features<T: Real>(&self, n_samples: usize) -> Result<Option<Array2<T>>, Error> {
        if !self.content.features {
            return Ok(None);
        }
        let array = self.folder.array(FEATURES)?.read::<T>()?;
        let features = array.into_dimensionality::<ndarray::Ix2>();
        let features = features.map_err(|error| Error::from(self.folder.malformed(error)))?;
        if features.nrows() != n_samples {
            return Err(self.folder.malformed("its features are of other samples").into());
        }
        Ok(Some(features))
    }

    /// The surrogate.
    pub(super) fn surrogate(&self, n_classes: usize) -> Result<Surrogate, Error> {
        let form = match &self.machine.machine {
            Machine::LinearClassifier(machine) => {
                SurrogateForm::dual(machine.scores().weights().view(), machine.scores().bias().view())
            }
            Machine::Neighbours(machine) => {
                SurrogateForm::Votes { count: machine.count(), labels: machine.labels().to_vec() }
            }
            _ => return Err(Error::new(format!("‹from› {}: its machine has no attribution", self.path.display()))),
        };
        Ok(Surrogate { form, n_classes, machine: self.machine.machine.clone() })
    }

    /// How the surrogate was fitted.
    pub(super) fn fitted(&self) -> (SurrogateSpec, Fitted) {
        let Content { surrogate, penalty, .. } = &self.content;
        let norm = penalty.map(|_| surrogate.penalty_norm());
        (surrogate.clone(), Fitted { penalty: *penalty, norm, ..Fitted::default() })
    }

    /// A fingerprint of the folder.
    pub(super) fn fingerprint(&self) -> String {
        self.folder.fingerprint()
    }

    /// The folder.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}
