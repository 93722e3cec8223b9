//! Jobs that are killed at any operation on the disk, or whose disk is full: what they leave is whole, absent or resumable, the same
//! command completes it, and no temporary stays.

use mercer::Error;
use mercer::data::faults::{Fault, Faults};
use mercer::data::folder::Folder;
use mercer::data::{Existing, write_npy};
use mercer::job::eigen::{EigenMethod, EigenSource, LearnSpec, Objective};
use mercer::job::fit::{MachineName, MachineSpec, Training};
use mercer::job::train::TrainingSpec;
use mercer::job::uncertainty::PosteriorMethod;
use mercer::job::{Destination, EigenJob, FitJob, Job, Opened, TrainJob, UncertaintyJob};
use mercer::prelude::Context;
use mercer::spec::{DataRef, DataSpec, DecodingSpec, Inputs, KernelSpec, Opening, PreprocessSpec};
use ndarray::{Array1, Array2};
use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

fn run<J: Job>(job: &J, destination: &Destination) -> Result<(), Error> {
    let (context, inputs) = (Context::new(), Inputs::none());
    job.open(destination, Opening { inputs: &inputs, context: &context })?.run(&context).map(|_| ())
}

/// Everything below a folder but the record of the run, which has times in it.
fn content(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut all = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in std::fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap();
            match path.is_dir() {
                true => folders.push(path),
                false if matches!(name, "run.json" | "folder.json") => {}
                false => {
                    all.insert(path.strip_prefix(folder).unwrap().to_owned(), std::fs::read(&path).unwrap());
                }
            }
        }
    }
    all
}

/// Kills a job at every operation (or every few of them), and fills its disk; `resumes` if it keeps a state.
fn check<J: Job>(name: &str, job: &J, resumes: bool) {
    let root = tempfile::tempdir().unwrap();
    run(job, &Destination::new(root.path().join("whole"))).unwrap();
    let expected = content(&root.path().join("whole"));
    let place = |at: usize| root.path().join(format!("out{at}"));
    let counted = Faults::below(&place(0), Fault::Never);
    run(job, &Destination::new(place(0))).unwrap();
    let (operations, bytes) = (counted.operations(), counted.bytes());
    drop(counted);
    assert!(operations > 20, "{name}: {operations}");
    // Long runs repeat the same operations; their beginning and end are tried one by one.
    let step = if operations > 160 { 3 } else { 1 };
    let kills = (0..operations).filter(|at| *at < 20 || operations - at < 60 || at.is_multiple_of(step));
    let kills = kills.map(|at| Fault::Kill { at });
    let full = (0..6).map(|part| Fault::Full { bytes: bytes * part / 6 });
    for (at, fault) in kills.chain(full).enumerate() {
        let out = place(at + 1);
        let faults = Faults::below(&out, fault);
        let killed = run(job, &Destination::new(&out));
        drop(faults);
        let there = Folder::open(&out, None);
        if killed.is_ok() || there.is_ok() {
            let folder = there.unwrap_or_else(|error| panic!("{name}, {fault:?}: {error}"));
            assert!(folder.verify().is_empty(), "{name}, {fault:?}: {:?}", folder.verify());
            // Whoever prepares the place next takes away what is left.
            mercer::data::folder::sweep(&out).unwrap();
        } else {
            let destination = Destination::new(&out);
            let again = run(job, &destination);
            let again = match again {
                Err(_) if resumes => run(job, &Destination { resume: true, ..destination.clone() }),
                other => other,
            };
            // A state that was being written is begun again.
            let again = match again {
                Err(_) if resumes => run(job, &Destination { force: true, ..destination }),
                other => other,
            };
            again.unwrap_or_else(|error| panic!("{name}, {fault:?}: {error}"));
        }
        // A state outlives the run whose folder was complete before it was taken away; it changes nothing.
        let state = Path::new("state.safetensors");
        if resumes && !expected.contains_key(state) && out.join(state).exists() {
            std::fs::remove_file(out.join(state)).unwrap();
        }
        assert_eq!(content(&out).keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>(), "{name}, {fault:?}");
        assert!(content(&out) == expected, "{name}, {fault:?}: other bytes");
        std::fs::remove_dir_all(&out).unwrap();
    }
}

/// Samples, classes, and a network that was trained on nothing.
struct Scratch(tempfile::TempDir);

impl Scratch {
    fn new() -> Self {
        let scratch = Self(tempfile::tempdir().unwrap());
        let x = Array2::from_shape_fn((20, 2), |(i, j)| ((i * 7 + j * 3) % 11) as f32 / 5.0 - 1.0);
        write_npy(&scratch.path("x.npy"), &x, Existing::Refuse).unwrap();
        let y = Array1::from_shape_fn(20, |i| (i % 2) as i64);
        write_npy(&scratch.path("y.npy"), &y, Existing::Refuse).unwrap();
        let network = mercer::net::arch::Mlp::new(2, &[4], 2).build(1).unwrap();
        std::fs::write(scratch.path("net.onnx"), network.to_onnx_bytes().unwrap()).unwrap();
        std::fs::write(scratch.path("mlp.toml"), "[mlp]\ninputs = [2]\nwidths = [4]\noutputs = 2\n").unwrap();
        scratch
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn data(&self, name: &str) -> DataRef {
        self.path(name).display().to_string().into()
    }

    fn labelled(&self) -> DataSpec {
        DataSpec { data: vec![self.data("x.npy")], labels: Some(self.data("y.npy")), ..DataSpec::default() }
    }
}

fn rbf() -> KernelSpec {
    KernelSpec::new("rbf")
}

#[test]
fn fitting_may_end_anywhere() {
    let scratch = Scratch::new();
    let (data, preprocess) = (vec![scratch.data("x.npy")], PreprocessSpec::default());
    let training = Training::Kernel { kernel: Box::new(rbf()), data, preprocess, decoding: DecodingSpec::default() };
    let machine = MachineSpec::from(MachineName::Glm);
    check("fit", &FitJob { machine, training, labels: scratch.data("y.npy"), classes: None, seed: 1 }, false);
}

#[test]
fn eigenfunctions_may_end_anywhere() {
    let scratch = Scratch::new();
    let learning = LearnSpec { iterations: 6, checkpoint: 2, ..LearnSpec::neural() };
    for (method, resumes) in
        [(EigenMethod::Exact {}, false), (EigenMethod::Shared { learning, objective: Objective::Joint }, true)]
    {
        let job = EigenJob {
            of: Some(EigenSource::Kernel(Box::new(rbf()))),
            data: scratch.labelled(),
            eval: vec![scratch.data("x.npy")],
            eval_labels: None,
            precision: method.precision(),
            method,
            k: 2,
            truth: false,
            seed: 0,
        };
        check("eigen", &job, resumes);
    }
}

#[test]
fn posteriors_may_end_anywhere() {
    let scratch = Scratch::new();
    let test = vec![scratch.data("x.npy")];
    let job = UncertaintyJob::new(scratch.path("net.onnx"), scratch.labelled(), test);
    check("uncertainty", &UncertaintyJob { method: PosteriorMethod::LastLayerKron, ..job }, false);
}

#[test]
fn training_may_end_anywhere() {
    let scratch = Scratch::new();
    let training = TrainingSpec {
        epochs: NonZeroUsize::new(2).unwrap(),
        batch: NonZeroUsize::new(10),
        checkpoint_at: vec![1],
        ..TrainingSpec::default()
    };
    let job = TrainJob { training, ..TrainJob::new(scratch.path("mlp.toml"), scratch.labelled()) };
    check("train", &job, true);
}
