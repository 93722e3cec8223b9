//! Eigenfunctions from given arrays, from files, from a matrix that does not fit, moved, and done again.

use mercer::data::{Dataset, Existing, Source, write_npy};
use mercer::job::eigen::{EigenMethod, EigenSource, LandmarkChoice, LearnSpec, MatrixFree, Objective, Views};
use mercer::job::{AnyJob, Destination, EigenJob, Job, KernelJob, Opened, Outcome, PredictJob, replay};
use mercer::prelude::Context;
use mercer::spec::{DataRef, DataSpec, Inputs, KernelSpec, Opening, Precision};
use mercer::spectral::learnt::Augmentation;
use ndarray::{Array2, ArrayD};
use std::path::Path;

fn points(n: usize) -> Array2<f64> {
    Array2::from_shape_fn((n, 3), |(row, column)| ((row * 7 + column * 3) as f64).sin())
}

fn data(name: impl Into<DataRef>) -> DataSpec {
    DataSpec { data: vec![name.into()], ..DataSpec::default() }
}

fn rbf() -> EigenSource {
    EigenSource::Kernel(Box::new(KernelSpec::new("rbf(lengthscale=1.5)")))
}

fn job(of: EigenSource, name: impl Into<DataRef>, method: EigenMethod) -> EigenJob {
    EigenJob {
        of: Some(of),
        data: data(name),
        eval: Vec::new(),
        eval_labels: None,
        precision: method.precision(),
        method,
        k: 3,
        truth: false,
        seed: 0,
    }
}

fn run<J: Job>(job: &J, inputs: &Inputs, path: &Path, context: &Context) -> Outcome<<J::Opened as Opened>::Findings> {
    let opening = Opening { inputs, context };
    match job.open(&Destination::new(path), opening).and_then(|opened| opened.run(context)) {
        Ok(outcome) => outcome,
        Err(error) => panic!("{error}"),
    }
}

fn read(folder: &Path, name: &str) -> ArrayD<f64> {
    Source::new(folder.join(name), None).open().unwrap().read().unwrap()
}

#[test]
fn given_arrays_and_files_give_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let place = |name: &str| folder.path().join(name);
    write_npy(&place("x.npy"), &points(40), Existing::Refuse).unwrap();
    let given = Inputs::none().with("x", Dataset::from_array("x", points(40).into_dyn().view()).unwrap());
    let methods = [
        EigenMethod::Exact {},
        EigenMethod::Lanczos { matrix_free: None },
        EigenMethod::Nystrom { landmarks: LandmarkChoice::Uniform, n: 20 },
        EigenMethod::Rff { n: 60, orthogonal: true },
        EigenMethod::Shared {
            learning: LearnSpec { iterations: 20, ..LearnSpec::neural() },
            objective: Objective::Joint,
        },
    ];
    for method in methods {
        let name = method.name();
        let mut from_file = job(rbf(), place("x.npy").display().to_string(), method.clone());
        from_file.eval = from_file.data.data.clone();
        let mut from_array = job(rbf(), DataRef::given("x"), method);
        from_array.eval = from_array.data.data.clone();
        let context = Context::new();
        let file = run(&from_file, &Inputs::none(), &place(&format!("{name}-file")), &context);
        run(&from_array, &given, &place(&format!("{name}-array")), &Context::new());
        let phases: Vec<&str> = file.measurements.phases.iter().map(|phase| &phase.name[..]).collect();
        assert!(phases.first() == Some(&"opening") && phases.last() == Some(&"writing"), "{phases:?}");
        assert_eq!(file.findings.values.len(), 3, "{name}");
        for array in ["values.npy", "psi.npy", "psi_data.npy"] {
            let [a, b] = ["file", "array"].map(|from| read(&place(&format!("{name}-{from}")), array));
            assert_eq!(a, b, "{name}, {array}");
        }
    }
}

#[test]
fn a_job_is_data() {
    let learning = LearnSpec::contrastive();
    let views = Views::Augmented(Augmentation::new());
    let contrastive = EigenMethod::Contrastive { learning, objective: Objective::CONTRASTIVE, views };
    let methods = [
        EigenMethod::Exact {},
        EigenMethod::Randomised { matrix_free: Some(MatrixFree::Always) },
        EigenMethod::Nystrom { landmarks: LandmarkChoice::KMeansPlusPlus, n: 5 },
        EigenMethod::Spin { learning: LearnSpec::spin() },
        contrastive,
    ];
    for method in methods {
        let job = EigenJob { seed: u64::MAX, ..job(rbf(), "x.npy", method) };
        let text = serde_json::to_string(&AnyJob::from(job.clone())).unwrap();
        assert!(text.contains(r#""name":"eigen""#) && text.contains(r#""seed":"18446744073709551615""#), "{text}");
        assert_eq!(serde_json::from_str::<AnyJob>(&text).unwrap(), AnyJob::from(job));
        assert!(serde_json::from_str::<AnyJob>(&text.replace("truth", "truths")).is_err());
    }
}

/// A matrix that does not fit is read piece by piece by methods that multiply, and refused with what would do by the others.
#[test]
fn a_matrix_that_does_not_fit_is_multiplied_with() {
    let folder = tempfile::tempdir().unwrap();
    let place = |name: &str| folder.path().join(name);
    write_npy(&place("x.npy"), &points(700), Existing::Refuse).unwrap();
    let Some(EigenSource::Kernel(kernel)) = Some(rbf()) else { unreachable!() };
    let gram = KernelJob {
        kernel: *kernel,
        data: data(place("x.npy").display().to_string()),
        against: Vec::new(),
        by_layer: false,
        features: false,
        precision: Precision::F64,
        tiles: None,
        part: None,
    };
    for name in ["gram.zarr", "gram.npy"] {
        run(&gram, &Inputs::none(), &place(name), &Context::new());
        let of = || EigenSource::Gram(place(name));
        let mut spectrum = job(of(), "", EigenMethod::Lanczos { matrix_free: None });
        spectrum.data = DataSpec::default();
        let whole = run(&spectrum, &Inputs::none(), &place(&format!("whole-{name}")), &Context::new());
        // Half of its 3.9 MB.
        let small = Context::new().with_memory(2 << 20);
        let pieces = run(&spectrum, &Inputs::none(), &place(&format!("pieces-{name}")), &small);
        assert!(pieces.notes.iter().any(|note| note.contains("for every product")), "{:?}", pieces.notes);
        assert!(whole.notes.is_empty(), "{:?}", whole.notes);
        let differ = |a: f64, b: f64| (a - b).abs() > 1e-12 * b;
        assert!(!pieces.findings.values.iter().zip(&whole.findings.values).any(|(a, b)| differ(*a, *b)));
        assert_eq!(pieces.findings.mean_diagonal, whole.findings.mean_diagonal);
        let [a, b] = ["pieces", "whole"].map(|way| read(&place(&format!("{way}-{name}")), "psi_data.npy"));
        assert!((&a - &b).iter().all(|difference| difference.abs() < 1e-8));
        spectrum.method = EigenMethod::Exact {};
        let opening = Opening { inputs: &Inputs::none(), context: &small };
        let refused = spectrum.open(&Destination::new(place("no")), opening).err().unwrap();
        assert_eq!(refused.code(), "memory");
        assert!(refused.hints()[0].text.contains("‹memory›"), "{:?}", refused.hints());
        assert!(!place("no").exists());
    }
}

/// A folder is movable and self-contained; what made it can be done again, and names what has changed.
#[test]
fn a_folder_is_moved_and_a_run_done_again() {
    let folder = tempfile::tempdir().unwrap();
    let place = |name: &str| folder.path().join(name);
    let save =
        |seed| mercer::net::arch::Mlp::new(3, &[5], 2).build(seed).unwrap().save_onnx(place("net.onnx")).unwrap();
    save(1);
    for (name, rows) in [("x.npy", 30), ("new.npy", 7)] {
        write_npy(&place(name), &points(rows), Existing::Refuse).unwrap();
    }
    let kernel = || EigenSource::Kernel(Box::new(KernelSpec::new("trace").with_net(place("net.onnx"))));
    let learning = LearnSpec { iterations: 15, batch: 30, ..LearnSpec::neural() };
    let methods = [
        EigenMethod::Lanczos { matrix_free: Some(MatrixFree::Always) },
        EigenMethod::Neuralef { learning, objective: Objective::Game },
    ];
    for method in methods {
        let name = method.name();
        let mut found = job(kernel(), place("x.npy").display().to_string(), method);
        found.eval = vec![place("new.npy").display().to_string().into()];
        run(&found, &Inputs::none(), &place(name), &Context::new());
        assert!(!place(name).join("state.safetensors").exists());
        let replayed = replay(&place(name), &Context::new()).unwrap();
        assert!(replayed.is_same() && replayed.same > 5, "{name}: {replayed:?}");
        save(2);
        let replayed = replay(&place(name), &Context::new()).unwrap();
        assert!(replayed.changed_inputs[0].contains("net.onnx") && !replayed.is_same(), "{name}: {replayed:?}");
        std::fs::remove_file(place("net.onnx")).unwrap();
        std::fs::rename(place(name), place("moved")).unwrap();
        let evaluate = PredictJob::saved(place("moved"), data(place("new.npy").display().to_string()));
        run(&evaluate, &Inputs::none(), &place("again.npy"), &Context::new());
        assert_eq!(read(folder.path(), "again.npy"), read(&place("moved"), "psi.npy"), "{name}");
        assert!(replay(&place("again.npy"), &Context::new()).unwrap().is_same());
        std::fs::remove_dir_all(place("moved")).unwrap();
        std::fs::remove_file(place("again.npy")).unwrap();
        save(1);
    }
}
