//! What an ONNX model holds.

use super::layers::{LayerInfo, batched_shape, layers};
use super::sizes::{GivenShape, sample_shapes};
use super::{Findings, Looked};
use crate::Error;
use crate::error::AboutNetwork;
use crate::spec::{ParameterSpec, open_network};
use mercer_net::Network;
use mercer_net::graph::Graph;
use mercer_net::network::{Ending, Input, Logits, Parameter, Squash, TrainedOn};
use serde::Serialize;
use std::collections::HashMap;
use std::path::Path;

/// A model.
#[derive(Clone, Debug, Serialize)]
pub struct ModelFindings {
    /// What this is: `model`.
    pub kind: &'static str,
    /// The file.
    pub file: String,
    /// The program that wrote it.
    pub exporter: Option<String>,
    /// The version of its operators.
    pub opset: Option<i64>,
    /// The inputs.
    pub inputs: Vec<InputFindings>,
    /// The outputs.
    pub outputs: Vec<OutputFindings>,
    /// The number of trainable scalars.
    pub n_params: usize,
    /// The number of trainable tensors.
    pub n_tensors: usize,
    /// The trainable tensors.
    pub parameters: Vec<TensorFindings>,
    /// The others.
    pub constants: Vec<TensorFindings>,
    /// Layers into which the exporter folded a batch normalisation.
    pub folded_normalisations: usize,
    /// How the parameters differ from those of the original module.
    pub remarks: Vec<String>,
    /// Floating-point operations of a forward pass for one sample; absent if sizes are free.
    pub flops: Option<u64>,
    /// The layers; absent if sizes are free.
    pub layers: Option<Vec<LayerInfo>>,
    /// The training metadata in the file.
    pub trained_on: TrainedOn,
    /// Whether free sizes remain that were not given.
    #[serde(skip)]
    pub is_free: bool,
}

/// An input of a model.
#[derive(Clone, Debug, Serialize)]
pub struct InputFindings {
    /// Its name.
    pub name: String,
    /// The sizes in the file, including the batch; free sizes are absent.
    pub shape: Option<Vec<Option<usize>>>,
    /// The position of the batch axis.
    pub batch_axis: Option<usize>,
    /// The batch size that the file was written for.
    pub fixed_batch: Option<usize>,
    /// Whether it holds integers, such as token ids.
    pub integer: bool,
    /// The shape of one sample that was used for free sizes.
    #[serde(skip)]
    pub sample: Option<Vec<usize>>,
}

/// An output of a model.
#[derive(Clone, Debug, Serialize)]
pub struct OutputFindings {
    /// Its name.
    pub name: String,
    /// The shape for one sample as in the file, with the batch as an axis of size one; absent if sizes are free.
    pub shape: Option<Vec<usize>>,
    /// The same, with the batch where the file has it.
    #[serde(skip)]
    pub shape_text: String,
    /// Whether it is probabilities; absent if sizes are free.
    pub ending: Option<EndingFindings>,
}

/// How an output ends.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub enum EndingFindings {
    /// There is no softmax or sigmoid: the output may be logits, or any numbers.
    Open,
    /// It is made of logits.
    Probabilities {
        /// The function that turns them into probabilities: `softmax`, `log-softmax`, `sigmoid` or `log-sigmoid`.
        squash: &'static str,
        /// The name that selects the logits.
        logits: String,
        /// The node that turns them into probabilities.
        node: String,
    },
    /// The output depends on probabilities, but not on all of them, or they have no logits.
    Mixed {
        /// The node.
        node: String,
        /// What about it.
        reason: &'static str,
    },
}

/// A tensor of a model.
#[derive(Clone, Debug, Serialize)]
pub struct TensorFindings {
    /// Its name.
    pub name: String,
    /// Its shape.
    pub shape: Vec<usize>,
    /// How many numbers it has.
    pub n_elements: usize,
    /// Why it is a parameter, or a constant.
    pub reason: String,
}

/// Everything known about a model, even if it cannot be run.
pub(super) fn look(path: &Path, parameters: &ParameterSpec, given: &[GivenShape]) -> Result<Looked, Error> {
    let network = open_network(path, parameters)?;
    let shapes = sample_shapes(network.inputs(), given)?;
    let graph = shapes.as_ref().map(|shapes| network.graph(shapes).about(path)).transpose();
    let (graph, failure) = match graph {
        Ok(graph) => (graph, None),
        Err(error) => (None, Some(error)),
    };
    let mut found = ModelFindings::new(path, &network, graph.as_deref());
    found.is_free = shapes.is_none();
    for (input, sample) in found.inputs.iter_mut().zip(shapes.unwrap_or_default()) {
        input.sample = input.is_free().then_some(sample);
    }
    Ok(Looked { findings: Findings::Model(Box::new(found)), failure })
}

impl ModelFindings {
    fn new(path: &Path, network: &Network, graph: Option<&Graph>) -> Self {
        let (exporter, opset) = network.origin().unzip();
        let results = graph.map_or(&[][..], Graph::outputs).iter();
        let results: HashMap<&str, _> = results.map(|(name, id)| (&name[..], *id)).collect();
        let output = |name: String| {
            let known = graph.and_then(|graph| Some((graph, *results.get(&name[..])?)));
            let meta = known.map(|(graph, id)| &graph.value(id).meta);
            OutputFindings {
                shape: meta.map(|meta| meta.shape.clone()),
                shape_text: meta.map_or_else(String::new, batched_shape),
                ending: known.map(|(graph, id)| EndingFindings::new(Ending::find(graph, id))),
                name,
            }
        };
        let outputs = network.output_names().into_iter().map(output);
        let constants = network.constants().into_iter().map(|(name, shape, reason)| TensorFindings {
            n_elements: mercer_net::numel(&shape),
            name,
            shape,
            reason,
        });
        Self {
            kind: "model",
            file: path.display().to_string(),
            exporter: exporter.filter(|name| !name.is_empty()),
            opset,
            inputs: network.inputs().iter().map(InputFindings::new).collect(),
            outputs: outputs.collect(),
            n_params: network.n_params(),
            n_tensors: network.parameters().len(),
            parameters: network.parameters().iter().map(TensorFindings::new).collect(),
            constants: constants.collect(),
            folded_normalisations: network.folded_normalisations(),
            remarks: network.remarks(),
            flops: graph.map(Graph::flops),
            layers: graph.map(layers),
            trained_on: network.trained_on().clone(),
            is_free: false,
        }
    }
}

impl InputFindings {
    fn new(input: &Input) -> Self {
        Self {
            name: input.name.clone(),
            shape: input.shape.clone(),
            batch_axis: input.batch_axis,
            fixed_batch: input.fixed_batch,
            integer: input.is_integer(),
            sample: None,
        }
    }

    /// Whether the file leaves sizes free.
    pub fn is_free(&self) -> bool {
        let free = |(axis, size): (usize, &Option<usize>)| size.is_none() && Some(axis) != self.batch_axis;
        self.shape.as_ref().is_none_or(|sizes| sizes.iter().enumerate().any(free))
    }
}

impl EndingFindings {
    fn new(ending: Ending) -> Self {
        match ending {
            Ending::Open => Self::Open,
            Ending::Probabilities(Logits { name, node, squash, .. }) => {
                let squash = match squash {
                    Squash::Softmax => "softmax",
                    Squash::LogSoftmax => "log-softmax",
                    Squash::Sigmoid => "sigmoid",
                    Squash::LogSigmoid => "log-sigmoid",
                };
                Self::Probabilities { squash, logits: name, node }
            }
            Ending::Mixed { node, reason } => Self::Mixed { node, reason },
        }
    }
}

impl TensorFindings {
    fn new(parameter: &Parameter) -> Self {
        Self {
            name: parameter.name().to_owned(),
            shape: parameter.shape().to_vec(),
            n_elements: parameter.numel(),
            reason: parameter.reason().to_owned(),
        }
    }
}
