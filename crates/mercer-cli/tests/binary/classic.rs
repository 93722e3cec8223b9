//! `mercer kernel --kernel`: values, stores, and what is refused. Formulas have no spaces here, because lines are cut at them.

use crate::folder::{Folder, difference};
use ndarray::{Array2, ArrayD, Axis, array};

fn folder() -> Folder {
    let folder = Folder::with(&["mlp.onnx"]);
    let x = array![[0.0, 0.0], [1.0, 0.0], [0.0, 2.0]];
    folder.write_array("x.npy", x.view());
    folder.write_array("images.npy", x.into_shape_with_order((3, 2, 1)).unwrap().view());
    folder
}

fn matrix(folder: &Folder, arguments: &str) -> ArrayD<f64> {
    folder.succeed(&format!("kernel --precision f64 -o out.npy --force {arguments}"));
    folder.read("out.npy")
}

#[test]
fn values_are_those_of_the_formula() {
    let folder = folder();
    let e = |square: f64| (-square / 2.0).exp();
    let rbf = array![[1.0, e(1.0), e(4.0)], [e(1.0), 1.0, e(5.0)], [e(4.0), e(5.0), 1.0]];
    let linear = array![[0.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 4.0]];
    let sum: Array2<f64> = &rbf + &(linear * 0.5);
    let cosine = Array2::from_shape_fn((3, 3), |(i, j)| sum[[i, j]] / (sum[[i, i]] * sum[[j, j]]).sqrt());
    folder.write_array("y.npy", array![[1.0, 0.0]].view());
    let column = rbf.column(1).to_owned().insert_axis(Axis(1));
    for (arguments, expected) in [
        ("--kernel rbf(lengthscale=1) --data x.npy", &rbf),
        ("--kernel rbf(lengthscale=[1,1]) --data images.npy", &rbf),
        ("--kernel rbf()+0.5*linear() --data x.npy", &sum),
        ("--kernel normalised(rbf()+0.5*linear()) --data x.npy", &cosine),
        ("--kernel rbf --data x.npy --against y.npy", &column),
    ] {
        let error = difference(&matrix(&folder, arguments), &expected.clone().into_dyn());
        assert!(error < 1e-15, "{arguments}: {error}");
    }
}

#[test]
fn stores_are_resumed_with_the_same_kernel_only() {
    let folder = folder();
    let line = |formula: &str| format!("kernel --kernel {formula} --data x.npy -o gram.zarr");
    let plan = folder.succeed(&format!("{} --dry-run", line("rbf(lengthscale=2)")));
    assert!(plan.contains("rbf(lengthscale=2) of shape [3, 3]"), "{plan}");
    folder.succeed(&format!("{} --tiles 0..1 --memory 1GiB", line("rbf(lengthscale=2)")));
    folder.succeed(&format!("{} --resume", line("rbf(lengthscale=2.0)")));
    for other in ["rbf(lengthscale=3)", "matern52(lengthscale=2)", "rbf(lengthscale=2)*1"] {
        folder.refuse(&format!("{} --resume", line(other)), &["kernel", "rbf(lengthscale=2)"]);
    }
    let json = folder.json(&format!("{} --resume", line("rbf(lengthscale=2)")));
    assert_eq!(json["kernel"], "rbf(lengthscale=2)");
    assert!(json["network"].is_null() && json["complete"] == true);
}

#[test]
fn what_is_wrong_is_pointed_at() {
    let folder = folder();
    folder.write_array("z.npy", array![[1.0, 2.0, 3.0]].view());
    folder.write_array("nan.npy", array![[1.0], [f64::NAN]].view());
    for (arguments, words) in [
        (
            "--kernel 0.1*rfb() --data x.npy",
            &["--kernel, column 5", "did you mean `rbf`?", "^", "mercer help kernel"][..],
        ),
        ("--kernel rbf(lengthscale=0) --data x.npy", &["column 17", "positive"]),
        ("--kernel rbf(lengthscale=[1,2,3]) --data x.npy", &["3 lengthscales", "2 numbers"]),
        ("--kernel trace --data x.npy", &["computed from a network", "--net", "--arch"]),
        ("--kernel rbf+trace --data x.npy", &["computed from a network", "try:"]),
        ("--kernel rbf(sketch=sjlt:4) --data x.npy", &["column 5", "unknown setting of rbf `sketch`"]),
        ("--kernel rbf --data x.npy --by-layer", &["--by-layer"]),
        ("--kernel rbf --data x.npy --as-features", &["--as-features"]),
        ("--kernel rbf(networks=3) --data x.npy", &["networks"]),
        ("--kernel rbf --data x.npy --net mlp.onnx", &["--net", "--kernel"]),
        ("--net mlp.onnx --data x.npy", &["--kernel is missing", "trace"]),
        ("--kernel rbf --data x.npy --data z.npy", &["--data is given 2 times"]),
        ("--kernel rbf --data x.npy --against z.npy", &["shape"]),
        ("--kernel rbf --data nan.npy", &["nan.npy"]),
    ] {
        folder.refuse(&format!("kernel {arguments} -o no.npy"), words);
    }
}

#[test]
fn help_teaches_the_formulas() {
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_mercer")).args(["help", "kernel"]).output().unwrap();
    let help = String::from_utf8(output.stdout).unwrap();
    for word in [
        "rbf(lengthscale=1.5) + 0.1*linear",
        "normalised(trace)",
        "arccosine(order=1)",
        "periodic(lengthscale=1, period=1)",
    ] {
        assert!(help.contains(word), "{word}");
    }
}
