//! Settings of training: one output for two classes, a loss to stop at, crops and flips.

use super::train::{Scratch, info, results, run, run_until};
use mercer::data::{Existing, write_npy};
use mercer::job::predict::PredictFindings;
use mercer::job::train::{LossName, ScheduleName, TrainJob, TrainingSpec};
use mercer::job::{Job, Opened, PredictJob, replay};
use mercer::run::Context;
use mercer::spec::{DataSpec, Inputs, Opening};
use ndarray::{Array1, Array4};
use std::num::NonZeroUsize;

fn with(job: &TrainJob, change: impl Fn(&mut TrainingSpec)) -> TrainJob {
    let mut job = job.clone();
    change(&mut job.training);
    job
}

/// The accuracy that `mercer predict` finds.
fn accuracy(job: &PredictJob, scratch: &Scratch) -> f64 {
    let (context, inputs) = (Context::new(), Inputs::none());
    let opened = job.open(&scratch.to("outputs.npy"), Opening { inputs: &inputs, context: &context }).unwrap();
    let PredictFindings::Network(found) = opened.run(&context).unwrap().findings else { panic!("a network") };
    std::fs::remove_file(scratch.path("outputs.npy")).unwrap();
    found.score.unwrap().accuracy
}

#[test]
fn one_output_for_two_classes() {
    let scratch = Scratch::new();
    std::fs::write(scratch.path("mlp.toml"), "[mlp]\ninputs = [2]\nwidths = [32]\noutputs = 1\n").unwrap();
    let long = TrainJob {
        eval_data: Some(scratch.file("x.npy")),
        eval_labels: Some(scratch.file("y.npy")),
        ..with(&scratch.job(80), |spec| spec.learning_rate = Some(0.03))
    };
    for (name, loss) in [("entropy", None), ("squared", Some(LossName::SigmoidSquared))] {
        let found = run(&with(&long, |spec| spec.loss = loss), &scratch.to(name)).unwrap().findings;
        let measured = found.history.last().unwrap().evaluation_accuracy.unwrap();
        assert!(measured > 0.9, "{name}: {measured}");
        let by_file = PredictJob::network(scratch.path(name).join("model.onnx"), long.data.clone());
        assert_eq!(accuracy(&by_file, &scratch), measured);
        assert_eq!(accuracy(&PredictJob::saved(scratch.path(name), long.data.clone()), &scratch), measured);
        assert!(replay(&scratch.path(name), &Context::new()).unwrap().is_same());
    }
    // The squared loss has no sigmoid, and three classes need more outputs.
    let error = run(&with(&long, |spec| spec.loss = Some(LossName::Squared)), &scratch.to("run")).unwrap_err();
    let hint = format!("{:?}", error.hints());
    assert!(error.message().contains("1 output") && hint.contains("sigmoid-squared"), "{error:?}");
    let three: Array1<i64> = (0..64).map(|row| row % 3).collect();
    write_npy(&scratch.path("y.npy"), &three, Existing::Replace).unwrap();
    let error = run(&long, &scratch.to("run")).unwrap_err();
    let hint = &error.hints()[0];
    assert!(error.message().contains("1 output") && format!("{hint:?}").contains("outputs = 3"), "{error:?}");
    let data = long.data.clone();
    let job = PredictJob::network(scratch.path("entropy/model.onnx"), data);
    let context = Context::new();
    let opened = job.open(&scratch.to("z.npy"), Opening { inputs: &Inputs::none(), context: &context }).unwrap();
    assert!(opened.run(&context).unwrap_err().message().contains("3 classes"));
}

/// Names are stored with the network; without them nothing says which class is the high one.
#[test]
fn one_output_knows_the_names_of_its_classes() {
    let scratch = Scratch::new();
    std::fs::write(scratch.path("mlp.toml"), "[mlp]\ninputs = [2]\nwidths = [32]\noutputs = 1\n").unwrap();
    let table = |name: &str, names: [&str; 2]| {
        let (points, classes) = super::train::points();
        let row = |(point, class): (ndarray::ArrayView1<'_, f32>, &i64)| {
            format!("{},{},{}\n", point[0], point[1], names[usize::from(*class == 1)])
        };
        let rows: String = points.outer_iter().zip(&classes).map(row).collect();
        std::fs::write(scratch.path(name), format!("a,b,kind\n{rows}")).unwrap();
        let labels = format!("{}:kind", scratch.path(name).display());
        DataSpec { data: vec![scratch.file(name)], labels: Some(labels.as_str().into()), ..DataSpec::default() }
    };
    let data = table("t.csv", ["yes", "no"]);
    let job = with(&TrainJob { data: data.clone(), ..scratch.job(80) }, |spec| spec.learning_rate = Some(0.03));
    let found = run(&job, &scratch.to("run")).unwrap().findings;
    assert_eq!(found.class_names.as_deref(), Some(&["no".to_owned(), "yes".to_owned()][..]));
    let named = PredictJob::network(scratch.path("run/model.onnx"), data.clone());
    assert!(accuracy(&named, &scratch) > 0.9);
    run(&TrainJob { annotate: false, ..job }, &scratch.to("bare")).unwrap();
    let bare = PredictJob::network(scratch.path("bare/model.onnx"), data.clone());
    let context = Context::new();
    let error = bare
        .open(&scratch.to("z.npy"), Opening { inputs: &Inputs::none(), context: &context })
        .map(|_| ())
        .unwrap_err();
    assert!(error.message().contains("no, yes"), "{error}");
    let given = DataSpec { classes: Some("no,yes".into()), ..data };
    assert!(accuracy(&PredictJob::network(scratch.path("bare/model.onnx"), given), &scratch) > 0.9);
}

#[test]
fn a_run_stops_at_a_loss() {
    let scratch = Scratch::new();
    let long = with(&scratch.job(12), |spec| (spec.learning_rate, spec.checkpoint_at) = (Some(0.01), vec![0, 2, 12]));
    let all = run(&long, &scratch.to("long")).unwrap().findings;
    assert_eq!(all.stopped_after, None);
    let wanted = all.history[6].loss;
    let stopping = with(&long, |spec| spec.stop_loss = Some(wanted));
    let outcome = run(&stopping, &scratch.to("run")).unwrap();
    let found = &outcome.findings;
    let last = found.history.len();
    assert!(last > 6 && last < 12 && found.stopped_after == Some(last), "{last}");
    assert!(!found.files.iter().any(|name| name.contains("00012")), "{:?}", found.files);
    assert!(info(&scratch.path("run")).1.is_none());
    assert!(replay(&scratch.path("run"), &Context::new()).unwrap().is_same());
    // Called off and resumed, it is the same to the byte.
    run_until(&stopping, &scratch.to("cut"), 3).unwrap_err();
    run(&stopping, &scratch.resuming("cut")).unwrap();
    assert_eq!(results(&scratch.path("cut")), results(&scratch.path("run")));
    run(&stopping, &scratch.resuming("cut")).unwrap();
    assert_eq!(results(&scratch.path("cut")), results(&scratch.path("run")));
    // Without the limit it goes on to the end.
    run(&long, &scratch.resuming("cut")).unwrap();
    assert_eq!(results(&scratch.path("cut")), results(&scratch.path("long")));
    // A loss that is not reached is noted.
    let outcome = run(&with(&long, |spec| spec.stop_loss = Some(1e-9)), &scratch.to("far")).unwrap();
    assert!(outcome.findings.stopped_after.is_none() && outcome.notes.iter().any(|note| note.contains("‹stop-loss›")));
}

#[test]
fn images_are_cropped_and_flipped() {
    let scratch = Scratch::new();
    let points = scratch.job(3);
    let flip = |job: &TrainJob| with(job, |spec| spec.flip = true);
    let error = run(&flip(&points), &scratch.to("run")).unwrap_err();
    assert!(error.message().contains("images") && !scratch.path("run").exists(), "{error}");
    let cnn = "[cnn]\ninputs = [1, 6, 6]\noutputs = 2\nlayers = [{ conv = { channels = 3, kernel = 3 } }]\n";
    std::fs::write(scratch.path("mlp.toml"), cnn).unwrap();
    let images = Array4::from_shape_fn((64, 1, 6, 6), |(row, _, y, x)| ((row * 7 + y * 5 + x) as f32).sin());
    write_npy(&scratch.path("x.npy"), &images, Existing::Replace).unwrap();
    let crop = |job: &TrainJob, zeros: usize| with(job, |spec| spec.crop_margin = NonZeroUsize::new(zeros));
    let error = run(&crop(&points, 6), &scratch.to("run")).unwrap_err();
    assert!(error.message().contains("crop_margin = 6; accepted: up to 5"), "{error}");
    run(&points, &scratch.to("plain")).unwrap();
    let both = flip(&crop(&points, 2));
    let found = run(&both, &scratch.to("whole")).unwrap().findings;
    assert_eq!(found.settings.augmentation.to_string(), "crop 2, flip");
    assert_ne!(results(&scratch.path("whole")), results(&scratch.path("plain")));
    run_until(&both, &scratch.to("cut"), 1).unwrap_err();
    assert_eq!(run(&flip(&points), &scratch.resuming("cut")).unwrap_err().code(), "other-run");
    run(&both, &scratch.resuming("cut")).unwrap();
    assert_eq!(results(&scratch.path("cut")), results(&scratch.path("whole")));
    assert!(replay(&scratch.path("cut"), &Context::new()).unwrap().is_same());
}

#[test]
fn the_rate_drops_after_given_epochs() {
    let scratch = Scratch::new();
    let job = with(&scratch.job(4), |spec| {
        (spec.schedule, spec.step_at, spec.step_factor) = (ScheduleName::Step, vec![1, 3], 0.5);
    });
    let found = run(&job, &scratch.to("run")).unwrap().findings;
    let rates: Vec<f64> = found.history.iter().map(|epoch| epoch.learning_rate).collect();
    assert_eq!(rates, [1e-3, 5e-4, 5e-4, 2.5e-4]);
}
