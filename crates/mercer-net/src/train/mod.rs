//! Training: losses, optimisers, learning rates, a step, changes of images, and the loop over epochs.
//!
//! [`Trainer::step`] does one step on a batch that is in memory; [`TrainingLoop`] runs epochs over a data set, measures, writes
//! checkpoints, and can be cancelled and resumed.
//!
//! ```
//! use mercer_net::arch::Mlp;
//! use mercer_net::train::{Loss, Optimiser, Targets, Trainer};
//!
//! let network = Mlp::new(2, &[8], 2).build(0)?;
//! let graph = network.declared_graph()?;
//! let weights = network.weights::<f64>(&graph);
//! let mut trainer = Trainer::new(graph, weights, Loss::CrossEntropy, Optimiser::adam())?;
//! let x: [&[f64]; 1] = [&[1.0, 0.0, 0.0, 1.0]];
//! let first = trainer.step(&x, &Targets::classes(&[0, 1]), 2, 0.05)?;
//! let mut last = first;
//! for _ in 0..20 {
//!     last = trainer.step(&x, &Targets::classes(&[0, 1]), 2, 0.05)?;
//! }
//! assert!(last < first);
//! # Ok::<(), mercer_net::NetError>(())
//! ```

mod augment;
mod batch;
pub mod files;
mod fingerprint;
mod fit;
mod lane;
mod loss;
mod norm;
mod optimiser;
mod saved;
mod schedule;
mod settings;
mod state;
mod together;
mod trainer;
mod update;

pub use augment::Augmentation;
pub use fit::TrainingLoop;
pub use loss::{Answers, Loss, SampleTarget, Targets};
pub use optimiser::{Optimiser, OptimiserState};
pub use saved::{push_state, read_state};
pub use schedule::{Decay, Schedule};
pub use settings::{Epoch, TrainingSamples, TrainingSettings};
pub use trainer::{LANES, Metrics, Trainer};
