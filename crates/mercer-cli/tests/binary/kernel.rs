//! `mercer kernel`: kinds against each other, files against stores, and what is refused.

use crate::folder::{Folder, difference};
use ndarray::{Array2, ArrayD, Axis, Ix4, s};

/// Rounding of single precision over a few thousand terms.
const SINGLE: f64 = 1e-5;

/// Rounding of double precision.
const DOUBLE: f64 = 1e-12;

fn mlp() -> Folder {
    Folder::with(&["mlp.onnx", "mlp.x.npy"])
}

/// `mercer kernel` on the MLP, in double precision, with more arguments; the matrix.
fn matrix(folder: &Folder, arguments: &str) -> ArrayD<f64> {
    let line = format!("kernel --net mlp.onnx --data mlp.x.npy --precision f64 -o out.npy --force {arguments}");
    folder.succeed(&line);
    folder.read("out.npy")
}

#[test]
fn kinds_follow_from_the_full_kernel() {
    let folder = mlp();
    let full = matrix(&folder, "--kernel full").into_dimensionality::<Ix4>().unwrap();
    let (n, c, ..) = full.dim();
    let of = |weights: &[f64]| {
        let pairs = (0..c * c).map(|pq| (pq / c, pq % c));
        pairs.fold(Array2::zeros((n, n)), |sum: Array2<f64>, (p, q)| {
            sum + weights[p] * weights[q] * &full.slice(s![.., p, .., q])
        })
    };
    let one = |index: usize| (0..c).map(|at| if at == index { 1.0 } else { 0.0 }).collect::<Vec<f64>>();
    let trace = (0..c).fold(Array2::zeros((n, n)), |sum: Array2<f64>, at| sum + of(&one(at)));
    let pseudo = of(&vec![1.0; c]) / c as f64;
    let two = (of(&one(0)) + of(&one(2))).into_dyn();
    for (arguments, expected) in [
        ("--kernel trace", trace.clone().into_dyn()),
        ("--kernel pseudo", pseudo.into_dyn()),
        ("--kernel logit(1)", of(&one(1)).into_dyn()),
        ("--kernel pseudo(combine=[1,-1,0.5])", of(&[1.0, -1.0, 0.5]).into_dyn()),
        ("--kernel trace(outputs=[2,0])", two),
        ("--kernel logit(0,outputs=[2])", of(&one(2)).into_dyn()),
    ] {
        let error = difference(&matrix(&folder, arguments), &expected);
        assert!(error < DOUBLE, "{arguments}: {error}");
    }
    let mut cosine = matrix(&folder, "--kernel normalised(trace)");
    let norm = |i: usize| trace[[i, i]].sqrt();
    let expected = Array2::from_shape_fn((n, n), |(i, j)| trace[[i, j]] / norm(i) / norm(j)).into_dyn();
    assert!(difference(&cosine, &expected) < DOUBLE);
    assert!(cosine.clone().into_dimensionality::<ndarray::Ix2>().unwrap().diag().iter().all(|&x| x == 1.0));
    cosine.swap_axes(0, 1);
    assert!(difference(&cosine, &expected) < DOUBLE);
}

/// The kernel of a classifier is that of its logits, which is said; a named output stays what it is.
#[test]
fn a_softmax_at_the_end_is_looked_behind() {
    let folder = Folder::with(&["iris_softmax.onnx"]);
    folder.write_array("x.npy", Array2::from_shape_fn((5, 4), |(i, j)| (i * 3 + j) as f64 / 7.0).view());
    let run = |more: &str| {
        let line = "kernel --net iris_softmax.onnx --data x.npy --precision f64 -o out.npy --force";
        let run = folder.run(&format!("{line} --kernel trace{more}"));
        assert_eq!(run.code, Some(0), "{}", run.err);
        (folder.read("out.npy"), run.err)
    };
    let (default, told) = run("");
    assert!(told.contains("is that of the logits") && told.contains("node=\"probabilities\" in --kernel"), "{told}");
    let logits = told.split('"').nth(1).expect("a name").to_owned();
    let (named, quiet) = run(&format!("(node='{logits}')"));
    assert!(default == named && !quiet.contains("logits"), "{quiet}");
    let (probabilities, quiet) = run("(node='probabilities')");
    assert!(difference(&probabilities, &default) > 0.1 && !quiet.contains("logits"), "{quiet}");
}

#[test]
fn layers_sum_to_the_whole_and_are_named() {
    let folder = mlp();
    let whole = matrix(&folder, "--kernel trace");
    let line = "kernel --net mlp.onnx --data mlp.x.npy --precision f64 --kernel trace --by-layer -o layers.npy";
    let report = folder.json(line);
    let written: serde_json::Value =
        serde_json::from_slice(&std::fs::read(folder.path("layers.json")).unwrap()).unwrap();
    assert_eq!(written["matrices"], report["matrices"]);
    let files: Vec<&str> = report["files"].as_array().unwrap().iter().map(|file| file.as_str().unwrap()).collect();
    assert!(files.len() > 1 && files.len() == report["matrices"].as_array().unwrap().len());
    let sum = files.iter().map(|file| folder.read(file)).reduce(|sum, layer| sum + layer).unwrap();
    assert!(difference(&sum, &whole) < DOUBLE);
    // Dense layers are never turned into gradients.
    let forms: Vec<&str> = report["layers"].as_array().unwrap().iter().map(|l| l["form"].as_str().unwrap()).collect();
    assert!(forms.iter().all(|form| ["factored", "absorbed"].contains(form)), "{forms:?}");
    folder.refuse(line, &["layers.json", "exists already", "--force"]);
}

#[test]
fn parameters_are_chosen_by_name_or_layer() {
    let folder = mlp();
    let whole = matrix(&folder, "--kernel pseudo");
    let first = matrix(&folder, "--kernel pseudo(params='fc1.*')");
    let last = matrix(&folder, "--kernel pseudo(params=['fc2.weight','fc2'])");
    assert!(difference(&(&first + &last), &whole) < DOUBLE);
    folder.refuse(
        "kernel --net mlp.onnx --data mlp.x.npy --kernel pseudo(params='fc3.*') -o no.npy",
        &["fc3.*", "near matches", "fc2"],
    );
}

#[test]
fn two_data_sets() {
    let folder = mlp();
    let whole = matrix(&folder, "--kernel trace");
    let x = folder.read("mlp.x.npy");
    folder.write_array("test.npy", x.slice_axis(Axis(0), (3..7).into()));
    let cross = matrix(&folder, "--kernel trace --against test.npy");
    assert!(difference(&cross, &whole.slice_axis(Axis(1), (3..7).into()).to_owned()) < DOUBLE);
}

#[test]
fn several_inputs_and_tokens() {
    let folder = Folder::with(&["pair.onnx", "pair.left.npy", "pair.right.npy", "tokens.onnx", "tokens.ids.npy"]);
    let pair = "kernel --net pair.onnx --data left=pair.left.npy --data right=pair.right.npy --kernel trace -o out.npy";
    for line in [pair, "kernel --net tokens.onnx --data tokens.ids.npy --kernel trace -o out.npy"] {
        let (single, double) = (format!("{line} --force"), format!("{line} --precision f64 --force"));
        folder.succeed(&single);
        let found = folder.read("out.npy");
        folder.succeed(&double);
        assert!(difference(&found, &folder.read("out.npy")) < SINGLE);
    }
}

/// 700 samples: three blocks, six tiles.
fn many(folder: &Folder) -> &'static str {
    let x = Array2::from_shape_fn((700, 4), |(i, j)| ((i * 31 + j * 17) % 101) as f32 / 50.0 - 1.0);
    folder.write_array("many.npy", x.view());
    "kernel --net mlp.onnx --data many.npy --kernel trace"
}

#[test]
fn a_store_holds_what_a_file_does() {
    let folder = Folder::with(&["mlp.onnx"]);
    let line = many(&folder);
    folder.succeed(&format!("{line} -o file.npy"));
    let report = folder.json(&format!("{line} -o store.zarr"));
    assert_eq!((&report["tiles"], &report["complete"]), (&6.into(), &true.into()));
    let numbers = mercer::kernel::store::Store::open(&folder.path("store.zarr")).unwrap();
    let stored = numbers.read_all::<f32>("kernel").unwrap().mapv(f64::from);
    assert_eq!(stored, folder.read("file.npy"));
    // Two processes with half of the tiles each, and memory for two blocks only.
    let half = folder.json(&format!("{line} -o halves.zarr --tiles 0..3 --memory 150MiB"));
    assert_eq!((&half["tiles_done"], &half["complete"]), (&3.into(), &false.into()));
    assert!(half["measurements"]["peak_bytes"].as_f64().unwrap() < 1.05 * 150.0 * 1048576.0);
    let other = folder.json(&format!("{line} -o halves.zarr --tiles 3..6 --resume"));
    assert_eq!(other["complete"], true);
    let halves = mercer::kernel::store::Store::open(&folder.path("halves.zarr")).unwrap();
    assert_eq!(halves.read_all::<f32>("kernel").unwrap().mapv(f64::from), stored);
    assert!(folder.succeed("info halves.zarr").contains("6 of 6 done"));
}

#[test]
fn a_store_is_never_continued_with_other_inputs() {
    let folder = Folder::with(&["mlp.onnx", "cnn.onnx", "cnn.image.npy"]);
    let line = many(&folder);
    folder.succeed(&format!("{line} -o store.zarr --tiles 0..2"));
    let go_on = |changed: &str| format!("{changed} -o store.zarr --resume");
    folder.refuse(&format!("{line} -o store.zarr"), &["exists already", "--resume", "--force"]);
    folder.refuse(&go_on(&line.replace("trace", "pseudo")), &["kind", "trace", "pseudo"]);
    folder.refuse(&go_on(&format!("{line} --precision f64")), &["precision", "f32", "f64"]);
    folder.refuse(&go_on(&format!("{line} --scale 2")), &["data"]);
    folder.refuse(&go_on("kernel --net cnn.onnx --data cnn.image.npy --kernel trace"), &["network", "data"]);
    folder.refuse(&go_on(&line.replace("trace", "trace(params='*.weight')")), &["parameters"]);
    folder.succeed(&go_on(line));
    folder.succeed(&format!("{line} -o store.zarr --force --tiles 0..1"));
    assert!(folder.succeed("info store.zarr").contains("1 of 6"));
}

#[test]
fn a_damaged_tile_is_named_and_made_again() {
    let folder = Folder::with(&["mlp.onnx"]);
    let line = many(&folder);
    folder.succeed(&format!("{line} -o store.zarr"));
    let chunk = folder.path("store.zarr").join("kernel/c/0/2");
    let good = std::fs::read(&chunk).unwrap();
    let mut bad = good.clone();
    bad[1234] ^= 0x10;
    std::fs::write(&chunk, bad).unwrap();
    let run = folder.run("info store.zarr");
    assert_eq!(run.code, Some(1), "{}{}", run.out, run.err);
    assert!((run.out.clone() + &run.err).contains("c/0/2"), "{}{}", run.out, run.err);
    folder.succeed(&format!("{line} -o store.zarr --resume"));
    assert_eq!(std::fs::read(&chunk).unwrap(), good);
    assert_eq!(folder.run("info store.zarr").code, Some(0));
}

#[test]
fn bad_arguments_are_refused_before_work_starts() {
    let folder = mlp();
    let line = "kernel --net mlp.onnx --data mlp.x.npy";
    for (arguments, words) in [
        ("--kernel trace --memory 1MiB -o no.npy", &["--memory", "smallest that would do"] as &[&str]),
        ("--kernel trace -o no.txt", &[".npy", ".zarr"]),
        ("--kernel trace", &["no destination", "-o"]),
        ("--kernel logit(3) -o no.npy", &["no output 3", "0 to 2"]),
        ("--kernel trace(outputs=[9]) -o no.npy", &["no component 9"]),
        ("--kernel trace(combine=[1,-1]) -o no.npy", &["2 coefficients for 3 outputs"]),
        ("--kernel trace(node='logit') -o no.npy", &["no node named", "logits"]),
        ("--kernel trace --resume -o no.npy", &["--resume", "store"]),
        ("--kernel trace --tiles 0..1 -o no.npy", &["--tiles", "store"]),
        ("--kernel trace --tiles 5..9 -o no.zarr", &["there are 1 tile", "--dry-run"]),
        ("--kernel trace --as-features -o no.npy", &["--as-features", "sketch="]),
        ("--kernel embedding -o no.npy", &["which nodes?"]),
        ("--kernel embedding(nodes=['nowhere']) -o no.npy", &["nowhere"]),
        ("--kernel full(sketch=sjlt:64) -o no.npy", &["column 6", "trace"]),
        ("--kernel trace(sketch=magic:64) -o no.npy", &["magic", "sjlt"]),
        ("--kernel trace -o missing/no.npy", &["no folder missing"]),
    ] {
        folder.refuse(&format!("{line} {arguments}"), words);
    }
    folder.refuse("kernel --net nan_weight.onnx --data mlp.x.npy --kernel trace -o no.npy", &["nan_weight.onnx"]);
}

#[test]
fn numbers_that_overflow_name_node_and_sample() {
    let folder = mlp();
    let mut x = folder.read("mlp.x.npy").mapv(|x| x as f32);
    x.index_axis_mut(Axis(0), 4).fill(3e38);
    folder.write_array("huge.npy", x.view());
    folder.refuse("kernel --net mlp.onnx --data huge.npy --kernel trace -o no.npy", &["not finite", "samples 0 and 4"]);
    let folder = Folder::with(&["cnn.onnx", "cnn.image.npy"]);
    let mut x = folder.read("cnn.image.npy").mapv(|x| x as f32);
    x.index_axis_mut(Axis(0), 1).fill(3e38);
    folder.write_array("huge.npy", x.view());
    folder
        .refuse("kernel --net cnn.onnx --data huge.npy --kernel trace -o no.npy", &["not finite", "sample 1", "node"]);
}

#[test]
fn a_plan_writes_nothing() {
    let folder = Folder::with(&["mlp.onnx"]);
    let line = many(&folder);
    let before = folder.files();
    let text = folder.succeed(&format!("{line} --dry-run"));
    assert!(["tiles", "memory", "work", "time"].iter().all(|word| text.contains(word)), "{text}");
    let plan = folder.json(&format!("{line} --dry-run -o later.zarr"));
    assert_eq!(plan["plan"]["tiles"], 6);
    assert!(plan["estimate"]["seconds"].is_number());
    assert_eq!(folder.files(), before);
}

#[test]
fn features_and_sketches() {
    let folder = mlp();
    for arguments in ["--kernel ck", "--kernel ck(bias=false)", "--kernel embedding(nodes=['features'])"] {
        let phi = matrix(&folder, &format!("{arguments} --as-features"));
        let phi = phi.into_dimensionality::<ndarray::Ix2>().unwrap();
        assert!(difference(&phi.dot(&phi.t()).into_dyn(), &matrix(&folder, arguments)) < DOUBLE, "{arguments}");
    }
    for method in ["sjlt", "gaussian", "rademacher", "srht", "khatri-rao", "kronecker"] {
        for total in ["", ",total=true"] {
            let arguments = format!("--kernel trace(sketch={method}:64{total})");
            let phi = matrix(&folder, &format!("{arguments} --as-features"));
            let phi = phi.into_dimensionality::<ndarray::Ix2>().unwrap();
            assert_eq!(phi.ncols(), if total.is_empty() { 3 * 64 } else { 64 }, "{arguments}");
            assert!(difference(&phi.dot(&phi.t()).into_dyn(), &matrix(&folder, &arguments)) < DOUBLE, "{arguments}");
            // The same seed gives the same features for other data, another one others.
            let x = folder.read("mlp.x.npy");
            let _ = std::fs::remove_file(folder.path("some.npy"));
            folder.write_array("some.npy", x.slice_axis(Axis(0), (2..5).into()));
            let line = "kernel --net mlp.onnx --data some.npy --precision f64 -o some.out.npy --force --as-features";
            folder.succeed(&format!("{line} {arguments}"));
            let some = phi.slice(s![2..5, ..]).to_owned().into_dyn();
            assert!(difference(&folder.read("some.out.npy"), &some) < DOUBLE, "{arguments}");
            folder.succeed(&format!("{line} {arguments} --seed 1"));
            assert!(difference(&folder.read("some.out.npy"), &some) > 0.1, "{arguments}");
        }
    }
}
