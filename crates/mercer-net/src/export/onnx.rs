//! ONNX export: opset 17, IR 8, single precision, a free batch axis named `batch`.
//!
//! Every node of the graph becomes one ONNX node, or a few where opset 17 has no operator for it (GELU, SiLU, Mish,
//! scale and shift). Parameters keep their names, so reading the file back gives the same parameters.

use super::proto::{self, Attribute, Message};
use crate::element::Element;
use crate::error::{NetError, Result};
use crate::graph::{Batch, Graph, Meta, Node, Origin, ValueId};
use crate::network::Network;
use crate::run::Weights;
use mercer_data::{Existing, write_atomic};
use std::collections::HashSet;
use std::path::Path;

const IR_VERSION: i64 = 8;
const OPSET: i64 = 17;

/// A graph with its weights as the bytes of an ONNX file.
///
/// ```
/// use mercer_net::arch::Mlp;
/// use mercer_net::network::Batching;
/// use mercer_net::{Network, export};
///
/// let network = Mlp::new(2, &[8], 3).build(0)?;
/// let graph = network.declared_graph()?;
/// let bytes = export::onnx(&graph, &network.weights::<f32>(&graph))?;
/// let read = Network::from_onnx_bytes(&bytes, Batching::Samples)?;
/// assert_eq!(read.n_params(), network.n_params());
/// # Ok::<(), mercer_net::NetError>(())
/// ```
pub fn onnx<T: Element>(graph: &Graph, weights: &Weights<T>) -> Result<Vec<u8>> {
    with_metadata(graph, weights, &[])
}

fn with_metadata<T: Element>(graph: &Graph, weights: &Weights<T>, metadata: &[(&str, String)]) -> Result<Vec<u8>> {
    let mut writer = Writer::new(graph);
    writer.initialisers(weights);
    for node in graph.nodes() {
        super::primitives::write(&mut writer, node)?;
    }
    let inputs: Vec<Message> =
        graph.inputs().iter().map(|&id| writer.info(writer.name(id), id)).collect::<Result<_>>()?;
    let mut outputs = Vec::new();
    for (name, id) in graph.outputs() {
        let mut name = name.clone();
        if writer.name(*id) != name {
            // A second name for a value, or an input that is also an output.
            name = writer.unique(&name);
            let source = writer.name(*id).to_owned();
            writer.emit("Identity", &name, &[source], &name, &[]);
        }
        outputs.push(writer.info(&name, *id)?);
    }
    Ok(proto::model(IR_VERSION, OPSET, &writer.nodes, &writer.tensors, [&inputs, &outputs], metadata))
}

impl Network {
    /// The network as the bytes of an ONNX file; see [`export::onnx`](crate::export::onnx). The metadata record what it
    /// was trained on.
    pub fn to_onnx_bytes(&self) -> Result<Vec<u8>> {
        let graph = self.declared_graph()?;
        with_metadata(&graph, &self.weights::<f32>(&graph), &self.trained_on().entries()?)
    }

    /// Writes the network as an ONNX file, atomically. An existing file is replaced.
    pub fn save_onnx(&self, path: impl AsRef<Path>) -> Result<()> {
        let bytes = self.to_onnx_bytes()?;
        Ok(write_atomic(path.as_ref(), Existing::Replace, |writer| writer.write_all(&bytes))?)
    }
}

/// An ONNX graph being written.
pub(super) struct Writer<'a> {
    pub(super) graph: &'a Graph,
    /// The name of every value.
    names: Vec<String>,
    used: HashSet<String>,
    nodes: Vec<Message>,
    tensors: Vec<Message>,
}

impl<'a> Writer<'a> {
    fn new(graph: &'a Graph) -> Self {
        let mut writer =
            Self { graph, names: Vec::new(), used: HashSet::new(), nodes: Vec::new(), tensors: Vec::new() };
        writer.names = vec![String::new(); graph.values().len()];
        // Names that a reader sees are kept: inputs, parameters and outputs. The other values get names that are still
        // free.
        let visible = |at: &usize| matches!(graph.values()[*at].origin, Origin::Parameter(_) | Origin::Input(_));
        let (fixed, free): (Vec<usize>, Vec<usize>) = (0..graph.values().len()).partition(visible);
        for at in fixed {
            writer.names[at] = writer.unique(&graph.values()[at].name);
        }
        for (name, id) in graph.outputs() {
            let is_result = matches!(graph.value(*id).origin, Origin::Node(_));
            if is_result && writer.names[id.index()].is_empty() {
                writer.names[id.index()] = writer.unique(name);
            }
        }
        for at in free {
            if writer.names[at].is_empty() {
                let own = graph.values()[at].name.as_str();
                writer.names[at] = writer.unique(if own.is_empty() { "value" } else { own });
            }
        }
        writer
    }

    /// An unused name that resembles the wanted one.
    pub(super) fn unique(&mut self, wanted: &str) -> String {
        let mut name = wanted.to_owned();
        let mut count = 1;
        while !self.used.insert(name.clone()) {
            count += 1;
            name = format!("{wanted}/{count}");
        }
        name
    }

    pub(super) fn name(&self, id: ValueId) -> &str {
        &self.names[id.index()]
    }

    pub(super) fn meta(&self, id: ValueId) -> &'a Meta {
        &self.graph.value(id).meta
    }

    fn initialisers<T: Element>(&mut self, weights: &Weights<T>) {
        let graph = self.graph;
        for (&id, values) in graph.parameters().iter().zip(&weights.parameters) {
            let numbers = values.iter().map(|x| x.wide() as f32);
            self.tensors.push(proto::floats(self.name(id), &self.meta(id).shape, numbers));
        }
        for (at, value) in graph.values().iter().enumerate() {
            if let (Origin::Constant(_), Some(numbers)) = (value.origin, weights.leaf(value.origin)) {
                let numbers = numbers.iter().map(|x| x.wide() as f32);
                self.tensors.push(proto::floats(&self.names[at], &value.meta.shape, numbers));
            }
        }
    }

    pub(super) fn emit(
        &mut self,
        op: &str,
        name: &str,
        inputs: &[String],
        output: &str,
        attributes: &[(&str, Attribute)],
    ) {
        self.nodes.push(proto::node(op, name, inputs, output, attributes));
    }

    /// Adds one of the ONNX nodes that implement `node`; returns the name of its result.
    pub(super) fn inner(&mut self, op: &str, node: &Node, inputs: &[String]) -> String {
        let output = self.unique(&format!("{}/{}", self.name(node.output), op.to_lowercase()));
        self.emit(op, &output, inputs, &output, &[]);
        output
    }

    /// A scalar, as an initialiser.
    pub(super) fn scalar(&mut self, node: &Node, value: f64) -> String {
        let name = self.unique(&format!("{}/constant", self.name(node.output)));
        self.tensors.push(proto::floats(&name, &[], std::iter::once(value as f32)));
        name
    }

    /// Integers, as an initialiser.
    pub(super) fn integers(&mut self, node: &Node, values: &[i64]) -> String {
        let name = self.unique(&format!("{}/sizes", self.name(node.output)));
        self.tensors.push(proto::integers(&name, values));
        name
    }

    fn info(&self, name: &str, id: ValueId) -> Result<Message> {
        let meta = self.meta(id);
        let batch = batch_axis(meta);
        if batch.is_none() {
            let reason = "has no batch axis of its own and cannot be exported".into();
            return Err(NetError::Unsupported { node: name.to_owned(), reason });
        }
        let sizes: Vec<Option<usize>> =
            meta.shape.iter().enumerate().map(|(axis, &size)| (Some(axis) != batch).then_some(size)).collect();
        Ok(proto::value_info(name, &sizes))
    }
}

/// The axis that is exactly the batch.
pub(super) fn batch_axis(meta: &Meta) -> Option<usize> {
    let Some(Batch::At(places)) = &meta.batch else { return None };
    places.iter().map(|place| place.axis).find(|&axis| meta.shape[axis] == 1)
}
