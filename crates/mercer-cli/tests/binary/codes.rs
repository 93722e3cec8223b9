//! `mercer eigen contrastive`, scores of codes, and what a folder remembers.

use crate::folder::{Folder, difference};
use mercer::data::random::stream;
use ndarray::{Array1, Array2, Array4};
use rand::RngExt;

const CLASSES: usize = 4;

/// Points on a circle, in classes that noise does not mix: two views of each, and others.
fn views() -> Folder {
    let folder = Folder::with(&[]);
    let view = |name: &str, rows: usize| {
        let mut random = stream(5, name);
        let angles: Array1<f64> = (0..rows)
            .map(|row| std::f64::consts::TAU * ((row % CLASSES) as f64 + 0.3 * random.random::<f64>()) / CLASSES as f64)
            .collect();
        Array2::from_shape_fn(
            (rows, 2),
            |(row, column)| if column == 0 { angles[row].cos() } else { angles[row].sin() },
        )
    };
    for (name, rows) in [("first", 160), ("second", 160), ("new", 40)] {
        folder.write_array(&format!("{name}.npy"), view(name, rows).view());
    }
    let labels = |rows: usize| Array1::from_shape_fn(rows, |row| (row % CLASSES) as i64);
    folder.write_array("classes.npy", labels(160).view());
    folder.write_array("new_classes.npy", labels(40).view());
    folder
}

/// The kernel `p(x, x')/(p(x)p(x'))` of these pairs is one on functions that are constant on classes and zero on the others;
/// the constant is left out.
#[test]
fn pairs_give_ordered_codes() {
    let folder = views();
    let line = "eigen contrastive --data first.npy --pairs second.npy -k 6 --iterations 300 --batch 80 \
                --learning-rate 1e-3 --labels classes.npy --test new.npy --test-labels new_classes.npy -o codes";
    let report = folder.json(line);
    assert_eq!((&report["method"], &report["precision"]), (&"contrastive".into(), &"f32".into()));
    let values: Vec<f64> = report["values"].as_array().unwrap().iter().map(|v| v.as_f64().unwrap()).collect();
    assert!(values[..CLASSES - 1].iter().all(|v| (v - 1.0).abs() < 0.05), "{values:?}");
    assert!(values[CLASSES - 1..].iter().all(|v| *v < 0.3), "{values:?}");
    let lengths = report["codes"]["lengths"].as_array().unwrap();
    let at = |index: usize, name: &str| lengths[index][name].as_f64().unwrap();
    assert_eq!(lengths[..2].iter().map(|l| l["length"].as_u64().unwrap()).collect::<Vec<_>>(), [1, 2]);
    let last = lengths.len() - 1;
    assert_eq!(lengths[last]["length"].as_u64().unwrap(), values.len() as u64);
    // Three functions tell four classes apart; what follows is noise, which a code of four numbers has little of.
    assert_eq!(lengths[2]["length"].as_u64().unwrap(), 4);
    assert!(at(last, "accuracy") == 1.0 && at(2, "mean_average_precision") > 0.95, "{lengths:?}");
    assert!(at(0, "precision") <= at(last, "precision"));
    for file in ["values.npy", "psi.npy", "psi_data.npy", "functions.svg", "psi.onnx", "values_before.npy"] {
        assert!(folder.path("codes").join(file).is_file(), "{file}");
    }
    // The precision of the folder is that of the run, so the bits are the same.
    for (data, file) in [("new.npy", "psi.npy"), ("first.npy", "psi_data.npy")] {
        folder.succeed(&format!("predict --from codes --data {data} -o again.npy --force"));
        assert_eq!(folder.read("again.npy"), folder.read(&format!("codes/{file}")), "{file}");
    }
    let text = folder.succeed(&format!("{line} --force"));
    assert!(text.contains("precision at 20") && text.contains("mAP"), "{text}");
    // The network gives the functions themselves.
    folder.succeed("predict --net codes/psi.onnx --data new.npy -o network.npy");
    assert!(difference(&folder.read("network.npy"), &folder.read("codes/psi.npy")) < 1e-3);
}

/// Bright squares in one of four corners, channels last, as bytes.
fn images() -> Folder {
    let folder = Folder::with(&[]);
    let image = |name: &str, rows: usize| {
        let mut random = stream(6, name);
        Array4::from_shape_fn((rows, 8, 8, 1), |(row, y, x, _)| {
            let (down, right) = (row % CLASSES / 2, row % 2);
            let inside = y / 4 == down && x / 4 == right;
            (if inside { 160 } else { 20 }) + random.random_range(0..60u8)
        })
    };
    folder.write_array("images.npy", image("images", 96).view());
    folder.write_array("new.npy", image("new", 32).view());
    folder.write_array("classes.npy", Array1::from_shape_fn(96, |row| (row % CLASSES) as i64).view());
    folder.write_array("new_classes.npy", Array1::from_shape_fn(32, |row| (row % CLASSES) as i64).view());
    folder
}

#[test]
fn images_are_augmented_and_preprocessing_is_remembered() {
    let folder = images();
    let report = folder.json(
        "eigen contrastive --data images.npy --labels classes.npy --test new.npy --test-labels new_classes.npy \
         --scale 1/255 --layout nhwc --crop 0.8 --view-noise 0.2 -k 4 --iterations 60 --batch 48 -o codes",
    );
    let last = report["codes"]["lengths"].as_array().unwrap().last().unwrap();
    assert!(last["accuracy"].as_f64().unwrap() > 0.9, "{last}");
    // Raw bytes go through the steps of the folder.
    folder.succeed("predict --from codes --data new.npy -o again.npy");
    assert_eq!(folder.read("again.npy"), folder.read("codes/psi.npy"));
    folder.succeed("predict --from codes/before --data new.npy -o before.npy");
    // Other flags are taken at their word, and that is said.
    let run = folder.run("predict --from codes --data new.npy --scale 1/128 --layout nhwc -o other.npy");
    assert!(run.code == Some(0) && run.err.contains("replace the preprocessing of the folder"), "{}", run.err);
    assert_ne!(folder.read("other.npy"), folder.read("codes/psi.npy"));
    let run = folder.run("predict --from codes --data new.npy --scale 1/255 --layout nhwc -o same.npy");
    assert!(run.code == Some(0) && !run.err.contains("replace the preprocessing"), "{}", run.err);
    let text = folder.succeed("info codes");
    for word in ["eigenfunctions", "contrastive", "images.npy", "scale", "channels_first", "psi.onnx", "Eigenvalues"] {
        assert!(text.contains(word), "{word} in {text}");
    }
    folder.write("model.toml", b"[mlp]\ninputs = [1, 8, 8]\nwidths = [16]\noutputs = 3\n");
    let line = "eigen contrastive --data images.npy --scale 1/255 --layout nhwc -k 3 --iterations 5 --batch 16";
    folder.succeed(&format!("{line} --functions model.toml -o described"));
    // A model with as many outputs is a network to go on with.
    folder.write("model.onnx", &folder.object("described", "functions"));
    folder.succeed(&format!("{line} --functions model.onnx -o continued"));
}

/// What a machine learnt from is prepared as new samples are.
#[test]
fn machines_remember_preprocessing() {
    let folder = images();
    folder.succeed("fit svm --kernel rbf() --data images.npy --labels classes.npy --scale 1/255 -o machine");
    folder.succeed("predict --from machine --data new.npy -o plain.npy");
    folder.succeed("predict --from machine --data new.npy --scale 1/255 -o scaled.npy");
    assert_eq!(folder.read("plain.npy"), folder.read("scaled.npy"));
    assert!(folder.succeed("info machine").contains("scale"));
}

#[test]
fn what_makes_no_pairs_is_refused() {
    let folder = views();
    folder.write_array("short.npy", Array2::<f64>::zeros((3, 2)).view());
    let line = "eigen contrastive --data first.npy -o out";
    for (flags, words) in [
        ("", &["not images", "--pairs"][..]),
        ("--pairs short.npy", &["--pairs", "3 samples"]),
        ("--pairs second.npy --crop 0.5", &["--crop"]),
        ("--pairs second.npy --kernel rbf()", &["--kernel"]),
        ("--pairs second.npy --truth", &["--truth"]),
        ("--pairs second.npy --test new.npy --test-labels new_classes.npy", &["--test-labels", "--labels"]),
        ("--crop 1 --view-noise -1", &["noise"]),
    ] {
        let run = folder.run(&format!("{line} {flags}"));
        assert_eq!(run.code, Some(2), "{flags}: {}{}", run.out, run.err);
        assert!(words.iter().all(|word| run.err.contains(word)), "{flags}: {}", run.err);
    }
    let line = "--kernel rbf() --data first.npy";
    folder.refuse(&format!("eigen exact {line} --pairs second.npy -o out"), &["--pairs"]);
    folder.write("model.onnx", b"");
    folder.refuse(&format!("eigen neuralef {line} --functions model.onnx -o out2"), &["model.onnx", "shared"]);
}
