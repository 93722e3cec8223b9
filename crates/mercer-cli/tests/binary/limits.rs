//! `mercer kernel` without trained weights: limits of infinite width, and means over random networks.

use crate::folder::{Folder, difference};
use ndarray::{Array2, ArrayD};

const MLP: &str = "
[mlp]
inputs = [4]
widths = [48]
outputs = 6
activation = \"erf\"
";

const POOLED: &str = "
[cnn]
inputs = [1, 6, 6]
outputs = 4
layers = [{ conv = { channels = 8, kernel = 3 } }, { max-pool = { size = 2 } }]
";

fn folder() -> Folder {
    let folder = Folder::with(&["mlp.onnx", "mlp.x.npy", "cnn.onnx", "cnn.image.npy"]);
    folder.write("mlp.toml", MLP.as_bytes());
    folder.write("pooled.toml", POOLED.as_bytes());
    let images = Array2::from_shape_fn((5, 36), |(i, j)| ((i * 7 + j * 5) % 11) as f32 / 5.0 - 1.0);
    folder.write_array("images.npy", images.into_shape_with_order((5, 1, 6, 6)).unwrap().view());
    folder
}

fn matrix(folder: &Folder, arguments: &str) -> ArrayD<f64> {
    folder.succeed(&format!("kernel {arguments} --precision f64 -o out.npy --force"));
    folder.read("out.npy")
}

/// `K = σ_w² (2/π) asin(2 κ/√((1 + 2 κ_x)(1 + 2 κ_y))) + σ_b²` with `κ = σ_w² x·y/4 + σ_b²` (Williams 1997).
#[test]
fn the_limit_of_an_error_function() {
    let folder = folder();
    let x = folder.read("mlp.x.npy");
    let found = matrix(&folder, "--arch mlp.toml --data mlp.x.npy --kernel nngp(weight-std=1.5,bias-std=0.2)");
    let row = |i: usize| (0..4).map(|j| x[[i, j]]).collect::<Vec<f64>>();
    let first = |i, j| 2.25 * row(i).iter().zip(row(j)).map(|(a, b)| a * b).sum::<f64>() / 4.0 + 0.04;
    let n = x.shape()[0];
    let expected = Array2::from_shape_fn((n, n), |(i, j)| {
        let sine = 2.0 * first(i, j) / ((1.0 + 2.0 * first(i, i)) * (1.0 + 2.0 * first(j, j))).sqrt();
        2.25 * std::f64::consts::FRAC_2_PI * sine.asin() + 0.04
    });
    assert!(difference(&found, &expected.into_dyn()) < 1e-12);
}

/// One hidden layer: the mean over networks is the limit but for its sampling error, in both parametrisations, from a file and
/// from a description.
#[test]
fn means_are_limits_within_their_errors() {
    let folder = folder();
    for source in ["--arch mlp.toml", "--net mlp.onnx"] {
        for (limit, mean) in [("nngp", "nngp-mc"), ("ntk-limit", "ntk-mc")] {
            for rule in ["weight-std=1.2,bias-std=0.3", "initialisation=he", "weight-std=1,parametrisation=standard"] {
                let rest = format!("{source} --data mlp.x.npy");
                let expected = matrix(&folder, &format!("{rest} --kernel {limit}({rule})"));
                let found = matrix(&folder, &format!("{rest} --kernel {mean}(networks=300,{rule}) --seed 4"));
                let errors = folder.read("out.standard_error.npy");
                assert_eq!(errors.shape(), found.shape());
                for ((found, expected), error) in found.iter().zip(&expected).zip(&errors) {
                    // Five standard errors.
                    assert!((found - expected).abs() < 5.0 * error, "{rest} {mean}: {found} ± {error}, not {expected}");
                }
            }
        }
    }
}

#[test]
fn stores_files_and_seeds() {
    let folder = folder();
    let line = "kernel --arch pooled.toml --data images.npy --kernel nngp-mc(networks=20)";
    let report = folder.json(&format!("{line} -o mean.npy"));
    assert_eq!((&report["kernel"], &report["matrices"][1]), (&"nngp-mc(networks=20)".into(), &"standard error".into()));
    assert_eq!(report["files"].as_array().unwrap().len(), 2);
    folder.refuse(&format!("{line} -o mean.npy"), &["exists already"]);
    folder.succeed(&format!("{line} -o mean.zarr"));
    folder.succeed(&format!("{line} -o mean.zarr --resume"));
    let store = mercer::kernel::store::Store::open(&folder.path("mean.zarr")).unwrap();
    for (array, file) in [("kernel", "mean.npy"), ("standard error", "mean.standard_error.npy")] {
        assert_eq!(store.read_all::<f32>(array).unwrap().mapv(f64::from), folder.read(file), "{array}");
    }
    folder.refuse(&format!("{line} --seed 1 -o mean.zarr --resume"), &["kernel"]);
    folder.succeed(&format!("{line} --seed 1 -o other.npy"));
    assert!(difference(&folder.read("other.npy"), &folder.read("mean.npy")) > 0.01);
    // The features of the same networks.
    folder.succeed(&format!("{line} --as-features -o phi.npy"));
    let phi = folder.read("phi.npy").into_dimensionality::<ndarray::Ix2>().unwrap();
    assert_eq!(phi.dim(), (5, 80));
    assert!(difference(&phi.dot(&phi.t()).into_dyn(), &folder.read("mean.npy")) < 1e-5);
    // Normalised, there are no errors, and one network has none either.
    for other in ["normalised(nngp-mc(networks=20))", "nngp-mc(networks=1)"] {
        let line = line.replace("nngp-mc(networks=20)", other);
        assert_eq!(folder.json(&format!("{line} -o one.npy --force"))["files"].as_array().unwrap().len(), 1);
    }
    // Trained kinds of a description are of its initial weights.
    folder.succeed("kernel --arch pooled.toml --data images.npy --kernel trace --seed 3 -o trace.npy");
}

#[test]
fn what_has_no_limit_is_named_with_another_way() {
    let folder = folder();
    folder.refuse(
        "kernel --arch pooled.toml --data images.npy --kernel ntk-limit -o no.npy",
        &["pooled.toml", "layer2", "max-pool", "--kernel 'ntk-mc(networks=1000)'"],
    );
    folder.refuse(
        "kernel --arch pooled.toml --data images.npy --kernel nngp -o no.npy",
        &["layer2", "--kernel 'nngp-mc(networks=1000)'"],
    );
}

#[test]
fn flags_that_mean_nothing_are_refused() {
    let folder = folder();
    for (arguments, words) in [
        ("--kernel nngp(sketch=sjlt:8)", &["unknown setting of nngp `sketch`"] as &[&str]),
        ("--kernel nngp-mc(params='layer1')", &["`params`"]),
        ("--kernel ntk-limit --by-layer", &["--by-layer"]),
        ("--kernel nngp(outputs=[0])", &["`outputs`"]),
        ("--kernel nngp(node='y')", &["`node`"]),
        ("--kernel nngp(nodes=['x'])", &["`nodes`"]),
        ("--kernel nngp(networks=10)", &["`networks`"]),
        ("--kernel nngp-mc(networks=0)", &["networks must be at least 1"]),
        ("--kernel trace(weight-std=1)", &["`weight-std`"]),
        ("--kernel trace(initialisation=he)", &["`initialisation`"]),
        ("--kernel nngp(bias-std=1)", &["bias-std needs weight-std"]),
        ("--kernel nngp(initialisation=he,weight-std=1)", &["initialisation", "weight-std"]),
        ("--kernel nngp(weight-std=-1)", &["weight-std", "not negative"]),
        ("--kernel nngp --as-features", &["--as-features"]),
        ("--kernel nngp --include w", &["--include", "--arch"]),
        ("--kernel ntk", &["ntk-limit"]),
    ] {
        folder.refuse(&format!("kernel --arch mlp.toml --data mlp.x.npy -o no.npy {arguments}"), words);
    }
    folder.refuse("kernel --data mlp.x.npy --kernel nngp -o no.npy", &["--net", "--arch"]);
    folder.refuse("kernel --net mlp.onnx --arch mlp.toml --data mlp.x.npy --kernel nngp -o no.npy", &["--arch"]);
    folder.refuse("kernel --arch mlp.toml --data images.npy --kernel nngp -o no.npy", &["mlp.toml"]);
    folder.write("bad.toml", b"[mlp]\ninputs = [4]\n");
    folder.refuse("kernel --arch bad.toml --data mlp.x.npy --kernel nngp -o no.npy", &["bad.toml", "outputs"]);
}
