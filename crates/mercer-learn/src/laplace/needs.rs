//! The memory of a structure, known before anything is allocated.

use super::blocks::LARGEST_MATRIX;
use super::head::Head;
use super::last_sides::LastSides;
use super::machine::{block_rows, matrices_bytes};
use super::settings::{LaplaceSettings, Structure};
use super::target::Target;
use crate::error::{LearnError, Result};
use mercer_kernel::Real;
use mercer_kernel::empirical::{Gradients, NtkKind};
use mercer_net::Network;
use mercer_net::graph::{Graph, ValueId};
use mercer_net::op::OuterShape;
use mercer_run::{Context, resident_memory};
use serde::Serialize;
use std::sync::Arc;

/// A matrix, its shifted copy, the scaled copy of a decomposition, its workspace, and its result.
const COPIES: usize = 5;

/// The threads that are counted, unless there are more: so that the needs are the same on most machines.
const THREADS: usize = 8;

/// The size and memory of a Laplace approximation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct PosteriorNeeds {
    /// The number of parameters that are not fixed, or of features that replace them.
    pub n_parameters: usize,
    /// The side of the largest matrix that is decomposed.
    pub side: usize,
    /// Peak bytes, including everything the process holds.
    pub bytes: usize,
    /// The same without what the process holds already.
    #[serde(skip)]
    pub own_bytes: usize,
    /// What a posterior that was fitted before needs of them: nothing is decomposed.
    #[serde(skip)]
    pub fitted_bytes: usize,
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
        let sizes = Sizes::new::<T>(network, samples, &graph, output, settings, features)?;
        let block = block_rows(sizes.sample).saturating_mul(sizes.sample).saturating_mul(2);
        let with = |copies: usize| {
            let square = |&side: &usize| side.saturating_mul(side).saturating_mul(copies * size_of::<f64>());
            sizes.sides.iter().map(square).fold(sizes.kept.saturating_add(block), usize::saturating_add)
        };
        let (own_bytes, fitted_bytes) = (with(COPIES), with(1));
        let bytes = own_bytes.saturating_add(resident_memory());
        let (n_parameters, side) = (sizes.n_parameters, sizes.sides.iter().copied().max().unwrap_or(0));
        Ok(Self { n_parameters, side, bytes, own_bytes, fitted_bytes })
    }

    /// Those of a posterior that was fitted before.
    pub(super) fn fitted(self) -> Self {
        let Self { bytes, own_bytes, fitted_bytes, .. } = self;
        Self { bytes: (bytes - own_bytes).saturating_add(fitted_bytes), own_bytes: fitted_bytes, ..self }
    }

    /// Returns an error if they exceed the allowed or available memory.
    pub fn check(&self, settings: &LaplaceSettings, context: &Context) -> Result<()> {
        let allowed = context.memory();
        if self.bytes <= allowed {
            return Ok(());
        }
        let instead = match settings.structure {
            Structure::Full => "use a Kronecker or diagonal structure, only the last layer, or a sketch",
            Structure::LastLayerFull => "use Kronecker factors of the last layer, or their diagonal",
            Structure::LastLayerKronecker => "use the diagonal of the last layer",
            Structure::LastLayerDiagonal => "use fewer samples at once",
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

/// What the memory of a structure is made of.
struct Sizes {
    n_parameters: usize,
    /// The sides of the matrices that are decomposed.
    sides: Vec<usize>,
    /// Bytes of a sample while it is processed.
    sample: usize,
    /// Other bytes that are kept: tables of curvatures, and the passes of all threads.
    kept: usize,
}

impl Sizes {
    fn new<T: Real>(
        network: &Network,
        samples: &[Vec<usize>],
        graph: &Arc<Graph>,
        output: ValueId,
        settings: &LaplaceSettings,
        features: Option<usize>,
    ) -> Result<Self> {
        if settings.is_last_layer() {
            let head = Head::<T>::new(network, graph, output)?;
            return Ok(Self::of_last_layer(&head, settings.structure));
        }
        let selection = settings.selection(graph)?;
        let features = features.unwrap_or(0) / graph.value(output).meta.numel().max(1);
        let gradients = Gradients::<T>::new(network, samples, NtkKind::Trace, &selection)?;
        let shapes = gradients.outer_shapes();
        let own = (0..shapes.len()).filter(|&at| gradients.chosen()[at]);
        let count: usize = own.clone().map(|at| gradients.numel(at)).sum();
        let seeds = gradients.n_seeds();
        // Whether a gradient is needed as a matrix, or as an outer product that has never been formed.
        let is_outer = |shape: &OuterShape| match settings.structure {
            Structure::Full => false,
            Structure::Kronecker | Structure::Sketch { .. } => !shape.one_hot,
            _ => !shape.one_hot && shape.positions == 1,
        };
        let outer: Vec<bool> = shapes.iter().map(|shape| shape.as_ref().is_some_and(is_outer)).collect();
        let numbers = own.clone().map(|at| match shapes[at].filter(|_| outer[at]) {
            Some(shape) => shape.positions.saturating_mul(shape.left.saturating_add(seeds.saturating_mul(shape.right))),
            None => seeds.saturating_mul(gradients.numel(at)),
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
                    _ if gradients.numel(at) <= LARGEST_MATRIX => vec![gradients.numel(at)],
                    _ => Vec::new(),
                });
                (count, both.collect())
            }
            _ => (count, Vec::new()),
        };
        let numbers = numbers.max(seeds.saturating_mul(sides.iter().copied().max().unwrap_or(0)));
        let sample = numbers.saturating_mul(2 * (size_of::<T>() + size_of::<f64>()));
        let threads = rayon::current_num_threads().max(THREADS);
        let passes = gradients.bytes(&outer).saturating_mul(threads);
        let tables = count.saturating_mul(2 * size_of::<f64>());
        Ok(Self {
            n_parameters,
            sides,
            sample: sample.saturating_add(matrices_bytes(seeds)),
            kept: passes.saturating_add(tables),
        })
    }

    fn of_last_layer<T: Real>(head: &Head<T>, structure: Structure) -> Self {
        let width = head.width + head.layer.biases.len();
        let (n_parameters, n_outputs) = (width.saturating_mul(head.n_outputs), head.n_outputs);
        // A table, its reciprocal, and the packed operand of a product.
        let table = n_parameters.saturating_mul(3 * size_of::<f64>());
        let sample = LastSides::<T>::bytes_of(head.width, n_outputs);
        let (sides, sample, kept) = match structure {
            Structure::LastLayerFull => {
                let numbers = width.saturating_mul(2 + n_outputs).saturating_mul(size_of::<T>() + size_of::<f64>());
                (vec![n_parameters], numbers.saturating_add(matrices_bytes(n_outputs)), 0)
            }
            Structure::LastLayerKronecker => (vec![width, n_outputs], sample, table),
            _ => (Vec::new(), sample, table),
        };
        Self { n_parameters, sides, sample, kept }
    }
}
