//! The memory of a structure, known before anything is allocated.

use super::machine::{BLOCK_BYTES, LARGEST_BLOCK};
use super::settings::{LaplaceSettings, Structure};
use super::source::Head;
use super::target::Target;
use crate::error::{LearnError, Result};
use mercer_kernel::Real;
use mercer_kernel::empirical::{Gradients, NtkKind};
use mercer_net::Network;
use mercer_net::graph::{Graph, ValueId};
use mercer_run::{Context, resident_memory};
use serde::Serialize;
use std::sync::Arc;

/// A matrix, its shifted copy, the scaled copy of a decomposition, its workspace, and its result.
const COPIES: usize = 5;

/// The size and memory of a Laplace approximation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct PosteriorNeeds {
    /// The number of parameters that are not fixed, or of features that replace them.
    pub n_parameters: usize,
    /// The side of the largest matrix that is decomposed.
    pub side: usize,
    /// Peak bytes, including everything the process holds.
    pub bytes: usize,
}

impl PosteriorNeeds {
    /// The needs of these settings for samples of these shapes. `features` is the number of given features over all
    /// outputs.
    pub fn estimate<T: Real>(
        network: &Network,
        samples: &[Vec<usize>],
        settings: &LaplaceSettings,
        features: Option<usize>,
    ) -> Result<Self> {
        settings.check()?;
        let graph = network.graph(samples)?;
        let output = Target::new(&graph, settings)?.value;
        let (n_parameters, sides, numbers) = sides::<T>(network, samples, &graph, output, settings, features)?;
        let squares = |side: usize| side.saturating_mul(side).saturating_mul(COPIES * size_of::<f64>());
        let work: usize = sides.iter().map(|&side| squares(side)).fold(0, usize::saturating_add);
        // For a block: in the network's scalar and in double precision, unweighted and weighted.
        let block = [LARGEST_BLOCK, 4 * size_of::<f64>()].into_iter().fold(numbers, usize::saturating_mul);
        let bytes = work.saturating_add(block.min(2 * BLOCK_BYTES)).saturating_add(resident_memory());
        Ok(Self { n_parameters, side: sides.into_iter().max().unwrap_or(0), bytes })
    }

    /// Returns an error if they exceed the allowed or available memory.
    pub fn check(&self, settings: &LaplaceSettings, context: &Context) -> Result<()> {
        let allowed = context.memory();
        if self.bytes <= allowed {
            return Ok(());
        }
        let instead = match settings.structure {
            Structure::Full => "use a Kronecker or diagonal structure, only the last layer, or a sketch",
            Structure::LastLayerFull => "use Kronecker factors of the last layer",
            Structure::Sketch { .. } | Structure::Features { .. } => "use fewer features",
            _ => "use a diagonal structure, or only the last layer",
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

/// The number of parameters, the sides of all matrices that are kept, and the count of numbers per sample while it is
/// processed.
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
    let gradients = Gradients::<T>::new(network, samples, NtkKind::Trace, &selection)?;
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
        // A second matrix finds the part of the parameters that the features represent.
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
