//! Runs that stop: cancelled, diverged, resumed, and resumed with something else.

use super::damage::{Damage, damages};
use super::trainer;
use mercer_data::{Dataset, Labels, synthetic};
use mercer_net::arch::Mlp;
use mercer_net::train::{Loss, Optimiser, Schedule, Trainer, TrainingLoop, TrainingSamples, TrainingSettings, files};
use mercer_net::{NetError, Network};
use mercer_run::{Context, Listener};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

fn moons(seed: u64) -> (Dataset, Labels) {
    let (points, classes) = synthetic::two_moons(120, 0.1, seed).unwrap();
    (Dataset::from_array("moons", points.into_dyn().view()).unwrap(), Labels::Classes(classes))
}

fn settings() -> TrainingSettings {
    let decay = mercer_net::train::Decay::Cosine { floor: 0.001 };
    let schedule = Schedule { decay, warm_up: 1.0, ..Schedule::constant(0.02) };
    let checkpoints = vec![0, 2, 6];
    TrainingSettings { batch_size: Some(50), seed: 9, checkpoints, ..TrainingSettings::new(6, schedule) }
}

fn network() -> Network {
    Mlp::new(2, &[12], 2).build(4).unwrap()
}

fn new_trainer() -> Trainer<f32> {
    trainer(&network(), Loss::CrossEntropy, Optimiser::adam())
}

/// Cancels after so many reports.
struct After(AtomicUsize);

impl Listener for After {
    fn progress(&self, done: usize, total: usize, message: &str) {
        assert!(done <= total && total == 18 && message.starts_with("steps (epoch"));
        self.0.fetch_sub(1, Ordering::Relaxed);
    }

    fn cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed) == 0
    }
}

fn interrupted(folder: &Path) {
    let (inputs, labels) = moons(0);
    let progress = Context::listening(After(AtomicUsize::new(10)));
    let fit = TrainingLoop::new(settings()).folder(folder).context(&progress);
    let error = fit.run(&mut new_trainer(), TrainingSamples::one(&inputs, &labels)).unwrap_err();
    assert!(matches!(error, NetError::Cancelled), "{error}");
}

#[test]
fn a_resumed_run_ends_with_the_same_bits() {
    let (inputs, labels) = moons(0);
    let (test_inputs, test_labels) = moons(1);
    let samples = TrainingSamples::one(&inputs, &labels);
    let test = TrainingSamples::one(&test_inputs, &test_labels);
    let whole_folder = tempfile::tempdir().unwrap();
    let mut whole = new_trainer();
    let whole_history =
        TrainingLoop::new(settings()).folder(whole_folder.path()).evaluation(test).run(&mut whole, samples).unwrap();
    assert_eq!(whole_history.len(), 6);

    let folder = tempfile::tempdir().unwrap();
    let progress = Context::listening(After(AtomicUsize::new(10)));
    let fit = TrainingLoop::new(settings()).folder(folder.path()).evaluation(test).context(&progress);
    assert!(matches!(fit.run(&mut new_trainer(), samples), Err(NetError::Cancelled)));
    let mut resumed = new_trainer();
    let history = TrainingLoop::new(settings())
        .folder(folder.path())
        .evaluation(test)
        .resume(true)
        .run(&mut resumed, samples)
        .unwrap();
    assert_eq!(resumed.weights().parameters, whole.weights().parameters);
    assert_eq!(resumed.state(), whole.state());
    assert_eq!(history, whole_history);
    // A finished run is resumed at its end.
    let mut again = new_trainer();
    let history = TrainingLoop::new(settings()).folder(folder.path()).resume(true).run(&mut again, samples).unwrap();
    assert_eq!((again.weights().parameters.clone(), history.len()), (whole.weights().parameters.clone(), 6));
    for epoch in [0, 2, 6] {
        let name = format!("epoch-{epoch:05}.safetensors");
        let read = |folder: &Path| std::fs::read(folder.join(&name)).unwrap();
        assert_eq!(read(folder.path()), read(whole_folder.path()), "{name}");
        let mut network = network();
        let fresh = network.parameters()[0].values().clone();
        network.load_safetensors(folder.path().join(&name)).unwrap();
        assert_eq!(*network.parameters()[0].values() == fresh, epoch == 0);
    }
}

#[test]
fn a_run_is_not_resumed_with_something_else() {
    let folder = tempfile::tempdir().unwrap();
    interrupted(folder.path());
    let (inputs, labels) = moons(0);
    let (other_inputs, other_labels) = moons(1);
    let mut swapped = other_labels.matrix::<f64>().unwrap();
    swapped.invert_axis(ndarray::Axis(1));
    let classes: Vec<usize> = swapped.rows().into_iter().map(|row| usize::from(row[1] == 1.0)).collect();
    let swapped = Labels::Classes(mercer_data::Classes::new(classes, 2).unwrap());
    let try_with = |trainer: &mut Trainer<f32>, settings: TrainingSettings, inputs: &Dataset, labels: &Labels| {
        let fit = TrainingLoop::new(settings).folder(folder.path()).resume(true);
        fit.run(trainer, TrainingSamples::one(inputs, labels)).unwrap_err().to_string()
    };
    let text = try_with(&mut new_trainer(), TrainingSettings { seed: 1, ..settings() }, &inputs, &labels);
    assert!(text.contains("its seed was 9, but is now 1"), "{text}");
    let text = try_with(&mut new_trainer(), TrainingSettings { batch_size: Some(40), ..settings() }, &inputs, &labels);
    assert!(text.contains("its batch size was 50, but is now 40"), "{text}");
    let text = try_with(&mut new_trainer(), TrainingSettings { epochs: 7, ..settings() }, &inputs, &labels);
    assert!(text.contains("number of epochs was 6"), "{text}");
    assert!(try_with(&mut new_trainer(), settings(), &other_inputs, &labels).contains("its data was"));
    assert!(try_with(&mut new_trainer(), settings(), &inputs, &swapped).contains("its labels was"));
    let mut sgd = trainer(&network(), Loss::CrossEntropy, Optimiser::sgd());
    assert!(try_with(&mut sgd, settings(), &inputs, &labels).contains("its optimiser was Adam"));
    let wide = Mlp::new(2, &[13], 2).build(4).unwrap();
    let mut wide = trainer(&wide, Loss::CrossEntropy, Optimiser::adam());
    assert!(try_with(&mut wide, settings(), &inputs, &labels).contains("its network was 62 parameters"));
    let other = Mlp::new(2, &[12], 2).build(5).unwrap();
    let mut other = trainer(&other, Loss::CrossEntropy, Optimiser::adam());
    assert!(try_with(&mut other, settings(), &inputs, &labels).contains("initial weights"));
    let fit = TrainingLoop::new(settings()).folder(folder.path());
    let text = fit.run(&mut new_trainer(), TrainingSamples::one(&inputs, &labels)).unwrap_err().to_string();
    assert!(text.contains("exists"), "{text}");
    std::fs::write(folder.path().join("state.safetensors"), b"broken").unwrap();
    assert!(try_with(&mut new_trainer(), settings(), &inputs, &labels).contains("safetensors"));
}

/// A state that was damaged in whatever way is refused, and the error names the file and the tensor.
#[test]
fn damaged_states_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    interrupted(folder.path());
    let path = folder.path().join("state.safetensors");
    let whole = std::fs::read(&path).unwrap();
    let (inputs, labels) = moons(0);
    let resumed = || {
        let fit = TrainingLoop::new(settings()).folder(folder.path()).resume(true);
        fit.run(&mut new_trainer(), TrainingSamples::one(&inputs, &labels))
    };
    for Damage { what, tensor, bytes } in damages(&path) {
        std::fs::write(&path, bytes).unwrap();
        let text = resumed().expect_err(&what).to_string();
        assert!(text.contains("state.safetensors"), "{what}: {text}");
        assert!(tensor.is_none_or(|tensor| text.contains(&format!("{tensor:?}"))), "{what}: {text}");
    }
    std::fs::write(&path, whole).unwrap();
    assert_eq!(resumed().unwrap().len(), 6);
}

/// Only what training wrote is replaced; anything else under its names is refused.
#[test]
fn results_of_training_are_known() {
    let folder = tempfile::tempdir().unwrap();
    interrupted(folder.path());
    let path = |name: &str| folder.path().join(name);
    network().save_onnx(path("model.onnx")).unwrap();
    network().save_safetensors(path("weights.safetensors")).unwrap();
    std::fs::write(path("mine.safetensors"), b"a user's").unwrap();
    network().save_safetensors(path("mine-too.safetensors")).unwrap();
    let results = || files::results(folder.path()).unwrap();
    assert!(results().any());
    results().check().unwrap();
    // Another's network, or tensors, under a name that training writes.
    for name in ["model.onnx", "weights.safetensors", "epoch-00003.safetensors", "state.safetensors"] {
        let own = std::fs::read(path(name)).ok();
        std::fs::write(path(name), b"another's").unwrap();
        let text = results().clear(&[]).unwrap_err().to_string();
        assert!(text.contains(name), "{text}");
        match own {
            Some(bytes) => std::fs::write(path(name), bytes).unwrap(),
            None => std::fs::remove_file(path(name)).unwrap(),
        }
    }
    results().clear(&[]).unwrap();
    let mut left: Vec<String> = std::fs::read_dir(folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    left.sort();
    assert_eq!(left, ["mine-too.safetensors", "mine.safetensors"]);
}

#[test]
fn a_loss_that_is_not_finite_names_epoch_and_step() {
    let (inputs, labels) = moons(0);
    let mut trainer = trainer(&network(), Loss::squared(), Optimiser::sgd());
    let wild = TrainingSettings { schedule: Schedule::constant(1e6), checkpoints: vec![], ..settings() };
    let error = TrainingLoop::new(wild).run(&mut trainer, TrainingSamples::one(&inputs, &labels)).unwrap_err();
    let NetError::Diverged { epoch: Some(epoch), step, loss } = error else { panic!("{error}") };
    assert!(epoch >= 1 && (1..=3).contains(&step) && !loss.is_finite());
    assert!(error.to_string().contains(&format!("epoch {epoch}, step {step}")));
    assert!(trainer.weights().parameters.iter().flatten().any(|x| x.is_finite()));
}

#[test]
fn bad_settings_are_refused() {
    let (inputs, labels) = moons(0);
    let try_with = |settings: TrainingSettings| {
        let samples = TrainingSamples::one(&inputs, &labels);
        TrainingLoop::new(settings).run(&mut new_trainer(), samples).unwrap_err().to_string()
    };
    let plain = || TrainingSettings { checkpoints: vec![], ..settings() };
    assert!(try_with(TrainingSettings { batch_size: Some(0), ..plain() }).contains("batch_size"));
    assert!(try_with(settings()).contains("folder"));
    assert!(try_with(TrainingSettings { schedule: Schedule::constant(0.0), ..plain() }).contains("learning_rate"));
    let (few, _) = moons(3);
    let few = Dataset::from_array("few", few.rows::<f64>(0..100).unwrap().view()).unwrap();
    let samples = TrainingSamples::one(&few, &labels);
    let text = TrainingLoop::new(plain()).run(&mut new_trainer(), samples).unwrap_err().to_string();
    assert_eq!(text, "few has 100 samples and 120 labels");
    let mut gd = trainer(&network(), Loss::CrossEntropy, Optimiser::Gd { weight_decay: 0.0 });
    let text = TrainingLoop::new(plain()).run(&mut gd, TrainingSamples::one(&inputs, &labels)).unwrap_err().to_string();
    assert!(text.contains("whole set"), "{text}");
}
