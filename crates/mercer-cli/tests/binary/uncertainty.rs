//! `mercer uncertainty`, on the reference networks of Laplace approximations.

use crate::folder::{Folder, difference};
use mercer::data::Source;
use ndarray::ArrayD;
use std::path::Path;

const IRIS: &str = "lla_iris_tanh";
const DIABETES: &str = "lla_diabetes_regression";

/// A folder with a reference network and its data.
fn folder(name: &str) -> Folder {
    let folder = Folder::with(&[]);
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/laplace");
    for end in ["onnx", "npz"] {
        std::fs::copy(golden.join(format!("{name}.{end}")), folder.path(&format!("{name}.{end}"))).expect(name);
    }
    folder
}

fn line(name: &str, more: &str) -> String {
    format!(
        "uncertainty --net {name}.onnx --data {name}.npz:x_train --labels {name}.npz:y_train \
         --test {name}.npz:x_test --test-labels {name}.npz:y_test {more}"
    )
}

fn golden(folder: &Folder, name: &str, key: &str) -> ArrayD<f64> {
    let source = Source::new(folder.path(&format!("{name}.npz")), Some(key));
    source.open().and_then(|data| data.read()).expect("an array")
}

#[test]
fn probabilities_are_those_of_the_reference() {
    let folder = folder(IRIS);
    for (method, key) in [
        ("full", "all_full"),
        ("diag", "all_diag"),
        ("kron", "all_kron"),
        ("last-layer-full", "last_layer_full"),
        ("last-layer-kron", "last_layer_kron"),
    ] {
        let more = format!("--method {method} --prior 2 --precision f64 -o run --force");
        let text = folder.succeed(&line(IRIS, &more));
        assert!(text.contains("accuracy") && text.contains("ECE") && text.contains("Laplace (probit)"), "{text}");
        let error = difference(&folder.read("run/probabilities.npy"), &golden(&folder, IRIS, &format!("{key}_probit")));
        assert!(error < 1e-9, "{method}: {error}");
        for file in
            ["result.json", "run.json", "reliability.svg", "entropy.svg", "map_probabilities.npy", "folder.json"]
        {
            assert!(folder.path("run").join(file).is_file(), "{method}: {file}");
        }
    }
}

/// A second softmax would make every prediction unsure: the logits are found, for every method, and it is said.
#[test]
fn a_softmax_at_the_end_changes_nothing() {
    let folder = folder(IRIS);
    let softmax = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/iris_softmax.onnx");
    std::fs::copy(softmax, folder.path("iris_softmax.onnx")).expect("a fixture");
    let methods =
        ["full", "diag", "kron", "last-layer-full", "last-layer-kron", "last-layer-diag", "sketch", "eigen -k 20"];
    for method in methods {
        let more = format!("--method {method} --prior 2 --precision f64 --force -o");
        folder.succeed(&line(IRIS, &format!("{more} plain")));
        let ended = line(IRIS, &format!("{more} ended")).replace("--net lla_iris_tanh", "--net iris_softmax");
        let json = folder.json(&ended);
        for file in ["probabilities.npy", "map_probabilities.npy", "variance.npy"] {
            let error = difference(&folder.read(&format!("ended/{file}")), &folder.read(&format!("plain/{file}")));
            assert!(error < 1e-12, "{method}, {file}: {error}");
        }
        let notes = json["notes"].to_string();
        assert!(notes.contains("over the logits") && notes.contains("Softmax"), "{method}: {notes}");
        assert!(json["worse_than_network"].is_boolean(), "{json}");
    }
    let named =
        line(IRIS, "--method diag --node probabilities -o named").replace("lla_iris_tanh.onnx", "iris_softmax.onnx");
    assert!(folder.run(&named).err.contains("look like probabilities"));
}

/// Samples that come twice, and half of them that is said to be half.
#[test]
fn a_part_of_the_training_set_stands_for_all() {
    let folder = folder(IRIS);
    let (x, y) = (golden(&folder, IRIS, "x_train"), golden(&folder, IRIS, "y_train"));
    let twice = |a: &ArrayD<f64>| ndarray::concatenate(ndarray::Axis(0), &[a.view(), a.view()]).expect("one shape");
    folder.write_array("x.npy", twice(&x).view());
    folder.write_array("y.npy", twice(&y).mapv(|y| y as i64).view());
    let run = |train: &str, more: &str| {
        folder.json(&format!(
            "uncertainty --net {IRIS}.onnx {train} --test {IRIS}.npz:x_test --method kron --precision f64 --force {more}"
        ))
    };
    let whole = run("--data x.npy --labels y.npy", "-o whole");
    let size = 2 * x.shape()[0];
    let part = format!("--data {IRIS}.npz:x_train --labels {IRIS}.npz:y_train");
    let half = run(&part, &format!("--train-size {size} -o half"));
    for key in ["prior_precision", "log_evidence"] {
        let (half, whole) = (half[key].as_f64().expect(key), whole[key].as_f64().expect(key));
        assert!((half / whole - 1.0).abs() < 1e-6, "{key}: {half} and {whole}");
    }
    assert!(difference(&folder.read("half/variance.npy"), &folder.read("whole/variance.npy")) < 1e-6);
    let few =
        format!("uncertainty --net {IRIS}.onnx {part} --test {IRIS}.npz:x_test --method kron --train-size 3 -o no");
    folder.refuse(&few, &["training set", "more samples"]);
}

/// The data that chose nothing: an end of the grid is told, and a posterior that is worse than the network.
#[test]
fn ends_of_the_grid_and_worse_posteriors_are_told() {
    let folder = folder(IRIS);
    let validation = format!("--validation {IRIS}.npz:x_train --validation-labels {IRIS}.npz:y_train");
    // Labels that are all wrong: no uncertainty is too much.
    let wrong = golden(&folder, IRIS, "y_train").mapv(|y| (y as i64 + 1) % 3);
    folder.write_array("wrong.npy", wrong.view());
    let wrong = validation.replace(&format!("{IRIS}.npz:y_train"), "wrong.npy");
    let json = folder.json(&line(IRIS, &format!("--method diag --prior validation {wrong} -o unsure")));
    assert!(json["notes"].to_string().contains("validation: the lowest precision tried"), "{json}");
    let told = folder.run(&line(IRIS, "--method diag --prior 0.0001 -o vague"));
    assert_eq!(told.code, Some(0));
    let note = "note: the posterior predicts these labels worse than the network alone";
    assert!(told.err.contains(note), "{}", told.err);
    let json = folder.json(&line(IRIS, "--method diag --prior 0.0001 -o vague --force"));
    assert_eq!(json["worse_than_network"], true);
    assert!(json["laplace"]["nll"].as_f64() > json["map"]["nll"].as_f64());
}

#[test]
fn approximations_and_other_data() {
    let folder = folder(IRIS);
    let other = golden(&folder, IRIS, "x_test").mapv(|x| 6.0 * x);
    folder.write_array("other.npy", other.view());
    for method in ["sketch --sketch srht:64", "eigen -k 24 --landmarks 60", "kron --draws"] {
        let json = folder.json(&line(IRIS, &format!("--method {method} --ood other.npy -o run --force")));
        let number = |who: &str, what: &str| json[who][what].as_f64().expect(what);
        for who in ["map", "laplace"] {
            assert!(number(who, "accuracy") > 0.8 && number(who, "nll").is_finite(), "{json}");
            assert!((0.0..=1.0).contains(&number(who, "auroc")) && (0.0..=1.0).contains(&number(who, "aupr")));
        }
        assert!(json["prior_precision"].as_f64().expect("a number") > 0.0);
        assert!(folder.path("run/ood_probabilities.npy").is_file());
    }
}

#[test]
fn a_regression_has_error_bars() {
    let folder = folder(DIABETES);
    let text = folder.succeed(&line(DIABETES, "--method kron --prior 1 --noise-std 1 --precision f64 -o run"));
    assert!(text.contains("RMSE") && text.contains("NLL") && text.contains("noise 1.0000 (given)"), "{text}");
    let expected = golden(&folder, DIABETES, "all_kron_fvar").into_shape_with_order((30, 1)).expect("a column");
    assert!(difference(&folder.read("run/variance.npy"), &expected.into_dyn()) < 1e-9);
    assert!(folder.path("run/deviation.svg").is_file());
    let given = folder.json(&line(DIABETES, "--method kron --noise-std 1 --precision f64 -o run --force"));
    let fitted = folder.json(&line(DIABETES, "--method kron --precision f64 -o run --force"));
    let evidence = |json: &serde_json::Value| json["log_evidence"].as_f64().expect("a number");
    assert_eq!(fitted["noise_choice"], "evidence");
    assert!(evidence(&fitted) > evidence(&given), "{fitted} {given}");
    folder.refuse(&line(DIABETES, "--noise-std 0 -o other"), &["--noise-std"]);
}

#[test]
fn what_is_replaced_leaves_nothing_behind() {
    let folder = folder(IRIS);
    let files = || {
        let mut found = Vec::new();
        for place in ["run", "run/objects"] {
            let entries = std::fs::read_dir(folder.path(place)).expect(place);
            found.extend(entries.map(|entry| entry.expect("an entry").path()));
        }
        found.sort();
        found
    };
    folder.succeed(&line(IRIS, "--method last-layer-kron -o run"));
    let alone = files();
    for other in ["--method kron", "--method eigen -k 8 --landmarks 20", "--ood lla_iris_tanh.npz:x_test"] {
        folder.succeed(&line(IRIS, &format!("{other} -o run --force")));
        assert!(files() != alone, "{other}");
        std::fs::write(folder.path("run/notes.txt"), "mine").expect("a file");
        folder.succeed(&line(IRIS, "--method last-layer-kron -o run --force"));
        std::fs::remove_file(folder.path("run/notes.txt")).expect("a file of the user's stays");
        assert_eq!(files(), alone, "{other}");
    }
}

#[test]
fn validation_chooses_the_prior() {
    let folder = folder(IRIS);
    let validation = format!("--prior validation --validation {IRIS}.npz:x_test --validation-labels {IRIS}.npz:y_test");
    let json = folder.json(&line(IRIS, &format!("--method last-layer-kron {validation} -o run")));
    assert_eq!(json["prior"], "validation");
    folder.refuse(&line(IRIS, "--prior validation -o other"), &["--validation"]);
    assert!(json["chosen"]["temperature"].as_f64().is_some_and(|temperature| temperature > 0.1), "{json}");
    // Where there are such samples they choose, unless a prior is given.
    let samples = validation.replace("--prior validation", "");
    let json = folder.json(&line(IRIS, &format!("--method diag {samples} -o chosen")));
    assert_eq!((&json["prior"], json["scaled"].is_object()), (&"validation".into(), true));
    let json = folder.json(&line(IRIS, &format!("--method diag --weight-decay 0.01 {samples} -o decayed")));
    assert_eq!((&json["prior"], &json["prior_precision"]), (&"weight decay".into(), &1.2.into()));
    let text = folder.run(&line(IRIS, "--method diag -o unchosen")).err;
    assert!(text.contains("nothing chooses between the posterior and the network alone"), "{text}");
}

#[test]
fn a_plan_is_made_before_anything_else() {
    let folder = folder(IRIS);
    let text = folder.succeed(&line(IRIS, "--method full --dry-run -o run"));
    assert!(text.contains("403 × 403") && text.contains("nothing was done"), "{text}");
    assert!(!folder.path("run").exists());
    folder.refuse(&line(IRIS, "--method full --memory 1MiB -o run"), &["--memory", "--method kron", "403"]);
}

/// Functions that another command found: those of the same landmarks give the same posterior, scalar kernels stand for every
/// output, and learnt ones work like any other.
#[test]
fn eigenfunctions_may_come_from_folders() {
    let folder = folder(IRIS);
    let net = format!("--net {IRIS}.onnx --data {IRIS}.npz:x_train");
    let eigen = |method: &str, kernel: &str, more: &str, to: &str| {
        folder.succeed(&format!("eigen {method} {net} --kernel {kernel} --precision f64 {more} -o {to}"));
    };
    let run =
        |more: &str| folder.json(&line(IRIS, &format!("--method eigen --prior 2 --precision f64 --force {more}")));
    eigen("nystrom", "full", "--landmark-choice all -k 12", "full");
    run("-k 12 --landmarks 100000 -o found");
    run("--from full -o given");
    let error = difference(&folder.read("given/variance.npy"), &folder.read("found/variance.npy"));
    assert!(error < 1e-6, "{error}");
    let fewer = run("--from full -k 5 -o fewer");
    assert_eq!(fewer["needs"]["n_parameters"], 5);
    // Without what the functions miss there is less variance.
    run("--from full --residual false -o plain");
    let sum = |name: &str| folder.read(&format!("{name}/variance.npy")).sum();
    assert!(sum("plain") < sum("given"), "{} {}", sum("plain"), sum("given"));
    eigen("nystrom", "pseudo", "--landmark-choice all -k 6", "pseudo");
    assert_eq!(run("--from pseudo -o scalar")["needs"]["n_parameters"], 18);
    for output in 0..3 {
        eigen("nystrom", &format!("logit({output})"), "--landmark-choice all -k 4", &format!("logit{output}"));
    }
    assert_eq!(run("--from logit0 --from logit1 --from logit2 -o each")["needs"]["n_parameters"], 12);
    // Equations 20 and 22: functions are learnt of the kernel of random directions, for all outputs.
    eigen("neuralef", "directions(40,of=full)", "-k 3 --iterations 60 --batch 40", "learnt");
    let learnt = run("--from learnt -o equation");
    assert!(learnt["laplace"]["nll"].as_f64().is_some_and(|nll| nll < 1.0), "{learnt}");
    assert!(folder.succeed("replay equation").contains("the same"));
    let before = folder.read("equation/probabilities.npy");
    for name in ["learnt", "full", "pseudo"] {
        std::fs::remove_dir_all(folder.path(name)).expect("a folder");
    }
    folder.succeed(&format!("predict --from equation --data {IRIS}.npz:x_test -o later.npy"));
    assert_eq!(folder.read("later.npy"), before);
    for (more, words) in [
        ("--method kron --from logit0", &["--from", "kron"][..]),
        ("--method eigen --from logit0 --from logit1 --precision f64", &["--from", "3 outputs"]),
        ("--method eigen --from logit0 --precision f32", &["--from", "--precision f64"]),
        ("--method eigen --from equation", &["equation"]),
        ("--method eigen --from logit0 --precision f64 --scale 2", &["--from", "preprocessed"]),
    ] {
        folder.refuse(&line(IRIS, &format!("{more} -o no")), words);
    }
    let other = mercer::net::arch::Mlp::new(4, &[6], 3).build(1).expect("a network");
    other.save_onnx(folder.path("other.onnx")).expect("a file");
    let foreign = line(IRIS, "--method eigen --from logit0 --precision f64 -o no")
        .replace(&format!("--net {IRIS}"), "--net other");
    folder.refuse(&foreign, &["--from", "another network"]);
}

/// Sets and intervals, in the folder and later.
#[test]
fn conformal_sets_come_with_the_posterior() {
    let folder = folder(IRIS);
    let validation = format!("--validation {IRIS}.npz:x_train --validation-labels {IRIS}.npz:y_train");
    let text = folder.succeed(&line(IRIS, &format!("--method last-layer-kron {validation} --conformal 0.8 -o run")));
    assert!(
        text.contains("Sets for a coverage of 80 %, calibrated by 60 samples") && text.contains("% covered"),
        "{text}"
    );
    let later =
        folder.succeed(&format!("predict --from run --data {IRIS}.npz:x_test --labels {IRIS}.npz:y_test -o p.npy"));
    assert!(later.contains("Sets for a coverage of 80 %") && later.contains("sets in p.sets.csv"), "{later}");
    let table = |name: &str| std::fs::read_to_string(folder.path(name)).expect("a table");
    assert_eq!(table("p.sets.csv"), table("run/sets.csv"));
    let again = format!("predict --from run --data {IRIS}.npz:x_test -o q.npy");
    std::fs::write(folder.path("q.sets.csv"), "mine").expect("a file");
    folder.refuse(&again, &["q.sets.csv", "--force"]);
    folder.refuse(&line(IRIS, "--conformal 0.9 -o no"), &["--validation"]);
    folder.refuse(&line(IRIS, &format!("{validation} --conformal 1.5 -o no")), &["--conformal", "between"]);
    folder.refuse(&line(IRIS, &format!("{validation} --conformal 0.999 -o no")), &["--conformal", "1998"]);
}

/// What `auto` chose is said, with what would be better.
#[test]
fn auto_says_what_it_chose() {
    let folder = folder(IRIS);
    let told = folder.run(&line(IRIS, "--dry-run --memory 1GiB -o run"));
    assert!(told.out.contains("full: 403 parameters"), "{}", told.out);
    assert!(told.err.contains("--method auto is full, the best posterior that fits into 1"), "{}", told.err);
    let chosen = folder.json(&line(IRIS, "--prior 2 --precision f64 --memory 1GiB -o run"));
    assert_eq!(chosen["method"], "full");
    folder.succeed(&line(IRIS, "--prior 2 --precision f64 --method full -o same"));
    assert_eq!(folder.read("run/probabilities.npy"), folder.read("same/probabilities.npy"));
    assert!(folder.succeed("replay run").contains("the same"));

    // The same limit, the same choice; the next better method is chosen as soon as there is what it was said to take.
    let wide = mercer::net::arch::Mlp::new(4, &[60, 60], 3).build(1).expect("a network");
    wide.save_onnx(folder.path("wide.onnx")).expect("a file");
    let wide = line(IRIS, "--dry-run -o wide").replace(&format!("--net {IRIS}.onnx"), "--net wide.onnx");
    let plan = |memory: u64| folder.json(&format!("{wide} --memory {memory}"));
    let small = plan(400 << 20);
    assert_eq!((&small["method"], &small["auto"]["better"]["method"]), (&"kron".into(), &"full".into()), "{small}");
    assert_eq!(plan(400 << 20)["auto"], small["auto"]);
    // 4,143 parameters: five matrices of that side in double precision are 687 MB.
    let better = small["auto"]["better"]["bytes"].as_u64().expect("bytes");
    assert!(better > 687_000_000 && better < 2 << 30, "{better}");
    assert_eq!(plan(better - 1)["method"], "kron");
    assert_eq!((&plan(better)["method"], plan(better)["auto"]["better"].is_null()), (&"full".into(), true));
    assert_eq!(folder.json(&format!("{wide} --memory 400MiB --params *"))["method"], "kron");
}

/// With three thousand classes there is no matrix of their square for every sample, and what cannot be done in a gigabyte is
/// refused before it starts.
#[test]
fn three_thousand_classes_fit_into_a_gigabyte() {
    const CLASSES: usize = 3000;
    let folder = Folder::with(&[]);
    let network = mercer::net::arch::Mlp::new(5, &[12], CLASSES).build(3).expect("a network");
    network.save_onnx(folder.path("many.onnx")).expect("a file");
    let x = ndarray::Array2::from_shape_fn((400, 5), |(row, column)| ((7 * row + 3 * column) as f64 * 0.37).sin());
    folder.write_array("x.npy", x.view());
    let y = ndarray::Array1::from_shape_fn(400, |row| if row == 0 { CLASSES as i64 - 1 } else { (7 * row) as i64 });
    folder.write_array("y.npy", y.view());
    let line = |more: &str| {
        format!(
            "uncertainty --net many.onnx --data x.npy --labels y.npy --test x.npy --test-labels y.npy --prior 1 \
             --memory 1GiB {more}"
        )
    };
    for method in ["full", "kron", "diag", "sketch", "last-layer-full", "eigen"] {
        folder.refuse(&line(&format!("--method {method} -o no")), &["--method", "--memory"]);
        assert!(!folder.path("no").exists(), "{method}");
    }
    for method in ["last-layer-diag", "auto"] {
        let json = folder.json(&line(&format!("--method {method} -o {method}")));
        let [promised, peak] =
            ["promised_bytes", "peak_bytes"].map(|key| json["measurements"][key].as_f64().expect(key));
        assert!(peak < promised, "{method}: {peak} of {promised}");
        let variance = folder.read(&format!("{method}/variance.npy"));
        assert_eq!(variance.shape(), [400, CLASSES]);
        assert!(variance.iter().all(|&x| x > 0.0 && x.is_finite()), "{method}");
        assert!(json["laplace"]["nll"].as_f64().is_some_and(f64::is_finite), "{json}");
        let expected = if method == "auto" { "last-layer-kron" } else { method };
        assert_eq!(json["method"], expected);
        let later = folder.json(&format!("predict --from {method} --data x.npy --memory 1GiB -o later.npy --force"));
        assert!(later["measurements"]["peak_bytes"].as_f64().is_some_and(|peak| peak < promised), "{later}");
        assert_eq!(folder.read("later.npy"), folder.read(&format!("{method}/probabilities.npy")), "{method}");
    }
}

#[test]
fn what_cannot_be_done_is_refused() {
    let folder = folder(IRIS);
    folder.refuse(&line(IRIS, "--prior -1 -o run"), &[]);
    folder.refuse(&line(IRIS, "--method sketch --sketch sjlt -o run"), &["--sketch"]);
    folder.refuse(&line(IRIS, "--method kron --residual true -o run"), &["--residual", "kron"]);
    folder.refuse(&line(IRIS, "--draws 0 -o run"), &["--draws"]);
    folder.refuse(&line(IRIS, "--node nowhere -o run"), &["nowhere"]);
    let hidden = folder.run(&line(IRIS, "--method last-layer-full --node /3/Tanh_output_0 -o run"));
    assert_eq!(hidden.code, Some(2));
    assert!(hidden.err.contains("Tanh"), "{}", hidden.err);
    folder.succeed(&line(IRIS, "--method last-layer-kron -o run"));
    folder.refuse(&line(IRIS, "--method last-layer-kron -o run"), &["--force"]);
}
