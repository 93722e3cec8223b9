//! Explanations and audits of a small network on the embedded digits.

mod machines;
mod perturbed;
mod sanity;
mod stores;

use mercer::data::{Classes, Dataset, Existing, Source, digits, write_npy};
use mercer::job::audit::AuditJob;
use mercer::job::explain::{ClassChoice, ExplainFindings, FitTo, SurrogateMachine, SurrogateSpec};
use mercer::job::{Destination, ExplainJob, Job, Opened, Outcome, replay};
use mercer::learn::surrogate::PenaltyNorm;
use mercer::learn::{KernelMachine, metrics};
use mercer::prelude::{Context, Mlp, Network, TrainingSpec};
use mercer::spec::{DataRef, DataSpec, Inputs, Opening, Precision};
use ndarray::{Array1, Array2, Array3, ArrayD, Axis, Ix2, Ix3};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

const N_TRAIN: usize = 150;
const N_TEST: usize = 40;
const N_CLASSES: usize = 4;

/// A folder with a trained network and its data, made once.
struct Case {
    folder: tempfile::TempDir,
    labels: Vec<usize>,
    test_labels: Vec<usize>,
}

fn case() -> &'static Case {
    static CASE: OnceLock<Case> = OnceLock::new();
    CASE.get_or_init(|| Case::new(N_CLASSES))
}

impl Case {
    /// Digits of the first classes. The network of two classes has one output.
    fn new(n_classes: usize) -> Self {
        let (images, labels) = some_digits(n_classes);
        let (train, test) = (images.slice(ndarray::s![..N_TRAIN, ..]), images.slice(ndarray::s![N_TRAIN.., ..]));
        let folder = tempfile::tempdir().expect("a folder");
        let path = |name: &str| folder.path().join(name);
        let numbers = |labels: &[usize]| Array1::from_iter(labels.iter().map(|&label| label as i64));
        write_npy(&path("x.npy"), &train, Existing::Refuse).expect("writes");
        write_npy(&path("t.npy"), &test, Existing::Refuse).expect("writes");
        write_npy(&path("y.npy"), &numbers(&labels[..N_TRAIN]), Existing::Refuse).expect("writes");
        write_npy(&path("l.npy"), &numbers(&labels[N_TRAIN..]), Existing::Refuse).expect("writes");
        let n_outputs = if n_classes == 2 { 1 } else { n_classes };
        let mut network = Mlp::new(64, &[16, 12], n_outputs).build(1).expect("builds");
        let classes = Classes::new(labels[..N_TRAIN].to_vec(), n_classes).expect("classes");
        let (epochs, batch) = (NonZeroUsize::new(15).expect("15"), NonZeroUsize::new(32));
        let how = TrainingSpec { learning_rate: Some(0.01), epochs, batch, ..TrainingSpec::default() };
        mercer::train(&mut network, &train.to_owned(), &classes, &how).expect("trains");
        std::fs::write(path("net.onnx"), network.to_onnx_bytes().expect("bytes")).expect("writes");
        Self { labels: labels[..N_TRAIN].to_vec(), test_labels: labels[N_TRAIN..].to_vec(), folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn data(&self, name: &str) -> DataRef {
        self.path(name).display().to_string().into()
    }

    fn train(&self) -> DataSpec {
        DataSpec { data: vec![self.data("x.npy")], labels: Some(self.data("y.npy")), ..DataSpec::default() }
    }

    fn job(&self) -> ExplainJob {
        let surrogate = SurrogateSpec { penalty: vec![0.1], ..SurrogateSpec::default() };
        let job = ExplainJob::new(self.path("net.onnx"), self.train(), vec![self.data("t.npy")]);
        let job = ExplainJob { surrogate, rows: vec![3, 0], precision: Precision::F64, ..job };
        ExplainJob { test_labels: Some(self.data("l.npy")), ..job }
    }

    fn audit(&self) -> AuditJob {
        let surrogate = SurrogateSpec { penalty: vec![1.0], ..SurrogateSpec::default() };
        AuditJob { surrogate, precision: Precision::F64, ..AuditJob::new(self.path("net.onnx"), self.train()) }
    }
}

/// Digits of the first classes as rows of numbers from 0 to 1.
fn some_digits(n_classes: usize) -> (Array2<f64>, Vec<usize>) {
    let (train, _) = digits::split().expect("digits");
    let all = train.classes.indices();
    let rows: Vec<usize> = (0..all.len()).filter(|&row| all[row] < n_classes).take(N_TRAIN + N_TEST).collect();
    let images = train.images.select::<f64>(&rows).expect("reads");
    let images = images.into_shape_with_order((rows.len(), 64)).expect("rows");
    (images / 16.0, rows.iter().map(|&row| all[row]).collect())
}

fn run<J: Job>(
    job: &J,
    path: &Path,
    context: &Context,
) -> Result<Outcome<<J::Opened as Opened>::Findings>, mercer::Error> {
    let inputs = Inputs::none();
    job.open(&Destination::new(path), Opening { inputs: &inputs, context })?.run(context)
}

fn explained(job: &ExplainJob, path: &Path) -> ExplainFindings {
    run(job, path, &Context::new()).expect("explains").findings
}

fn read(folder: &Path, name: &str) -> ArrayD<f64> {
    Source::new(folder.join(name), None).open().and_then(|set| set.read()).expect(name)
}

/// The cells of a table without quotes.
fn table(path: &Path) -> Vec<Vec<String>> {
    let text = std::fs::read_to_string(path).expect("a table");
    text.lines().map(|line| line.split(',').map(str::to_owned).collect()).collect()
}

#[test]
fn attributions_of_every_machine_and_kernel_sum_to_its_scores() {
    let case = case();
    let place = tempfile::tempdir().expect("a folder");
    let kernels = [
        "normalised(trace)",
        "trace",
        "ck",
        "normalised(ck) + 0.5*normalised(pseudo)",
        "normalised(trace(sketch=sjlt:64))",
        "rbf(lengthscale=3)",
    ];
    let machines = [
        (SurrogateMachine::Glm, PenaltyNorm::Weights),
        (SurrogateMachine::Glm, PenaltyNorm::Function),
        (SurrogateMachine::Ridge, PenaltyNorm::Function),
        (SurrogateMachine::Sgd, PenaltyNorm::Weights),
        (SurrogateMachine::Neighbours, PenaltyNorm::Weights),
    ];
    for (at, kernel) in kernels.into_iter().enumerate() {
        for (machine, norm) in machines {
            for to in [FitTo::Labels, FitTo::Network] {
                let penalty = if machine == SurrogateMachine::Neighbours { vec![] } else { vec![0.1] };
                let surrogate = SurrogateSpec { machine, norm, to, penalty, ..SurrogateSpec::default() };
                let job = ExplainJob { kernels: vec![kernel.to_owned()], surrogate, top: 3, ..case.job() };
                let folder = place.path().join(format!("{at} {machine} {norm} {to}"));
                let found = explained(&job, &folder);
                assert_eq!((found.surrogates[0].machine, found.surrogates[0].kernel.as_str()), (machine, kernel));
                let scores = read(&folder, "scores.npy").into_dimensionality::<Ix2>().expect("a matrix");
                assert_eq!(scores.dim(), (N_TEST, N_CLASSES));
                let parts = read(&folder, "attribution.npy").into_dimensionality::<Ix3>().expect("three axes");
                assert_eq!(parts.dim(), (2, N_TRAIN, N_CLASSES));
                for (own, row) in parts.outer_iter().zip([3, 0]) {
                    for (sum, score) in own.sum_axis(Axis(0)).iter().zip(scores.row(row)) {
                        let close = (sum - score).abs() < 1e-10 * (1.0 + score.abs());
                        assert!(close, "{kernel} {machine} {norm} {to}: {sum} {score}");
                    }
                }
                // The saved machine gives the same scores from the samples.
                let machine = KernelMachine::load(&folder.join("surrogate")).expect("loads");
                let test = [Source::new(case.path("t.npy"), None).open().expect("opens")];
                let again = machine.predict(&test, &Context::new()).expect("predicts");
                for (a, b) in again.iter().zip(&scores) {
                    assert!((a - b).abs() < 1e-8 * (1.0 + b.abs()), "{kernel} {norm} {to}: {a} {b}");
                }
            }
        }
    }
}

#[test]
fn the_tables_hold_what_they_promise() {
    let case = case();
    let place = tempfile::tempdir().expect("a folder");
    let folder = place.path().join("why");
    let found = explained(&ExplainJob { top: 4, ..case.job() }, &folder);
    let parts: Array3<f64> = read(&folder, "attribution.npy").into_dimensionality().expect("three axes");
    let top = table(&folder.join("top.csv"));
    assert_eq!(top[0], ["test", "class", "rank", "train", "attribution", "kernel"]);
    assert_eq!(top.len(), 1 + N_TEST * N_CLASSES * 8);
    let of = |test: &str, class: &str| {
        let rows = top.iter().filter(move |row| row[0] == test && row[1] == class);
        rows.map(|row| {
            (row[2].parse::<i64>().unwrap(), row[3].parse::<usize>().unwrap(), row[4].parse::<f64>().unwrap())
        })
        .collect::<Vec<_>>()
    };
    for (slot, test) in [(0, "3"), (1, "0")] {
        for class in 0..N_CLASSES {
            let own = parts.index_axis(Axis(0), slot).index_axis_move(Axis(1), class);
            let mut order: Vec<usize> = (0..N_TRAIN).collect();
            order.sort_by(|&a, &b| own[b].total_cmp(&own[a]));
            let listed = of(test, &class.to_string());
            assert_eq!(listed.iter().map(|row| row.0).collect::<Vec<_>>(), [1, 2, 3, 4, -1, -2, -3, -4]);
            for (rank, train, attribution) in listed {
                let expected = if rank > 0 { order[rank as usize - 1] } else { order[N_TRAIN - (-rank) as usize] };
                assert_eq!((train, attribution), (expected, own[expected]));
            }
        }
    }
    // Means per class of the training samples.
    let means: Array3<f64> = read(&folder, "means.npy").into_dimensionality().expect("three axes");
    for group in 0..N_CLASSES {
        let members: Vec<usize> = (0..N_TRAIN).filter(|&row| case.labels[row] == group).collect();
        for class in 0..N_CLASSES {
            let mean = members.iter().map(|&row| parts[(0, row, class)]).sum::<f64>() / members.len() as f64;
            assert!((means[(3, class, group)] - mean).abs() < 1e-12);
        }
    }
    // τ and accuracy by hand.
    let (network, scores) = (read(&folder, "network_scores.npy"), read(&folder, "scores.npy"));
    let odds = |scores: &ArrayD<f64>| {
        let scores: Array2<f64> = scores.clone().into_dimensionality().expect("a matrix");
        mercer::lens::log_odds(scores.view(), &case.test_labels).expect("log-odds")
    };
    let tau = metrics::kendall_tau(&odds(&network), &odds(&scores)).expect("τ");
    assert_eq!(found.surrogates[0].faithfulness.tau, Some(tau));
    assert!(tau > 0.5 && found.network_accuracy > Some(0.7), "{tau} {:?}", found.network_accuracy);
    assert_eq!(table(&folder.join("local.csv")).len(), 1 + N_TEST);
    for figure in ["faithfulness.svg", "means.svg", "boxes.svg"] {
        assert!(std::fs::read_to_string(folder.join(figure)).expect(figure).starts_with("<svg"), "{figure}");
    }
    assert!(replay(&folder, &Context::new()).expect("replays").is_same());
}

#[test]
fn results_are_the_same_bits_for_any_threads() {
    let case = case();
    let place = tempfile::tempdir().expect("a folder");
    for (at, kernel) in ["normalised(trace)", "normalised(trace(sketch=sjlt:128, total=true))"].into_iter().enumerate()
    {
        let job = ExplainJob { kernels: vec![kernel.to_owned()], rows: Vec::new(), all: true, ..case.job() };
        let files = |context: &Context, name: &str| {
            let folder = place.path().join(format!("{name}{at}"));
            run(&job, &folder, context).expect("explains");
            ["top.csv", "scores.npy", "attribution.npy", "distribution.npy", "local.csv", "result.json"]
                .map(|name| std::fs::read(folder.join(name)).expect(name))
        };
        let one = files(&Context::new().with_threads(1).expect("a thread"), "one");
        assert!(one == files(&Context::new().with_threads(2).expect("two threads"), "two"));
    }
}

#[test]
fn new_samples_are_explained_by_an_earlier_explanation() {
    let case = Case::new(N_CLASSES);
    let place = tempfile::tempdir().expect("a folder");
    for (at, kernel) in ["normalised(trace)", "normalised(trace(sketch=sjlt:128))"].into_iter().enumerate() {
        let (first, moved, second) = (
            place.path().join(format!("a{at}")),
            place.path().join(format!("b{at}")),
            place.path().join(format!("c{at}")),
        );
        explained(&ExplainJob { kernels: vec![kernel.to_owned()], ..case.job() }, &first);
        std::fs::rename(&first, &moved).expect("moves");
        let job = ExplainJob::again(&moved, vec![case.data("t.npy")]);
        let job = ExplainJob { test_labels: Some(case.data("l.npy")), precision: Precision::F64, ..job };
        let found = explained(&ExplainJob { rows: vec![3, 0], ..job.clone() }, &second);
        for name in ["scores.npy", "attribution.npy", "top.csv", "local.csv"] {
            assert!(std::fs::read(moved.join(name)).unwrap() == std::fs::read(second.join(name)).unwrap(), "{name}");
        }
        assert_eq!(found.surrogates[0].penalty, Some(0.1));
        // Features of single precision are not those of the index.
        if at == 1 {
            let single = ExplainJob { precision: Precision::F32, ..job.clone() };
            let error = run(&single, &place.path().join("d"), &Context::new()).expect_err("another precision");
            assert!(error.to_string().contains("another network or precision"), "{error}");
        }
        let one = ExplainJob { test_labels: None, test: vec![case.data("one.npy")], ..job };
        let row = read(case.folder.path(), "t.npy").slice_axis(Axis(0), (0..1).into()).to_owned();
        write_npy(&case.path("one.npy"), &row, Existing::Replace).expect("writes");
        let found = explained(&one, &place.path().join(format!("one{at}")));
        assert_eq!((found.surrogates[0].faithfulness.tau, found.compared_class.as_str()), (None, "predicted"));
    }
}

#[test]
fn the_last_layer_fitted_to_the_network_is_perfect_and_the_text_says_why() {
    let case = case();
    let place = tempfile::tempdir().expect("a folder");
    let surrogate = SurrogateSpec {
        machine: SurrogateMachine::Ridge,
        to: FitTo::Network,
        penalty: vec![1e-8],
        ..SurrogateSpec::default()
    };
    let kernels = vec!["normalised(trace)".to_owned(), "ck".to_owned()];
    let found = explained(&ExplainJob { kernels, surrogate, ..case.job() }, &place.path().join("why"));
    assert_eq!(found.surrogates[0].kernel, "ck");
    assert!(found.surrogates[0].faithfulness.tau > Some(0.99), "{:?}", found.surrogates[0].faithfulness);
    let text = found.recommendation.join(" ");
    assert!(text.contains("by construction") && text.starts_with("Use normalised(trace)"), "{text}");
    assert_eq!(found.summary.kernel, "normalised(trace)");
}

#[test]
fn layers_add_up_to_the_score_without_its_bias() {
    let case = case();
    let place = tempfile::tempdir().expect("a folder");
    let folder = place.path().join("why");
    let found = explained(&ExplainJob { by_layer: true, ..case.job() }, &folder);
    let layers: Array2<f64> = read(&folder, "layers.npy").into_dimensionality().expect("a matrix");
    let (scores, network) = (read(&folder, "scores.npy"), read(&folder, "network_scores.npy"));
    let machine = KernelMachine::load(&folder.join("surrogate")).expect("loads");
    let mercer::learn::Machine::LinearClassifier(machine) = machine.machine else { panic!("linear") };
    for (row, own) in layers.outer_iter().enumerate() {
        let class = (0..N_CLASSES).max_by(|&a, &b| network[[row, a]].total_cmp(&network[[row, b]])).expect("a class");
        let expected = scores[[row, class]] - machine.scores().bias()[class];
        assert!((own.sum() - expected).abs() < 1e-9, "{} {expected}", own.sum());
    }
    let shares: f64 = found.summary.layers.expect("layers").iter().map(|layer| layer.share).sum();
    assert!((shares - 1.0).abs() < 1e-9);
}

#[test]
fn a_network_with_one_output_has_two_classes() {
    let case = Case::new(2);
    let place = tempfile::tempdir().expect("a folder");
    let folder = place.path().join("one");
    // At one class for all samples, as in the report's runs of binary networks.
    let class = ClassChoice::Named("1".to_owned());
    let found = explained(&ExplainJob { class, ..case.job() }, &folder);
    assert_eq!(found.classes, ["0", "1"]);
    assert!(found.network_accuracy > Some(0.95) && found.surrogates[0].accuracy > Some(0.95), "{found:?}");
    assert!(found.surrogates[0].faithfulness.tau > Some(0.4), "{:?}", found.surrogates[0].faithfulness);
    // The network's scores are zero and its output.
    let scores = read(&folder, "network_scores.npy");
    let network = Network::from_onnx(case.path("net.onnx")).expect("opens");
    let test: Array2<f64> = read(case.folder.path(), "t.npy").into_dimensionality().expect("a matrix");
    let outputs = mercer::predict(&network, &test).expect("predicts");
    for (row, output) in scores.outer_iter().zip(&outputs) {
        assert_eq!((row[0], row[1]), (0.0, *output));
    }
}

#[test]
fn what_cannot_be_explained_is_refused_with_a_reason() {
    let case = case();
    let place = tempfile::tempdir().expect("a folder");
    let number = std::cell::Cell::new(0);
    let refused = |job: &ExplainJob, expected: &str| {
        number.set(number.get() + 1);
        let folder = place.path().join(format!("refused{}", number.get()));
        let error = run(job, &folder, &Context::new()).expect_err(expected);
        assert!(error.to_string().contains(expected), "{error}\n  instead of {expected}");
        assert!(!folder.join("folder.json").exists());
    };
    let saved = |name: &str, labels: Vec<i64>| {
        write_npy(&case.path(name), &Array1::from_vec(labels), Existing::Replace).expect("writes");
        case.data(name)
    };
    let with_labels = |labels: DataRef| {
        let job = case.job();
        ExplainJob { train: DataSpec { labels: Some(labels), ..job.train.clone() }, ..job }
    };
    let job = case.job();
    refused(&ExplainJob { train: DataSpec { labels: None, ..job.train.clone() }, ..job.clone() }, "`labels`");
    refused(&with_labels(saved("short.npy", vec![0; 10])), "150");
    refused(&with_labels(saved("three.npy", (0..N_TRAIN as i64).map(|row| row % 3).collect())), "class 3");
    refused(&with_labels(saved("single.npy", vec![2; N_TRAIN])), "has no training sample");
    let twice = saved("twice.npy", (0..N_TRAIN as i64).map(|row| row / 2).collect());
    refused(&ExplainJob { ids: Some(twice), ..job.clone() }, "same id");
    refused(&ExplainJob { ids: Some(saved("few.npy", vec![1, 2])), ..job.clone() }, "2 ids for 150 samples");
    refused(&ExplainJob { groups: Some(saved("few.npy", vec![1, 2])), ..job.clone() }, "2 groups for 150");
    refused(&ExplainJob { rows: vec![N_TEST], ..job.clone() }, "counted from 0");
    refused(&ExplainJob { class: ClassChoice::Named("cat".to_owned()), ..job.clone() }, "no such class");
    refused(&ExplainJob { kernels: vec!["full".to_owned()], ..job.clone() }, "matrix per pair");
    refused(&ExplainJob { kernels: vec!["tracé".to_owned()], ..job.clone() }, "column");
    refused(&ExplainJob { test: Vec::new(), ..job.clone() }, "`test`");
    refused(&ExplainJob { from: Some(place.path().to_owned()), ..job.clone() }, "leave `net` out");
    refused(&ExplainJob::again(place.path(), vec![case.data("t.npy")]), "folder");
    let penalty = SurrogateSpec { penalty: vec![-1.0], ..SurrogateSpec::default() };
    refused(&ExplainJob { surrogate: penalty, ..job.clone() }, "positive");
    let layers = ExplainJob { kernels: vec!["ck".to_owned()], by_layer: true, ..job.clone() };
    refused(&layers, "`layers`: ck has no layers");
    // Known before the work: nothing is noted on the way.
    let (context, inputs) = (Context::new(), Inputs::none());
    let opened =
        layers.open(&Destination::new(place.path().join("layers")), Opening { inputs: &inputs, context: &context });
    assert!(opened.is_err());
    let votes = SurrogateSpec { machine: SurrogateMachine::Neighbours, ..SurrogateSpec::default() };
    refused(&ExplainJob { surrogate: votes, by_layer: true, ..job.clone() }, "has no layers");
    let little = Context::new().with_memory(1 << 20);
    let error = run(&job, &place.path().join("little"), &little).expect_err("too little");
    assert_eq!(error.code(), "memory");
}

#[test]
fn flipped_labels_duplicates_and_poison_are_found() {
    let case = Case::new(N_CLASSES);
    let place = tempfile::tempdir().expect("a folder");
    // Every tenth label is wrong, and sample 1 is a copy of sample 0 with another label.
    let mut labels = case.labels.clone();
    let wrong: Vec<usize> = (5..N_TRAIN).step_by(10).collect();
    wrong.iter().for_each(|&row| labels[row] = (labels[row] + 1) % N_CLASSES);
    let mut images: Array2<f64> = read(case.folder.path(), "x.npy").into_dimensionality().expect("a matrix");
    let first = images.row(0).to_owned();
    images.row_mut(1).assign(&first);
    labels[1] = (labels[0] + 1) % N_CLASSES;
    let mut truth = vec![0_i64; N_TRAIN];
    wrong.iter().for_each(|&row| truth[row] = 1);
    write_npy(&case.path("x.npy"), &images, Existing::Replace).expect("writes");
    let numbers = Array1::from_iter(labels.iter().map(|&label| label as i64));
    write_npy(&case.path("y.npy"), &numbers, Existing::Replace).expect("writes");
    write_npy(&case.path("truth.npy"), &Array1::from_vec(truth), Existing::Replace).expect("writes");
    let folder = place.path().join("review");
    let job = AuditJob { truth: Some(case.data("truth.npy")), ..case.audit() };
    let found = run(&job, &folder, &Context::new()).expect("audits").findings;
    assert_eq!(found.measures[0].name, "combined");
    assert!(found.measures[0].measures.auroc > Some(0.95), "{:?}", found.measures[0]);
    assert_eq!((found.duplicates.n_groups, found.duplicates.n_conflicts), (1, 1));
    assert_eq!(found.duplicates.conflicts, [["0", "1"]]);
    // Every sample is listed once, in the order of the scores.
    let text = std::fs::read_to_string(folder.join("review.csv")).expect("a list");
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some("rank,id,label,suggested,score,reason"));
    let cells: Vec<Vec<&str>> = lines.map(|line| line.splitn(6, ',').collect()).collect();
    let mut ids: Vec<usize> = cells.iter().map(|row| row[1].parse().expect("an id")).collect();
    assert!(cells.windows(2).all(|pair| pair[0][4].parse::<f64>().unwrap() >= pair[1][4].parse::<f64>().unwrap()));
    let right = cells.iter().take(wrong.len()).filter(|row| wrong.contains(&row[1].parse().expect("an id")));
    assert!(right.count() >= wrong.len() - 3);
    ids.sort_unstable();
    assert_eq!(ids, (0..N_TRAIN).collect::<Vec<_>>());
    let clean = read(&folder, "clean.npy");
    assert_eq!(clean.len(), N_TRAIN - found.n_suspicious);
    // The wrong samples serve as known poison: a test sample that is one of them is flagged by its copies.
    let copies = images.select(Axis(0), &[wrong[0], wrong[0], 2]);
    write_npy(&case.path("new.npy"), &copies, Existing::Replace).expect("writes");
    let ids = Array1::from_vec(vec![wrong[0] as i64]);
    write_npy(&case.path("poisoned.npy"), &ids, Existing::Replace).expect("writes");
    write_npy(&case.path("answers.npy"), &Array1::from_vec(vec![1_i64, 1, 0]), Existing::Replace).expect("writes");
    let surrogate = SurrogateSpec { neighbours: 1, penalty: vec![1.0], ..SurrogateSpec::default() };
    let job = AuditJob {
        poisoned: Some(case.data("poisoned.npy")),
        test: vec![case.data("new.npy")],
        test_poisoned: Some(case.data("answers.npy")),
        threshold: 1,
        surrogate,
        ..case.audit()
    };
    let found = run(&job, &place.path().join("traced"), &Context::new()).expect("audits").findings;
    let detection = found.forensics.expect("forensics").detection.expect("the truth");
    assert_eq!((detection.precision, detection.recall), (Some(1.0), Some(1.0)));
    assert!(replay(&folder, &Context::new()).expect("replays").is_same());
    // Another truth is another input.
    write_npy(&case.path("truth.npy"), &Array1::<i64>::ones(N_TRAIN), Existing::Replace).expect("writes");
    let changed = replay(&folder, &Context::new()).expect("replays").changed_inputs;
    assert!(changed.len() == 1 && changed[0].contains("‹wrong›"), "{changed:?}");
}

#[test]
fn what_cannot_be_audited_is_refused_with_a_reason() {
    let case = case();
    let place = tempfile::tempdir().expect("a folder");
    let refused = |job: &AuditJob, expected: &str| {
        let error = run(job, &place.path().join("refused"), &Context::new()).expect_err(expected);
        assert!(error.to_string().contains(expected), "{error}\n  instead of {expected}");
    };
    let job = case.audit();
    refused(&AuditJob { threshold: 9, ..job.clone() }, "`threshold`");
    refused(&AuditJob { cut: 2.0, ..job.clone() }, "`cut`");
    refused(&AuditJob { test: vec![case.data("t.npy")], ..job.clone() }, "`poisoned`");
    write_npy(&case.path("far.npy"), &Array1::from_vec(vec![1_i64, 900]), Existing::Replace).expect("writes");
    refused(&AuditJob { truth: Some(case.data("far.npy")), ..job.clone() }, "900");
    // Marks of other samples are not a list of the rows 0 and 1.
    write_npy(&case.path("marks.npy"), &Array1::from_vec(vec![1_i64, 0, 0, 1]), Existing::Replace).expect("writes");
    refused(&AuditJob { truth: Some(case.data("marks.npy")), ..job.clone() }, "listed twice");
    let first = case.labels.iter().position(|&label| label == 2);
    let rare = case
        .labels
        .iter()
        .enumerate()
        .map(|(row, &label)| if label == 2 && Some(row) != first { 1 } else { label as i64 });
    write_npy(&case.path("rare.npy"), &Array1::from_iter(rare), Existing::Replace).expect("writes");
    let train = DataSpec { labels: Some(case.data("rare.npy")), ..job.train.clone() };
    let error =
        run(&AuditJob { train, ..job.clone() }, &place.path().join("refused"), &Context::new()).expect_err("one");
    assert!(!error.hints().is_empty() && error.to_string().contains("cross-validation"), "{error}");
    refused(&AuditJob { train: DataSpec { labels: None, ..job.train.clone() }, ..job.clone() }, "`labels`");
}

/// Data sets are given by value as well.
#[test]
fn arrays_of_a_program_are_explained() {
    let case = case();
    let place = tempfile::tempdir().expect("a folder");
    let array = |name: &str| Dataset::from_array(name, read(case.folder.path(), name).view()).expect("a set");
    let inputs = Inputs::none().with("x", array("x.npy")).with("t", array("t.npy"));
    let job = case.job();
    let train = DataSpec { data: vec![DataRef::given("x")], ..job.train.clone() };
    let job = ExplainJob { train, test: vec![DataRef::given("t")], ..job };
    let context = Context::new();
    let opened = job.open(&Destination::new(place.path().join("why")), Opening { inputs: &inputs, context: &context });
    let found = opened.expect("opens").run(&context).expect("runs").findings;
    let files = explained(&case.job(), &place.path().join("files"));
    assert_eq!(found.surrogates[0].faithfulness, files.surrogates[0].faithfulness);
}

/// In double precision all attributions are written in double precision, too.
#[test]
fn all_attributions_have_the_digits_of_the_job() {
    let (case, place) = (case(), tempfile::tempdir().expect("a folder"));
    for (precision, tolerance) in [(Precision::F64, 1e-10), (Precision::F32, 1e-3)] {
        let folder = place.path().join(precision.to_string());
        explained(&ExplainJob { rows: Vec::new(), all: true, precision, ..case.job() }, &folder);
        let parts: Array3<f64> = read(&folder, "attribution.npy").into_dimensionality().expect("three axes");
        let scores = read(&folder, "scores.npy");
        for (sum, score) in parts.sum_axis(Axis(1)).iter().zip(&scores) {
            assert!((sum - score).abs() < tolerance, "{precision}: {sum} {score}");
        }
    }
}

/// An index belongs to the surrogate that it was made with, and has its own network and kernel values.
#[test]
fn an_index_does_not_go_with_another_surrogate() {
    let (case, place) = (case(), tempfile::tempdir().expect("a folder"));
    let path = |name: &str| place.path().join(name);
    explained(&case.job(), &path("a"));
    let other = SurrogateSpec { penalty: vec![10.0], ..SurrogateSpec::default() };
    explained(&ExplainJob { surrogate: other, ..case.job() }, &path("b"));
    let again = ExplainJob { precision: Precision::F64, ..ExplainJob::again(path("a"), vec![case.data("t.npy")]) };
    explained(&again, &path("c"));
    std::fs::rename(path("a/surrogate"), path("own")).expect("moves");
    std::fs::rename(path("b/surrogate"), path("a/surrogate")).expect("moves");
    let error = run(&again, &path("d"), &Context::new()).expect_err("another surrogate");
    assert!(error.to_string().contains("not the one that its index was made with"), "{error}");
    let parameters = mercer::spec::ParameterSpec { exclude: vec!["*".to_owned()], ..Default::default() };
    let error = run(&ExplainJob { parameters, ..again }, &path("d"), &Context::new()).expect_err("another network");
    assert!(error.to_string().contains("its own network"), "{error}");
}
