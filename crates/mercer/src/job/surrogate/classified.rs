//! A network with its training samples, their classes, and what it says about them.

use super::Ids;
use crate::Error;
use crate::spec::{DataRef, DataSpec, NetworkLogits, NetworkSource, Opening, ParameterSpec, Samples, open_network};
use mercer_data::folder::SavedSamples;
use mercer_data::{Classes, Labels};
use mercer_net::Network;
use std::path::{Path, PathBuf};

/// A trained network and the samples it was trained on.
#[derive(Debug)]
pub(crate) struct Classified {
    /// The network's file, or the folder that holds it.
    pub(crate) path: PathBuf,
    pub(crate) source: NetworkSource,
    pub(crate) samples: Samples,
    /// The class of every training sample; every class of the network has one.
    pub(crate) classes: Classes,
    /// What the training samples are called.
    pub(crate) ids: Ids,
    /// The scores of the network.
    pub(crate) logits: NetworkLogits,
    /// Whether the samples are from a folder, whose preprocessing new samples get.
    saved: bool,
}

/// Samples to explain.
#[derive(Debug)]
pub(crate) struct TestSet {
    pub(crate) samples: Samples,
    /// Their classes, if they are known.
    pub(crate) classes: Option<Vec<usize>>,
}

impl Classified {
    /// Opens the network and the samples; reads headers and labels.
    pub(crate) fn open(
        (net, parameters): (&Path, &ParameterSpec),
        node: Option<&str>,
        data: &DataSpec,
        ids: Option<&DataRef>,
        opening: Opening<'_>,
    ) -> Result<Self, Error> {
        if data.labels.is_none() {
            return Err(Error::new("‹labels›: the classes of the training samples are missing")
                .hint("‹labels› FILE[:KEY], one per sample"));
        }
        let network = open_network(net, parameters)?;
        let reading = DataSpec { used: ids.into_iter().cloned().chain(data.used.clone()).collect(), ..data.clone() };
        let samples = Samples::open(&reading, &network, opening)?.in_order_of("labels", &network, node, data)?;
        samples.hint(Some(&network), opening)?;
        let logits = NetworkLogits::find(&network, &samples.shapes(), node, net, opening.context)?;
        let classes = classes_of("labels", &samples, logits.n_classes())?;
        let counts = classes.counts();
        if let Some(empty) = counts.iter().position(|&count| count == 0) {
            let name = &classes.names()[empty];
            let text = format!("‹labels›: class {name} of the network has no training sample");
            return Err(Error::new(text).hint("every class needs at least one sample"));
        }
        let ids = Ids::of_samples("ids", ids, &samples, opening)?;
        let (path, source) = (net.to_owned(), NetworkSource::Trained(network));
        Ok(Self { path, source, samples, classes, ids, logits, saved: false })
    }

    /// A network and samples from a folder.
    pub(crate) fn saved(
        folder: &Path,
        network: Network,
        saved: SavedSamples,
        node: Option<&str>,
        opening: Opening<'_>,
    ) -> Result<Self, Error> {
        let SavedSamples { inputs, columns, labels, ids } = saved;
        let n_samples = inputs.first().map_or(0, mercer_data::Dataset::n_samples);
        let samples = Samples { inputs, columns, labels, n_samples };
        let logits = NetworkLogits::find(&network, &samples.shapes(), node, folder, opening.context)?;
        let classes = classes_of("labels", &samples, logits.n_classes())?;
        let (path, source) = (folder.to_owned(), NetworkSource::Trained(network));
        Ok(Self { path, source, samples, classes, ids: Ids::known(ids), logits, saved: true })
    }

    /// The network.
    pub(crate) fn network(&self) -> Result<&Network, Error> {
        self.source.network().ok_or_else(|| Error::new("the network is missing"))
    }

    /// Opens other samples for the same network, with labels or without.
    pub(crate) fn other(
        &self,
        setting: &str,
        sources: &[DataRef],
        labels: Option<&DataRef>,
        data: &DataSpec,
        node: Option<&str>,
        opening: Opening<'_>,
    ) -> Result<TestSet, Error> {
        let network = self.network()?;
        let options = data.reading(sources, labels);
        let options = if self.saved { options } else { options.learnt_from(&self.samples) };
        let given = Samples::given(setting, sources, &options, network, &self.samples.columns, opening)?;
        let given = match self.saved {
            true => given.preprocessed_as(&data.preprocess, Some(&self.samples.preprocess_note()?), opening)?,
            false => given,
        };
        let labels_setting = format!("{setting}-labels");
        let samples = given.in_order_of(&labels_setting, network, node, &options)?;
        if samples.shapes() != self.samples.shapes() {
            let text = format!(
                "‹{setting}› {}: samples of shape {:?}, but the training samples have {:?}",
                samples.places(),
                samples.shapes(),
                self.samples.shapes()
            );
            return Err(Error::new(text));
        }
        let classes = match &samples.labels {
            None => None,
            Some(Labels::Classes(own)) => {
                let wrong = |error| Error::new(format!("‹{labels_setting}›: {error}"));
                Some(own.with_names(self.classes.names()).map_err(wrong)?.indices().to_vec())
            }
            Some(Labels::Targets(_)) => return Err(not_classes(&labels_setting)),
        };
        if let Some(classes) = &classes
            && classes.len() != samples.n_samples
        {
            return Err(other_length(&labels_setting, classes.len(), samples.n_samples));
        }
        Ok(TestSet { samples, classes })
    }
}

fn not_classes(setting: &str) -> Error {
    Error::new(format!("‹{setting}›: one class per sample is needed, these are numbers"))
        .hint("labels are whole numbers or, in a CSV file, texts")
}

fn other_length(setting: &str, found: usize, n_samples: usize) -> Error {
    Error::with_code("sample-count", format!("‹{setting}›: {found} labels for {n_samples} samples"))
        .hint("samples and labels must be in the same order")
}

/// The classes of samples, as many as the network has.
pub(crate) fn classes_of(setting: &str, samples: &Samples, n_classes: usize) -> Result<Classes, Error> {
    let Some(Labels::Classes(classes)) = &samples.labels else { return Err(not_classes(setting)) };
    if classes.indices().len() != samples.n_samples {
        return Err(other_length(setting, classes.indices().len(), samples.n_samples));
    }
    if classes.n_classes() != n_classes {
        let found = classes.n_classes();
        let text = format!("‹{setting}›: there are {found} classes, but the network has {n_classes}");
        return Err(Error::new(text).hint("‹classes› names the classes in the order of the outputs"));
    }
    Ok(classes.clone())
}
