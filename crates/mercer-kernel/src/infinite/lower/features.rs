//! The part of a network before its first parameters: a fixed function of the inputs.

use crate::error::Result;
use crate::kernel::Real;
use mercer_net::graph::{Graph, GraphBuilder, Meta, Origin, ValueId};
use mercer_net::run::{Keep, Weights, Workspace};
use std::collections::HashMap;
use std::sync::Arc;

/// The number of samples to run at once.
const SAMPLES: usize = 64;

/// The inputs of the infinitely wide layers: the network's inputs, or fixed functions of them (preprocessing, patches).
#[derive(Clone, Debug, Default)]
pub struct LimitFeatures {
    graph: Option<Arc<Graph>>,
}

impl LimitFeatures {
    /// The part of a graph that these values need; none if they are the inputs.
    pub(super) fn new(graph: &Graph, arrays: &[ValueId]) -> Result<Self> {
        if arrays == graph.inputs() {
            return Ok(Self::default());
        }
        let mut builder = GraphBuilder::new();
        let mut new: HashMap<ValueId, ValueId> = HashMap::new();
        for &id in graph.inputs() {
            let value = graph.value(id);
            if let Meta { shape, batch: Some(batch) } = &value.meta {
                new.insert(id, builder.input(value.name.clone(), shape.clone(), batch.clone()));
            }
        }
        let mut needed = vec![false; graph.values().len()];
        arrays.iter().for_each(|id| needed[id.index()] = true);
        for node in graph.nodes().iter().rev() {
            if needed[node.output.index()] {
                node.inputs.iter().for_each(|id| needed[id.index()] = true);
            }
        }
        for node in graph.nodes().iter().filter(|node| needed[node.output.index()]) {
            let mut inputs = Vec::with_capacity(node.inputs.len());
            for &id in &node.inputs {
                if let (Origin::Constant(_), Some(data)) = (graph.value(id).origin, graph.constant(id)) {
                    let value = graph.value(id);
                    let shape = value.meta.shape.clone();
                    new.entry(id).or_insert_with(|| builder.constant(value.name.clone(), shape, data.to_vec()));
                }
                inputs.extend(new.get(&id));
            }
            let made = builder.push_node(&node.name, &node.operator, Arc::clone(&node.op), &inputs)?;
            if let Some(batch) = &graph.value(node.output).meta.batch {
                builder.set_batch(made, batch.clone());
            }
            new.insert(node.output, made);
        }
        arrays.iter().filter_map(|id| new.get(id)).for_each(|&id| builder.output("features", id));
        Ok(Self { graph: Some(Arc::new(builder.finish())) })
    }

    /// Whether the layers read the inputs directly.
    pub fn is_empty(&self) -> bool {
        self.graph.is_none()
    }

    /// The arrays, each `[samples, …]`; none if they are the inputs.
    pub(in crate::infinite) fn apply<T: Real>(&self, inputs: &[&[T]], samples: usize) -> Result<Vec<Vec<T>>> {
        let Some(graph) = &self.graph else { return Ok(Vec::new()) };
        let sizes: Vec<usize> = graph.inputs().iter().map(|&id| graph.value(id).meta.numel()).collect();
        for ((data, size), &id) in inputs.iter().zip(&sizes).zip(graph.inputs()) {
            if data.len() != size * samples {
                let reason = format!("{} numbers for {samples} samples of {size}", data.len());
                return Err(mercer_net::NetError::Input { input: graph.value(id).name.clone(), reason }.into());
            }
        }
        let weights = Weights::<T>::new(graph, Vec::new());
        let mut workspace = Workspace::<T>::new(Arc::clone(graph), &Keep::Only(Vec::new()));
        let mut arrays = vec![Vec::new(); graph.outputs().len()];
        for start in (0..samples).step_by(SAMPLES) {
            let count = SAMPLES.min(samples - start);
            let part: Vec<&[T]> =
                inputs.iter().zip(&sizes).map(|(data, size)| &data[start * size..(start + count) * size]).collect();
            workspace.forward(&weights, &part, count)?;
            for (array, (_, id)) in arrays.iter_mut().zip(graph.outputs()) {
                array.extend_from_slice(workspace.get(&weights, *id));
            }
        }
        Ok(arrays)
    }

    /// The identity of the features, for manifests.
    pub(in crate::infinite) fn identity(&self) -> serde_json::Value {
        let Some(graph) = &self.graph else { return serde_json::Value::Null };
        let node = |node: &mercer_net::graph::Node| {
            let constants: Vec<_> = node.inputs.iter().filter_map(|&id| graph.constant(id)).collect();
            format!("{:?} {:?} {constants:?}", node.op, node.inputs)
        };
        graph.nodes().iter().map(node).collect()
    }
}
