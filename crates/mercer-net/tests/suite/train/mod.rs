//! Training: against PyTorch, against itself on other numbers of threads and after an interruption, and on real tasks.

mod batch_norm;
mod damage;
mod images;
mod learns;
mod one_output;
mod optimisers;
mod resume;
mod stop;
mod subset;
mod threads;
mod tuning;

use mercer_net::Network;
use mercer_net::train::{Loss, Optimiser, Trainer};

/// A trainer for a network of these weights.
fn trainer(network: &Network, loss: Loss, optimiser: Optimiser) -> Trainer<f32> {
    let graph = network.declared_graph().unwrap();
    let weights = network.weights(&graph);
    Trainer::new(graph, weights, loss, optimiser).unwrap()
}
