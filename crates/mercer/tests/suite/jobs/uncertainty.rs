//! Posteriors from given arrays and from files, moved and asked later, and done again.

use mercer::data::{Dataset, Existing, Source, write_npy};
use mercer::job::uncertainty::{
    NoiseChoice, PosteriorDraws, PosteriorMethod, Predictions, Predictor, PriorChoice, Regions, SavedPosterior,
};
use mercer::job::{AnyJob, Destination, Job, Opened, UncertaintyJob, replay};
use mercer::net::Network;
use mercer::prelude::Context;
use mercer::spec::{DataRef, DataSpec, Inputs, Opening, ParameterSpec, Precision, PreprocessSpec};
use ndarray::{Array2, ArrayD};
use std::path::{Path, PathBuf};

const IRIS: &str = "lla_iris_tanh";
const DIABETES: &str = "lla_diabetes_regression";

/// A folder with a reference network and its data.
struct Case {
    folder: tempfile::TempDir,
    name: &'static str,
}

impl Case {
    fn new(name: &'static str) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/laplace");
        for end in ["onnx", "npz"] {
            let file = format!("{name}.{end}");
            std::fs::copy(golden.join(&file), folder.path().join(&file)).expect("a copy");
        }
        Self { folder, name }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn data(&self, key: &str) -> DataRef {
        format!("{}:{key}", self.path(&format!("{}.npz", self.name)).display()).into()
    }

    fn job(&self) -> UncertaintyJob {
        let (data, labels) = (vec![self.data("x_train")], Some(self.data("y_train")));
        let train = DataSpec { data, labels, ..DataSpec::default() };
        let net = self.path(&format!("{}.onnx", self.name));
        let job = UncertaintyJob::new(net, train, vec![self.data("x_test")]);
        UncertaintyJob { test_labels: Some(self.data("y_test")), precision: Precision::F64, ..job }
    }

    /// The test samples, to be given as an array.
    fn samples(&self) -> Inputs {
        let DataRef::File(text) = self.data("x_test") else { panic!("a file") };
        let array = text.parse::<Source>().and_then(|source| source.open()?.read::<f64>()).expect("an array");
        Inputs::none().with("new", Dataset::from_array("new", array.view()).expect("a set"))
    }

    fn forget(&self) {
        for end in ["onnx", "npz"] {
            std::fs::remove_file(self.path(&format!("{}.{end}", self.name))).expect("a file");
        }
    }
}

fn run(job: &UncertaintyJob, inputs: &Inputs, path: &Path) {
    let context = Context::new();
    let opened = job.open(&Destination::new(path), Opening { inputs, context: &context }).expect("opens");
    let outcome = opened.run(&context).expect("runs");
    let phases: Vec<&str> = outcome.measurements.phases.iter().map(|phase| &phase.name[..]).collect();
    let expected = ["opening", "functions", "fitting", "prior", "predicting", "writing"];
    let is_eigen = matches!(job.method, PosteriorMethod::Eigen { .. });
    let expected: Vec<&str> = expected.into_iter().filter(|&name| is_eigen || name != "functions").collect();
    assert_eq!(phases, expected);
    for artefact in &outcome.artefacts {
        assert!(Path::new(&artefact.path).is_file(), "{artefact:?}");
    }
}

/// An array of the reference.
fn read_data(case: &Case, key: &str) -> ArrayD<f64> {
    let DataRef::File(text) = case.data(key) else { panic!("a file") };
    text.parse::<Source>().and_then(|source| source.open()?.read()).expect(key)
}

fn read(folder: &Path, name: &str) -> ArrayD<f64> {
    Source::new(folder.join(name), None).open().and_then(|set| set.read()).expect(name)
}

/// What a saved posterior says of the samples that were given as `new`.
fn later(folder: &Path, inputs: &Inputs) -> Predictions {
    let context = Context::new();
    let saved = SavedPosterior::open(folder).expect("opens");
    let data = DataSpec { data: vec![DataRef::given("new")], ..DataSpec::default() };
    let samples = saved.samples(&data, Opening { inputs, context: &context }).expect("samples");
    saved.predict(&samples, &context).expect("predicts")
}

fn assert_same(folder: &Path, inputs: &Inputs, about: &str) {
    let same = |name: &str, own: Array2<f64>| {
        let first = read(folder, name);
        let equal = first.shape() == own.shape() && first.iter().zip(&own).all(|(a, b)| a.to_bits() == b.to_bits());
        assert!(equal, "{about}: {name}");
    };
    match later(folder, inputs) {
        Predictions::Classes { probabilities, map_probabilities, variance, .. } => {
            same("probabilities.npy", probabilities);
            same("map_probabilities.npy", map_probabilities);
            same("variance.npy", variance);
        }
        Predictions::Values { mean, variance, noise, .. } => {
            assert!(noise > 0.0);
            same("mean.npy", mean);
            same("variance.npy", variance);
        }
    }
}

/// The network, the data and the folder's first place are gone.
#[test]
fn a_moved_posterior_predicts_the_same_bits() {
    let methods = ["full", "diag", "kron", "last-layer-full", "last-layer-kron", "last-layer-diag", "eigen", "sketch"];
    for name in [IRIS, DIABETES] {
        for (at, method) in methods.into_iter().enumerate() {
            let case = Case::new(name);
            let mut job = case.job();
            job.method = match method.parse::<PosteriorMethod>().expect(method) {
                PosteriorMethod::Eigen { residual, .. } => {
                    PosteriorMethod::Eigen { components: 12, landmarks: 40, residual }
                }
                PosteriorMethod::Sketch { .. } => {
                    PosteriorMethod::Sketch { sketch: "srht:32".to_owned(), residual: true }
                }
                other => other,
            };
            job.precision = if at % 2 == 0 { Precision::F32 } else { Precision::F64 };
            job.train.preprocess = PreprocessSpec { scale: Some(1.25), ..PreprocessSpec::default() };
            job.draws = (at % 3 == 0).then_some(PosteriorDraws { count: 20, noise_scale: 2.0 });
            job.seed = 7;
            run(&job, &Inputs::none(), &case.path("first"));
            let inputs = case.samples();
            case.forget();
            std::fs::rename(case.path("first"), case.path("moved")).expect("moves");
            assert_same(&case.path("moved"), &inputs, &format!("{name}, {method}"));
        }
    }
}

/// Numbers of a checkpoint, and a choice of parameters, are saved as well.
#[test]
fn a_checkpoint_is_saved_with_the_posterior() {
    let case = Case::new(IRIS);
    let other = mercer::net::arch::Mlp::new(4, &[6], 3);
    other.build(1).and_then(|network| network.save_onnx(case.path("net.onnx"))).expect("a network");
    other.build(2).and_then(|network| network.save_safetensors(case.path("weights.safetensors"))).expect("weights");
    let weights = Some(case.path("weights.safetensors"));
    let names: Vec<String> = Network::from_onnx(case.path("net.onnx"))
        .expect("opens")
        .parameters()
        .iter()
        .map(|parameter| parameter.name().to_owned())
        .collect();
    let parameters = ParameterSpec { weights, exclude: vec![names[0].clone()], ..ParameterSpec::default() };
    let job = UncertaintyJob { net: case.path("net.onnx"), parameters, method: PosteriorMethod::Kron, ..case.job() };
    run(&job, &Inputs::none(), &case.path("run"));
    let inputs = case.samples();
    case.forget();
    std::fs::remove_file(case.path("net.onnx")).expect("a file");
    std::fs::remove_file(case.path("weights.safetensors")).expect("a file");
    assert_same(&case.path("run"), &inputs, "a checkpoint");
}

/// Columns of a table are found by name, and classes have theirs.
#[test]
fn tables_and_names_are_kept() {
    let case = Case::new(IRIS);
    mercer::net::arch::Mlp::new(2, &[5], 2).build(3).and_then(|net| net.save_onnx(case.path("net.onnx"))).expect("net");
    let row =
        |at: usize| ((at as f64).sin(), (0.5 * at as f64).cos(), if at.is_multiple_of(3) { "oak" } else { "ash" });
    let lines = (0..30).map(row).map(|(a, b, tree)| format!("{a},{b},{tree}\n")).collect::<String>();
    std::fs::write(case.path("t.csv"), format!("a,b,tree\n{lines}")).expect("a table");
    let turned = (0..30).map(row).map(|(a, b, _)| format!("{b},{a}\n")).collect::<String>();
    std::fs::write(case.path("turned.csv"), format!("b,a\n{turned}")).expect("a table");
    let file = |name: &str| DataRef::from(case.path(name).display().to_string());
    let (data, labels) = (vec![file("t.csv")], Some(file("t.csv:tree")));
    let train = DataSpec { data, labels, classes: Some("oak,ash".to_owned()), ..DataSpec::default() };
    let job = UncertaintyJob::new(case.path("net.onnx"), train, vec![file("turned.csv")]);
    run(&job, &Inputs::none(), &case.path("run"));
    std::fs::remove_file(case.path("t.csv")).expect("a file");
    let context = Context::new();
    let saved = SavedPosterior::open(&case.path("run")).expect("opens");
    let data = DataSpec { data: vec![file("turned.csv")], ..DataSpec::default() };
    let samples = saved.samples(&data, Opening { inputs: &Inputs::none(), context: &context }).expect("samples");
    let Predictions::Classes { names, probabilities, .. } = saved.predict(&samples, &context).expect("predicts") else {
        panic!("a classifier")
    };
    assert_eq!(names, Some(vec!["oak".to_owned(), "ash".to_owned()]));
    assert_eq!(probabilities.into_dyn(), read(&case.path("run"), "probabilities.npy"));
}

#[test]
fn given_arrays_and_files_give_the_same() {
    let case = Case::new(IRIS);
    let job = case.job();
    run(&job, &Inputs::none(), &case.path("files"));
    let given = UncertaintyJob { test: vec![DataRef::given("new")], ..job };
    run(&given, &case.samples(), &case.path("arrays"));
    for name in ["probabilities.npy", "map_probabilities.npy", "variance.npy", "result.json", "reliability.svg"] {
        let read = |folder: &str| std::fs::read(case.path(folder).join(name)).expect(name);
        assert!(read("files") == read("arrays"), "{name}");
    }
}

#[test]
fn a_job_is_data() {
    let case = Case::new(IRIS);
    let mut job = case.job();
    job.seed = u64::MAX;
    job.prior = PriorChoice::Given(2.5);
    job.noise = NoiseChoice::Given(0.5);
    job.draws = Some(PosteriorDraws { count: 9, noise_scale: 20.0 });
    let methods =
        ["auto", "full", "diag", "kron", "last-layer-full", "last-layer-kron", "last-layer-diag", "eigen", "sketch"];
    for method in methods {
        job.method = method.parse::<PosteriorMethod>().expect(method);
        assert_eq!(job.method.name(), method);
        let text = serde_json::to_string(&AnyJob::from(job.clone())).expect("JSON");
        assert!(
            text.contains(r#""name":"uncertainty""#) && text.contains(r#""seed":"18446744073709551615""#),
            "{text}"
        );
        assert_eq!(serde_json::from_str::<AnyJob>(&text).expect("a job"), AnyJob::from(job.clone()));
        assert!(serde_json::from_str::<AnyJob>(&text.replace("test_labels", "test_label")).is_err());
    }
    let least = r#"{"net": "n.onnx", "train": {"data": ["x.npy"], "labels": "y.npy"}, "test": ["z.npy"],
                    "method": {"eigen": {"components": 8}}}"#;
    let read: UncertaintyJob = serde_json::from_str(least).expect("a job");
    assert_eq!(read.method, PosteriorMethod::Eigen { components: 8, landmarks: 128, residual: true });
    assert_eq!(case.job().method, PosteriorMethod::Auto);
    assert_eq!(
        (read.prior, read.noise, read.precision),
        (PriorChoice::Evidence, NoiseChoice::Evidence, Precision::F32)
    );
}

#[test]
fn a_run_is_done_again() {
    let case = Case::new(IRIS);
    let save = |seed| {
        let network = mercer::net::arch::Mlp::new(4, &[6], 3).build(seed).expect("builds");
        network.save_onnx(case.path("net.onnx")).expect("a file");
    };
    save(1);
    let method = PosteriorMethod::Eigen { components: 6, landmarks: 20, residual: true };
    let job = UncertaintyJob { net: case.path("net.onnx"), method, ..case.job() };
    run(&job, &Inputs::none(), &case.path("run"));
    let replayed = replay(&case.path("run"), &Context::new()).expect("runs");
    assert!(replayed.is_same() && replayed.same > 6, "{replayed:?}");
    save(2);
    let replayed = replay(&case.path("run"), &Context::new()).expect("runs");
    let [changed] = &replayed.changed_inputs[..] else { panic!("{replayed:?}") };
    assert!(changed.contains("net.onnx") && !replayed.differences.is_empty(), "{replayed:?}");
}

/// Validation samples choose a temperature, and the better of the network at that temperature and the posterior. The choice is
/// saved: a moved folder predicts what was chosen.
#[test]
fn validation_samples_choose_what_predicts_best() {
    let case = Case::new(IRIS);
    let context = Context::new();
    for prior in [1e-4, 1e3] {
        let mut job = case.job();
        (job.method, job.prior) = (PosteriorMethod::Diag, PriorChoice::Given(prior));
        (job.validation, job.validation_labels) = (vec![case.data("x_train")], Some(case.data("y_train")));
        let place = case.path(&format!("run-{prior}"));
        let opened = job.open(&Destination::new(&place), Opening { inputs: &Inputs::none(), context: &context });
        let found = opened.and_then(|opened| opened.run(&context)).expect("runs").findings;
        let chosen = found.chosen.expect("a choice");
        assert!(chosen.scaled_nll <= chosen.network_nll, "{chosen:?}");
        let better = chosen.scaled_nll < chosen.laplace_nll;
        assert_eq!(chosen.predictor, if better { Predictor::Temperature } else { Predictor::Laplace });
        // A prior so vague makes every prediction uncertain.
        assert!(prior > 1.0 || chosen.predictor == Predictor::Temperature, "{chosen:?}");
        let name = if better { "scaled_probabilities.npy" } else { "laplace_probabilities.npy" };
        assert_eq!(read(&place, "probabilities.npy"), read(&place, name));
        assert_same(&place, &case.samples(), "chosen");
    }
    // Weight decay is a prior: of precision Nλ.
    let precision = |prior: PriorChoice, name: &str| {
        let job = UncertaintyJob { prior, ..case.job() };
        let opened =
            job.open(&Destination::new(case.path(name)), Opening { inputs: &Inputs::none(), context: &context });
        opened.and_then(|opened| opened.run(&context)).expect("runs").findings
    };
    let decayed = precision(PriorChoice::WeightDecay(1e-2), "decayed");
    let given = precision(PriorChoice::Given(1e-2 * decayed.n_train as f64), "given");
    assert_eq!((decayed.prior, decayed.prior_precision), ("weight decay", given.prior_precision));
    assert_eq!(decayed.log_evidence, given.log_evidence);
    assert!(decayed.chosen.is_none() && decayed.scaled.is_none());
}

/// Half of the validation samples chooses, the other half calibrates sets of classes. They are as large as they are said to
/// be, they are saved, and a moved folder gives the same.
#[test]
fn sets_of_classes_are_calibrated_and_saved() {
    let case = Case::new(IRIS);
    let context = Context::new();
    let mut job = case.job();
    (job.method, job.prior) = (PosteriorMethod::LastLayerDiag, PriorChoice::Validation);
    (job.validation, job.validation_labels) = (vec![case.data("x_train")], Some(case.data("y_train")));
    job.conformal = Some(0.8);
    let opened = job.open(&Destination::new(case.path("run")), Opening { inputs: &Inputs::none(), context: &context });
    let found = opened.and_then(|opened| opened.run(&context)).expect("runs").findings;
    let sets = found.conformal.expect("sets");
    let n_validation = read_data(&case, "x_train").len_of(ndarray::Axis(0));
    let choosing = found.chosen.expect("a choice").n_samples;
    assert_eq!((choosing, choosing + sets.n_calibration), (n_validation / 2, n_validation));
    let array = read(&case.path("run"), "sets.npy");
    let probabilities = read(&case.path("run"), "probabilities.npy");
    assert!(array.iter().zip(&probabilities).all(|(&own, &p)| (own == 1.0) == (1.0 - p <= sets.largest[0])));
    let n_test = array.len_of(ndarray::Axis(0)) as f64;
    assert!((sets.size - array.sum() / n_test).abs() < 1e-12, "{sets:?}");
    let labels = read_data(&case, "y_test");
    let held = labels.iter().enumerate().filter(|&(row, &class)| array[[row, class as usize]] == 1.0).count();
    let covered = sets.found.expect("a coverage");
    assert!((covered.covered - held as f64 / n_test).abs() < 1e-12 && covered.standard_error > 0.0, "{covered:?}");
    let table = std::fs::read_to_string(case.path("run/sets.csv")).expect("a table");
    assert!(table.starts_with("row,size,classes\n0,") && table.lines().count() == n_test as usize + 1, "{table}");
    assert!(replay(&case.path("run"), &Context::new()).expect("runs").is_same());
    let inputs = case.samples();
    case.forget();
    std::fs::rename(case.path("run"), case.path("moved")).expect("moves");
    let Predictions::Classes { regions: Some(Regions::Sets(later)), .. } = later(&case.path("moved"), &inputs) else {
        panic!("sets")
    };
    assert_eq!(later.mapv(|own| if own { 1.0 } else { 0.0 }).into_dyn(), array);
}

/// Where the validation samples choose nothing, all of them calibrate the intervals of a regression.
#[test]
fn intervals_are_calibrated_and_saved() {
    let case = Case::new(DIABETES);
    let context = Context::new();
    let mut job = case.job();
    (job.method, job.prior) = (PosteriorMethod::Kron, PriorChoice::Given(1.0));
    (job.validation, job.validation_labels) = (vec![case.data("x_train")], Some(case.data("y_train")));
    job.conformal = Some(0.75);
    let opened = job.open(&Destination::new(case.path("run")), Opening { inputs: &Inputs::none(), context: &context });
    let found = opened.and_then(|opened| opened.run(&context)).expect("runs").findings;
    let intervals = found.conformal.expect("intervals");
    assert_eq!(intervals.n_calibration, read_data(&case, "x_train").len_of(ndarray::Axis(0)));
    let (ends, mean) = (read(&case.path("run"), "intervals.npy"), read(&case.path("run"), "mean.npy"));
    let variance = read(&case.path("run"), "variance.npy");
    let noise = found.noise.expect("a noise");
    for (row, (mean, variance)) in mean.iter().zip(&variance).enumerate() {
        let half = intervals.largest[0] * (variance + noise * noise).sqrt();
        assert!((ends[[row, 0, 0]] - (mean - half)).abs() < 1e-12 && (ends[[row, 0, 1]] - (mean + half)).abs() < 1e-12);
    }
    assert!(intervals.found.is_some_and(|found| found.covered > 0.5 && found.covered <= 1.0), "{intervals:?}");
    let inputs = case.samples();
    case.forget();
    let Predictions::Values { regions: Some(Regions::Intervals { lower, .. }), .. } = later(&case.path("run"), &inputs)
    else {
        panic!("intervals")
    };
    assert!(lower.iter().enumerate().all(|(row, low)| *low == ends[[row, 0, 0]]));
}

/// What cannot be done is refused when the job is opened, and nothing is left behind.
#[test]
fn senseless_settings_are_refused() {
    let case = Case::new(IRIS);
    type Change = fn(&mut UncertaintyJob);
    let changes: [(Change, &str); 12] = [
        (|job| job.conformal = Some(0.9), "‹conformal›: there are no samples"),
        (|job| job.conformal = Some(1.0), "‹conformal› 1"),
        (
            |job| {
                (job.validation, job.validation_labels) = (job.test.clone(), job.test_labels.clone());
                job.conformal = Some(0.999);
            },
            "takes at least 1998 samples",
        ),
        (|job| job.prior = PriorChoice::Validation, "‹prior› validation"),
        (|job| job.validation = job.test.clone(), "‹validation›"),
        (|job| job.prior = PriorChoice::Given(0.0), "‹prior› 0"),
        (|job| job.prior = PriorChoice::WeightDecay(-1.0), "‹weight-decay› -1"),
        (|job| job.noise = NoiseChoice::Given(f64::NAN), "‹noise-std›"),
        (|job| job.draws = Some(PosteriorDraws { count: 0, noise_scale: 1.0 }), "‹draws›"),
        (|job| job.draws = Some(PosteriorDraws { count: 1, noise_scale: -1.0 }), "‹draw-scale›"),
        (|job| job.method = PosteriorMethod::Eigen { components: 0, landmarks: 9, residual: true }, "‹k›"),
        (|job| job.train.labels = None, "‹labels›"),
    ];
    let context = Context::new();
    for (change, word) in changes {
        let mut job = case.job();
        change(&mut job);
        let opening = Opening { inputs: &Inputs::none(), context: &context };
        let error = job.open(&Destination::new(case.path("run")), opening).expect_err(word);
        assert!(error.message().contains(word), "{error}");
        assert!(!case.path("run").exists(), "{word}");
    }
}

/// The landmarks' matrix and what is known of every pair of outputs count, and what would do is said.
#[test]
fn memory_is_refused_before_the_work() {
    let case = Case::new(IRIS);
    let many = Array2::from_shape_fn((3000, 4), |(row, column)| ((row * 3 + column) as f64).sin());
    write_npy(&case.path("x.npy"), &many, Existing::Refuse).expect("a file");
    let classes = ndarray::Array1::from_shape_fn(3000, |row| (row % 3) as i64);
    write_npy(&case.path("y.npy"), &classes, Existing::Refuse).expect("a file");
    let file = |name: &str| DataRef::from(case.path(name).display().to_string());
    let context = Context::new().with_memory(1 << 30);
    let open = |landmarks: usize| {
        let mut job = case.job();
        job.train = DataSpec { data: vec![file("x.npy")], labels: Some(file("y.npy")), ..DataSpec::default() };
        job.method = PosteriorMethod::Eigen { components: 8, landmarks, residual: false };
        job.open(&Destination::new(case.path("run")), Opening { inputs: &Inputs::none(), context: &context })
    };
    assert!(open(20).is_ok());
    let error = open(3000).expect_err("too much");
    let hint = &error.hints()[0].text;
    assert!(error.code() == "memory" && hint.contains("‹landmarks›") && hint.contains("‹memory›"), "{error} {hint}");
    assert!(!case.path("run").exists());
}

/// The record has the method that `auto` chose, so that the same is done again with any memory. What fits depends on what the
/// process holds, which other tests share here; the tests of the command say what is chosen.
#[test]
fn what_auto_chose_is_recorded() {
    let case = Case::new(IRIS);
    let open = |job: &UncertaintyJob, memory: usize| {
        let context = Context::new().with_memory(memory);
        job.open(&Destination::new(case.path("run")), Opening { inputs: &Inputs::none(), context: &context })
    };
    let error = open(&case.job(), 1 << 20).expect_err("too little");
    assert!(error.code() == "memory" && error.message().contains("last-layer-diag"), "{error}");
    // With chosen parameters there is no posterior of the last layer.
    let chosen = UncertaintyJob { params: vec!["*".to_owned()], ..case.job() };
    let error = open(&chosen, 1 << 20).expect_err("too little");
    assert!(error.message().contains("‹method› diag"), "{error}");
    let outcome = open(&case.job(), 16 << 30).and_then(|opened| opened.run(&Context::new())).expect("runs");
    assert_eq!(outcome.findings.method, "full");
    let record = std::fs::read_to_string(case.path("run/run.json")).expect("a record").replace(' ', "");
    assert!(record.contains(r#""method":"full""#), "{record}");
    let replayed = replay(&case.path("run"), &Context::new()).expect("runs");
    assert!(replayed.is_same(), "{replayed:?}");
}

#[test]
fn a_run_that_is_called_off_leaves_nothing() {
    let case = Case::new(IRIS);
    for method in ["kron", "sketch", "last-layer-full", "last-layer-diag"] {
        let context = Context::new();
        let job = UncertaintyJob { method: method.parse::<PosteriorMethod>().expect(method), ..case.job() };
        let opening = Opening { inputs: &Inputs::none(), context: &context };
        let opened = job.open(&Destination::new(case.path("run")), opening).expect("opens");
        context.cancel();
        let error = opened.run(&context).expect_err("called off");
        assert!(error.is_interrupted() && !error.hints().is_empty(), "{error:?}");
        assert!(!case.path("run").exists());
    }
}
