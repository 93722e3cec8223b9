//! The promise of `--memory`: the smallest that is suggested is accepted, and kept. `cargo xtask memory` tries many more kernels.

use crate::folder::Folder;
use ndarray::Array2;

const MLP: &str = "
[mlp]
inputs = [16]
widths = [96, 96]
outputs = 5
";

/// What the refusal of one mebibyte suggests.
fn suggestion(folder: &Folder, line: &str) -> String {
    let refused = folder.run(&format!("{line} --memory 1MiB"));
    assert_eq!(refused.code, Some(2), "{line}: {}", refused.err);
    let before = refused.err.split(", the smallest").next().unwrap();
    before.rsplit("--memory ").next().unwrap().to_owned()
}

#[test]
fn the_first_suggestion_is_accepted_and_kept() {
    let folder = Folder::with(&[]);
    folder.write("mlp.toml", MLP.as_bytes());
    let x = Array2::from_shape_fn((1100, 16), |(i, j)| ((i * 37 + j * 11) % 211) as f32 / 100.0 - 1.0);
    folder.write_array("x.npy", x.view());
    for (arguments, output) in [
        ("--kernel rbf()", "rbf.npy"),
        ("--arch mlp.toml --kernel trace --by-layer", "trace.zarr"),
        ("--arch mlp.toml --kernel normalised(pseudo) --precision f64", "pseudo.npy"),
        ("--arch mlp.toml --kernel nngp-mc(networks=12)", "mean.npy"),
        ("--arch mlp.toml --kernel trace(sketch=sjlt:64) --as-features", "features.npy"),
    ] {
        let line = format!("kernel {arguments} --data x.npy -o {output}");
        // Code that was not in memory before is by now.
        suggestion(&folder, &line);
        let memory = suggestion(&folder, &line);
        let report = folder.json(&format!("{line} --memory {memory}"));
        let [promised, peak] =
            ["promised_bytes", "peak_bytes"].map(|key| report["measurements"][key].as_f64().unwrap());
        assert!(peak > 0.0 && peak <= 1.02 * promised, "{line}: {peak} of {promised}");
        assert_eq!(report["measurements"]["promise_broken"], peak > promised, "{line}");
    }
}
