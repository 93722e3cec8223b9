//! Runs that stop at a loss.

use super::trainer;
use mercer_data::{Dataset, Labels, synthetic};
use mercer_net::NetError;
use mercer_net::arch::Mlp;
use mercer_net::train::{
    Decay, Epoch, Loss, Optimiser, Schedule, Trainer, TrainingLoop, TrainingSamples, TrainingSettings, files,
};
use mercer_run::{Context, Listener};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

fn moons() -> (Dataset, Labels) {
    let (points, classes) = synthetic::two_moons(120, 0.1, 0).unwrap();
    (Dataset::from_array("moons", points.into_dyn().view()).unwrap(), Labels::Classes(classes))
}

fn new_trainer() -> Trainer<f32> {
    trainer(&Mlp::new(2, &[12], 2).build(4).unwrap(), Loss::CrossEntropy, Optimiser::adam())
}

fn settings(stop_loss: Option<f64>) -> TrainingSettings {
    let schedule = Schedule { decay: Decay::Cosine { floor: 0.0 }, ..Schedule::constant(0.02) };
    let checkpoints = vec![0, 3, 30];
    TrainingSettings { batch_size: Some(50), checkpoints, stop_loss, ..TrainingSettings::new(30, schedule) }
}

/// Cancels after so many reports.
struct After(AtomicUsize);

impl Listener for After {
    fn progress(&self, _: usize, _: usize, _: &str) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }

    fn cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed) == 0
    }
}

fn run(folder: &Path, stop_loss: Option<f64>, steps: usize) -> Result<(Trainer<f32>, Vec<Epoch>), NetError> {
    let (inputs, labels) = moons();
    let context = Context::listening(After(AtomicUsize::new(steps)));
    let mut trainer = new_trainer();
    let training = TrainingLoop::new(settings(stop_loss)).folder(folder).resume(true).context(&context);
    let history = training.run(&mut trainer, TrainingSamples::one(&inputs, &labels))?;
    Ok((trainer, history))
}

#[test]
fn a_run_stops_at_a_loss_and_goes_on_with_the_same_bits() {
    let folder = || tempfile::tempdir().unwrap();
    let (long, whole, cut) = (folder(), folder(), folder());
    let (_, all) = run(long.path(), None, usize::MAX).unwrap();
    assert_eq!(all.len(), 30);
    // The loss after ten epochs: the run stops at the first epoch below it.
    let wanted = all[9].training.loss;
    let last = all.iter().position(|epoch| epoch.training.loss < wanted).unwrap() + 1;
    assert!((3..30).contains(&last), "{last}");
    let (trainer, history) = run(whole.path(), Some(wanted), usize::MAX).unwrap();
    assert_eq!(history, all[..last]);
    assert_eq!(settings(Some(wanted)).stopped_after(&history), Some(last));
    assert!(whole.path().join(files::checkpoint(3)).exists() && !whole.path().join(files::checkpoint(30)).exists());
    let names = files::files(&settings(Some(wanted)), last);
    assert!(names.contains(&files::checkpoint(3)) && !names.contains(&files::checkpoint(30)), "{names:?}");

    let error = run(cut.path(), Some(wanted), 3 * (last - 2) + 1).unwrap_err();
    assert!(matches!(error, NetError::Cancelled), "{error}");
    let (resumed, again) = run(cut.path(), Some(wanted), usize::MAX).unwrap();
    assert_eq!((again, &resumed.weights().parameters), (history, &trainer.weights().parameters));
    assert_eq!(resumed.state(), trainer.state());
    // A run that has stopped is complete.
    assert_eq!(run(cut.path(), Some(wanted), 1).unwrap().1.len(), last);
    // With a smaller loss it goes on, and ends as if it had never stopped.
    let (_, further) = run(cut.path(), None, usize::MAX).unwrap();
    assert_eq!(further, all);
    // It cannot go back.
    let text = run(cut.path(), Some(wanted), usize::MAX).unwrap_err().to_string();
    assert!(text.starts_with("stop_loss") && text.contains("epoch 30"), "{text}");
}

#[test]
fn losses_to_stop_at_are_positive() {
    for loss in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        let text = settings(Some(loss)).check().unwrap_err().to_string();
        assert!(text.starts_with("stop_loss"), "{text}");
    }
}
