//! `mercer probe`, as scripts use it.

use crate::explain::problem;
use ndarray::{Array1, Array2};

const PROBE: &str = "probe --net net/model.onnx --data x.npy --labels y.npy --test t.npy --test-labels l.npy";

#[test]
fn the_contract_of_probe() {
    let folder = problem();
    let report = folder.json(&format!("{PROBE} --untrained --kernel trace --precision f64 -o look"));
    let layers = report["layers"].as_array().unwrap();
    assert_eq!(layers.len(), 1, "{report}");
    let layer = &layers[0];
    assert_eq!(layer["n_features"], 12);
    for (key, probes) in [("accuracy", 0.9..=1.0), ("d90", 1.0..=12.0), ("variance_at_d90", 0.0..=1.0)] {
        for probe in ["neighbours", "centre", "svm"] {
            let value = layer[key][probe].as_f64().unwrap();
            assert!(probes.contains(&value), "{key} {probe} {value}");
        }
    }
    for key in ["pca90", "twonn"] {
        assert!(layer["intrinsic_dimension"][key].as_f64().unwrap() >= 1.0, "{layer}");
    }
    for key in ["nc1", "nc2", "nc3", "nc4", "untrained"] {
        assert!(layer[key].as_f64().unwrap() >= 0.0, "{key}: {layer}");
    }
    let linear = |key: &str| layer["linear"][key].as_f64().unwrap();
    assert!(linear("accuracy") > 0.9 && linear("shuffled_training_accuracy") < 0.7, "{layer}");
    let similarity = &report["similarity"];
    assert_eq!(similarity["names"].as_array().unwrap().len(), 2);
    let (cka, p) = (&similarity["linear"]["cka"][0], &similarity["linear"]["p_values"][0]);
    assert!((cka[0].as_f64().unwrap() - 1.0).abs() < 1e-9, "{similarity}");
    assert!(cka[1].as_f64().unwrap() > 0.5 && p[1].as_f64().unwrap() == 0.01, "{similarity}");
    for name in ["accuracy.svg", "layers.svg", "collapse.svg", "similarity.svg", "result.json", "run.json"] {
        assert!(folder.path("look").join(name).exists(), "{name}");
    }
    folder.succeed("replay look");
}

#[test]
fn probes_do_not_depend_on_threads() {
    let folder = problem();
    let [one, three] = ["1", "3"].map(|threads| {
        let arguments: Vec<&str> = PROBE.split_whitespace().chain(["--threads", threads, "--json"]).collect();
        let output = folder.command_within(8 << 20, &arguments).output().unwrap();
        serde_json::from_slice::<serde_json::Value>(&output.stdout).unwrap()
    });
    for key in ["layers", "similarity", "sentences"] {
        assert_eq!(one[key], three[key], "{key}");
    }
}

#[test]
fn checkpoints_are_followed() {
    let folder = problem();
    let report = folder.json(
        "probe --net net/model.onnx --data x.npy --labels y.npy --test t.npy --test-labels l.npy --other-net net/model.onnx \
         --weights net/epoch-00003.safetensors net/epoch-00012.safetensors",
    );
    let checkpoints = report["checkpoints"].as_array().unwrap();
    assert_eq!(checkpoints.len(), 2);
    assert_eq!(report["layers"], checkpoints[1]["layers"]);
    let nc1 = |at: usize| checkpoints[at]["layers"][0]["nc1"].as_f64().unwrap();
    assert!(nc1(1) < nc1(0), "classes come closer to their means: {} {}", nc1(0), nc1(1));
    let names = report["similarity"]["names"].as_array().unwrap();
    assert_eq!(names.len(), 3);
    assert!(names[0].as_str().unwrap().starts_with("epoch-00003: "), "{names:?}");
    // The last checkpoint and the network of the file are the same.
    let cka = report["similarity"]["linear"]["cka"][1][2].as_f64().unwrap();
    assert!((cka - 1.0).abs() < 1e-9, "{cka}");
}

#[test]
fn a_fifth_is_held_out_without_test_samples() {
    let folder = problem();
    let report = folder.json("probe --net net/model.onnx --data x.npy --labels y.npy --permutations 0");
    assert_eq!((&report["n_samples"], &report["n_test"], &report["held_out"]), (&96.into(), &24.into(), &true.into()));
    assert_eq!(report["similarity"]["linear"]["p_values"], serde_json::json!([]));
    assert!(report["notes"].to_string().contains("held out"), "{}", report["notes"]);
}

#[test]
fn bad_input_is_named() {
    let folder = problem();
    folder.write("other.toml", b"[mlp]\ninputs = [2]\nwidths = [9]\noutputs = 3\n");
    folder.succeed("train --arch other.toml --data x.npy --labels y.npy --epochs 1 --checkpoint-every 1 -o other");
    folder.write_array("one.npy", Array1::<i64>::zeros(120).view());
    let mut points = Array2::from_shape_fn((120, 2), |(i, j)| (i * 7 + j) as f64 % 5.0);
    points[(77, 1)] = f64::NAN;
    folder.write_array("nan.npy", points.view());
    folder.write_array("none.npy", Array2::<f64>::zeros((0, 2)).view());
    folder.write_array("no.npy", Array1::<i64>::zeros(0).view());
    let net = "probe --net net/model.onnx";
    for (command, words) in [
        (format!("{PROBE} --layer nothing*"), &["--layer nothing*", "mercer info"][..]),
        (format!("{PROBE} --weights other/epoch-00001.safetensors"), &["other/epoch-00001.safetensors"]),
        (format!("{PROBE} --neighbours 121"), &["--neighbours 121", "120"]),
        (format!("{PROBE} --neighbours 0"), &["--neighbours 0"]),
        (format!("{PROBE} --svm-cost=-1"), &["--svm-cost"]),
        (format!("{PROBE} --compared 3"), &["--compared 3"]),
        (format!("{net} --data x.npy --labels y.npy --test t.npy"), &["--test-labels"]),
        (format!("{net} --data x.npy --labels one.npy"), &["--labels"]),
        (format!("{net} --data nan.npy --labels y.npy --test t.npy --test-labels l.npy"), &["nan.npy", "77"]),
        (format!("{net} --data none.npy --labels no.npy"), &["none.npy"]),
        (format!("{PROBE} --memory 30MiB"), &["--memory"]),
    ] {
        folder.refuse(&command, words);
    }
}

#[test]
fn layers_that_never_change_are_not_said_to_disagree() {
    let folder = problem();
    folder.write_array("equal.npy", Array2::from_elem((120, 2), 0.5).view());
    let report =
        folder.json("probe --net net/model.onnx --data equal.npy --labels y.npy --test t.npy --test-labels l.npy");
    let text = report["sentences"].to_string();
    assert!(text.contains("were not probed") && !text.contains("disagree"), "{text}");
}
