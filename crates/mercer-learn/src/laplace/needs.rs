//! What a structure takes, before anything is made.

use super::machine::{BLOCK_BYTES, LARGEST_BLOCK};
use super::settings::{LaplaceSettings, Structure};
use super::source::Head;
use super::target::Target;
use crate::error::{LearnError, Result};
use mercer_kernel::Real;
use mercer_kernel::empirical::{Gradients, Kind};
use mercer_net::Network;
use mercer_net::graph::{Graph, ValueId};
use mercer_run::{Context, resident_memory};
use serde::Serialize;
use std::sync::Arc;

/// A matrix, the copy that is shifted, the scaled copy of a decomposition, what it works on, and its result.
const COPIES: usize = 5;

/// What a Laplace approximation takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct PosteriorNeeds {
    /// The parameters that are not fixed, or the features that stand for them.
    pub n_parameters: usize,
    /// The side of the largest matrix that is taken apart.
    pub side: usize,
    /// Bytes at the highest, all that the process holds included.
    pub bytes: usize,
}

impl PosteriorNeeds {
    /// What these settings take, for samples of these shapes. `features` is their number, of all outputs, where they are given.
    pub fn estimate<T: Real>(
        network: &Network,
        samples: &[Vec<usize>],
        settings: &LaplaceSettings,
        features: Option<usize>,
    ) -> Result<Self> {
        settings.check()?;
        let graph = network.graph(samples)?;
        let output = Target::of(&graph, settings)?.value;
        let (n_parameters, sides, numbers) = sides::<T>(network, samples, &graph, output, settings, features)?;
        let squares = |side: usize| side.saturating_mul(side).saturating_mul(COPIES * size_of::<f64>());
        let work: usize = sides.iter().map(|&side| squares(side)).fold(0, usize::saturating_add);
        // Of a block: in the network's scalar and in double precision, as they are and weighted.
        let block = [LARGEST_BLOCK, 4 * size_of::<f64>()].into_iter().fold(numbers, usize::saturating_mul);
        let bytes = work.saturating_add(block.min(2 * BLOCK_BYTES)).saturating_add(resident_memory());
        Ok(Self { n_parameters, side: sides.into_iter().max().unwrap_or(0), bytes })
    }

    /// An error if they take more than is allowed, or than there is.
    pub fn check(&self, settings: &LaplaceSettings, context: &Context) -> Result<()> {
        let allowed = context.memory();
        if self.bytes <= allowed {
            return Ok(());
        }
        let instead = match settings.structure {
            Structure::Full => "take a Kronecker or a diagonal structure, the last layer alone, or a sketch",
            Structure::LastLayerFull => "take Kronecker factors of the last layer",
            Structure::Sketch { .. } | Structure::Features { .. } => "take fewer features",
            _ => "take a diagonal structure, or the last layer alone",
        };
        Err(LearnError::Memory {
            what: settings.structure.to_string(),
            side: self.side,
            needed: self.bytes,
            allowed,
            instead,
        })
    }
}

/// The number of parameters, the sides of all matrices that are kept, and the numbers of a sample while it is worked on.
fn sides<T: Real>(
    network: &Network,
    samples: &[Vec<usize>],
    graph: &Arc<Graph>,
    output: ValueId,
    settings: &LaplaceSettings,
    features: Option<usize>,
) -> Result<(usize, Vec<usize>, usize)> {
    if settings.is_last_layer() {
        let head = Head::<T>::new(network, graph, output)?;
        let width = head.width + head.layer.biases.len();
        let count = width * head.n_outputs;
        let full = settings.structure == Structure::LastLayerFull;
        let numbers = width.saturating_mul(2 + head.n_outputs);
        return Ok((count, if full { vec![count] } else { vec![width, head.n_outputs] }, numbers));
    }
    let selection = settings.selection(graph)?;
    let features = features.unwrap_or(0) / graph.value(output).meta.numel().max(1);
    let gradients = Gradients::<T>::new(network, samples, Kind::Trace, &selection)?;
    let shapes = gradients.outer_shapes();
    let own = (0..shapes.len()).filter(|&at| gradients.chosen()[at]);
    let count: usize = own.clone().map(|at| gradients.numel(at)).sum();
    let seeds = gradients.n_seeds();
    let numbers = own.clone().map(|at| {
        let whole = seeds.saturating_mul(gradients.numel(at));
        shapes[at].map_or(whole, |shape| whole.max(shape.positions * (shape.left + seeds * shape.right)))
    });
    let numbers = numbers.fold(0, usize::saturating_add);
    let (n_parameters, sides) = match settings.structure {
        Structure::Full => (count, vec![count]),
        // A second matrix finds the part of the parameters that the features stand for.
        Structure::Sketch { k, .. } => (k, vec![k, k]),
        Structure::Features { .. } => (features, vec![features, features]),
        Structure::Kronecker => {
            let both = own.flat_map(|at| match shapes[at] {
                Some(shape) if !shape.one_hot => vec![shape.left, shape.right],
                _ if gradients.numel(at) <= super::blocks::LARGEST_MATRIX => vec![gradients.numel(at)],
                _ => Vec::new(),
            });
            (count, both.collect())
        }
        _ => (count, Vec::new()),
    };
    Ok((n_parameters, sides, numbers.max(seeds.saturating_mul(n_parameters))))
}
