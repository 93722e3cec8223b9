//! A network: its source, its parameters, and its graph for samples of a given shape.
//!
//! ```
//! use mercer_net::arch::Mlp;
//!
//! let network = Mlp::new(2, &[8], 3).build(0)?;
//! assert_eq!(network.n_params(), (2 + 1) * 8 + (8 + 1) * 3);
//! let graph = network.graph(&[vec![2]])?;
//! assert_eq!(graph.nodes().len(), network.declared_graph()?.nodes().len());
//! # Ok::<(), mercer_net::NetError>(())
//! ```

mod ending;
mod file;
mod hint;
mod input;
mod logits;
mod parameter;
mod predict;
mod remarks;
mod saved;
mod statistics;
mod trained;

pub use crate::onnx::NumberKind;
pub use input::{Batching, Input};
pub use logits::{Ending, Logits, Squash, default_logits, threshold};
pub use parameter::{Parameter, Values};
pub use predict::{Prediction, Shards, check_inputs, class_of_logits, find, largest};
pub use saved::SavedNetwork;
pub(crate) use trained::OURS;
pub use trained::TrainedOn;

use crate::element::Element;
use crate::error::{NetError, Result};
use crate::graph::Graph;
use crate::run::Weights;
use file::File;
use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex};

/// How a file is imported.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Import {
    /// What the inputs hold.
    pub batching: Batching,
    /// The most bytes that an import may use in all: tensors, computed constants, inlined functions, nodes. The default
    /// is sixteen times the size of the file and its external data, and at least [`crate::IMPORT_FLOOR`].
    pub limit: Option<usize>,
}

/// The largest model file: protobuf messages cannot be longer. Larger models keep their tensors in external files.
const LONGEST_FILE: u64 = 2 << 30;

/// A network that runs at any batch size and, where its file leaves sizes free, on samples of any size.
#[derive(Debug)]
pub struct Network {
    source: Source,
    parameters: Vec<Parameter>,
    /// Running statistics of batch normalisations.
    statistics: Vec<Parameter>,
    inputs: Vec<Input>,
    trained_on: TrainedOn,
    /// The graphs for the sample shapes seen so far.
    graphs: Mutex<HashMap<Vec<Vec<usize>>, Arc<Graph>>>,
}

#[derive(Debug)]
enum Source {
    /// An ONNX file, lowered for each sample shape.
    File(Box<File>),
    /// A graph built in code, for one sample shape.
    Built(Arc<Graph>),
}

impl Network {
    /// Opens an ONNX file.
    pub fn from_onnx(path: impl AsRef<Path>) -> Result<Self> {
        Self::import(path, &Import::default())
    }

    /// Opens an ONNX file, with settings.
    pub fn import(path: impl AsRef<Path>, import: &Import) -> Result<Self> {
        let path = path.as_ref();
        let bytes = mercer_data::read_regular(path, LONGEST_FILE)
            .map_err(|source| NetError::Io { path: path.to_owned(), source })?;
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        Self::from_file(File::decode(&bytes, Some(folder), import)?)
    }

    /// Reads an ONNX model from memory; `batching` says whether the inputs' first axis is samples.
    pub fn from_onnx_bytes(bytes: &[u8], batching: Batching) -> Result<Self> {
        Self::import_bytes(bytes, &Import { batching, limit: None })
    }

    /// Reads an ONNX model from memory, with settings. External data cannot be found.
    pub fn import_bytes(bytes: &[u8], import: &Import) -> Result<Self> {
        Self::from_file(File::decode(bytes, None, import)?)
    }

    fn from_file(file: File) -> Result<Self> {
        let (parameters, inputs, trained_on) = (file.parameters(), file.inputs.clone(), file.trained_on()?);
        let (source, statistics) = (Source::File(Box::new(file)), Vec::new());
        let mut network = Self { source, parameters, statistics, inputs, trained_on, graphs: Mutex::default() };
        network.read_statistics();
        Ok(network)
    }

    /// A network built in code, with its parameters in the graph's order.
    pub fn from_graph(graph: Graph, values: Vec<Values>) -> Result<Self> {
        if values.len() != graph.parameters.len() {
            return Err(NetError::Setting("the number of arrays and of parameters must be the same".into()));
        }
        let parameters = graph
            .parameters
            .iter()
            .zip(values)
            .map(|(&id, values)| {
                let value = graph.value(id);
                Parameter::new(value.name.clone(), value.meta.shape.clone(), values, "built".into())
            })
            .collect::<Result<_>>()?;
        let statistics = statistics::initial(&graph)?;
        let inputs = graph.inputs.iter().map(|&id| Input::of_value(graph.value(id))).collect();
        let (source, trained_on) = (Source::Built(Arc::new(graph)), TrainedOn::default());
        Ok(Self { source, parameters, statistics, inputs, trained_on, graphs: Mutex::default() })
    }

    /// The inputs, in order.
    pub fn inputs(&self) -> &[Input] {
        &self.inputs
    }

    /// The names of the outputs, in order.
    pub fn output_names(&self) -> Vec<String> {
        match &self.source {
            Source::File(file) => file.output_names(),
            Source::Built(graph) => graph.outputs().iter().map(|(name, _)| name.clone()).collect(),
        }
    }

    /// The parameters, in order.
    pub fn parameters(&self) -> &[Parameter] {
        &self.parameters
    }

    /// The number of trainable numbers.
    pub fn n_params(&self) -> usize {
        self.parameters.iter().map(Parameter::numel).sum()
    }

    /// The file's other floating-point tensors, each with the reason why it is not a parameter.
    pub fn constants(&self) -> Vec<(String, Vec<usize>, String)> {
        match &self.source {
            Source::File(file) => file.constants(),
            Source::Built(_) => Vec::new(),
        }
    }

    /// The number of layers into which the exporter folded a batch normalisation.
    pub fn folded_normalisations(&self) -> usize {
        match &self.source {
            Source::File(file) => file.detection.folded.layers(),
            Source::Built(_) => 0,
        }
    }

    /// The exporter and the opset, if the network comes from a file.
    pub fn origin(&self) -> Option<(String, i64)> {
        match &self.source {
            Source::File(file) => Some(file.origin()),
            Source::Built(_) => None,
        }
    }

    /// Makes the tensors that match `include` parameters and those that match `exclude` constants (`*` and `?` are
    /// wildcards). A pattern that matches nothing is an error that lists similar names.
    pub fn select_parameters(&mut self, include: &[String], exclude: &[String]) -> Result<()> {
        match &mut self.source {
            Source::File(file) => {
                file.select(include, exclude)?;
                self.parameters = file.parameters();
                self.graphs = Mutex::default();
                Ok(())
            }
            Source::Built(_) if include.is_empty() && exclude.is_empty() => Ok(()),
            Source::Built(_) => Err(NetError::Setting("the parameters of a built network are fixed".into())),
        }
    }

    /// Separates the parameters that the exporter merged because their values are equal, and restores zero biases that
    /// it dropped, as far as the file tells. Tied weights stay one parameter. Call this before choosing parameters by
    /// name.
    pub fn unmerge(&mut self) -> Result<()> {
        if let Source::File(file) = &mut self.source {
            file.unmerge()?;
            self.parameters = file.parameters();
            self.graphs = Mutex::default();
        }
        Ok(())
    }

    /// The graph for samples of these shapes (one per input, without the sample axis).
    pub fn graph(&self, samples: &[Vec<usize>]) -> Result<Arc<Graph>> {
        let file = match &self.source {
            Source::Built(graph) => {
                self.check_shapes(samples)?;
                return Ok(Arc::clone(graph));
            }
            Source::File(file) => file,
        };
        self.check_shapes(samples)?;
        let key = samples.to_vec();
        let mut graphs = self.graphs.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some(graph) = graphs.get(&key) {
            return Ok(Arc::clone(graph));
        }
        let graph = Arc::new(file.lower(samples)?);
        graphs.insert(key, Arc::clone(&graph));
        Ok(graph)
    }

    /// The graph for the declared sample shapes; an error if a size is free.
    pub fn declared_graph(&self) -> Result<Arc<Graph>> {
        let shapes: Result<Vec<_>> = self.inputs.iter().map(Input::declared_sample).collect();
        self.graph(&shapes?)
    }

    fn check_shapes(&self, samples: &[Vec<usize>]) -> Result<()> {
        if samples.len() != self.inputs.len() {
            let names: Vec<_> = self.inputs.iter().map(|input| input.name.as_str()).collect();
            let reason = format!("{} inputs were given, but the network needs {}", samples.len(), names.join(", "));
            return Err(NetError::Setting(reason));
        }
        self.inputs.iter().zip(samples).try_for_each(|(input, sample)| input.check(sample))
    }

    /// The bytes of its file with the present numbers of the parameters, and what it was trained on in the metadata.
    /// Everything else in the file stays; see [`export::with_parameters`](crate::export::with_parameters).
    ///
    /// # Errors
    /// If the numbers cannot be written to the file.
    pub fn written_to(&self, file: &[u8]) -> Result<Vec<u8>> {
        let bytes = crate::export::with_parameters(file, &self.parameters)?;
        crate::export::with_notes(&bytes, &self.trained_on.entries()?)
    }

    /// The parameters in one scalar, for running `graph`.
    pub fn weights<T: Element>(&self, graph: &Graph) -> Weights<T> {
        let parameters = self.parameters.iter().map(|parameter| parameter.values().to_vec::<T>()).collect();
        let mut weights = Weights::new(graph, parameters);
        self.statistics_into(graph, &mut weights);
        weights
    }

    /// Replaces the values of all parameters and running statistics, for instance by trained ones.
    pub fn set_weights<T: Element>(&mut self, weights: &Weights<T>) {
        for (parameter, values) in self.parameters.iter_mut().zip(&weights.parameters) {
            parameter.set(Values::from_slice(values));
        }
        self.statistics_from(weights);
    }

    /// Replaces the values of all parameters, in their order.
    ///
    /// # Panics
    /// If the sizes differ.
    pub fn set_values(&mut self, values: Vec<Values>) {
        assert_eq!(values.len(), self.parameters.len(), "one array per parameter");
        for (parameter, values) in self.parameters.iter_mut().zip(values) {
            parameter.set(values);
        }
    }
}
