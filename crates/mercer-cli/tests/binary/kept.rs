//! Matrices that were computed before: every command reads the same of them.

use crate::folder::{Folder, difference};

const MLP: &str = "--net mlp.onnx --data mlp.x.npy --precision f64";

fn mlp() -> Folder {
    let folder = Folder::with(&["mlp.onnx", "mlp.x.npy", "mlp.labels.npy"]);
    folder.succeed(&format!("kernel {MLP} --kernel trace -o whole.npy"));
    folder
}

/// The weights of a ridge on a matrix.
fn fitted(folder: &Folder, gram: &str) -> ndarray::ArrayD<f64> {
    let line = format!("fit ridge --gram {gram} --labels mlp.labels.npy --penalty 0.5 -o machine --force");
    folder.succeed(&line);
    folder.saved("machine", "weights")
}

/// A kernel by layers is the sum of its layers: for `fit`, for `eigen`, for `predict`, in a store and in files.
#[test]
fn layers_are_summed() {
    let folder = mlp();
    let expected = fitted(&folder, "whole.npy");
    folder.succeed(&format!("kernel {MLP} --kernel trace --by-layer -o layers.zarr"));
    folder.succeed(&format!("kernel {MLP} --kernel trace --by-layer -o files.npy"));
    folder.succeed("fit ridge --gram whole.npy --labels mlp.labels.npy --penalty 0.5 -o ridge");
    folder.succeed("predict --from ridge --data whole.npy -o whole.scores.npy");
    folder.succeed("eigen exact --gram whole.npy --precision f64 -k 3 -o whole");
    for gram in ["layers.zarr", "files.npy", "files.json"] {
        assert!(difference(&fitted(&folder, gram), &expected) < 1e-9, "{gram}");
        folder.succeed(&format!("predict --from ridge --data {gram} -o scores.npy --force"));
        assert!(difference(&folder.read("scores.npy"), &folder.read("whole.scores.npy")) < 1e-12, "{gram}");
        folder.succeed(&format!("eigen exact --gram {gram} --precision f64 -k 3 -o eigen --force"));
        assert!(difference(&folder.read("eigen/values.npy"), &folder.read("whole/values.npy")) < 1e-12, "{gram}");
    }
}

/// Standard errors lie beside a mean and are no part of it, wherever it is read or computed.
#[test]
fn standard_errors_are_no_part_of_a_mean() {
    let folder = mlp();
    let mean = "--kernel nngp-mc(networks=5) --seed 3";
    folder.succeed(&format!("kernel {MLP} {mean} -o mean.npy"));
    folder.succeed(&format!("kernel {MLP} {mean} -o mean.zarr"));
    let expected = fitted(&folder, "mean.npy");
    assert!(difference(&fitted(&folder, "mean.zarr"), &expected) < 1e-12);
    folder.succeed(&format!(
        "fit ridge --net mlp.onnx --data mlp.x.npy {mean} --labels mlp.labels.npy --penalty 0.5 -o own"
    ));
    assert!(difference(&folder.saved("own", "weights"), &expected) < 1e-12);
}

/// The list of the layers replaces nothing but such a list, whatever is allowed.
#[test]
fn the_results_of_others_stay() {
    let folder = mlp();
    let line = format!("kernel {MLP} --kernel trace --by-layer -o run.zarr");
    let training = r#"{"epochs": 3, "loss": [0.5, 0.4]}"#;
    folder.write("result.json", training.as_bytes());
    folder.succeed(&line);
    folder.succeed(&format!("{line} --resume"));
    folder.succeed(&format!("{line} --force"));
    assert_eq!(std::fs::read_to_string(folder.path("result.json")).unwrap(), training);
    folder.write("run.json", training.as_bytes());
    for flag in ["--resume", "--force"] {
        folder.refuse(&format!("{line} {flag}"), &["run.json", "no list of matrices", "name another result"]);
        assert_eq!(std::fs::read_to_string(folder.path("run.json")).unwrap(), training);
    }
}

/// What differs is named, and nothing else: another precision does not make another network.
#[test]
fn another_precision_is_not_another_network() {
    let folder = mlp();
    let line = "kernel --net mlp.onnx --data mlp.x.npy --kernel trace -o gram.zarr";
    folder.succeed(line);
    let run = folder.run(&format!("{line} --resume --precision f64"));
    assert_eq!(run.code, Some(2), "{}", run.err);
    assert!(run.err.contains("precision: the store has \"f32\", this run \"f64\""), "{}", run.err);
    assert!(!run.err.contains("network"), "{}", run.err);
}
