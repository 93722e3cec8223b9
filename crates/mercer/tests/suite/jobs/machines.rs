//! Machines and predictions as jobs: from arrays as from files, within what may be used, until they are called off.

use mercer::Error;
use mercer::data::{Dataset, Existing, write_npy};
use mercer::job::fit::{MachineName, MachineSpec, Training};
use mercer::job::predict::PredictFindings;
use mercer::job::{AnyJob, Destination, FitJob, Job, Opened, Outcome, PredictJob, replay};
use mercer::net::arch::Architecture;
use mercer::run::names::Named;
use mercer::run::{Context, Listener};
use mercer::spec::{DataRef, DataSpec, DecodingSpec, Inputs, KernelSpec, Opening, PreprocessSpec};
use ndarray::{Array1, Array2, ArrayD};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

const N: usize = 24;

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../mercer-cli/tests/fixtures").join(name)
}

/// A small network with the weights of a seed.
fn described(seed: u64, path: &Path) {
    let text = "[mlp]\ninputs = [4]\noutputs = 3\nwidths = [8]\nactivation = \"tanh\"\n";
    let network = Architecture::from_toml(text).unwrap().build(seed).unwrap();
    std::fs::write(path, network.to_onnx_bytes().unwrap()).unwrap();
}

fn samples() -> Array2<f32> {
    Array2::from_shape_fn((N, 4), |(i, j)| ((i * 7 + j * j * 3) % 11) as f32 / 5.0 - 1.0)
}

fn classes(count: usize) -> Array1<i64> {
    Array1::from_shape_fn(N, |i| (i % count) as i64)
}

fn given(name: &str, array: ArrayD<f32>) -> Inputs {
    Inputs::none().with(name, Dataset::from_array(name, array.view()).unwrap())
}

fn kernel(kernel: KernelSpec, data: &[DataRef]) -> Training {
    let kernel = Box::new(kernel);
    Training::Kernel {
        kernel,
        data: data.to_vec(),
        preprocess: PreprocessSpec::default(),
        decoding: DecodingSpec::default(),
    }
}

fn network(path: &Path) -> KernelSpec {
    KernelSpec::new("trace").with_net(path)
}

fn fit(machine: MachineName, training: Training, labels: DataRef) -> FitJob {
    let mut machine = MachineSpec::from(machine);
    if let MachineSpec::Flow { time } = &mut machine {
        *time = Some(10.0);
    }
    FitJob { machine, training, labels, classes: None, seed: 1 }
}

fn run<J: Job>(
    job: &J,
    out: impl Into<PathBuf>,
    inputs: &Inputs,
    context: &Context,
) -> Result<Outcome<<J::Opened as Opened>::Findings>, Error> {
    job.open(&Destination::new(out), Opening { inputs, context })?.run(context)
}

fn read(path: &Path) -> Vec<u8> {
    std::fs::read(path).unwrap()
}

fn on(data: DataRef) -> DataSpec {
    DataSpec { data: vec![data], ..DataSpec::default() }
}

/// Arrays of the program and files give the same bits; so does the folder, once it is moved and all files are gone.
#[test]
fn arrays_are_as_good_as_files_and_a_folder_needs_neither() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let file = |name: &str| DataRef::from(path(name).display().to_string());
    std::fs::copy(fixture("mlp.onnx"), path("mlp.onnx")).unwrap();
    write_npy(&path("x.npy"), &samples(), Existing::Refuse).unwrap();
    write_npy(&path("y.npy"), &classes(3), Existing::Refuse).unwrap();
    let labels = Dataset::from_array("y", classes(3).into_dyn().view()).unwrap();
    let inputs = given("x", samples().into_dyn()).with("y", labels);
    let context = Context::new();
    let source = || network(&path("mlp.onnx"));
    for machine in [MachineName::Glm, MachineName::Svm, MachineName::ProcessClassifier, MachineName::Neighbours] {
        let (from_files, from_arrays) = (format!("{machine}-files"), format!("{machine}-arrays"));
        let job = fit(machine, kernel(source(), &[file("x.npy")]), file("y.npy"));
        let outcome = run(&job, path(&from_files), &Inputs::none(), &context).unwrap();
        assert_eq!((outcome.findings.machine, outcome.findings.n_samples), (machine, N));
        let names: Vec<&str> = outcome.measurements.phases.iter().map(|phase| &phase.name[..]).collect();
        for phase in ["opening", "kernel", "fitting", "evaluating", "writing"] {
            assert!(names.contains(&phase), "{phase} in {names:?}");
        }
        let job = fit(machine, kernel(source(), &[DataRef::given("x")]), DataRef::given("y"));
        run(&job, path(&from_arrays), &inputs, &context).unwrap();
        for name in [&from_files, &from_arrays] {
            let job = PredictJob::saved(path(name), on(DataRef::given("x")));
            run(&job, path(&format!("{name}.npy")), &inputs, &context).unwrap();
        }
        let bits = read(&path(&format!("{from_files}.npy")));
        assert!(bits == read(&path(&format!("{from_arrays}.npy"))), "{machine}");
    }
    for name in ["mlp.onnx", "x.npy", "y.npy"] {
        std::fs::remove_file(path(name)).unwrap();
    }
    for machine in ["glm", "svm", "process-classifier", "neighbours"] {
        std::fs::rename(path(&format!("{machine}-files")), path("moved")).unwrap();
        let data = DataSpec { labels: Some(DataRef::given("y")), ..on(DataRef::given("x")) };
        let again = path(&format!("{machine}-again.npy"));
        let outcome = run(&PredictJob::saved(path("moved"), data), &again, &inputs, &context).unwrap();
        assert!(read(&again) == read(&path(&format!("{machine}-files.npy"))), "{machine}");
        let PredictFindings::Machine(found) = outcome.findings else { panic!("a machine") };
        assert!(found.quality.accuracy.is_some());
        std::fs::remove_dir_all(path("moved")).unwrap();
    }
}

/// A job is what it says after it was written down, and a run of it can be repeated: inputs that changed are named.
#[test]
fn jobs_are_written_down_and_done_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let file = |name: &str| DataRef::from(path(name).display().to_string());
    described(1, &path("mlp.onnx"));
    write_npy(&path("x.npy"), &samples(), Existing::Refuse).unwrap();
    write_npy(&path("y.npy"), &samples().column(0).mapv(f64::from), Existing::Refuse).unwrap();
    let context = Context::new();
    let ridge = fit(MachineName::Ridge, kernel(network(&path("mlp.onnx")), &[file("x.npy")]), file("y.npy"));
    let predict = PredictJob::network(path("mlp.onnx"), on(file("x.npy")));
    for job in [AnyJob::from(ridge.clone()), AnyJob::from(predict.clone())] {
        let text = serde_json::to_string(&job).unwrap();
        assert_eq!(serde_json::from_str::<AnyJob>(&text).unwrap(), job, "{text}");
    }
    run(&ridge, path("machine"), &Inputs::none(), &context).unwrap();
    run(&predict, path("logits.npy"), &Inputs::none(), &context).unwrap();
    for result in ["machine", "logits.npy"] {
        let replayed = replay(&path(result), &context).unwrap();
        assert!(replayed.is_same() && replayed.same > 0, "{result}: {replayed:?}");
    }
    // The same network with other numbers.
    described(2, &path("mlp.onnx"));
    for result in ["machine", "logits.npy"] {
        let replayed = replay(&path(result), &context).unwrap();
        let changed = replayed.changed_inputs.join(" ");
        assert!(changed.contains("‹net›") && !changed.contains("‹data›"), "{result}: {replayed:?}");
        assert!(!replayed.differences.is_empty(), "{result}");
    }
}

/// Calls the work off when it has been asked so often.
struct Impatient {
    asked: Arc<AtomicUsize>,
    patience: usize,
}

impl Listener for Impatient {
    fn cancelled(&self) -> bool {
        self.asked.fetch_add(1, Ordering::Relaxed) >= self.patience
    }
}

/// Every machine ends when it is called off, and leaves nothing; iterative ones ask on the way.
#[test]
fn machines_can_be_called_off() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("machine");
    let rows = samples();
    let gram = rows.dot(&rows.t()) + Array2::<f32>::eye(N);
    let labels = Dataset::from_array("y", classes(2).into_dyn().view()).unwrap();
    let inputs = given("gram", gram.into_dyn()).with("y", labels);
    let mut jobs: Vec<(MachineSpec, bool)> = MachineName::CHOICES
        .iter()
        .map(|&(name, ..)| {
            use MachineName::{Glm, Logistic, ProcessClassifier, Sgd, Svm};
            (MachineSpec::from(name), matches!(name, Glm | Logistic | ProcessClassifier | Sgd | Svm))
        })
        .collect();
    jobs.push((MachineSpec::Ridge { penalty: vec![0.1], rank: Some(3), centred: false }, true));
    for (machine, iterates) in jobs {
        let name = machine.name();
        let job = FitJob { machine, ..fit(name, Training::Gram(DataRef::given("gram")), DataRef::given("y")) };
        let job = if name == MachineName::Flow { fit(name, job.training, job.labels) } else { job };
        let ask = |patience: usize| {
            let asked = Arc::new(AtomicUsize::new(0));
            let context = Context::listening(Impatient { asked: Arc::clone(&asked), patience });
            (run(&job, &place, &inputs, &context), asked.load(Ordering::Relaxed))
        };
        // After the fit and after its evaluation every machine is asked for.
        let (done, asked) = ask(usize::MAX);
        done.unwrap();
        assert_eq!(asked > 4, iterates, "{name}: {asked}");
        std::fs::remove_dir_all(&place).unwrap();
        for patience in 0..asked.min(8) {
            let error = ask(patience).0.unwrap_err();
            assert!(error.is_interrupted(), "{name}, {patience} of {asked}: {error}");
            assert!(!place.exists(), "{name}");
        }
    }
}

/// What takes more than may be used is refused before the work begins, with what would do.
#[test]
fn memory_is_asked_for_before() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("machine");
    let labels = Dataset::from_array("y", classes(3).into_dyn().view()).unwrap();
    let inputs = given("x", samples().into_dyn()).with("y", labels);
    for &(machine, ..) in MachineName::CHOICES.iter().filter(|(name, ..)| *name != MachineName::Logistic) {
        for training in [
            kernel(KernelSpec::new("rbf(lengthscale=0.5)"), &[DataRef::given("x")]),
            Training::Features(DataRef::given("x")),
        ] {
            let job = fit(machine, training, DataRef::given("y"));
            let error = run(&job, &place, &inputs, &Context::new().with_memory(1 << 20)).unwrap_err();
            assert_eq!((error.code(), error.hints()[0].setting.as_deref()), ("memory", Some("memory")), "{error}");
            assert!(!place.exists(), "{machine}");
            run(&job, &place, &inputs, &Context::new()).unwrap();
            std::fs::remove_dir_all(&place).unwrap();
        }
    }
}
