//! `--standardise`: means and deviations of the training data, remembered by whatever is saved.

use crate::folder::{Folder, difference};
use ndarray::{Array1, Array2, Axis};

/// Columns of very different sizes, the last one constant; and the same standardised by hand, both by the training samples.
fn problem() -> Folder {
    let folder = Folder::with(&[]);
    let number = |row: usize, column: usize| ((row * (7 + 3 * column) + column) % 23) as f64 / 23.0 - 0.4;
    let raw = |rows: usize, shift: usize| {
        Array2::from_shape_fn((rows, 4), |(row, column)| match column {
            0 => 1e4 + 100.0 * number(row + shift, 0),
            3 => 0.1,
            column => number(row + shift, column) / 10f64.powi(column as i32),
        })
    };
    let (train, new) = (raw(40, 0), raw(15, 5));
    let mean = train.mean_axis(Axis(0)).unwrap();
    let mut deviation = train.std_axis(Axis(0), 0.0);
    deviation[3] = 1.0;
    for (name, table) in [("x", &train), ("new", &new)] {
        folder.write_array(&format!("{name}.npy"), table.view());
        folder.write_array(&format!("{name}-by-hand.npy"), ((table - &mean) / &deviation).view());
    }
    folder.write_array("y.npy", train.column(1).mapv(|x| 3.0 * x + 1.0).view());
    folder.write_array("classes.npy", Array1::from_shape_fn(40, |row| i64::from(train[(row, 1)] > 0.0)).view());
    folder.write("net.toml", b"[mlp]\ninputs = [4]\nwidths = [8]\noutputs = 2\n");
    folder
}

/// What is saved standardises new samples as the training samples were; by hand it comes out the same.
#[test]
fn machines_functions_and_networks_remember() {
    let folder = problem();
    let commands = [
        ("fit ridge --kernel rbf(lengthscale=2)", "--labels y.npy", 1e-8),
        ("fit process --kernel rbf(lengthscale=2)", "--labels y.npy", 1e-8),
        ("eigen --kernel rbf(lengthscale=2) --method exact -k 3 --precision f64", "", 1e-6),
        ("train --arch net.toml --epochs 3", "--labels classes.npy", 1e-4),
    ];
    for (command, labels, tolerance) in commands {
        let run = folder.run(&format!("{command} --data x.npy {labels} --standardise -o own --force"));
        assert_eq!(run.code, Some(0), "{command}: {}", run.err);
        assert!(run.err.contains("column 3 of x.npy is constant"), "{command}: {}", run.err);
        folder.succeed(&format!("{command} --data x-by-hand.npy {labels} -o hand --force"));
        folder.succeed("predict --from own --data new.npy -o own.npy --force");
        folder.succeed("predict --from hand --data new-by-hand.npy -o hand.npy --force");
        let found = difference(&folder.read("own.npy"), &folder.read("hand.npy"));
        assert!(found < tolerance, "{command}: {found}");
        for name in ["own", "hand"] {
            std::fs::remove_dir_all(folder.path(name)).unwrap();
        }
    }
}

/// Other sets of the same command are standardised by the training data, for any number of threads.
#[test]
fn other_sets_are_standardised_by_the_training_data() {
    let folder = problem();
    let line = "kernel --kernel rbf(lengthscale=2) --precision f64 --data";
    for (threads, out) in [("1", "one.npy"), ("3", "three.npy")] {
        let arguments = format!("{line} x.npy --against new.npy --standardise --threads {threads} -o {out}");
        let arguments: Vec<&str> = arguments.split(' ').collect();
        let status = folder.command_within(600_000, &arguments).output().unwrap().status;
        assert!(status.success(), "{threads}");
    }
    folder.succeed(&format!("{line} x-by-hand.npy --against new-by-hand.npy -o hand.npy"));
    assert!(difference(&folder.read("one.npy"), &folder.read("hand.npy")) < 1e-9);
    let bytes = |name: &str| std::fs::read(folder.path(name)).unwrap();
    assert_eq!(bytes("one.npy"), bytes("three.npy"));
}

#[test]
fn what_makes_no_sense_is_refused() {
    let folder = problem();
    let fit = "fit ridge --kernel rbf() --labels y.npy -o m --data";
    folder.refuse(&format!("{fit} x.npy --standardise --mean 1"), &["--standardise", "cannot be used with"]);
    folder.write_array("images.npy", ndarray::Array3::<f64>::ones((40, 3, 3)).view());
    folder.refuse(&format!("{fit} images.npy --standardise"), &["--standardise is for tables", "--std"]);
    folder.refuse("fit ridge --features x.npy --labels y.npy --standardise -o m", &["are for --data"]);
    folder.succeed(&format!("{fit} x.npy --standardise"));
    folder.refuse("predict --from m --data new.npy --standardise -o p.npy", &["takes means from training data"]);
}
