//! Kernels of small networks beside each other.

use mercer::data::{Existing, write_npy};
use mercer::job::compare::{CompareFindings, NetworkFindings};
use mercer::job::train::TrainingSpec;
use mercer::job::{CompareJob, Destination, Job, Opened};
use mercer::linalg::symmetric_eigen;
use mercer::prelude::{Context, Mlp, Network, Recipe};
use mercer::spec::{DataRef, DataSpec, Inputs, Opening};
use ndarray::linalg::kron;
use ndarray::{Array1, Array2, Array4, Axis, concatenate};
use std::path::Path;

const TOML: &str =
    "[mlp]\ninputs = [3]\nwidths = [8, 8]\noutputs = 2\ninitialisation = \"ntk\"\nactivation = \"tanh\"\n";

/// Points, their classes by a plane, a network in a file and a description.
fn case() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name);
    let point = |row: usize, column: usize| ((row * 7 + column * 13) as f64 * 0.37).sin() + 0.2 * column as f64;
    for (name, labels, first, n) in [("x.npy", "y.npy", 0, 12), ("t.npy", "l.npy", 12, 7)] {
        let x = Array2::from_shape_fn((n, 3), |(row, column)| point(first + row, column));
        let y = Array1::from_iter(x.rows().into_iter().map(|row| i64::from(row[0] + row[1] > 0.3)));
        write_npy(&path(name), &x, Existing::Refuse).expect("writes");
        write_npy(&path(labels), &y, Existing::Refuse).expect("writes");
    }
    let network = Mlp::new(3, &[40], 2).build(4).expect("builds");
    std::fs::write(path("net.onnx"), network.to_onnx_bytes().expect("bytes")).expect("writes");
    std::fs::write(path("net.toml"), TOML).expect("writes");
    folder
}

fn job(folder: &Path, kernels: &[&str]) -> CompareJob {
    let data = |name: &str| DataRef::from(folder.join(name).display().to_string());
    CompareJob {
        kernels: kernels.iter().map(|&kernel| kernel.to_owned()).collect(),
        data: DataSpec { data: vec![data("x.npy")], labels: Some(data("y.npy")), ..DataSpec::default() },
        test: vec![data("t.npy")],
        test_labels: Some(data("l.npy")),
        ..CompareJob::default()
    }
}

fn of_network(folder: &Path, kernels: &[&str]) -> CompareJob {
    CompareJob { net: Some(folder.join("net.onnx")), ..job(folder, kernels) }
}

fn described(folder: &Path, kernels: &[&str]) -> CompareJob {
    CompareJob { arch: Some(folder.join("net.toml")), ..job(folder, kernels) }
}

fn run(job: &CompareJob) -> Result<CompareFindings, mercer::Error> {
    let (context, inputs) = (Context::new(), Inputs::none());
    let opened = job.open(&Destination::default(), Opening { inputs: &inputs, context: &context })?;
    Ok(opened.run(&context)?.findings)
}

fn read(folder: &Path, name: &str) -> Array2<f64> {
    let source: mercer::data::Source = folder.join(name).display().to_string().parse().expect("a file");
    source.open().and_then(|set| set.read::<f64>()).expect("reads").into_dimensionality().expect("rows")
}

/// Everything, written out with full matrices and another solver.
#[test]
fn findings_are_those_of_the_matrices_written_out() {
    let folder = case();
    let found = run(&of_network(folder.path(), &["full", "pseudo", "trace"])).expect("compares");
    let network = Network::from_onnx(folder.path().join("net.onnx")).expect("opens");
    let (x, t) = (read(folder.path(), "x.npy"), read(folder.path(), "t.npy"));
    let all = concatenate![Axis(0), x, t];
    let [full, pseudo, trace] = ["full", "pseudo", "trace"].map(|kernel| {
        let recipe: Recipe = kernel.parse().expect("a kernel");
        let built = recipe.build::<f64>(Some(&network), &[vec![3]]).expect("builds").kernel;
        let values: Vec<f64> = all.iter().copied().collect();
        let block = built.prepare(&[&values], 19).expect("prepares");
        let side = 19 * built.per_sample();
        let mut tile = vec![0.0; side * side];
        built.contract(&block, &block, &mut tile);
        Array2::from_shape_vec((side, side), tile).expect("square")
    });
    let eye = Array2::<f64>::eye(2);
    let wide = [full, kron(&pseudo, &eye), kron(&(trace / 2.0), &eye)];
    let part = |matrix: &Array2<f64>, rows: std::ops::Range<usize>| matrix.slice(ndarray::s![rows, ..24]).to_owned();
    let norm = |matrix: &Array2<f64>| matrix.iter().map(|value| value * value).sum::<f64>().sqrt();
    let predict = |inputs: &Array2<f64>| {
        let values: Vec<f64> = inputs.iter().copied().collect();
        let found = network.predict(&[(&values, &[3])], inputs.nrows(), None, None).expect("runs").values;
        Array2::from_shape_vec((inputs.nrows() * 2, 1), found).expect("a column")
    };
    let labels = |name: &str| -> Vec<usize> {
        let source: mercer::data::Source = folder.path().join(name).display().to_string().parse().expect("a file");
        source.open().and_then(|set| set.read::<f64>()).expect("reads").iter().map(|&label| label as usize).collect()
    };
    let (own, test) = (labels("y.npy"), labels("l.npy"));
    let targets = Array2::from_shape_fn((24, 1), |(row, _)| f64::from(u8::from(own[row / 2] == row % 2)));
    let linearised = wide.each_ref().map(|matrix| {
        let eigen = symmetric_eigen(part(matrix, 0..24).view()).expect("decomposes");
        let inverse = eigen.vectors.dot(&Array2::from_diag(&eigen.values.mapv(f64::recip))).dot(&eigen.vectors.t());
        predict(&t) + part(matrix, 24..38).dot(&inverse).dot(&(&targets - &predict(&x)))
    });
    let accuracy = |outputs: &Array2<f64>| {
        let right = (0..7).filter(|&at| usize::from(outputs[(2 * at + 1, 0)] > outputs[(2 * at, 0)]) == test[at]);
        right.count() as f64 / 7.0
    };
    let near = |what: &str, found: f64, expected: f64, tolerance: f64| {
        assert!((found - expected).abs() <= tolerance * (1.0 + expected.abs()), "{what}: {found} {expected}");
    };
    let mut pairs = found.pairs.iter();
    for a in 0..3 {
        for b in a + 1..3 {
            let pair = pairs.next().expect("three pairs");
            let (first, second) = (part(&wide[a], 0..24), part(&wide[b], 0..24));
            near("distance", pair.likeness.frobenius, norm(&(&first - &second)) / norm(&first), 1e-9);
            let [own, other] =
                [&first, &second].map(|matrix| symmetric_eigen(matrix.view()).expect("decomposes").values);
            near("largest", pair.lambda_max.expect("one"), (own[0] - other[0]).abs() / own[0], 1e-9);
            near("smallest", pair.lambda_min.expect("one"), (own[23] - other[23]).abs() / own[23], 1e-6);
            let condition = |values: &Array1<f64>| values[0] / values[23];
            let expected = (condition(&own) - condition(&other)).abs() / condition(&own);
            near("condition", pair.condition.expect("one"), expected, 1e-6);
            near(
                "predictions",
                pair.predictions.expect("ones"),
                norm(&(&linearised[a] - &linearised[b])) / norm(&linearised[a]),
                1e-5,
            );
            assert_eq!(
                (pair.accuracy_a, pair.accuracy_b),
                (Some(accuracy(&linearised[a])), Some(accuracy(&linearised[b])))
            );
        }
    }
    // The trace kernel over the outputs is the mean of the diagonals: the nearest scalar kernel.
    let mass = found.matrices[0].mass.expect("a matrix-valued kernel");
    near("least distance", mass.least_distance.expect("one"), found.pairs[1].likeness.frobenius, 1e-9);
    assert_eq!(found.matrices.iter().map(|one| one.factor).collect::<Vec<_>>(), [1.0, 1.0, 0.5]);
    assert!(found.sentences[0].contains("stand in for full"), "{:?}", found.sentences);
}

/// At initialisation the pseudo-NTK comes nearer to the NTK as the network becomes wider.
#[test]
fn agreement_grows_with_the_width() {
    let folder = case();
    let widths = vec![1.0, 32.0];
    let found =
        run(&CompareJob { widths, seeds: Some(3), ..described(folder.path(), &["full", "pseudo"]) }).expect("compares");
    assert_eq!(found.networks.len(), 6);
    let mean = |width: f64, value: fn(&NetworkFindings) -> f64| {
        found.networks.iter().filter(|one| one.width == Some(width)).map(value).sum::<f64>() / 3.0
    };
    let distance = |one: &NetworkFindings| one.pairs[0].likeness.frobenius;
    let off = |one: &NetworkFindings| one.matrices[0].mass.and_then(|mass| mass.ratio).expect("a mass");
    assert!(mean(32.0, distance) < 0.5 * mean(1.0, distance), "{}", mean(32.0, distance));
    assert!(mean(32.0, off) < 0.5 * mean(1.0, off), "{}", mean(32.0, off));
    let seeds: Vec<Option<u64>> = found.networks.iter().map(|one| one.seed).collect();
    assert_eq!(seeds, [0, 1, 2, 0, 1, 2].map(Some));
    assert!(found.networks[5].n_params > 500 * found.networks[0].n_params / 2);
    // The last network is the one of the summary.
    assert_eq!(found.pairs[0].likeness, found.networks[5].pairs[0].likeness);
    assert!(found.sentences.iter().any(|text| text.contains("From width × 1 to × 32") && text.contains("falls")));
}

/// Training happens inside the job. Its first checkpoint is the initial network.
#[test]
fn networks_are_trained_and_followed() {
    let folder = case();
    let training = TrainingSpec { checkpoint_at: vec![0, 60], learning_rate: Some(0.05), ..TrainingSpec::default() };
    let job = CompareJob { training, ..described(folder.path(), &["full", "pseudo"]) };
    let found = run(&job).expect("compares");
    let [start, end] = &found.networks[..] else { panic!("two epochs") };
    assert_eq!((start.epoch, end.epoch), (Some(0), Some(60)));
    assert!(end.accuracy > start.accuracy && end.accuracy == Some(1.0), "{:?} {:?}", start.accuracy, end.accuracy);
    let fresh = run(&described(folder.path(), &["full", "pseudo"])).expect("compares");
    let close = (fresh.pairs[0].likeness.frobenius - start.pairs[0].likeness.frobenius).abs();
    assert!(close < 1e-6, "weights are kept in the precision of a file: {close}");
    let again = run(&job).expect("compares");
    assert_eq!(again.pairs[0].likeness, found.pairs[0].likeness);
}

/// On the circle, the kernel of a wide network is near its limit, which is computed once.
#[test]
fn wide_networks_are_near_their_limit_on_the_circle() {
    let folder = case();
    let angles: Vec<f64> = (0..16).map(|at| f64::from(at) * 22.5 - 170.0).collect();
    let circle = Array2::from_shape_fn((16, 2), |(row, column)| {
        let (sin, cos) = angles[row].to_radians().sin_cos();
        if column == 0 { cos } else { sin }
    });
    write_npy(&folder.path().join("circle.npy"), &circle, Existing::Refuse).expect("writes");
    let toml = "[mlp]\ninputs = [2]\nwidths = [16, 16]\noutputs = 1\ninitialisation = \"ntk\"\n";
    std::fs::write(folder.path().join("plane.toml"), toml).expect("writes");
    let data = DataRef::from(folder.path().join("circle.npy").display().to_string());
    let job = CompareJob {
        arch: Some(folder.path().join("plane.toml")),
        kernels: vec!["ntk-limit".to_owned(), "trace".to_owned(), "rbf(lengthscale=1)".to_owned()],
        widths: vec![1.0, 40.0],
        seeds: Some(2),
        data: DataSpec { data: vec![data], ..DataSpec::default() },
        ..CompareJob::default()
    };
    let found = run(&job).expect("compares");
    for (found, expected) in found.angles.as_ref().expect("a circle").iter().zip(&angles) {
        assert!((found - expected).abs() < 1e-9);
    }
    let distance = |at: usize| found.networks[at].pairs[0].likeness.frobenius;
    assert!(distance(2).max(distance(3)) < distance(0).min(distance(1)), "{} {}", distance(2), distance(0));
    assert!(distance(2) < 0.15, "{}", distance(2));
    let row = |at: usize, kernel: usize| found.networks[at].matrices[kernel].row.as_ref().expect("a row");
    assert_eq!(row(0, 0), row(3, 0), "the limit does not depend on the weights");
    assert_ne!(row(0, 1), row(3, 1));
    assert!((row(0, 2)[0] - 1.0).abs() < 1e-12, "x₀ with itself");
    assert_eq!(found.pairs[0].predictions, None);
}

#[test]
fn bad_comparisons_are_refused() {
    let folder = case();
    let path = folder.path();
    let base = || of_network(path, &["full", "pseudo"]);
    let file = |name: &str| path.join(name).display().to_string();
    write_npy(&path.join("one.npy"), &Array2::<f64>::ones((1, 3)), Existing::Refuse).expect("writes");
    write_npy(&path.join("small.npy"), &Array2::<f64>::eye(5), Existing::Refuse).expect("writes");
    write_npy(&path.join("blocks.npy"), &Array4::<f64>::zeros((12, 3, 12, 3)), Existing::Refuse).expect("writes");
    Mlp::new(3, &[7], 2).build(1).expect("builds").save_safetensors(path.join("other.safetensors")).expect("writes");
    std::fs::write(path.join("linear.toml"), "[mlp]\ninputs = [3]\noutputs = 2\n").expect("writes");
    let no_test = |job: CompareJob| CompareJob { test: Vec::new(), test_labels: None, ..job };
    let unlabelled = |job: CompareJob| CompareJob { data: DataSpec { labels: None, ..job.data.clone() }, ..job };
    let one = DataSpec { data: vec![file("one.npy").into()], ..DataSpec::default() };
    for (job, words) in [
        (CompareJob { kernels: vec!["full".to_owned()], ..base() }, "nothing to compare with"),
        (CompareJob { grams: vec![file("small.npy")], ..base() }, "is of 12 samples, but"),
        (CompareJob { data: one, ..no_test(base()) }, "1 samples are too few"),
        (unlabelled(base()), "need the labels"),
        (no_test(base()), "‹test›"),
        (CompareJob { widths: vec![2.0], ..base() }, "described network"),
        (CompareJob { widths: vec![0.0], ..described(path, &["full", "pseudo"]) }, "above 0"),
        (
            CompareJob {
                arch: Some(path.join("linear.toml")),
                widths: vec![2.0],
                ..described(path, &["full", "trace"])
            },
            "no hidden layer",
        ),
        (CompareJob { checkpoints: vec![path.join("other.safetensors")], ..base() }, "other.safetensors"),
        (of_network(path, &["full", "rfb()"]), "rfb"),
        (CompareJob { grams: vec![file("blocks.npy")], ..base() }, "blocks.npy has 3"),
        (CompareJob { net: None, ..base() }, "a linearised network"),
        (CompareJob { ridge: -1.0, ..base() }, "‹ridge›"),
        (CompareJob { test_labels: Some(file("y.npy").into()), ..base() }, "y.npy has 12 labels"),
    ] {
        let error = run(&job).expect_err(words);
        assert!(format!("{error} {:?}", error.hints()).contains(words), "{words}: {error}");
    }
    // Too little memory is known before the work.
    let (context, inputs) = (Context::new().with_memory(1 << 10), Inputs::none());
    let opened = base().open(&Destination::default(), Opening { inputs: &inputs, context: &context });
    assert_eq!(opened.expect_err("too little").code(), "memory");
}

/// The smallest eigenvalue of a singular matrix is rounding, and nothing is relative to it.
#[test]
fn nothing_is_relative_to_rounding() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name);
    let points = Array2::from_shape_fn((8, 3), |(i, j)| ((i * 7 + j * 5) % 11) as f64 / 11.0);
    let singular = points.dot(&points.t());
    write_npy(&path("singular.npy"), &singular, Existing::Refuse).expect("writes");
    write_npy(&path("regular.npy"), &(&singular + &Array2::<f64>::eye(8)), Existing::Refuse).expect("writes");
    let compared = |first: &str, second: &str| {
        let grams = [first, second].map(|name| path(name).display().to_string()).to_vec();
        run(&CompareJob { grams, ..CompareJob::default() }).expect("compares").pairs[0].lambda_min
    };
    assert_eq!(compared("singular.npy", "regular.npy"), None);
    assert!((compared("regular.npy", "singular.npy").expect("a difference") - 1.0).abs() < 1e-9);
}
