//! Kernels beside each other.

use crate::explain::problem;
use crate::folder::Folder;
use ndarray::array;

#[test]
fn kernels_are_compared_in_pairs() {
    let folder = Folder::with(&["mlp.onnx", "mlp.x.npy"]);
    for (kind, name) in [("trace", "trace.npy"), ("pseudo", "pseudo.zarr"), ("ck", "ck.npy")] {
        folder.succeed(&format!("kernel --net mlp.onnx --data mlp.x.npy --kernel {kind} --precision f64 -o {name}"));
    }
    let found = folder.json("compare trace.npy pseudo.zarr ck.npy");
    assert_eq!(found["pairs"].as_array().unwrap().len(), 3);
    assert_eq!((&found["pairs"][1]["a"], &found["pairs"][1]["b"]), (&"trace.npy".into(), &"ck.npy".into()));
    let cka = found["pairs"][0]["cka"].as_f64().unwrap();
    assert!(cka > 0.5 && cka < 1.0, "{cka}");
    assert!(found["matrices"][0]["lambda_max"].as_f64().unwrap() > 0.0);
    assert!(folder.succeed("compare trace.npy trace.npy").contains("0.0000  1.0000"));
    folder.write_array("small.npy", array![[1.0, 0.0], [0.0, 1.0]].view());
    folder.refuse("compare trace.npy small.npy", &["small.npy is of 2 samples"]);
    folder.refuse("compare small.npy small.npy", &["small.npy: an alignment needs at least 4 samples"]);
    folder.refuse("compare trace.npy mlp.x.npy", &["mlp.x.npy"]);
    folder.refuse("compare trace.npy trace.npy --memory 1MiB", &["--memory", "the smallest that would do"]);
}

const NETWORK: &str =
    "compare --net net/model.onnx --data x.npy --kernel full --kernel pseudo --kernel trace(sketch=sjlt:512)";

#[test]
fn the_contract_of_compare() {
    let folder = problem();
    let report = folder.json(&format!("{NETWORK} --labels y.npy --test t.npy --test-labels l.npy -o pairs"));
    let pairs = report["pairs"].as_array().unwrap();
    assert_eq!(pairs.len(), 3);
    for pair in pairs {
        for key in ["frobenius", "lambda_max", "cka", "predictions", "accuracy_a", "accuracy_b"] {
            assert!(pair[key].as_f64().unwrap().is_finite(), "{key}: {pair}");
        }
        for key in ["a", "b", "lambda_min", "condition"] {
            assert!(pair.get(key).is_some(), "{key}: {pair}");
        }
    }
    let full = &report["matrices"][0];
    assert!(full["mass"]["ratio"].as_f64().unwrap() > 0.0 && full["fit"]["residual"].as_f64().unwrap() < 1.0, "{full}");
    assert!(report["matrices"][2]["factor"].as_f64().unwrap() < 1.0, "the trace is a sum over outputs");
    assert!(!report["sentences"].as_array().unwrap().is_empty());
    for name in ["kernels.svg", "result.json", "run.json"] {
        assert!(folder.path("pairs").join(name).exists(), "{name}");
    }
    folder.succeed("replay pairs");
    // A stored matrix beside kernels of the network, and the same without.
    folder.succeed("kernel --net net/model.onnx --data x.npy --kernel full --precision f64 -o full.npy");
    let mixed = folder.json("compare full.npy --net net/model.onnx --data x.npy --kernel full");
    assert!(mixed["pairs"][0]["frobenius"].as_f64().unwrap() < 1e-12, "{mixed}");
    assert!(mixed["pairs"][0]["predictions"].is_null());
}

#[test]
fn agreement_is_followed_over_training() {
    let folder = problem();
    let line = "--kernel full --kernel pseudo --labels y.npy --test t.npy --test-labels l.npy --data x.npy";
    let report = folder.json(&format!(
        "compare --net net/model.onnx {line} --weights net/epoch-00003.safetensors net/epoch-00012.safetensors -o over"
    ));
    let networks = report["networks"].as_array().unwrap();
    assert_eq!((networks.len(), &networks[1]["pairs"]), (2, &report["pairs"]));
    assert!(folder.path("over").join("agreement.svg").exists());
    // The same numbers for any number of threads.
    let [one, three] = ["1", "3"].map(|threads| {
        let words = format!("compare --net net/model.onnx {line} --threads {threads} --json");
        let arguments: Vec<&str> = words.split_whitespace().collect();
        let output = folder.command_within(8 << 20, &arguments).output().unwrap();
        serde_json::from_slice::<serde_json::Value>(&output.stdout).unwrap()
    });
    assert_eq!(one["pairs"], three["pairs"]);
}

#[test]
fn bad_comparisons_are_refused() {
    let folder = problem();
    for (line, words) in [
        ("compare", vec!["nothing to compare with", "--kernel"]),
        ("compare --net net/model.onnx --kernel full --kernel pseudo", vec!["--data"]),
        ("compare --net net/model.onnx --data x.npy --kernel full", vec!["nothing to compare with"]),
        (
            "compare --net net/model.onnx --data x.npy --kernel full --kernel pseudo --widths 1,2",
            vec!["--widths", "--arch"],
        ),
        ("compare --net net/model.onnx --data x.npy --kernel full --kernel pseudo --test t.npy", vec!["--labels"]),
        ("compare --net net/model.onnx --data x.npy --kernel full --kernel pseudo --weights x.npy", vec!["x.npy"]),
        ("compare --net net/model.onnx --data x.npy --kernel full --kernel pseudo --memory 1MiB", vec!["--memory"]),
    ] {
        folder.refuse(line, &words);
    }
}
