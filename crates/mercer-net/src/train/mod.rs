//! Training: losses, optimisers, learning rates, a step, and the loop over epochs.
//!
//! [`Trainer::step`] does one step on a batch that is in memory; [`TrainingLoop`] runs epochs over a data set, measures, writes
//! checkpoints, and can be cancelled and resumed.

mod batch;
pub mod files;
mod fingerprint;
mod fit;
mod lane;
mod loss;
mod optimiser;
mod saved;
mod schedule;
mod state;
mod trainer;
mod update;

pub use fit::{Epoch, TrainingLoop, TrainingSamples, TrainingSettings};
pub use loss::{Answers, Loss, SampleTarget, Targets};
pub use optimiser::{Optimiser, OptimiserState};
pub use saved::{push_state, read_state};
pub use schedule::{Decay, Schedule};
pub use trainer::{LANES, Metrics, Trainer};
