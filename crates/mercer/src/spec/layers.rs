//! Layers of a network: which ones, and their values for many samples from one forward pass.

use super::blocks;
use crate::Error;
use mercer_data::{Dataset, RowBlock};
use mercer_kernel::Real;
use mercer_net::graph::{Graph, Node, Origin, ValueId};
use mercer_net::network::Shards;
use mercer_net::op::{Binary, Combine, Conv, MatMul, Unary};
use mercer_net::run::{Keep, Workspace};
use mercer_net::{NetError, Network};
use mercer_run::Context;
use mercer_run::names::{matches, near};
use ndarray::Array2;
use rayon::prelude::*;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Chosen layers of a network, in the order in which they are computed.
#[derive(Clone, Debug)]
pub(crate) struct Layers {
    graph: Arc<Graph>,
    ids: Vec<ValueId>,
    path: PathBuf,
}

impl Layers {
    /// Layers whose names match one of the patterns. Without patterns: what the blocks of a residual network hand on, or else
    /// what enters each product with a parameter.
    ///
    /// # Errors
    /// If the network does not take samples of these shapes, or a pattern matches nothing.
    pub(crate) fn choose(
        network: &Network,
        shapes: &[Vec<usize>],
        patterns: &[String],
        path: &Path,
    ) -> Result<Self, Error> {
        let graph = network.graph(shapes).map_err(|error| Error::of_network(path, error))?;
        let ids = match patterns {
            [] => usual(&graph),
            patterns => named(&graph, patterns, path)?,
        };
        if ids.is_empty() {
            let text = format!("{}: the network has no hidden layer", path.display());
            return Err(Error::new(text).hint("‹layer› NAME chooses any node; `mercer info -v` lists them"));
        }
        Ok(Self { graph, ids, path: path.to_owned() })
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.ids.len()
    }

    /// The names of the nodes.
    pub(crate) fn names(&self) -> Vec<String> {
        self.ids.iter().map(|&id| self.graph.value(id).name.clone()).collect()
    }

    /// The numbers per sample of every layer.
    pub(crate) fn widths(&self) -> Vec<usize> {
        self.ids.iter().map(|&id| self.graph.value(id).meta.numel()).collect()
    }

    /// The position of a value among the layers; views of a layer count as the layer.
    pub(crate) fn position(&self, id: ValueId) -> Option<usize> {
        let root = source(&self.graph, id);
        self.ids.iter().position(|&own| source(&self.graph, own) == root)
    }

    /// Adds a value if it is not among the layers, and returns its position.
    pub(crate) fn include(&mut self, id: ValueId) -> usize {
        self.ids.iter().position(|&own| own == id).unwrap_or_else(|| {
            self.ids.push(id);
            self.ids.len() - 1
        })
    }

    /// The samples of a shard. Bits of a sample depend on the shard it is in.
    pub(crate) fn grain(&self) -> usize {
        Shards::for_graph(&self.graph).grain.max(1)
    }

    /// The graph.
    pub(crate) fn graph(&self) -> &Arc<Graph> {
        &self.graph
    }

    /// The bytes of the passes of all threads.
    pub(crate) fn pass_bytes<T: Real>(&self) -> usize {
        let workspace = Workspace::<T>::new(Arc::clone(&self.graph), &Keep::Only(self.ids.clone()));
        let shard = workspace.bytes(Shards::for_graph(&self.graph).grain);
        shard.saturating_mul(rayon::current_num_threads())
    }

    /// The values of some layers for all samples, a row per sample, from one forward pass.
    ///
    /// # Errors
    /// If data cannot be read, numbers are not finite, or the run is cancelled.
    pub(crate) fn values<T: Real>(
        &self,
        network: &Network,
        which: &[usize],
        inputs: &[Dataset],
        context: &Context,
    ) -> Result<Vec<Array2<T>>, Error> {
        let n_samples = inputs.first().map_or(0, Dataset::n_samples);
        self.values_in(network, which, (inputs, 0..n_samples), context)
    }

    /// The same for some samples. Their bits are those of all samples if the range begins at a multiple of
    /// [`grain`](Self::grain).
    ///
    /// # Errors
    /// As [`values`](Self::values).
    pub(crate) fn values_in<T: Real>(
        &self,
        network: &Network,
        which: &[usize],
        (inputs, range): (&[Dataset], Range<usize>),
        context: &Context,
    ) -> Result<Vec<Array2<T>>, Error> {
        let n_samples = range.len();
        let ids: Vec<ValueId> = which.iter().map(|&at| self.ids[at]).collect();
        let widths: Vec<usize> = ids.iter().map(|&id| self.graph.value(id).meta.numel()).collect();
        let mut found: Vec<Array2<T>> = widths.iter().map(|&width| Array2::zeros((n_samples, width))).collect();
        let weights = network.weights::<T>(&self.graph);
        let sample = blocks::sample_bytes(&self.graph, None, size_of::<T>());
        let grain = Shards::for_graph(&self.graph).grain.max(1);
        let sizes: Vec<usize> = self.graph.inputs().iter().map(|&input| self.graph.value(input).meta.numel()).collect();
        for rows in blocks::split(&self.graph, n_samples, None, (sample, usize::MAX)) {
            context.check()?;
            let block = RowBlock::<T>::read(inputs, range.start + rows.start..range.start + rows.end)?;
            let data = block.slices();
            mercer_net::network::check_inputs(&self.graph, &data, rows.len())
                .map_err(|error| Error::of_network(&self.path, error))?;
            let shards = shards(&mut found, &widths, rows.clone(), grain);
            shards
                .into_par_iter()
                .enumerate()
                .try_for_each_init(
                    || Workspace::new(Arc::clone(&self.graph), &Keep::Only(ids.clone())),
                    |workspace, (shard, mut out)| -> Result<(), NetError> {
                        let start = shard * grain;
                        let count = grain.min(rows.len() - start);
                        let own = |size: usize| start * size..(start + count) * size;
                        let slices: Vec<&[T]> = data.iter().zip(&sizes).map(|(data, &size)| &data[own(size)]).collect();
                        workspace.forward(&weights, &slices, count)?;
                        for ((&id, width), out) in ids.iter().zip(&widths).zip(&mut out) {
                            let result = workspace.get(&weights, id);
                            match self.graph.value(id).meta.is_batched() {
                                true => out.copy_from_slice(result),
                                false => {
                                    out.chunks_exact_mut((*width).max(1)).for_each(|row| row.copy_from_slice(result))
                                }
                            }
                            if let Some(at) = result.iter().position(|x| !x.is_finite()) {
                                let place = format!("value {:?}", self.graph.value(id).name);
                                let sample = range.start + rows.start + start + at / (*width).max(1);
                                return Err(NetError::NotFinite { place, sample });
                            }
                        }
                        Ok(())
                    },
                )
                .map_err(|error| Error::of_network(&self.path, error))?;
            context.report(rows.end, n_samples, "samples");
        }
        Ok(found)
    }
}

/// The rows of a block of every array, cut into shards: for each shard a slice of every array.
fn shards<'a, T>(
    arrays: &'a mut [Array2<T>],
    widths: &[usize],
    rows: Range<usize>,
    grain: usize,
) -> Vec<Vec<&'a mut [T]>> {
    let mut cut: Vec<Vec<&mut [T]>> = (0..rows.len().div_ceil(grain)).map(|_| Vec::new()).collect();
    for (array, &width) in arrays.iter_mut().zip(widths) {
        // New arrays are contiguous.
        let all = array.as_slice_mut().unwrap_or_default();
        let own = &mut all[rows.start * width..rows.end * width];
        for (shard, part) in cut.iter_mut().zip(own.chunks_mut((grain * width).max(1))) {
            shard.push(part);
        }
    }
    cut
}

/// Batched values of nodes whose names match.
fn named(graph: &Graph, patterns: &[String], path: &Path) -> Result<Vec<ValueId>, Error> {
    let candidates: Vec<(ValueId, &str)> = graph
        .nodes()
        .iter()
        .map(|node| (node.output, graph.value(node.output).name.as_str()))
        .filter(|(id, name)| graph.value(*id).meta.is_batched() && !name.is_empty())
        .collect();
    if let Some(pattern) = patterns.iter().find(|pattern| !candidates.iter().any(|(_, name)| matches(pattern, name))) {
        let all: Vec<&str> = candidates.iter().map(|(_, name)| *name).collect();
        let text = format!("‹layer› {pattern}: no node of {} has this name", path.display());
        let hint = match near(pattern, &all).first() {
            Some(meant) => format!("did you mean {meant}? `mercer info {} -v` lists all nodes", path.display()),
            None => format!("`mercer info {} -v` lists all nodes", path.display()),
        };
        return Err(Error::new(text).hint(hint));
    }
    let wanted = |name: &str| patterns.iter().any(|pattern| matches(pattern, name));
    Ok(candidates.into_iter().filter(|(_, name)| wanted(name)).map(|(id, _)| id).collect())
}

/// The value that a view shows.
fn source(graph: &Graph, mut id: ValueId) -> ValueId {
    while let Origin::Node(index) = graph.value(id).origin {
        let node = &graph.nodes()[index];
        if !node.op.is_view() {
            break;
        }
        id = node.inputs[0];
    }
    id
}

/// The usual layers.
fn usual(graph: &Graph) -> Vec<ValueId> {
    let entering = entering_products(graph);
    let joins = joins(graph);
    // One join may be a detail; with several, the network consists of residual blocks.
    if joins.len() < 2 {
        return entering;
    }
    let place = |id: ValueId| match graph.value(id).origin {
        Origin::Node(index) => index + 1,
        _ => 0,
    };
    let mut found = joins;
    found.extend(entering.first());
    found.extend(entering.last());
    found.sort_unstable_by_key(|&id| place(id));
    found.dedup();
    found
}

/// What enters the products with parameters, after the first of them.
fn entering_products(graph: &Graph) -> Vec<ValueId> {
    let is_product = |node: &&Node| {
        let any = node.op.as_any();
        any.is::<MatMul>() || any.is::<Conv>()
    };
    let computed = graph.parametrised();
    let mut found = Vec::new();
    for node in graph.nodes().iter().filter(is_product) {
        let weighted = node.inputs.iter().any(|id| computed[id.index()] && !graph.value(*id).meta.is_batched());
        let entering = node.inputs.iter().copied().find(|id| graph.value(*id).meta.is_batched());
        let Some(id) = entering.filter(|_| weighted).map(|id| source(graph, id)) else { continue };
        // The input of the network, or preprocessing of it, is no layer.
        if computed[id.index()] && !found.contains(&id) {
            found.push(id);
        }
    }
    found
}

/// Sums of two values that both depend on parameters, after the nonlinear function that follows if nothing else reads the sum.
fn joins(graph: &Graph) -> Vec<ValueId> {
    let computed = graph.parametrised();
    let mut found = Vec::new();
    for node in graph.nodes() {
        let Some(&Binary(Combine::Add)) = node.op.as_any().downcast_ref() else { continue };
        let numel = graph.value(node.output).meta.numel();
        let whole = |id: &ValueId| {
            let value = graph.value(*id);
            value.meta.is_batched() && value.meta.numel() == numel && computed[id.index()]
        };
        if !node.inputs.iter().all(whole) || node.inputs.len() != 2 {
            continue;
        }
        let mut readers = graph.nodes().iter().filter(|reader| reader.inputs.contains(&node.output));
        let id = match (readers.next(), readers.next()) {
            (Some(reader), None) if reader.op.as_any().is::<Unary>() => reader.output,
            _ => node.output,
        };
        found.push(id);
    }
    found
}
