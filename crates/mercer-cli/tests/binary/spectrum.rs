//! `mercer spectrum`, as scripts use it.

use crate::explain::problem;
use crate::folder::Folder;
use ndarray::{Array1, Array2};

const SPECTRUM: &str = "spectrum --net net/model.onnx --data x.npy --labels y.npy --precision f64";

#[test]
fn the_contract_of_spectrum() {
    let folder = problem();
    folder.write_array("direction.npy", Array1::from_vec(vec![1.0, 0.5]).view());
    let report = folder.json(&format!(
        "{SPECTRUM} --direction direction.npy --weights net/epoch-00003.safetensors net/epoch-00012.safetensors -o look"
    ));
    let checkpoints = report["checkpoints"].as_array().unwrap();
    assert_eq!(
        checkpoints.iter().map(|one| one["name"].as_str().unwrap()).collect::<Vec<_>>(),
        ["epoch-00003", "epoch-00012"]
    );
    for (at, checkpoint) in checkpoints.iter().enumerate() {
        let weights = checkpoint["weights"].as_array().unwrap();
        assert_eq!(weights.len(), 2, "{checkpoint}");
        let shapes: Vec<[u64; 2]> =
            weights.iter().map(|own| [&own["rows"], &own["columns"]].map(|size| size.as_u64().unwrap())).collect();
        assert_eq!(shapes, [[12, 2], [3, 12]], "outputs × inputs, whatever the file has");
        for own in weights {
            assert!(own["layer"].is_string() && own["shape"].is_array() && own["n_spikes"].is_u64(), "{own}");
            for key in ["stable_rank", "edge", "alpha", "alpha_error"] {
                assert!(own[key].as_f64().unwrap() > 0.0, "{key}: {own}");
            }
            assert_eq!(own["drift"].is_null(), at == 0, "{own}");
        }
        assert!(weights[0]["direction"]["cosines"][0].as_f64().unwrap() <= 1.0);
        assert!(weights[1]["direction"].is_null());
        for kernel in ["ck", "ntk"] {
            let own = &checkpoint[kernel];
            assert_eq!(own["eigenvalues"].as_array().unwrap().len(), 120);
            let sum: f64 = own["eigenvalues"].as_array().unwrap().iter().map(|value| value.as_f64().unwrap()).sum();
            assert!((sum / own["trace"].as_f64().unwrap() - 1.0).abs() < 1e-9);
            let captured = own["captured"].as_array().unwrap();
            assert!(captured.last().unwrap().as_f64().unwrap() > 0.8, "{own}");
            assert!(checkpoint["kta"][kernel]["plain"].as_f64().unwrap() > 0.2, "{checkpoint}");
        }
    }
    assert!(!report["sentences"].as_array().unwrap().is_empty());
    for name in ["weights.svg", "kernels.svg", "quantiles.svg", "training.svg", "result.json", "run.json"] {
        assert!(folder.path("look").join(name).exists(), "{name}");
    }
    folder.succeed("replay look");
}

#[test]
fn the_trace_of_a_trained_tangent_kernel_is_estimated_within_a_percent() {
    let folder = problem();
    let exact = folder.json(SPECTRUM);
    // A third of the products is for the trace.
    let estimated = folder.json(&format!("{SPECTRUM} --products 300"));
    for kernel in ["ck", "ntk"] {
        let trace = |report: &serde_json::Value| report["checkpoints"][0][kernel]["trace"].as_f64().unwrap();
        let error = (trace(&estimated) / trace(&exact) - 1.0).abs();
        assert!(error < 0.01, "{kernel}: {error}");
        let top = |report: &serde_json::Value, at: usize| {
            report["checkpoints"][0][kernel]["eigenvalues"][at].as_f64().unwrap()
        };
        for at in 0..3 {
            assert!((top(&estimated, at) / top(&exact, at) - 1.0).abs() < 1e-6, "{kernel} {at}");
        }
        let kta = |report: &serde_json::Value| report["checkpoints"][0]["kta"][kernel]["plain"].as_f64().unwrap();
        assert!((kta(&estimated) / kta(&exact) - 1.0).abs() < 0.05, "{kernel}");
    }
}

#[test]
fn spectra_do_not_depend_on_threads() {
    let folder = problem();
    let [one, three] = ["1", "3"].map(|threads| {
        let arguments: Vec<&str> = SPECTRUM.split_whitespace().chain(["--threads", threads, "--json"]).collect();
        let output = folder.command_within(8 << 20, &arguments).output().unwrap();
        serde_json::from_slice::<serde_json::Value>(&output.stdout).unwrap()
    });
    assert_eq!(one["checkpoints"], three["checkpoints"]);
}

#[test]
fn weights_alone_need_no_data() {
    let folder = problem();
    let report = folder.json("spectrum --net net/model.onnx");
    assert_eq!(report["n_samples"], 0);
    assert!(report["checkpoints"][0]["ck"].is_null() && report["checkpoints"][0]["kta"].is_null());
    let network = Folder::with(&["mlp.onnx"]);
    let report = network.json("spectrum --net mlp.onnx");
    assert!(!report["checkpoints"][0]["weights"].as_array().unwrap().is_empty());
}

#[test]
fn bad_input_is_named() {
    let folder = problem();
    folder.write("other.toml", b"[mlp]\ninputs = [2]\nwidths = [9]\noutputs = 3\n");
    folder.succeed("train --arch other.toml --data x.npy --labels y.npy --epochs 1 --checkpoint-every 1 -o other");
    folder.write_array("long.npy", Array1::<f64>::ones(7).view());
    let mut points = Array2::from_shape_fn((120, 2), |(i, j)| (i * 7 + j) as f64 % 5.0);
    points[(77, 1)] = f64::NAN;
    folder.write_array("nan.npy", points.view());
    folder.write_array("few.npy", Array1::<i64>::zeros(5).view());
    let net = "spectrum --net net/model.onnx";
    for (command, words) in [
        (format!("{net} --layer nothing*"), &["--layer nothing*", "mercer info"][..]),
        (format!("{net} --weights other/epoch-00001.safetensors"), &["other/epoch-00001.safetensors"]),
        (format!("{net} --direction long.npy"), &["--direction long.npy", "7"]),
        (format!("{net} --leading 0"), &["--leading 0"]),
        (format!("{net} --labels y.npy"), &["--data"]),
        (format!("{net} --products 50"), &["--data"]),
        (format!("{SPECTRUM} --products 3"), &["--products"]),
        (format!("{net} --data nan.npy"), &["nan.npy", "77"]),
        (format!("{net} --data x.npy --labels few.npy"), &["few.npy"]),
        (format!("{SPECTRUM} --kernel nothing"), &["--kernel"]),
        (format!("{SPECTRUM} --memory 30MiB"), &["--memory"]),
    ] {
        folder.refuse(&command, words);
    }
}

/// Equal samples have a kernel of rank one: the other eigenvectors are arbitrary, and hold no labels.
#[test]
fn eigenvectors_without_an_eigenvalue_do_not_count() {
    let folder = problem();
    folder.write_array("equal.npy", Array2::from_elem((120, 2), 0.5).view());
    let line = "spectrum --net net/model.onnx --data equal.npy --labels y.npy";
    for options in ["", " --precision f64", " --products 60"] {
        let report = folder.json(&format!("{line}{options}"));
        let kernel = &report["checkpoints"][0]["ntk"];
        assert_eq!(kernel["captured"].as_array().unwrap().len(), 1, "{options}: {kernel}");
        assert!(kernel["captured"][0].as_f64().unwrap() < 1e-6, "{options}: {kernel}");
    }
    folder.write_array("large.npy", Array2::from_shape_fn((120, 2), |(i, j)| 1e30 * (1 + i + j) as f64).view());
    folder.refuse("spectrum --net net/model.onnx --data large.npy", &["--precision f64"]);
}
