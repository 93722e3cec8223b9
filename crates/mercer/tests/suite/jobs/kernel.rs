//! A kernel from given arrays, from files, and done again.

use mercer::data::{Dataset, Existing, Source, write_npy};
use mercer::job::{AnyJob, Destination, Job, KernelJob, Opened, Share, replay};
use mercer::prelude::{Context, Store};
use mercer::spec::{DataRef, DataSpec, Inputs, KernelSpec, Opening, Precision};
use ndarray::{Array2, ArrayD};
use std::path::{Path, PathBuf};

fn points(n: usize) -> Array2<f64> {
    Array2::from_shape_fn((n, 3), |(row, column)| ((row * 7 + column * 3) as f64).sin())
}

fn rbf(data: impl Into<DataRef>) -> KernelJob {
    KernelJob {
        kernel: KernelSpec::new("rbf(lengthscale=1.5)"),
        data: DataSpec { data: vec![data.into()], ..DataSpec::default() },
        against: Vec::new(),
        by_layer: false,
        features: false,
        precision: Precision::F64,
        tiles: None,
        part: None,
    }
}

fn run(job: &KernelJob, inputs: &Inputs, path: PathBuf) -> ArrayD<f64> {
    let context = Context::new();
    let opening = Opening { inputs, context: &context };
    let outcome = job.open(&Destination::new(&path), opening).unwrap().run(&context).unwrap();
    assert!(outcome.findings.complete && outcome.measurements.seconds > 0.0);
    assert_eq!(outcome.artefacts[0].path, path.display().to_string());
    let phases: Vec<&str> = outcome.measurements.phases.iter().map(|phase| &phase.name[..]).collect();
    assert_eq!(phases, ["opening", "reading", "kernel", "writing"]);
    Source::new(&path, None).open().unwrap().read().unwrap()
}

#[test]
fn given_arrays_and_files_give_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("x.npy");
    write_npy(&file, &points(20), Existing::Refuse).unwrap();
    let given = Inputs::none().with("x", Dataset::from_array("x", points(20).into_dyn().view()).unwrap());
    let from_file = run(&rbf(file.display().to_string()), &Inputs::none(), folder.path().join("a.npy"));
    let from_array = run(&rbf(DataRef::given("x")), &given, folder.path().join("b.npy"));
    assert_eq!(from_file, from_array);
    let context = Context::new();
    let opening = Opening { inputs: &Inputs::none(), context: &context };
    let missing = rbf(DataRef::given("x")).open(&Destination::new(folder.path().join("c.npy")), opening).unwrap_err();
    assert_eq!((missing.code(), missing.to_string()), ("bad-request", "the array x was not given".to_owned()));
}

#[test]
fn a_job_is_data() {
    let mut job = rbf("x.npy");
    job.kernel = KernelSpec::new("logit(3)").with_net("model.onnx");
    job.kernel.seed = u64::MAX;
    let text = serde_json::to_string(&AnyJob::from(job.clone())).unwrap();
    assert!(text.contains(r#""name":"kernel""#) && text.contains(r#""seed":"18446744073709551615""#), "{text}");
    assert_eq!(serde_json::from_str::<AnyJob>(&text).unwrap(), AnyJob::from(job));
    assert!(serde_json::from_str::<AnyJob>(&text.replace("by_layer", "by_layers")).is_err());
}

/// A network that has changed, and data that have, are named; without them the result is the same.
#[test]
fn a_run_is_done_again() {
    let folder = tempfile::tempdir().unwrap();
    let place = |name: &str| folder.path().join(name);
    let save = |path: &Path, seed| {
        mercer::net::arch::Mlp::new(3, &[5], 2).build(seed).unwrap().save_onnx(path).unwrap();
    };
    save(&place("net.onnx"), 1);
    write_npy(&place("x.npy"), &points(20), Existing::Refuse).unwrap();
    let mut job = rbf(place("x.npy").display().to_string());
    job.kernel = KernelSpec::new("trace").with_net(place("net.onnx"));
    let context = Context::new();
    for name in ["gram.npy", "gram.zarr"] {
        let opening = Opening { inputs: &Inputs::none(), context: &context };
        job.open(&Destination::new(place(name)), opening).unwrap().run(&context).unwrap();
        let replayed = replay(&place(name), &Context::new()).unwrap();
        assert!(replayed.is_same() && replayed.same == 1, "{replayed:?}");
    }
    save(&place("net.onnx"), 2);
    for name in ["gram.npy", "gram.zarr"] {
        let replayed = replay(&place(name), &Context::new()).unwrap();
        assert!(replayed.changed_inputs[0].contains("net.onnx") && replayed.differences.len() == 1, "{replayed:?}");
    }
    std::fs::remove_file(place("x.npy")).unwrap();
    assert_eq!(replay(&place("gram.npy"), &Context::new()).unwrap_err().code(), "io");
    std::fs::remove_file(place("gram.npy.run.json")).unwrap();
    assert_eq!(replay(&place("gram.npy"), &Context::new()).unwrap_err().code(), "no-record");
    // Nothing of the second run stays.
    let left = std::fs::read_dir(folder.path()).unwrap().count();
    assert_eq!(left, 3, "the network, the array, the store");
}

/// Several runs with a part each fill a store with the bits of one run, in any order; the record is that of the whole job.
#[test]
fn parts_fill_a_store() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("x.npy");
    write_npy(&file, &points(1100), Existing::Refuse).unwrap();
    let job = rbf(file.display().to_string());
    let (context, inputs) = (Context::new(), Inputs::none());
    let opening = || Opening { inputs: &inputs, context: &context };
    let whole = run(&job, &inputs, folder.path().join("whole.npy"));
    let path = folder.path().join("parts.zarr");
    let destination = Destination { resume: true, ..Destination::new(&path) };
    for part in [2, 3, 1] {
        let job = KernelJob { part: Some(Share { part, of: 3 }), ..job.clone() };
        let outcome = job.open(&destination, opening()).unwrap().run(&context).unwrap();
        assert!(outcome.findings.tiles_computed > 0 && outcome.findings.complete == (part == 1));
    }
    let store = Store::open(&path).unwrap();
    assert_eq!(store.read_all::<f64>("kernel").unwrap(), whole);
    assert!(replay(&path, &Context::new()).unwrap().is_same());
    for (part, of, text) in [(0, 3, "counted from 1"), (4, 3, "counted from 1"), (1, 5000, "at most 4096")] {
        let job = KernelJob { part: Some(Share { part, of }), ..job.clone() };
        let error = job.open(&destination, opening()).unwrap_err();
        assert!(error.to_string().contains(text), "{error}");
    }
    let job = KernelJob { part: Some(Share { part: 1, of: 3 }), ..job };
    let error = job.open(&Destination::new(folder.path().join("parts.npy")), opening()).unwrap_err();
    assert!(error.to_string().contains("needs a store"), "{error}");
}
