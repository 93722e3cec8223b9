//! `mercer predict`, against onnxruntime.

use crate::folder::{Folder, difference, sound};
use ndarray::{Array2, ArrayD, s};

/// The network, its data as arguments, and the data as files.
const NETWORKS: &[(&str, &str, &[&str])] = &[
    ("mlp", "--data mlp.x.npy", &["mlp.x.npy"]),
    ("cnn", "--data cnn.image.npy", &["cnn.image.npy"]),
    ("fixed", "--data fixed.x.npy", &["fixed.x.npy"]),
    ("pair", "--data right=pair.right.npy --data left=pair.left.npy", &["pair.left.npy", "pair.right.npy"]),
    ("tokens", "--data tokens.ids.npy", &["tokens.ids.npy"]),
];

fn folder_of(name: &str, data: &[&str]) -> Folder {
    let (net, expected) = (format!("{name}.onnx"), format!("{name}.expected.npy"));
    Folder::with(&[&[net.as_str(), expected.as_str()], data].concat())
}

#[test]
fn outputs_are_those_of_onnxruntime() {
    for (name, arguments, data) in NETWORKS {
        let folder = folder_of(name, data);
        let expected = folder.read(&format!("{name}.expected.npy"));
        for extra in ["", "--precision f64", "--chunk 1", "--chunk 4", "--chunk 100000"] {
            let text = folder.succeed(&format!("predict --net {name}.onnx {arguments} -o out.npy --force {extra}"));
            assert!(text.contains("out.npy") && text.contains("samples in"), "{text}");
            let error = difference(&folder.read("out.npy"), &expected);
            assert!(error < 1e-5, "{name} {extra}: {error}");
        }
    }
}

#[test]
fn preprocessing() {
    let folder = Folder::with(&["cnn.onnx", "cnn.pixels.npy", "cnn.expected.npy"]);
    folder.succeed(
        "predict --net cnn.onnx --data cnn.pixels.npy --scale 1/255 --mean 0.485,0.456,0.406 \
         --std 0.229,0.224,0.225 --layout nhwc -o out.npy",
    );
    assert!(difference(&folder.read("out.npy"), &folder.read("cnn.expected.npy")) < 1e-5);
}

#[test]
fn accuracy() {
    let folder = Folder::with(&["mlp.onnx", "mlp.x.npy", "mlp.labels.npy"]);
    let line = "predict --net mlp.onnx --data mlp.x.npy --labels mlp.labels.npy";
    assert!(folder.succeed(line).contains("accuracy 80.00 % (8 of 10 right)"));
    let json = folder.json(line);
    assert_eq!(json["accuracy"], 0.8);
    assert_eq!(json["n_correct"], 8);
    assert_eq!(json["n_samples"], 10);
    let measured = &json["measurements"];
    assert!(measured["seconds"].is_number() && measured["samples_per_second"].is_number());
    assert_eq!(folder.files(), ["mlp.labels.npy", "mlp.onnx", "mlp.x.npy"]);
}

#[test]
fn any_node() {
    let folder = Folder::with(&["mlp.onnx", "mlp.x.npy"]);
    for (name, columns) in [("features", 8), ("/features/Tanh", 8), ("logits", 3)] {
        let json = folder.json(&format!("predict --net mlp.onnx --data mlp.x.npy --node {name} -o out.npy --force"));
        assert_eq!(json["shape"], serde_json::json!([columns]));
        assert_eq!(folder.read("out.npy").shape(), [10, columns]);
    }
    let features = folder.json("predict --net mlp.onnx --data mlp.x.npy --node features -o features.npy");
    assert_eq!(features["at"], "features");
    assert!(folder.read("features.npy").iter().all(|x| x.abs() < 1.0));
}

#[test]
fn names_of_arrays_are_names_of_inputs() {
    let folder = Folder::with(&["pair.onnx", "pair.npz", "pair.expected.npy"]);
    folder.succeed("predict --net pair.onnx --data pair.npz:right --data pair.npz:left -o out.npy");
    assert!(difference(&folder.read("out.npy"), &folder.read("pair.expected.npy")) < 1e-5);
}

#[test]
fn many_blocks_are_one_array() {
    let folder = Folder::with(&["mlp.onnx", "mlp.x.npy", "mlp.expected.npy"]);
    let (rows, expected) = (folder.read("mlp.x.npy"), folder.read("mlp.expected.npy"));
    let n_samples = 50_003;
    let repeated = |array: &ArrayD<f64>| {
        let columns = array.shape()[1];
        Array2::from_shape_fn((n_samples, columns), |(row, column)| array[[row % 10, column]] as f32)
    };
    folder.write_array("many.npy", repeated(&rows).view());
    folder.succeed("predict --net mlp.onnx --data many.npy -o out.npy --chunk 8");
    let out = folder.read("out.npy");
    assert!(difference(&out, &repeated(&expected).mapv(f64::from).into_dyn()) < 1e-5);
    // The same bits whatever the place in a block.
    let out: Array2<f64> = out.into_dimensionality().unwrap();
    assert_eq!(out.slice(s![0..8, ..]), out.slice(s![40_000..40_008, ..]));
}

#[test]
fn results_do_not_depend_on_threads() {
    let folder = Folder::with(&["cnn.onnx", "cnn.image.npy"]);
    let bytes = |threads: usize| {
        let arguments = ["predict", "--net", "cnn.onnx", "--data", "cnn.image.npy", "-o", "out.npy", "--force"];
        let mut command = folder.command_within(600_000, &arguments);
        command.args(["--threads", &threads.to_string()]);
        assert!(sound(command.status().unwrap()).success());
        std::fs::read(folder.path("out.npy")).unwrap()
    };
    assert_eq!(bytes(1), bytes(3));
}

/// How many samples are read at once does not change a bit, also of the last ones.
#[test]
fn results_do_not_depend_on_the_batch() {
    let folder = Folder::with(&["mlp.onnx", "mlp.x.npy", "cnn.onnx", "cnn.image.npy"]);
    let rows = folder.read("mlp.x.npy");
    let many = Array2::from_shape_fn((301, rows.shape()[1]), |(row, column)| {
        (rows[[row % 10, column]] * (1.0 + row as f64 / 300.0)) as f32
    });
    folder.write_array("many.npy", many.view());
    for (net, data) in [("mlp.onnx", "many.npy"), ("cnn.onnx", "cnn.image.npy")] {
        for precision in ["f32", "f64"] {
            let bytes = |extra: &str| {
                let line = format!("predict --net {net} --data {data} --precision {precision} -o out.npy --force");
                folder.succeed(&format!("{line} {extra}"));
                std::fs::read(folder.path("out.npy")).unwrap()
            };
            let whole = bytes("");
            for batch in [1, 2, 7, 128, 129, 300, 100_000] {
                assert!(bytes(&format!("--chunk {batch}")) == whole, "{net} {precision} --chunk {batch}");
            }
        }
    }
}

#[test]
fn other_shapes_of_the_same_samples() {
    let folder = Folder::with(&["fixed.onnx", "fixed.x.npy", "fixed.expected.npy"]);
    let flat = folder.read("fixed.x.npy").mapv(|x| x as f32).into_shape_with_order((7, 6)).unwrap();
    folder.write_array("flat.npy", flat.view());
    folder.succeed("predict --net fixed.onnx --data flat.npy -o out.npy");
    assert!(difference(&folder.read("out.npy"), &folder.read("fixed.expected.npy")) < 1e-5);
}

#[test]
fn a_table_with_its_labels() {
    let folder = Folder::with(&["mlp.onnx", "mlp.x.npy", "mlp.labels.npy"]);
    let (x, y) = (folder.read("mlp.x.npy"), folder.read("mlp.labels.npy"));
    let mut table = "a,b,c,d,class\n".to_owned();
    for (row, class) in x.outer_iter().zip(&y) {
        let cells: Vec<String> = row.iter().chain([class]).map(f64::to_string).collect();
        table += &(cells.join(",") + "\n");
    }
    folder.write("table.csv", table.as_bytes());
    let json = folder.json("predict --net mlp.onnx --data table.csv --labels table.csv:class");
    assert_eq!(json["accuracy"], 0.8);
}

/// Memory decides how many samples are read at once, not the result; too little is refused with what would do.
#[test]
fn memory_is_kept_to() {
    let folder = Folder::with(&["mlp.onnx"]);
    let x = ndarray::Array2::from_shape_fn((20_000, 4), |(i, j)| ((i * 37 + j * 11) % 211) as f32 / 100.0 - 1.0);
    folder.write_array("many.npy", x.view());
    folder.succeed("predict --net mlp.onnx --data many.npy -o free.npy");
    let refused = folder.run("predict --net mlp.onnx --data many.npy -o tight.npy --memory 1MiB");
    assert_eq!(refused.code, Some(2), "{}", refused.err);
    let least = refused.err.split(", the smallest").next().unwrap().rsplit("--memory ").next().unwrap();
    let report = folder.json(&format!("predict --net mlp.onnx --data many.npy -o tight.npy --memory {least}"));
    assert_eq!(report["measurements"]["promise_broken"], false, "{}", report["measurements"]);
    assert_eq!(folder.read("tight.npy"), folder.read("free.npy"));
}
