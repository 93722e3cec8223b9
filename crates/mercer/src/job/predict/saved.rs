//! Opens any saved folder, by the kind in its manifest.

use super::functions::SavedFunctions;
use super::machine::SavedMachine;
use super::network::NetworkRun;
use super::posterior::PosteriorRun;
use super::{PredictJob, PredictPlan, Work};
use crate::Error;
use crate::job::{Destination, eigen};
use crate::spec::{DataSpec, Opening, Samples};
use mercer_data::folder::FolderKind;
use mercer_data::{Columns, Preprocess};
use mercer_learn::KernelMachine;
use mercer_net::Network;
use mercer_net::network::Import;
use mercer_net::train::files::{MODEL, SAVED};
use mercer_spectral::BEFORE;
use std::path::Path;

/// Opens the contents of a folder, with the samples to predict.
pub(super) fn open(
    job: &PredictJob,
    place: &Path,
    destination: &Destination,
    opening: Opening<'_>,
) -> Result<(Work, PredictPlan), Error> {
    let (given, (place, before)) = (place, eigen::located(place));
    let folder = opening
        .inputs
        .folder(place, None)
        .map_err(|error| error.hint("‹from› names a folder that `mercer fit`, eigen, uncertainty or train wrote"))?;
    let kind = folder.kind().to_owned();
    let is_network = kind == SAVED.name;
    if !is_network {
        let settings = [("‹node›", job.at.is_some()), ("‹chunk›", job.batch.is_some())];
        if let Some((setting, _)) = settings.iter().find(|(_, given)| *given) {
            return Err(Error::new(format!("{setting} is for networks; {} holds {kind}", place.display())));
        }
    }
    let may_ask = kind == KernelMachine::KIND.name || kind == mercer_learn::laplace::KIND.name;
    if before && kind != mercer_spectral::KIND.name {
        return Err(Error::new(format!("{} holds {kind}, which has no part `{BEFORE}`", place.display())));
    }
    if job.probabilities && !may_ask {
        return Err(Error::new(format!("‹probabilities› is for classifiers; {} holds {kind}", place.display())));
    }
    // If the kind is known, the version is checked as well.
    let known = |kind: FolderKind| opening.inputs.folder(place, Some(kind));
    match &kind[..] {
        name if name == KernelMachine::KIND.name => {
            let folder = known(KernelMachine::KIND)?;
            SavedMachine::open(job, place, (&folder, destination), opening).map(SavedMachine::planned)
        }
        name if name == mercer_spectral::KIND.name => {
            let folder = known(mercer_spectral::KIND)?;
            SavedFunctions::open(job, given, (&folder, before), opening).map(SavedFunctions::planned)
        }
        name if name == mercer_learn::laplace::KIND.name => {
            let folder = known(mercer_learn::laplace::KIND)?;
            PosteriorRun::open(job, place, (&folder, destination), opening).map(PosteriorRun::planned)
        }
        _ if is_network => {
            let folder = known(SAVED)?;
            let import = Import { limit: job.parameters.import_limit, ..Import::default() };
            let network = Network::import_bytes(&folder.file(MODEL)?, &import);
            let network = network.map_err(|error| Error::of_network(&place.join(MODEL), error))?;
            let trained = network.trained_on().clone();
            let known = Known { columns: &trained.columns, preprocess: trained.preprocess };
            let samples = known.samples(&job.data, Some(&network), opening)?;
            Ok(NetworkRun::new(job, "from", place, network, samples, opening)?.planned())
        }
        _ => Err(Error::with_code("other-kind", format!("{} holds {kind}, which does not predict", place.display()))
            .hint("machines, eigenfunctions, posteriors and trained networks do")),
    }
}

/// The samples that a folder expects.
pub(super) struct Known<'a> {
    pub(super) columns: &'a [Option<Columns>],
    pub(super) preprocess: Option<Vec<Preprocess>>,
}

impl Known<'_> {
    /// Samples, with the preprocessing of the folder unless the user asks for another.
    pub(super) fn samples(
        &self,
        data: &DataSpec,
        network: Option<&Network>,
        opening: Opening<'_>,
    ) -> Result<Samples, Error> {
        let samples = match network {
            Some(network) => Samples::given("data", &data.data, data, network, self.columns, opening)?,
            None => Samples::plain("data", &data.data, data, self.columns, opening)?,
        };
        let steps = self.preprocess.as_ref().map(serde_json::to_value).transpose();
        let steps = steps.map_err(|error| Error::new(format!("the preprocessing of the folder: {error}")))?;
        samples.preprocessed_as(&data.preprocess, steps.as_ref(), opening)
    }
}
