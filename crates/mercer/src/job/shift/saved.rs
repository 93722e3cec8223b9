//! A saved reference: network, old samples and settings, so that new samples are compared with them later.
//!
//! ```text
//! DIR/folder.json, DIR/objects/   the network, the old samples with labels and preprocessing, the job
//! DIR/result.json, …              results, if there were new samples
//! ```

use super::ShiftJob;
use crate::Error;
use crate::job::folder::ResultFolder;
use crate::job::surrogate::Ids;
use crate::spec::Samples;
use mercer_data::folder::{Folder, FolderKind, SavedSamples};
use mercer_net::Network;
use mercer_net::network::SavedNetwork;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::path::Path;

/// The kind of folder that this job writes.
pub(crate) const KIND: FolderKind = FolderKind { name: "shift", version: 1 };

/// What the manifest says.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Content {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    network: Option<Value>,
    samples: Value,
    job: ShiftJob,
}

/// A reference that was saved before.
#[derive(Debug)]
pub(super) struct Reference {
    pub(super) network: Option<Network>,
    pub(super) saved_network: Option<SavedNetwork>,
    pub(super) samples: Samples,
    pub(super) ids: Ids,
    /// The job that made it.
    pub(super) job: ShiftJob,
    pub(super) fingerprint: String,
}

/// Writes a reference into a folder.
pub(super) fn write(
    folder: &ResultFolder,
    network: Option<&SavedNetwork>,
    (samples, ids): (&Samples, &Ids),
    job: &ShiftJob,
) -> Result<Content, Error> {
    let objects = folder.writer().objects();
    let saved = SavedSamples {
        inputs: samples.inputs.clone(),
        columns: samples.columns.clone(),
        labels: samples.labels.clone(),
        ids: ids.names(),
    };
    Ok(Content {
        network: network.map(|network| network.write(&objects.part("network"))).transpose()?,
        samples: saved.write(&objects.part("samples"))?,
        job: job.clone(),
    })
}

impl Reference {
    /// Opens a reference.
    pub(super) fn open(path: &Path) -> Result<Self, Error> {
        let hint = "‹from› names a folder that `mercer shift` wrote with ‹data›";
        let folder = Folder::open(path, Some(KIND)).map_err(|error| Error::from(error).hint(hint))?;
        if folder.content::<Value>()?.get("samples").is_none() {
            let text = format!("‹from› {}: it holds results, but no reference", path.display());
            return Err(Error::with_code("other-kind", text).hint(hint));
        }
        let content: Content = folder.content()?;
        let part = folder.objects().part("network");
        let saved_network = content.network.as_ref().map(|note| SavedNetwork::read(&part, note)).transpose()?;
        let network = saved_network.as_ref().map(SavedNetwork::open).transpose();
        let network = network.map_err(|error| Error::of_network(path, error))?;
        let SavedSamples { inputs, columns, labels, ids } =
            SavedSamples::read(&folder.objects().part("samples"), &content.samples)?;
        let n_samples = inputs.first().map_or(0, mercer_data::Dataset::n_samples);
        let samples = Samples { inputs, columns, labels, n_samples };
        let (ids, fingerprint) = (Ids::known(ids), folder.fingerprint());
        Ok(Self { network, saved_network, samples, ids, job: content.job, fingerprint })
    }
}
