//! Training as a job: its folder, checkpoints wherever a network is named, runs that are called off, records.

use mercer::Error;
use mercer::data::{Dataset, Existing, write_npy};
use mercer::info::{Findings, FolderFindings, Look};
use mercer::job::train::{LossName, OptimiserName, TrainFindings, TrainJob, TrainingSpec};
use mercer::job::{AnyJob, Destination, Job, Opened, Outcome, replay};
use mercer::run::Context;
use mercer::spec::{DataRef, DataSpec, Inputs, Opening, ParameterSpec, open_network};
use ndarray::{Array1, Array2};
use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

const ARCHITECTURE: &str = "[mlp]\ninputs = [2]\nwidths = [8]\noutputs = 2\n";

pub(super) struct Scratch {
    folder: tempfile::TempDir,
}

/// Points in a square; the class is the sign of the quadrant.
pub(super) fn points() -> (Array2<f32>, Array1<i64>) {
    let points = Array2::from_shape_fn((64, 2), |(row, column)| {
        2.0 * ((row as f32 * [0.754_878, 0.569_84][column]).fract() - 0.5)
    });
    let classes = points.outer_iter().map(|point| i64::from(point[0] * point[1] > 0.0)).collect();
    (points, classes)
}

impl Scratch {
    pub(super) fn new() -> Self {
        let scratch = Self { folder: tempfile::tempdir().unwrap() };
        std::fs::write(scratch.path("mlp.toml"), ARCHITECTURE).unwrap();
        let (points, classes) = points();
        write_npy(&scratch.path("x.npy"), &points, Existing::Refuse).unwrap();
        write_npy(&scratch.path("y.npy"), &classes, Existing::Refuse).unwrap();
        scratch
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(super) fn file(&self, name: &str) -> DataRef {
        DataRef::File(self.path(name).display().to_string())
    }

    pub(super) fn job(&self, epochs: usize) -> TrainJob {
        let data = DataSpec { data: vec![self.file("x.npy")], labels: Some(self.file("y.npy")), ..DataSpec::default() };
        TrainJob {
            training: TrainingSpec {
                epochs: NonZeroUsize::new(epochs).unwrap(),
                batch: NonZeroUsize::new(16),
                checkpoint_at: vec![0, 2],
                ..TrainingSpec::default()
            },
            ..TrainJob::new(self.path("mlp.toml"), data)
        }
    }

    pub(super) fn to(&self, name: &str) -> Destination {
        Destination::new(self.path(name))
    }

    pub(super) fn resuming(&self, name: &str) -> Destination {
        Destination { resume: true, ..self.to(name) }
    }
}

pub(super) fn run(job: &TrainJob, destination: &Destination) -> Result<Outcome<TrainFindings>, Error> {
    run_until(job, destination, usize::MAX)
}

/// Calls the run off after an epoch.
pub(super) fn run_until(
    job: &TrainJob,
    destination: &Destination,
    last: usize,
) -> Result<Outcome<TrainFindings>, Error> {
    let (context, inputs) = (Context::new(), Inputs::none());
    let handle = context.clone();
    let opened = job.open(destination, Opening { inputs: &inputs, context: &context })?;
    let opened = opened.on_epoch(move |epoch| {
        if epoch.epoch == last {
            handle.cancel();
        }
    });
    opened.run(&context)
}

/// All files of a folder but the record, which has seconds in it, and the manifest, which has the record's digest.
pub(super) fn results(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let named = entries.map(|path| (path.file_name().unwrap().to_string_lossy().into_owned(), path));
    let kept = named.filter(|(name, _)| name != "run.json" && name != "folder.json");
    kept.map(|(name, path)| (name, std::fs::read(path).unwrap())).collect()
}

pub(super) fn info(folder: &Path) -> (FolderFindings, Option<Error>) {
    let looked = Look::at(folder.display().to_string()).run(&Context::new()).unwrap();
    match looked.findings {
        Findings::Folder(found) => (*found, looked.failure),
        other => panic!("{other:?}"),
    }
}

fn outputs(model: &Path, weights: Option<PathBuf>) -> Result<Vec<f64>, Error> {
    let network = open_network(model, &ParameterSpec { weights, ..ParameterSpec::default() })?;
    let values: Vec<f64> = points().0.iter().map(|&x| f64::from(x)).collect();
    Ok(network.predict(&[(&values, &[2])], 64, None, None).unwrap().values)
}

#[test]
fn arrays_are_as_good_as_files_and_jobs_can_be_written_down() {
    let scratch = Scratch::new();
    let job = scratch.job(3);
    let outcome = run(&job, &scratch.to("files")).unwrap();
    assert_eq!(outcome.findings.history.len(), 3);
    assert!(outcome.measurements.seconds >= outcome.measurements.phase("training"));
    assert_eq!(outcome.artefacts.len(), 5, "{:?}", outcome.artefacts);

    let (points, classes) = points();
    let inputs = Inputs::none()
        .with("x", Dataset::from_array("x", points.into_dyn().view()).unwrap())
        .with("y", Dataset::from_array("y", classes.into_dyn().view()).unwrap());
    let given = TrainJob {
        data: DataSpec { data: vec![DataRef::given("x")], labels: Some(DataRef::given("y")), ..DataSpec::default() },
        ..job.clone()
    };
    let context = Context::new();
    let opened = given.open(&scratch.to("arrays"), Opening { inputs: &inputs, context: &context }).unwrap();
    assert_eq!((opened.plan().steps_per_epoch, opened.plan().n_params), (4, 42));
    opened.run(&context).unwrap();
    assert_eq!(results(&scratch.path("arrays")), results(&scratch.path("files")));

    for job in [AnyJob::from(job), AnyJob::from(given)] {
        let text = serde_json::to_string(&job).unwrap();
        assert_eq!(serde_json::from_str::<AnyJob>(&text).unwrap(), job);
    }
    let short = r#"{ "arch": "a.toml", "data": { "data": ["x.npy"], "labels": "y.npy" }, "precision": "f64" }"#;
    let short: TrainJob = serde_json::from_str(short).unwrap();
    assert_eq!((short.training.clone(), short.annotate), (TrainingSpec::default(), true));
    assert!(serde_json::from_str::<TrainJob>(r#"{ "arch": "a", "data": {}, "precision": "f32", "x": 1 }"#).is_err());
}

#[test]
fn what_makes_no_sense_is_refused_before_anything_is_there() {
    let scratch = Scratch::new();
    let good = scratch.job(2);
    let spec = |change: fn(&mut TrainingSpec)| {
        let mut job = good.clone();
        change(&mut job.training);
        job
    };
    let cases = [
        (spec(|spec| spec.momentum = Some(0.9)), "momentum"),
        (spec(|spec| (spec.optimiser, spec.nesterov) = (OptimiserName::Sgd, true)), "nesterov"),
        (spec(|spec| spec.checkpoint_at = vec![9]), "9"),
        (spec(|spec| spec.learning_rate = Some(-1.0)), "learning"),
        (spec(|spec| spec.optimiser = OptimiserName::Gd), "gd"),
        (TrainJob { eval_data: Some("x.npy".into()), ..good.clone() }, "test-labels"),
        (TrainJob { data: DataSpec { labels: None, ..good.data.clone() }, ..good.clone() }, "labels"),
    ];
    for (job, word) in cases {
        let error = run(&job, &scratch.to("run")).unwrap_err();
        assert!(error.message().contains(word), "{error}");
        assert!(!scratch.path("run").exists(), "{word}");
    }
    // Settings are looked at before results are taken away.
    run(&good, &scratch.to("run")).unwrap();
    let force = Destination { force: true, ..scratch.to("run") };
    run(&spec(|spec| spec.checkpoint_at = vec![9]), &force).unwrap_err();
    assert!(info(&scratch.path("run")).1.is_none());
    run(&spec(|spec| spec.loss = Some(LossName::Squared)), &force).unwrap();
    let context = Context::new().with_memory(1 << 10);
    let opening = Opening { inputs: &Inputs::none(), context: &context };
    let error = good.open(&scratch.to("small"), opening).unwrap_err();
    assert_eq!((error.code(), scratch.path("small").exists()), ("memory", false));
}

/// A checkpoint in the place of the weights, and damage where a file is opened by its name.
#[test]
fn checkpoints_are_weights() {
    let scratch = Scratch::new();
    run(&scratch.job(2), &scratch.to("run")).unwrap();
    let at = |name: &str| scratch.path("run").join(name);
    let model = at("model.onnx");
    let trained = outputs(&model, None).unwrap();
    assert_eq!(outputs(&model, Some(at("epoch-00002.safetensors"))).unwrap(), trained);
    assert_eq!(outputs(&model, Some(at("weights.safetensors"))).unwrap(), trained);
    let initial = outputs(&model, Some(at("epoch-00000.safetensors"))).unwrap();
    assert_ne!(initial, trained);
    for name in ["model.onnx", "weights.safetensors", "epoch-00000.safetensors"] {
        let path = at(name);
        let bytes = std::fs::read(&path).unwrap();
        for byte in [bytes.len() / 3, bytes.len() / 2, bytes.len() - 1] {
            let mut flipped = bytes.clone();
            flipped[byte] ^= 1;
            std::fs::write(&path, flipped).unwrap();
            let weights = (name != "model.onnx").then(|| path.clone());
            let error = outputs(&model, weights).unwrap_err();
            assert!(error.code() == "damaged" && error.message().contains(name), "{name}, byte {byte}: {error}");
        }
        std::fs::write(&path, bytes).unwrap();
    }
    // A copy elsewhere is as good, though nothing lists it.
    std::fs::copy(at("epoch-00000.safetensors"), scratch.path("first.safetensors")).unwrap();
    assert_eq!(outputs(&model, Some(scratch.path("first.safetensors"))).unwrap(), initial);
}

#[test]
fn a_run_that_is_called_off_goes_on() {
    let scratch = Scratch::new();
    let (short, long) = (scratch.job(4), scratch.job(6));
    run(&short, &scratch.to("short")).unwrap();
    run(&long, &scratch.to("long")).unwrap();

    let error = run_until(&short, &scratch.to("run"), 3).unwrap_err();
    assert!(error.is_interrupted() && error.hints()[0].setting.as_deref() == Some("resume"), "{error:?}");
    assert_eq!(
        results(&scratch.path("run")).into_keys().collect::<Vec<_>>(),
        ["epoch-00000.safetensors", "epoch-00002.safetensors", "state.safetensors"]
    );
    assert!(!scratch.path("run/folder.json").exists());
    assert_eq!(run(&short, &scratch.to("run")).unwrap_err().code(), "exists");
    run(&short, &scratch.resuming("run")).unwrap();
    assert_eq!(results(&scratch.path("run")), results(&scratch.path("short")));
    // Nothing is left to do, and nothing changes.
    run(&short, &scratch.resuming("run")).unwrap();
    assert_eq!(results(&scratch.path("run")), results(&scratch.path("short")));
    assert!(info(&scratch.path("run")).1.is_none());
    // Another run leaves it whole.
    let other = TrainJob { training: TrainingSpec { seed: 5, ..short.training.clone() }, ..short };
    assert_eq!(run(&other, &scratch.resuming("run")).unwrap_err().code(), "other-run");
    assert!(info(&scratch.path("run")).1.is_none());

    // A complete run that goes on is no longer whole until it is complete again.
    run_until(&long, &scratch.resuming("run"), 5).unwrap_err();
    assert!(!scratch.path("run/folder.json").exists() && !scratch.path("run/model.onnx").exists());
    run(&long, &scratch.resuming("run")).unwrap();
    assert_eq!(results(&scratch.path("run")), results(&scratch.path("long")));
    assert!(info(&scratch.path("run")).1.is_none());

    // A damaged checkpoint is not taken over.
    let checkpoint = scratch.path("run/epoch-00002.safetensors");
    let mut bytes = std::fs::read(&checkpoint).unwrap();
    *bytes.last_mut().unwrap() ^= 4;
    std::fs::write(&checkpoint, bytes).unwrap();
    let error = run(&long, &scratch.resuming("run")).unwrap_err();
    assert!(error.code() == "damaged" && error.message().contains("epoch-00002"), "{error}");
    run(&long, &Destination { force: true, ..scratch.to("run") }).unwrap();
    assert_eq!(results(&scratch.path("run")), results(&scratch.path("long")));
}

/// Results of the version before this one have no manifest.
#[test]
fn a_folder_of_an_earlier_version_is_gone_on_with() {
    let scratch = Scratch::new();
    let job = scratch.job(3);
    run(&job, &scratch.to("run")).unwrap();
    let whole = results(&scratch.path("run"));
    for force in [false, true] {
        std::fs::remove_file(scratch.path("run/folder.json")).unwrap();
        std::fs::remove_file(scratch.path("run/run.json")).unwrap();
        assert_eq!(info(&scratch.path("run")).0.kind, "training");
        run(&job, &Destination { force, resume: !force, ..scratch.to("run") }).unwrap();
        assert_eq!(results(&scratch.path("run")), whole);
        assert!(info(&scratch.path("run")).1.is_none());
    }
}

#[test]
fn every_file_is_checked_and_damage_is_named() {
    let scratch = Scratch::new();
    run(&scratch.job(2), &scratch.to("run")).unwrap();
    std::fs::write(scratch.path("run/notes.txt"), "a user's").unwrap();
    let (found, failure) = info(&scratch.path("run"));
    assert_eq!((&found.kind[..], found.version, failure), ("network", Some(1), None));
    assert_eq!(found.result.as_ref().unwrap()["kind"], "training");
    assert!(found.facts.contains(&("n params".to_owned(), "42".to_owned())), "{:?}", found.facts);
    let names: Vec<&str> = found.files.iter().map(|file| &*file.name).collect();
    assert_eq!(names.len(), 8 + 1, "{names:?}");
    for name in names.iter().filter(|name| **name != "notes.txt") {
        let path = scratch.path("run").join(name);
        let bytes = std::fs::read(&path).unwrap();
        for byte in [0, bytes.len() / 2, bytes.len() - 1] {
            let mut flipped = bytes.clone();
            flipped[byte] ^= 2;
            std::fs::write(&path, flipped).unwrap();
            let (found, failure) = info(&scratch.path("run"));
            assert!(failure.is_some_and(|error| error.is_failed_check()), "{name}, byte {byte}");
            assert!(found.damaged.len() == 1 && found.damaged[0].file.ends_with(name), "{:?}", found.damaged);
        }
        std::fs::write(&path, bytes).unwrap();
    }
    assert_eq!(info(&scratch.path("run")).1, None);
}

#[test]
fn a_run_can_be_done_again() {
    let scratch = Scratch::new();
    run(&scratch.job(2), &scratch.to("run")).unwrap();
    let again = |scratch: &Scratch| replay(&scratch.path("run"), &Context::new()).unwrap();
    let same = again(&scratch);
    assert!(same.is_same() && same.job == "train" && same.same == 6, "{same:?}");
    std::fs::write(scratch.path("mlp.toml"), ARCHITECTURE.replace('8', "9")).unwrap();
    let other = again(&scratch);
    assert!(other.changed_inputs.len() == 1 && other.changed_inputs[0].contains("mlp.toml"), "{other:?}");
    std::fs::write(scratch.path("mlp.toml"), format!("# a remark\n{ARCHITECTURE}")).unwrap();
    assert!(again(&scratch).is_same());
    write_npy(&scratch.path("y.npy"), &points().1.mapv(|class| 1 - class), Existing::Replace).unwrap();
    let other = again(&scratch);
    assert!(other.changed_inputs.len() == 1 && other.changed_inputs[0].contains("y.npy"), "{other:?}");
    std::fs::remove_file(scratch.path("x.npy")).unwrap();
    assert_eq!(replay(&scratch.path("run"), &Context::new()).unwrap_err().code(), "io");
}
