//! Kernels beside each other.

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
    folder.refuse("compare trace.npy small.npy", &["small.npy has 2 rows"]);
    folder.refuse("compare small.npy small.npy", &["small.npy: an alignment needs at least 4 samples"]);
    folder.refuse("compare trace.npy mlp.x.npy", &["mlp.x.npy"]);
    folder.refuse("compare trace.npy trace.npy --memory 1MiB", &["--memory", "the smallest that would do"]);
}
