//! `mercer fit` and `mercer predict --from`.

use crate::folder::{Folder, difference};
use ndarray::{Array1, Array2, array};

/// Eight samples of two classes on a line, and their linear kernel with a constant.
fn problem() -> (Folder, Array2<f64>) {
    let folder = Folder::with(&[]);
    let x =
        Array2::from_shape_fn((8, 2), |(i, j)| if j == 0 { i as f64 / 4.0 - 0.9 } else { (i * i % 5) as f64 / 5.0 });
    let gram = x.dot(&x.t()) + 1.0;
    folder.write_array("x.npy", x.view());
    folder.write_array("gram.npy", gram.view());
    folder.write_array("classes.npy", Array1::from_shape_fn(8, |i| i64::from(i > 3)).view());
    folder.write_array("targets.npy", x.column(0).mapv(|x| 2.0 * x + 1.0).view());
    (folder, gram)
}

#[test]
fn every_machine_is_fitted_and_predicts() {
    let (folder, _) = problem();
    for machine in ["ridge", "least-squares", "process"] {
        folder.succeed(&format!("fit {machine} --gram gram.npy --labels targets.npy -o {machine}"));
        let report = folder.json(&format!("predict --from {machine} --data gram.npy --labels targets.npy"));
        assert!(report["r_squared"].as_f64().unwrap() > 0.8, "{machine}: {report}");
    }
    folder.succeed("fit flow --time 100 --gram gram.npy --labels targets.npy -o flow");
    let kinds = ["glm", "sgd", "logistic", "svm", "process-classifier", "neighbours", "centres"];
    for machine in kinds {
        for basis in ["gram", "features"] {
            let file = if basis == "gram" { "gram.npy" } else { "x.npy" };
            let name = format!("{machine}-{basis}");
            let text = folder.succeed(&format!("fit {machine} --{basis} {file} --labels classes.npy -o {name}"));
            assert!(text.contains("training accuracy") && text.contains("machine in"), "{text}");
            let line = format!("predict --from {name} --data {file} --labels classes.npy -o {name}.npy");
            let report = folder.json(&line);
            assert!(report["accuracy"].as_f64().unwrap() >= 0.75, "{machine}: {report}");
            assert_eq!(folder.read(&format!("{name}.npy")).shape(), [8, 2]);
            assert_eq!(report["negative_log_likelihood"].is_null(), machine == "svm", "{report}");
        }
    }
    let report = folder.json("predict --from glm-gram --data gram.npy --labels classes.npy");
    let bins = report["reliability"]["bins"].as_array().unwrap();
    let total: u64 = bins.iter().map(|bin| bin["count"].as_u64().unwrap()).sum();
    assert_eq!((bins.len(), total), (15, 8), "{report}");
    assert!(bins.iter().all(|bin| bin["accuracy"].is_null() == (bin["count"] == 0)), "{report}");
    folder.succeed("predict --from glm-gram --data gram.npy --probabilities -o p.npy");
    assert!(folder.read("p.npy").sum_axis(ndarray::Axis(1)).iter().all(|sum| (sum - 1.0).abs() < 1e-12));
}

/// The saved ridge solves `(K + αI)·W = y`; of several α the best is reported; iterations end at the same place.
#[test]
fn ridge_is_ridge() {
    let (folder, gram) = problem();
    folder.succeed("fit ridge --gram gram.npy --labels targets.npy --penalty 0.5 -o exact");
    let weights = folder.saved("exact", "weights").into_dimensionality::<ndarray::Ix2>().unwrap();
    let left = gram.dot(&weights) + &weights * 0.5;
    let targets = folder.read("targets.npy");
    assert!(left.iter().zip(&targets).all(|(a, b)| (a - b).abs() < 1e-12));
    let text = folder.succeed("fit ridge --gram gram.npy --labels targets.npy --penalty 0.001,1,1000 -o best");
    assert!(text.contains("penalty 0.001 by leave-one-out"), "{text}");
    let text = folder.succeed("fit ridge --gram gram.npy --labels targets.npy --penalty 0.5 --rank 2 -o iterated");
    assert!(text.contains("relative residual"), "{text}");
    assert!(difference(&folder.saved("iterated", "weights"), &folder.saved("exact", "weights")) < 1e-8);
    let text = folder.succeed("fit ridge --gram gram.npy --labels targets.npy --penalty 0 -o singular");
    assert!(text.contains("repaired:") && text.contains("added to the diagonal"), "{text}");
}

/// Of several penalties the best by cross-validation is taken; the values and scores are printed and part of the result.
#[test]
fn penalties_are_cross_validated() {
    let (folder, _) = problem();
    for (machine, flag, criterion) in
        [("svm", "cost", "accuracy"), ("glm", "penalty", "log-loss"), ("logistic", "penalty", "log-loss")]
    {
        for rows in ["--gram gram.npy", "--features x.npy"] {
            let line = format!("fit {machine} {rows} --labels classes.npy --folds 4 -o m --force --{flag}");
            let text = folder.succeed(&format!("{line} 10,0.1,1"));
            assert!(text.contains(" by cross-validation (") && text.contains("4 folds)"), "{text}");
            assert_eq!(text.matches(" *\n").count(), 1, "{text}");
            let found = folder.json(&format!("{line} 0.1,1,10"));
            let selection = &found["selection"];
            assert_eq!((&selection["criterion"], &selection["folds"]), (&criterion.into(), &4.into()));
            let tried: Vec<f64> = (0..3).map(|at| selection["candidates"][at]["value"].as_f64().unwrap()).collect();
            assert_eq!(tried, [0.1, 1.0, 10.0]);
            let chosen = found[flag].as_f64().unwrap();
            assert!(text.starts_with(machine) && text.contains(&format!("{flag} {chosen} by")), "{text}");
            // The machine is that of the value alone.
            let chosen_weights = folder.saved("m", "weights");
            folder.succeed(&format!("fit {machine} {rows} --labels classes.npy --{flag} {chosen} -o alone --force"));
            assert_eq!(folder.saved("alone", "weights"), chosen_weights);
        }
    }
    let line = "fit svm --gram gram.npy --labels classes.npy -o no --cost 1,2 --folds";
    folder.refuse(&format!("{line} 1"), &["number of folds is 1"]);
    folder.refuse("fit glm --gram gram.npy --labels classes.npy -o no --penalty 1,0", &["the penalty is 0"]);
}

/// A machine on a network's kernel predicts from samples alone: the same as from matrices that `mercer kernel` writes.
#[test]
fn a_machine_knows_its_kernel() {
    let folder = Folder::with(&["mlp.onnx", "mlp.x.npy"]);
    let n = folder.read("mlp.x.npy").shape()[0];
    folder.write_array("y.npy", Array1::from_shape_fn(n, |i| (i % 2) as i64).view());
    let kernel = "--net mlp.onnx --kernel trace --data mlp.x.npy";
    folder.succeed(&format!("kernel {kernel} --precision f64 -o gram.npy"));
    folder.succeed(&format!("fit svm {kernel} --labels y.npy -o own"));
    folder.succeed("fit svm --gram gram.npy --labels y.npy -o given");
    folder.succeed("predict --from own --data mlp.x.npy -o own.npy");
    folder.succeed("predict --from given --data gram.npy -o given.npy");
    assert!(difference(&folder.read("own.npy"), &folder.read("given.npy")) < 1e-9);
    folder.succeed(&format!("fit process-classifier {kernel} --labels y.npy -o process"));
    folder.succeed("predict --from process --data mlp.x.npy --probabilities --labels y.npy -o p.npy");
    // Moved, with another network under the same name or none, and without the data, it gives the same bits.
    let (bits, probabilities) =
        (std::fs::read(folder.path("own.npy")).unwrap(), std::fs::read(folder.path("p.npy")).unwrap());
    std::fs::rename(folder.path("mlp.x.npy"), folder.path("new.npy")).unwrap();
    for name in ["own", "process"] {
        std::fs::rename(folder.path(name), folder.path(&format!("moved-{name}"))).unwrap();
    }
    for network in [Some("cnn.onnx"), None] {
        std::fs::remove_file(folder.path("mlp.onnx")).unwrap();
        network.map(|other| std::fs::copy(crate::folder::fixture(other), folder.path("mlp.onnx")).unwrap());
        folder.succeed("predict --from moved-own --data new.npy -o own.npy --force");
        assert!(std::fs::read(folder.path("own.npy")).unwrap() == bits, "{network:?}");
        folder.succeed("predict --from moved-process --data new.npy --probabilities -o p.npy --force");
        assert!(std::fs::read(folder.path("p.npy")).unwrap() == probabilities, "{network:?}");
    }
    // A flipped bit in any of its files is found and named, and a missing file is, too.
    for entry in std::fs::read_dir(folder.path("moved-own/objects")).unwrap() {
        let path = entry.unwrap().path();
        let bytes = std::fs::read(&path).unwrap();
        let mut flipped = bytes.clone();
        flipped[bytes.len() / 3] ^= 8;
        std::fs::write(&path, flipped).unwrap();
        let name = path.file_name().unwrap().to_str().unwrap();
        folder.refuse("predict --from moved-own --data new.npy -o no.npy", &[name, "is damaged"]);
        std::fs::remove_file(&path).unwrap();
        folder.refuse("predict --from moved-own --data new.npy -o no.npy", &[name, "is missing"]);
        std::fs::write(&path, bytes).unwrap();
    }
}

/// A checkpoint, a description and parameters that were chosen are saved with the machine.
#[test]
fn whatever_made_the_kernel_is_saved() {
    let folder = Folder::with(&["mlp.onnx", "mlp.x.npy"]);
    folder.write("mlp.toml", b"[mlp]\ninputs = [4]\noutputs = 3\nwidths = [8, 8]\nactivation = \"tanh\"\n");
    let n = folder.read("mlp.x.npy").shape()[0];
    folder.write_array("y.npy", Array1::from_shape_fn(n, |i| (i % 2) as i64).view());
    let kernels = [
        "--net mlp.onnx --kernel trace --exclude *bias*",
        "--net mlp.onnx --kernel trace(sketch=sjlt:16) --seed 3",
        "--arch mlp.toml --seed 5 --kernel trace",
        "--arch mlp.toml --kernel ntk-limit",
        "--net mlp.onnx --kernel nngp-mc(networks=4)",
        "--kernel rbf(lengthscale=2)",
    ];
    for (at, kernel) in kernels.iter().enumerate() {
        folder.succeed(&format!("kernel {kernel} --data mlp.x.npy --precision f64 -o gram{at}.npy"));
        folder.succeed(&format!("fit ridge {kernel} --data mlp.x.npy --labels y.npy -o own{at}"));
        folder.succeed(&format!("fit ridge --gram gram{at}.npy --labels y.npy -o given{at}"));
    }
    std::fs::remove_file(folder.path("mlp.onnx")).unwrap();
    std::fs::remove_file(folder.path("mlp.toml")).unwrap();
    for (at, kernel) in kernels.iter().enumerate() {
        folder.succeed(&format!("predict --from own{at} --data mlp.x.npy -o own{at}.npy"));
        folder.succeed(&format!("predict --from given{at} --data gram{at}.npy -o given{at}.npy"));
        let (own, given) = (folder.read(&format!("own{at}.npy")), folder.read(&format!("given{at}.npy")));
        assert!(difference(&own, &given) < 1e-9, "{kernel}");
    }
}

/// A run can be done again; what changed is named.
#[test]
fn runs_are_replayed() {
    let folder = Folder::with(&["mlp.onnx", "mlp.x.npy", "mlp.labels.npy"]);
    folder.succeed("fit glm --net mlp.onnx --kernel trace --data mlp.x.npy --labels mlp.labels.npy -o machine");
    folder.succeed("predict --from machine --data mlp.x.npy -o scores.npy");
    folder.succeed("predict --net mlp.onnx --data mlp.x.npy -o logits.npy");
    for result in ["machine", "scores.npy", "logits.npy"] {
        let text = folder.succeed(&format!("replay {result}"));
        assert!(text.contains("the same") && !text.contains("changed"), "{text}");
    }
    let scaled = folder.read("mlp.x.npy").mapv(|x| (1.5 * x) as f32);
    std::fs::remove_file(folder.path("mlp.x.npy")).unwrap();
    folder.write_array("mlp.x.npy", scaled.view());
    for result in ["machine", "scores.npy", "logits.npy"] {
        let run = folder.run(&format!("replay {result}"));
        assert_eq!(run.code, Some(1), "{}", run.err);
        assert!(run.out.contains("changed since: --data mlp.x.npy") && run.out.contains("differs"), "{}", run.out);
    }
}

/// What the rows and the solver take is compared with what may be used, before the work begins.
#[test]
fn memory_is_asked_for_before() {
    let folder = Folder::with(&[]);
    let n = 2000;
    folder.write_array("x.npy", Array2::from_shape_fn((n, 2), |(i, j)| ((i * (j + 3)) % 17) as f64).view());
    folder.write_array("y.npy", Array1::from_shape_fn(n, |i| i as f64).view());
    for machine in ["ridge", "process", "least-squares"] {
        let line = format!("fit {machine} --kernel rbf() --data x.npy --labels y.npy -o m --memory 40MiB");
        folder.refuse(&line, &[machine, "may be used", "--memory", "MiB"]);
    }
}

#[test]
fn what_makes_no_sense_is_refused() {
    let (folder, _) = problem();
    folder.write_array("wide.npy", Array2::<f64>::ones((8, 3)).view());
    folder.write_array("one.npy", Array1::<i64>::zeros(8).view());
    folder.write_array("short.npy", array![0_i64, 1].view());
    let gram = "--gram gram.npy --labels classes.npy -o m";
    folder.refuse(&format!("fit svm {gram} --penalty 1"), &["unexpected argument '--penalty'"]);
    folder.refuse(&format!("fit svn {gram}"), &["unrecognized subcommand 'svn'", "svm"]);
    folder.refuse("fit svm --labels classes.npy -o m", &["no training samples", "--gram"]);
    folder.refuse("fit svm --data x.npy --labels classes.npy -o m", &["which kernel?"]);
    folder.refuse("fit svm --gram wide.npy --labels classes.npy -o m", &["8 rows but 3 columns"]);
    folder.refuse("fit svm --gram gram.npy --labels one.npy -o m", &["all samples belong to the class 0"]);
    folder.refuse("fit svm --gram gram.npy --labels short.npy -o m", &["2 labels for 8 samples"]);
    folder.refuse(&format!("fit svm {gram} --cost 0"), &["the cost is 0"]);
    folder.refuse(&format!("fit neighbours {gram} --neighbours 9"), &["fewer samples"]);
    folder.refuse("fit flow --gram gram.npy --labels targets.npy -o m", &["required", "--time <TIME>"]);
    folder.succeed(&format!("fit svm {gram}"));
    folder.refuse(&format!("fit svm {gram}"), &["--force"]);
    folder.succeed(&format!("fit centres {gram} --force"));
    folder.refuse("predict --from m --data x.npy -o out.npy", &["training samples", "should be 8, but is 2"]);
    folder.refuse("predict --from nowhere --data x.npy -o out.npy", &["nowhere", "mercer fit"]);
    folder.refuse("predict --from m --data gram.npy", &["nothing to do"]);
    folder.refuse("predict --from m --net x.onnx --data gram.npy -o out.npy", &["cannot be used with"]);
    folder.refuse("predict --from m --node logits --data gram.npy -o out.npy", &["--node is for networks"]);
    folder.write("m/folder.json", b"{}");
    folder.refuse("predict --from m --data gram.npy -o out.npy", &["folder.json", "not a valid mercer folder"]);
}

/// Parameters found by marginal likelihood are kept with the machine, which predicts from samples.
#[test]
fn a_process_is_tuned() {
    let folder = Folder::with(&[]);
    let x = Array2::from_shape_fn((30, 1), |(i, _)| i as f64 / 5.0);
    folder.write_array("x.npy", x.view());
    folder.write_array("y.npy", x.mapv(|x| (1.3 * x).sin() * 2.0).view());
    let text = folder.succeed("fit process --kernel 1*rbf(lengthscale=1) --tune --data x.npy --labels y.npy -o m");
    for part in ["tuned in", "rbf.lengthscale  1.000000 -> ", "noise_variance", "(before tuning "] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let found =
        folder.json("fit process --kernel 1*rbf(lengthscale=1) --tune --data x.npy --labels y.npy -o m --force");
    let names: Vec<&str> = found["tuned"].as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["factor", "rbf.lengthscale", "noise_variance"]);
    assert_eq!((&found["tuned"][1]["before"], &found["tuned"][2]["before"]), (&1.0.into(), &0.1.into()));
    assert_eq!(found["tuned"][2]["after"], found["noise_variance"]);
    let (before, after) = (&found["log_marginal_likelihood_before"], &found["log_marginal_likelihood"]);
    assert!(before.as_f64().unwrap() < after.as_f64().unwrap(), "{found}");
    let report = folder.json("predict --from m --data x.npy --labels y.npy");
    assert!(
        report["r_squared"].as_f64().unwrap() > 0.999 && report["log_likelihood"].as_f64().unwrap() > 0.0,
        "{report}"
    );
    folder.refuse("fit ridge --kernel rbf --tune --data x.npy --labels y.npy -o n", &["unexpected argument '--tune'"]);
}

/// A process that is tuned without a factor, or far from zero, is told what to add.
#[test]
fn tuning_gives_hints() {
    let folder = Folder::with(&[]);
    let x = Array2::from_shape_fn((20, 1), |(i, _)| i as f64 / 5.0);
    folder.write_array("x.npy", x.view());
    folder.write_array("near.npy", x.mapv(|x| (1.3 * x).sin()).view());
    folder.write_array("far.npy", x.mapv(|x| (1.3 * x).sin() + 50.0).view());
    let notes = |kernel: &str, rest: &str| {
        let run = folder.run(&format!("fit process --tune --kernel {kernel} --data x.npy -o m --force {rest}"));
        assert_eq!(run.code, Some(0), "{}", run.err);
        (run.err.contains(&format!("--kernel '1*{kernel}'")), run.err.contains("--centred"))
    };
    assert_eq!(notes("rbf(lengthscale=1)", "--labels near.npy"), (true, false));
    assert_eq!(notes("1*rbf(lengthscale=1)", "--labels near.npy"), (false, false));
    assert_eq!(notes("1*rbf(lengthscale=1)", "--labels far.npy"), (false, true));
    assert_eq!(notes("1*rbf(lengthscale=1)", "--labels far.npy --centred"), (false, false));
}

/// `κ(x,x) − κ(x,X)·(K + σ²I)⁻¹·κ(X,x)` beside the means, from samples and from features; rows of a Gram matrix do not hold κ(x,x).
#[test]
fn a_process_writes_its_variance() {
    let folder = Folder::with(&[]);
    let x = array![[0.0, 0.3], [1.0, -0.5], [2.5, 0.1]];
    let new = array![[0.4, 0.0], [7.0, 1.0]];
    folder.write_array("x.npy", x.view());
    folder.write_array("y.npy", array![[1.0, 5.0], [-1.0, 2.0], [0.5, 0.0]].view());
    folder.write_array("new.npy", new.view());
    let rbf = |a: &Array2<f64>, b: &Array2<f64>| {
        Array2::from_shape_fn((a.nrows(), b.nrows()), |(i, j)| {
            let difference = &a.row(i) - &b.row(j);
            (-difference.dot(&difference) / 8.0).exp()
        })
    };
    let linear = |a: &Array2<f64>, b: &Array2<f64>| a.dot(&b.t());
    folder.write_array("gram.npy", rbf(&x, &x).view());
    folder.write_array("cross.npy", rbf(&new, &x).view());
    let with = "--labels y.npy --noise-variance 0.01";
    folder.succeed(&format!("fit process --kernel rbf(lengthscale=2) --data x.npy {with} -o own"));
    folder.succeed(&format!("fit process --features x.npy {with} -o features"));
    folder.succeed(&format!("fit process --gram gram.npy {with} -o gram"));
    type Kernel = dyn Fn(&Array2<f64>, &Array2<f64>) -> Array2<f64>;
    let kernels: [(&str, &Kernel); 2] = [("own", &rbf), ("features", &linear)];
    for (name, kernel) in kernels {
        let report = folder.json(&format!("predict --from {name} --data new.npy -o {name}.npy"));
        assert_eq!(
            (&report["variances"], &report["noise_variance"]),
            (&format!("{name}.variance.npy").into(), &0.01.into())
        );
        let found = folder.read(&format!("{name}.variance.npy"));
        assert_eq!(found.shape(), folder.read(&format!("{name}.npy")).shape());
        let (k, cross) = (kernel(&x, &x) + Array2::<f64>::eye(3) * 0.01, kernel(&new, &x));
        for row in 0..2 {
            let solved = solve3(&k, [cross[(row, 0)], cross[(row, 1)], cross[(row, 2)]]);
            let explained: f64 = (0..3).map(|i| cross[(row, i)] * solved[i]).sum();
            let expected = kernel(&new, &new)[(row, row)] - explained;
            assert!((0..2).all(|target| (found[[row, target]] - expected).abs() < 1e-10), "{name} {row}: {expected}");
        }
        folder.refuse(&format!("predict --from {name} --data new.npy -o {name}.npy"), &["--force"]);
    }
    let run = folder.run("predict --from gram --data cross.npy -o gram.npy --force");
    assert!(run.code == Some(0) && run.err.contains("variances are not written") && run.err.contains("--features"));
    assert!(!folder.path("gram.variance.npy").exists());
    assert!(difference(&folder.read("gram.npy"), &folder.read("own.npy")) < 1e-10);
}

/// Three equations by Cramer's rule.
fn solve3(a: &Array2<f64>, b: [f64; 3]) -> [f64; 3] {
    let minor = |m: &Array2<f64>| {
        m[(0, 0)] * (m[(1, 1)] * m[(2, 2)] - m[(1, 2)] * m[(2, 1)])
            - m[(0, 1)] * (m[(1, 0)] * m[(2, 2)] - m[(1, 2)] * m[(2, 0)])
            + m[(0, 2)] * (m[(1, 0)] * m[(2, 1)] - m[(1, 1)] * m[(2, 0)])
    };
    [0, 1, 2].map(|column| {
        let mut replaced = a.clone();
        (0..3).for_each(|row| replaced[(row, column)] = b[row]);
        minor(&replaced) / minor(a)
    })
}

/// Neighbours by what the user names, and the softmax of scores beside sigmoids.
#[test]
fn neighbours_and_links_are_named() {
    let folder = Folder::with(&[]);
    let x = array![[1.0, 0.0], [0.9, 0.1], [5.0, 5.0], [-1.0, 0.2], [4.0, 5.0], [0.5, -3.0]];
    folder.write_array("x.npy", x.view());
    folder.write_array("classes.npy", array![0_i64, 0, 1, 1, 2, 2].view());
    folder.write_array("new.npy", array![[1.0, 0.05]].view());
    for (by, class) in [("distance", 0), ("kernel", 1)] {
        let text = folder
            .succeed(&format!("fit neighbours --neighbours 1 --by {by} --features x.npy --labels classes.npy -o {by}"));
        assert!(text.contains(&format!("neighbours by {by}")), "{text}");
        folder.succeed(&format!("predict --from {by} --data new.npy -o {by}.npy"));
        let votes = folder.read(&format!("{by}.npy"));
        assert_eq!(votes.iter().position(|&vote| vote == 1.0), Some(class), "{votes}");
    }
    for link in ["sigmoids", "softmax"] {
        folder.succeed(&format!("fit sgd --link {link} --features x.npy --labels classes.npy -o {link}"));
        folder.succeed(&format!("predict --from {link} --data x.npy -o {link}-scores.npy"));
        folder.succeed(&format!("predict --from {link} --data x.npy --probabilities -o {link}.npy"));
    }
    let scores = folder.read("softmax-scores.npy");
    assert_eq!(scores, folder.read("sigmoids-scores.npy"));
    let row = |values: &ndarray::ArrayD<f64>| values.iter().take(3).copied().collect::<Vec<f64>>();
    let exp: Vec<f64> = row(&scores).iter().map(|score| score.exp()).collect();
    let sigmoid: Vec<f64> = row(&scores).iter().map(|score| 1.0 / (1.0 + (-score).exp())).collect();
    for (name, shares) in [("softmax", exp), ("sigmoids", sigmoid)] {
        let sum: f64 = shares.iter().sum();
        let found = row(&folder.read(&format!("{name}.npy")));
        assert!(found.iter().zip(&shares).all(|(p, share)| (p - share / sum).abs() < 1e-12), "{name}: {found:?}");
    }
    let line = "fit glm --by kernel --features x.npy --labels classes.npy -o no";
    folder.refuse(line, &["unexpected argument '--by'"]);
}

/// Weights that are not finite are no machine, and the exit code says so.
#[test]
fn huge_targets_are_refused() {
    let (folder, _) = problem();
    folder.write_array("huge.npy", Array1::from_shape_fn(8, |i| ((i * 3 % 5) as f64 - 2.0) * 1e300).view());
    for machine in ["flow --time 1e14", "process"] {
        folder.refuse(&format!("fit {machine} --gram gram.npy --labels huge.npy -o no"), &["not finite"]);
    }
    assert!(!folder.path("no").exists());
}
