//! Fine-tuning: training of the network of an ONNX file, or of a new head on it.

use crate::Error;
use crate::error::AboutNetwork;
use crate::spec::{DataSpec, Opening, ParameterSpec, Samples, open_network};
use crate::text::count;
use mercer_data::folder::digest;
use mercer_data::random::stream;
use mercer_net::export::{Head, with_head, with_parameters};
use mercer_net::network::{Import, Values};
use mercer_net::{NetError, Network};
use mercer_run::names::{matches, near};
use rand_distr::{Distribution, Normal};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// The largest ONNX file.
const LONGEST_FILE: u64 = 2 << 30;

/// The standard deviation of new weights, as transformers are initialised.
const DEVIATION: f64 = 0.02;

/// The network of a file, and what of it is trained.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TuningSpec {
    /// The ONNX file.
    pub net: PathBuf,
    /// The parameters to train, by name (`*` and `?` are wild); all if there are none. The others stay as they are.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub params: Vec<String>,
    /// A new dense layer with so many outputs, named `head`, in the place of the last dense layer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub head: Option<usize>,
    /// The value that the head is put on, instead of the last hidden layer or the embedding.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// Draw all weights again: matrices from N(0, 0.02²), scales 1, biases 0.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub redraw: bool,
}

/// A network to train.
pub(super) struct Tuned {
    /// A digest of the file as the user gave it.
    pub(super) described: String,
    /// The file with its new head and weights.
    pub(super) bytes: Vec<u8>,
    /// Its parameters are those that are trained.
    pub(super) network: Network,
}

impl TuningSpec {
    /// Opens the network and the samples, and adds the head.
    pub(super) fn open(
        &self,
        data: &DataSpec,
        parameters: &ParameterSpec,
        seed: u64,
        opening: Opening<'_>,
    ) -> Result<(Tuned, Samples), Error> {
        if self.node.is_some() && self.head.is_none() {
            return Err(Error::new("‹node› is where the new head is put, and there is none").hint("‹head› N"));
        }
        let network = open_network(&self.net, parameters)?;
        let samples = Samples::open(data, &network, opening)?;
        let place = self.net.display();
        let mut bytes = mercer_data::read_regular(&self.net, LONGEST_FILE)
            .map_err(|error| crate::error::cannot_open(&place, &error))?;
        let described = digest(&bytes);
        if self.redraw {
            bytes = redrawn(network, &bytes, seed).about(&self.net)?;
        } else {
            network.remarks().iter().for_each(|remark| opening.context.note(remark));
        }
        let import = Import { limit: parameters.import_limit, ..Import::default() };
        if let Some(outputs) = self.head {
            let whole = Network::import_bytes(&bytes, &import).about(&self.net)?;
            let head = self.head_of(&whole, &samples, outputs, seed)?;
            if head.flatten {
                let (from, width) = (&head.from, head.weight.len() / outputs);
                opening.context.note(&format!("the head takes all {width} numbers of {from}, which has several axes"));
            }
            bytes = with_head(&bytes, &head).about(&self.net)?;
        }
        let mut network = Network::import_bytes(&bytes, &import).about(&self.net)?;
        self.freeze(&mut network)?;
        // Reported now, not after the training.
        with_parameters(&bytes, network.parameters()).about(&self.net)?;
        Ok((Tuned { described, bytes, network }, samples))
    }

    /// A head on the chosen value, with weights from the seed.
    fn head_of(&self, network: &Network, samples: &Samples, outputs: usize, seed: u64) -> Result<Head, Error> {
        if outputs == 0 || outputs > 1 << 20 {
            return Err(Error::new(format!("‹head› {outputs}: a head has 1 to {} outputs", 1 << 20)));
        }
        let place = self.net.display();
        let from = self.node.clone().or_else(|| network.last_hidden()).unwrap_or_default();
        let graph = network.graph(&samples.shapes()).about(&self.net)?;
        let value = graph.find(&from).map(|id| graph.value(id)).filter(|value| value.meta.is_batched());
        let Some(value) = value else {
            let text =
                format!("{place}: a head cannot be put on {from:?}: it is not a value that depends on the samples");
            return Err(Error::new(text).hint("‹node› NAME; `mercer info FILE -v` lists the nodes"));
        };
        let width = value.meta.numel();
        let axes = value.meta.shape.iter().filter(|&&size| size > 1).count();
        let mut random = stream(seed, "train/head");
        let law = normal()?;
        let weight = (0..width * outputs).map(|_| law.sample(&mut random) as f32).collect();
        Ok(Head { from, flatten: axes > 1 || value.meta.rank() > 2, weight, bias: vec![0.0; outputs] })
    }

    /// Makes the parameters that are not trained constants.
    fn freeze(&self, network: &mut Network) -> Result<(), Error> {
        if self.params.is_empty() {
            return Ok(());
        }
        let names: Vec<String> = network.parameters().iter().map(|own| own.name().to_owned()).collect();
        if let Some(pattern) = self.params.iter().find(|pattern| !names.iter().any(|name| is_named(pattern, name))) {
            let all: Vec<&str> = names.iter().map(String::as_str).collect();
            let close = near(pattern, &all);
            let listed =
                if close.is_empty() { all.iter().take(5).map(|&name| name.to_owned()).collect() } else { close };
            let text = format!("‹params› {pattern}: no parameter of {} has this name", self.net.display());
            return Err(Error::new(text).hint(format!("some of its parameters: {}", listed.join(", "))));
        }
        let is_trained = |name: &String| self.params.iter().any(|pattern| is_named(pattern, name));
        let frozen: Vec<String> = names.into_iter().filter(|name| !is_trained(name)).collect();
        network.select_parameters(&[], &frozen).about(&self.net)?;
        match network.parameters().is_empty() {
            true => Err(Error::new(format!("{}: no parameter is left to train", self.net.display()))),
            false => Ok(()),
        }
    }
}

/// Whether a pattern is that of a parameter, or of its layer.
fn is_named(pattern: &str, name: &str) -> bool {
    matches(pattern, name) || matches(&format!("{pattern}.*"), name)
}

fn normal() -> Result<Normal<f64>, Error> {
    Normal::new(0.0, DEVIATION).map_err(|error| Error::new(format!("{DEVIATION}: {error}")))
}

/// The file with all weights drawn again.
fn redrawn(mut network: Network, bytes: &[u8], seed: u64) -> Result<Vec<u8>, NetError> {
    let law = Normal::new(0.0, DEVIATION).map_err(|error| NetError::Setting(error.to_string()))?;
    let draw = |own: &mercer_net::network::Parameter| {
        if network.is_scale(own.name()) {
            return vec![1.0; own.numel()];
        }
        // A bias may have axes of size one.
        if own.shape().iter().filter(|&&size| size > 1).count() < 2 {
            return vec![0.0; own.numel()];
        }
        let mut random = stream(seed, &format!("train/redraw/{}", own.name()));
        (0..own.numel()).map(|_| law.sample(&mut random) as f32).collect()
    };
    let values: Vec<Vec<f32>> = network.parameters().iter().map(draw).collect();
    network.set_values(values.iter().map(|values| Values::from_slice(values)).collect());
    with_parameters(bytes, network.parameters())
}

/// The trained file, and all its weights.
pub(super) fn written(network: &Network, file: &[u8], limit: Option<usize>) -> Result<(Vec<u8>, Vec<u8>), Error> {
    let model = network.written_to(file)?;
    // Opened again: this proves that it opens, and has the weights that were not trained as well.
    let whole = Network::import_bytes(&model, &Import { limit, ..Import::default() })
        .map_err(|error| Error::of_network(Path::new("model.onnx"), error))?;
    let trained = network.parameters();
    let kept = |own: &mercer_net::network::Parameter| {
        let found = whole.parameters().iter().find(|other| other.name() == own.name());
        found.is_some_and(|found| found.values().to_vec::<f32>() == own.values().to_vec::<f32>())
    };
    match trained.iter().find(|own| !kept(own)) {
        None => Ok((model, whole.to_safetensors_bytes()?)),
        Some(lost) => {
            let text = format!("the parameter {} is not one in the trained file", lost.name());
            Err(Error::new(text).hint(format!("{} were trained", count(trained.len(), "parameter"))))
        }
    }
}
