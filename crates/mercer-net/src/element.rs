//! The scalars a network runs in.

use crate::error::Result;
use crate::op::{Op, OpKernel};
use crate::train::{Epoch, Metrics, Targets, Trainer, TrainingLoop, TrainingSamples};
use mercer_linalg::Scalar;

/// A scalar that every primitive can compute in: `f32` or `f64`.
///
/// The hidden methods are training, compiled here once per scalar and in no other crate.
pub trait Element: Scalar {
    /// The arithmetic of a primitive in this scalar.
    fn kernel(op: &dyn Op) -> &dyn OpKernel<Self>;

    /// [`TrainingLoop::run`].
    #[doc(hidden)]
    fn train(run: &TrainingLoop<'_>, trainer: &mut Trainer<Self>, samples: TrainingSamples<'_>) -> Result<Vec<Epoch>>;

    /// [`Trainer::step`].
    #[doc(hidden)]
    fn step(
        trainer: &mut Trainer<Self>,
        inputs: &[&[Self]],
        targets: &Targets<'_, Self>,
        samples: usize,
        learning_rate: f64,
    ) -> Result<f64>;

    /// [`Trainer::evaluate`].
    #[doc(hidden)]
    fn evaluate(
        trainer: &mut Trainer<Self>,
        inputs: &[&[Self]],
        targets: &Targets<'_, Self>,
        samples: usize,
    ) -> Result<Metrics>;
}

macro_rules! element {
    ($t:ident) => {
        impl Element for $t {
            fn kernel(op: &dyn Op) -> &dyn OpKernel<Self> {
                op
            }

            fn train(
                run: &TrainingLoop<'_>,
                trainer: &mut Trainer<Self>,
                samples: TrainingSamples<'_>,
            ) -> Result<Vec<Epoch>> {
                run.epochs(trainer, samples)
            }

            fn step(
                trainer: &mut Trainer<Self>,
                inputs: &[&[Self]],
                targets: &Targets<'_, Self>,
                samples: usize,
                learning_rate: f64,
            ) -> Result<f64> {
                trainer.learn(inputs, targets, samples, learning_rate)
            }

            fn evaluate(
                trainer: &mut Trainer<Self>,
                inputs: &[&[Self]],
                targets: &Targets<'_, Self>,
                samples: usize,
            ) -> Result<Metrics> {
                trainer.pass(inputs, targets, samples, false)
            }
        }
    };
}

element!(f32);
element!(f64);
