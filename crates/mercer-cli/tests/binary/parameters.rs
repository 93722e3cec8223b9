//! What the parameters of a file are, in all commands that depend on them.

use crate::folder::{Folder, difference};
use mercer::data::Source;
use ndarray::{ArrayD, Axis, IxDyn, array};
use std::path::Path;

/// A folder with a network of `tests/golden/idioms` as `net.onnx` and its reference values as `values.npz`.
fn folder(name: &str, exporter: &str) -> Folder {
    let folder = Folder::with(&[]);
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/idioms");
    std::fs::copy(from.join(format!("{name}.{exporter}.onnx")), folder.path("net.onnx")).expect("a network");
    std::fs::copy(from.join(format!("{name}.npz")), folder.path("values.npz")).expect("values");
    folder
}

/// The trace over outputs of the module's tangent kernel, by PyTorch.
fn module_kernel(folder: &Folder) -> ArrayD<f64> {
    let full =
        Source::new(folder.path("values.npz"), Some("ntk")).open().and_then(|set| set.read::<f64>()).expect("ntk");
    let (samples, outputs) = (full.shape()[0], full.shape()[1]);
    let mut trace = ArrayD::zeros(IxDyn(&[samples, samples]));
    for output in 0..outputs {
        trace += &full.index_axis(Axis(3), output).index_axis(Axis(1), output);
    }
    trace
}

#[test]
fn folded_normalisations_are_told_where_they_matter() {
    for (exporter, advice) in [("dynamo", "optimize=False"), ("legacy", "TrainingMode.PRESERVE")] {
        let folder = folder("batch_norm", exporter);
        folder.write_array("y.npy", array![0.0, 1.0, 2.0, 0.5].view());
        for line in [
            "kernel --net net.onnx --data values.npz:x --kernel trace -o k.npy",
            "eigen exact --net net.onnx --data values.npz:x --kernel trace -k 2 -o functions",
            "fit ridge --net net.onnx --data values.npz:x --kernel trace --labels y.npy -o machine",
        ] {
            let run = folder.run(line);
            assert_eq!(run.code, Some(0), "{line}: {}", run.err);
            assert!(run.err.contains("2 convolutions") && run.err.contains(advice), "{line}: {}", run.err);
        }
        assert!(folder.succeed("info net.onnx").contains(advice));
        assert_eq!(folder.json("info net.onnx")["folded_normalisations"], 2);
        // Features do not depend on what counts as a parameter.
        let run = folder.run("kernel --net net.onnx --data values.npz:x --kernel ck -o ck.npy");
        assert_eq!((run.code, run.err.contains("batch normalisation")), (Some(0), false), "{}", run.err);
    }
}

#[test]
fn merged_parameters_are_counted_apart_on_demand() {
    for exporter in ["dynamo", "legacy"] {
        let folder = folder("transformer_untrained", exporter);
        let count = |line: &str| folder.json(line)["n_params"].as_u64().expect("a number");
        let (merged, apart) = (count("info net.onnx"), count("info net.onnx --unmerge"));
        assert!(merged + 100 < apart, "{exporter}: {merged}, {apart}");
        assert!(folder.succeed("info net.onnx").contains("--unmerge"));
        assert!(!folder.succeed("info net.onnx --unmerge").contains("--unmerge"));
        let kernel = |flags: &str, name: &str| {
            let line =
                format!("kernel --net net.onnx --data values.npz:x --kernel trace --precision f64 {flags} -o {name}");
            let run = folder.run(&line);
            assert_eq!(run.code, Some(0), "{line}: {}", run.err);
            assert_eq!(run.err.contains("--unmerge"), flags.is_empty(), "{line}: {}", run.err);
            difference(&folder.read(name), &module_kernel(&folder))
        };
        assert!(kernel("", "merged.npy") > 1e-2);
        assert!(kernel("--unmerge", "apart.npy") < 1e-6);
        // What is saved is built again with the same parameters.
        folder.write_array("y.npy", array![0.0, 1.0, 2.0, 0.5].view());
        let flags = "--net net.onnx --data values.npz:x --kernel trace --unmerge";
        folder.succeed(&format!("eigen exact {flags} -k 2 -o functions"));
        folder.succeed("predict --from functions --data values.npz:x -o again.npy");
        folder.succeed(&format!("fit ridge {flags} --labels y.npy -o machine"));
        folder.succeed("predict --from machine --data values.npz:x -o predicted.npy");
    }
    let folder = folder("tied_untrained", "dynamo");
    let shown = folder.json("info net.onnx --unmerge --exclude other.*");
    let names: Vec<&str> = shown["parameters"].as_array().unwrap().iter().filter_map(|p| p["name"].as_str()).collect();
    assert!(names.contains(&"slope_2.weight") && !names.contains(&"other.weight"), "{names:?}");
    folder.refuse("info net.onnx --exclude nothing.*", &["--exclude", "nothing.*"]);
}
