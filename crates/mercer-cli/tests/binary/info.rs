//! `mercer info`.

use crate::folder::Folder;
use ndarray::array;

#[test]
fn a_model() {
    let folder = Folder::with(&["cnn.onnx"]);
    let json = folder.json("info cnn.onnx");
    assert_eq!(json["kind"], "model");
    assert_eq!(json["exporter"], "mercer-fixtures");
    assert_eq!(json["opset"], 17);
    assert_eq!(json["n_params"], 4 * 27 + 4 + 5 * 64 + 5);
    assert_eq!(json["n_tensors"], 4);
    assert_eq!(json["inputs"][0]["name"], "image");
    assert_eq!(json["inputs"][0]["shape"], serde_json::json!([null, 3, 8, 8]));
    assert_eq!(json["outputs"][0]["name"], "logits");
    assert_eq!(json["parameters"][0]["name"], "conv.weight");
    assert!(json["parameters"][0]["reason"].as_str().unwrap().starts_with("weight of"));
    assert!(json["constants"].is_array());
    // The products alone; what is counted for the other primitives is the library's choice.
    let products = 2 * (4 * 27 * 64 + 5 * 64);
    assert!(json["flops"].as_u64().unwrap() >= products && json["flops"].as_u64().unwrap() < products * 2);
    let text = folder.succeed("info cnn.onnx");
    for word in
        ["cnn.onnx", "mercer-fixtures", "opset 17", "[batch, 3, 8, 8]", "/maps/Conv", "conv.weight", "FLOPs", "437"]
    {
        assert!(text.contains(word), "{word} in {text}");
    }
}

#[test]
fn free_sizes() {
    let folder = Folder::with(&["tokens.onnx"]);
    let json = folder.json("info tokens.onnx");
    assert_eq!(json["n_params"], 40 + 12 + 3);
    assert!(json["flops"].is_null() && json["layers"].is_null());
    assert_eq!(json["inputs"][0]["integer"], true);
    assert!(folder.succeed("info tokens.onnx").contains("--shape ids="));
    let flops = |shape: &str| folder.json(&format!("info tokens.onnx --shape {shape}"))["flops"].as_u64().unwrap();
    assert!(flops("ids=64") > flops("32"));
    folder.refuse("info tokens.onnx --shape idz=3", &["--shape", "idz", "ids"]);
    folder.refuse("info tokens.onnx --shape ids=3,4", &["--shape", "ids"]);
}

#[test]
fn parameters_by_name() {
    let folder = Folder::with(&["mlp.onnx"]);
    assert_eq!(folder.json("info mlp.onnx")["n_params"], 67);
    let json = folder.json("info mlp.onnx --exclude *.bias");
    assert_eq!(json["n_params"], 56);
    assert_eq!(json["constants"][0]["reason"], "excluded by name");
    assert_eq!(folder.json("info mlp.onnx --exclude * --include fc2.*")["n_params"], 0);
    folder.refuse("info mlp.onnx --include fc2.weigth", &["--include", "fc2.weigth", "fc2.weight"]);
    folder.refuse("info mlp.onnx --exclude zzzzzzzzzz", &["--exclude", "zzzzzzzzzz", "mercer info mlp.onnx -v"]);
}

#[test]
fn a_batch_written_into_the_file() {
    let folder = Folder::with(&["fixed.onnx"]);
    assert_eq!(folder.json("info fixed.onnx")["inputs"][0]["fixed_batch"], 1);
    assert!(folder.succeed("info fixed.onnx").contains("batch of 1"));
}

#[test]
fn data() {
    let folder = Folder::with(&["pair.npz", "mlp.labels.npy"]);
    let json = folder.json("info pair.npz");
    assert_eq!(json["kind"], "data");
    assert_eq!(json["arrays"][0]["key"], "left");
    assert_eq!(json["arrays"][1]["shape"], serde_json::json!([6, 5]));
    assert_eq!(folder.json("info pair.npz:right")["summary"]["shape"], serde_json::json!([6, 5]));
    assert!(folder.succeed("info mlp.labels.npy").contains("10 samples"));
    folder.write_array("nan.npy", array![1.0, f64::NAN].view());
    assert!(folder.succeed("info nan.npy").contains("1 values are NaN"));
}

#[test]
fn a_model_by_another_name() {
    let folder = Folder::with(&["mlp.onnx"]);
    std::fs::copy(folder.path("mlp.onnx"), folder.path("network")).unwrap();
    assert_eq!(folder.json("info network")["n_params"], 67);
}

#[test]
fn what_is_known_is_shown_before_it_fails() {
    let folder = Folder::with(&["unsupported.onnx"]);
    let run = folder.run("info unsupported.onnx");
    assert_eq!(run.code, Some(2));
    assert!(run.out.contains("[batch, 4]") && run.err.contains("strange"));
}

#[test]
fn folders_of_results() {
    let folder = Folder::with(&["mlp.onnx", "mlp.x.npy", "mlp.labels.npy"]);
    folder.succeed(
        "eigen nystrom --net mlp.onnx --kernel trace --data mlp.x.npy --landmark-choice all -k 3 -o functions",
    );
    let json = folder.json("info functions");
    assert_eq!((&json["kind"], &json["description"]["components"]), (&"eigenfunctions".into(), &3.into()));
    assert_eq!(json["values"].as_array().unwrap().len(), 3);
    assert_eq!(json["description"]["notes"]["data"]["place"], "mlp.x.npy");
    let files = json["files"].as_array().unwrap();
    assert!(files.iter().any(|file| file["name"] == "psi_data.npy" && file["shape"][1] == 3));
    let text = folder.succeed("info functions");
    for word in ["nystrom", "mlp.x.npy", "fingerprint", "trace", "kernel identity", "kernel.network", "f64"] {
        assert!(text.contains(word), "{word} in {text}");
    }

    folder.succeed(
        "fit ridge --net mlp.onnx --kernel trace --data mlp.x.npy --labels mlp.labels.npy --penalty 0.1 -o machine",
    );
    assert_eq!(folder.json("info machine")["kind"], "machine");
    let text = folder.succeed("info machine");
    for word in ["machine", "trace", "kernel.network", "weights", "samples.input0"] {
        assert!(text.contains(word), "{word} in {text}");
    }

    folder.succeed(
        "uncertainty --net mlp.onnx --data mlp.x.npy --labels mlp.labels.npy --test mlp.x.npy \
         --test-labels mlp.labels.npy --method last-layer-full -o sure",
    );
    assert_eq!(folder.json("info sure")["kind"], "posterior");
    assert!(folder.succeed("info sure").contains("full"));

    folder.succeed("kernel --kernel rbf() --data mlp.x.npy -o gram.npy");
    folder.succeed("eigen lanczos --gram gram.npy -k 2 -o spectrum");
    assert!(folder.succeed("info spectrum").contains("lanczos"));

    std::fs::create_dir(folder.path("empty")).unwrap();
    folder.refuse("info empty", &["holds no results", "folder.json"]);
    let psi = folder.path("functions/values.npy");
    let mut bytes = std::fs::read(&psi).unwrap();
    bytes[130] ^= 1;
    std::fs::write(&psi, bytes).unwrap();
    for name in ["values.npy", "folder.json"] {
        let run = folder.run("info functions");
        assert_eq!(run.code, Some(1), "{}{}", run.out, run.err);
        assert!(run.out.contains(&format!("functions/{name}")), "{}", run.out);
        assert!(run.err.contains("1 file damaged"), "{}", run.err);
        std::fs::write(folder.path("functions/folder.json"), b"{").unwrap();
    }
}
