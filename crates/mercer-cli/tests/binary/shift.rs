//! `mercer shift`, as scripts use it.

use crate::explain::problem;
use crate::folder::Folder;
use ndarray::{Array1, Array2};
use serde_json::Value;

/// Samples of the problem's three classes with these numbers of each, moved by so much.
fn points(counts: [usize; 3], moved: f64, seed: u64) -> (Array2<f64>, Array1<i64>) {
    let centre = [[2.0, 0.0], [-1.0, 1.7], [-1.0, -1.7]];
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut random = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) as f64 / (1_u64 << 53) as f64 - 0.5
    };
    let classes: Vec<i64> = (0..3).flat_map(|class| vec![class as i64; counts[class]]).collect();
    let row = |&class: &i64| [0, 1].map(|j| centre[class as usize][j] + 1.2 * random() + moved);
    let rows: Vec<[f64; 2]> = classes.iter().map(row).collect();
    (Array2::from_shape_fn((rows.len(), 2), |(i, j)| rows[i][j]), Array1::from(classes))
}

/// Old samples, and new ones that are alike (`same`), with other rates of classes (`rates`), or moved (`moved`).
fn sets() -> Folder {
    let folder = problem();
    let sets = [
        ("old", [100, 100, 100], 0.0),
        ("same", [70, 70, 70], 0.0),
        ("rates", [20, 60, 160], 0.0),
        ("moved", [70, 70, 70], 0.7),
    ];
    for (at, (name, counts, moved)) in sets.into_iter().enumerate() {
        let (points, classes) = points(counts, moved, 5 + at as u64);
        folder.write_array(&format!("{name}.npy"), points.view());
        folder.write_array(&format!("{name}-y.npy"), classes.view());
    }
    folder
}

const SHIFT: &str = "shift --net net/model.onnx --data old.npy --labels old-y.npy";

/// The findings without what differs from run to run, and without the file of the network.
fn findings(mut report: Value) -> Value {
    for key in ["measurements", "artefacts", "notes", "network"] {
        report.as_object_mut().unwrap().remove(key);
    }
    report
}

#[test]
fn the_contract_of_shift() {
    let folder = sets();
    let report = folder.json(&format!("{SHIFT} --test moved.npy --test-labels moved-y.npy -o look"));
    let tests = report["tests"].as_array().unwrap();
    assert_eq!(tests.len(), 5, "{report}");
    for test in tests {
        assert!(test["name"].is_string() && test["node"].is_string() && test["statistic"].is_f64(), "{test}");
        let (p, corrected) = (test["p_value"].as_f64().unwrap(), test["corrected_p_value"].as_f64().unwrap());
        assert!((0.005..=1.0).contains(&p) && p <= corrected + 1e-12, "{test}");
    }
    assert_eq!((&report["p_value"], &report["shifted"]), (&0.005.into(), &true.into()), "{report}");
    assert_eq!(report["kind"], "covariate", "{report}");
    let layer = &report["layers"][0];
    assert!(layer["n_features"] == 12 && layer["accuracy"].as_f64().unwrap() > 0.55, "{layer}");
    let accuracy = &report["estimated_accuracy"];
    for (key, least) in [("first", 0.9), ("thresholded", 0.3), ("by_confidence", 0.6), ("test", 0.6)] {
        assert!((least..=1.0).contains(&accuracy[key].as_f64().unwrap()), "{key}: {accuracy}");
    }
    assert!(report["sentences"][0].as_str().unwrap().contains("not like the old"), "{report}");
    assert!(report["approximations"].to_string().contains("random Fourier features"), "{report}");
    // The table lists both sets, and agrees with the findings.
    let table = std::fs::read_to_string(folder.path("look/samples.csv")).unwrap();
    let lines: Vec<Vec<&str>> = table.lines().map(|line| line.split(',').collect()).collect();
    assert_eq!(lines[0], ["set", "row", "pc1", "pc2", "classifier", "witness", "density_ratio", "kept", "id"]);
    assert_eq!((lines.len(), lines[1][0], lines[301][0], lines[301][1]), (511, "data", "test", "0"));
    assert_eq!((lines[1][8], lines[302][8]), ("0", "1"), "without ids, rows");
    let kept = lines[301..].iter().filter(|line| line[7] == "1").count();
    assert_eq!(report["samples"]["n_kept_test"], kept);
    let mean =
        |rows: &[Vec<&str>]| rows.iter().map(|row| row[5].parse::<f64>().unwrap()).sum::<f64>() / rows.len() as f64;
    assert!(mean(&lines[301..]) > mean(&lines[1..301]), "the witness is larger for new samples");
    for name in ["densities.svg", "tests.svg", "result.json", "run.json"] {
        assert!(folder.path("look").join(name).exists(), "{name}");
    }
    folder.succeed("replay look");
}

#[test]
fn shifts_are_told_apart() {
    let folder = sets();
    let same = folder.json(&format!("{SHIFT} --test same.npy"));
    assert_eq!((&same["shifted"], &same["kind"]), (&false.into(), &Value::Null), "{same}");
    let rates = folder.json(&format!("{SHIFT} --test rates.npy"));
    assert_eq!((&rates["shifted"], &rates["kind"]), (&true.into(), &"label".into()), "{rates}");
    let labels = &rates["label_shift"];
    for (class, expected) in [20.0, 60.0, 160.0].into_iter().enumerate() {
        let estimated = labels["second"][class].as_f64().unwrap();
        assert!((estimated - expected / 240.0).abs() < 0.03, "{labels}");
    }
    assert!(
        labels["matched_p_value"].as_f64().unwrap() > 0.05 && labels["n_matched"].as_u64().unwrap() > 100,
        "{labels}"
    );
}

#[test]
fn a_saved_reference_gives_the_same_numbers() {
    let folder = sets();
    let kernels = "--kernel trace(sketch=sjlt:64) --kernel rbf(lengthscale=1) --landmarks 60";
    let saved = folder.json(&format!("{SHIFT} {kernels} -o reference"));
    assert_eq!((&saved["p_value"], &saved["shifted"]), (&Value::Null, &false.into()));
    let direct = folder.json(&format!("{SHIFT} {kernels} --test rates.npy --test-labels rates-y.npy -o direct"));
    assert_eq!(direct["layers"].as_array().unwrap().len(), 3);
    assert!(direct["approximations"].to_string().contains("60 landmarks"), "{direct}");
    std::fs::remove_file(folder.path("old.npy")).unwrap();
    std::fs::remove_dir_all(folder.path("net")).unwrap();
    for reference in ["reference", "direct"] {
        let line = format!("shift --from {reference} --test rates.npy --test-labels rates-y.npy -o {reference}-again");
        assert_eq!(findings(folder.json(&line)), findings(direct.clone()), "{reference}");
        let table = |name: &str| std::fs::read(folder.path(name).join("samples.csv")).unwrap();
        assert_eq!(table(&format!("{reference}-again")), table("direct"));
    }
    folder.succeed("replay reference-again");
    folder.refuse("shift --from reference-again --test rates.npy", &["no reference", "mercer shift"]);
    folder.refuse("shift --from reference", &["--test"]);
}

#[test]
fn pipelines_see_an_exit_code() {
    let folder = sets();
    let run = folder.run(&format!("{SHIFT} --test moved.npy --fail-below 0.01"));
    assert!(
        run.code == Some(1) && run.err.contains("0.0050") && run.out.contains("not like the old"),
        "{}{}",
        run.out,
        run.err
    );
    folder.succeed(&format!("{SHIFT} --test same.npy --fail-below 0.01"));
    folder.refuse(&format!("{SHIFT} --test same.npy --fail-below 0.001"), &["--fail-below", "--permutations 999"]);
}

#[test]
fn neither_threads_nor_memory_change_the_numbers() {
    let folder = sets();
    let line = format!("{SHIFT} --test moved.npy --kernel rbf(lengthscale=1) --json --threads");
    let [one, two, three] = ["1", "2", "3"].map(|threads| {
        let arguments: Vec<&str> = line.split_whitespace().chain([threads]).collect();
        let output = folder.command_within(8 << 20, &arguments).output().unwrap();
        findings(serde_json::from_slice(&output.stdout).unwrap())
    });
    assert!(one == two && one == three);
    // Features that do not fit are computed again: two passes instead of one.
    let wide = |n: usize, seed: usize| {
        Array2::from_shape_fn((n, 96), |(i, j)| {
            ((i * 7919 + j * 104_729 + i * i * 31 + j * i * 17 + seed) % 1009) as f64
        })
    };
    folder.write_array("a.npy", wide(12_000, 1).view());
    folder.write_array("b.npy", wide(9_000, 2).view());
    let line = "shift --data a.npy --test b.npy --precision f64 --permutations 19 --json --threads 2";
    let run = |more: &[&str]| -> Value {
        let arguments: Vec<&str> = line.split_whitespace().chain(more.iter().copied()).collect();
        let output = folder.command_within(8 << 20, &arguments).output().unwrap();
        serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr)))
    };
    let plan = run(&["--dry-run"]);
    let kept = 21_000 * 96 * 8;
    let tight = (plan["bytes"].as_u64().unwrap() - kept / 2).to_string();
    let streamed = run(&["--dry-run", "--memory", &tight]);
    assert_eq!((&plan["n_passes"], &streamed["n_passes"]), (&1.into(), &2.into()), "{plan} {streamed}");
    assert_eq!(findings(run(&["--memory", &tight])), findings(run(&[])));
}

#[test]
fn data_is_compared_without_a_network() {
    let folder = sets();
    let report = folder.json("shift --data old.npy --test moved.npy --kernel rbf(lengthscale=1) --reduce-to 1");
    let layers = report["layers"].as_array().unwrap();
    assert_eq!((&layers[0]["node"], &layers[0]["reduced_to"]), (&"data".into(), &1.into()), "{report}");
    assert!(report["approximations"].to_string().contains("from 2 to 1"), "{report}");
    assert_eq!(report["estimated_accuracy"], Value::Null);
}

#[test]
fn bad_input_is_named() {
    let folder = sets();
    let mut hole = points([9, 9, 9], 0.0, 1).0;
    hole[(17, 1)] = f64::NAN;
    folder.write_array("nan.npy", hole.view());
    folder.write_array("none.npy", Array2::<f64>::zeros((0, 2)).view());
    folder.write_array("one.npy", Array2::<f64>::zeros((1, 2)).view());
    folder.write_array("three.npy", Array2::<f64>::zeros((9, 3)).view());
    folder.succeed("fit ridge --kernel linear --data x.npy --labels y.npy --penalty 0.5 -o machine");
    for (command, words) in [
        (format!("{SHIFT} --test none.npy"), &["none.npy", "no samples"][..]),
        (format!("{SHIFT} --test one.npy"), &["--test", "1 sample"]),
        (format!("{SHIFT} --test three.npy"), &["three.npy"]),
        ("shift --data old.npy --test three.npy".to_owned(), &["three.npy", "[[3]]", "[[2]]"]),
        (format!("{SHIFT} --test nan.npy"), &["nan.npy", "17"]),
        ("shift --data nan.npy --test old.npy".to_owned(), &["nan.npy", "17"]),
        ("shift --data none.npy --test old.npy".to_owned(), &["none.npy", "no samples"]),
        ("shift --data old.npy --test same.npy --kernel trace".to_owned(), &["trace", "--net"]),
        ("shift --data old.npy --test same.npy --layer a".to_owned(), &["--layer", "--net"]),
        (SHIFT.to_owned(), &["nothing to do", "--test", "-o DIR"]),
        (format!("{SHIFT} --test same.npy --permutations 9"), &["--permutations 9", "19"]),
        (format!("{SHIFT} --test same.npy --permutations 0"), &["--permutations 0"]),
        (format!("{SHIFT} --test same.npy --level 2"), &["--level 2"]),
        (format!("{SHIFT} --test same.npy --layer nothing*"), &["--layer nothing*", "mercer info"]),
        ("shift --from machine --test same.npy".to_owned(), &["machine", "mercer shift"]),
        (format!("{SHIFT} --test same.npy --memory 30MiB"), &["--memory"]),
    ] {
        folder.refuse(&command, words);
    }
    let run = folder.run("shift --from machine --net net/model.onnx --test same.npy");
    assert!(run.code == Some(2) && run.err.contains("--net"), "{}", run.err);
}

#[test]
fn samples_have_their_names() {
    let folder = sets();
    let names = |what: &str, n: usize| (0..n).map(|row| format!("{what}{row}\n")).collect::<String>();
    folder.write("old.csv", format!("id\n{}", names("o", 300)).as_bytes());
    folder.write("new.csv", format!("id\n{}", names("n", 210)).as_bytes());
    let report = folder.json(&format!("{SHIFT} --ids old.csv --test moved.npy --test-ids new.csv -o look"));
    let least = &report["samples"]["least_alike"][0];
    assert_eq!(least["id"], format!("n{}", least["row"]), "{report}");
    let table = std::fs::read(folder.path("look/samples.csv")).unwrap();
    let text = String::from_utf8(table.clone()).unwrap();
    assert!(text.lines().nth(1).unwrap().ends_with(",o0") && text.lines().last().unwrap().ends_with(",n209"), "{text}");
    // A reference keeps the names of its samples.
    folder.succeed(&format!("{SHIFT} --ids old.csv -o reference"));
    folder.succeed("shift --from reference --test moved.npy --test-ids new.csv -o again");
    assert!(std::fs::read(folder.path("again/samples.csv")).unwrap() == table);
    folder.refuse("shift --from reference --test moved.npy --ids old.csv -o no", &["--from", "--ids"]);
    folder.refuse(&format!("{SHIFT} --ids new.csv --test moved.npy -o no"), &["--ids new.csv", "210 ids for 300"]);
    folder.refuse(&format!("{SHIFT} --test moved.npy --test-ids old.csv -o no"), &["--test-ids old.csv", "300 ids"]);
}

/// Two different samples among equal ones leave some halves without any variance.
#[test]
fn sets_that_hardly_vary_are_compared() {
    let folder = sets();
    let (few, _) = points([1, 1, 0], 0.0, 3);
    folder.write_array("few.npy", few.view());
    folder.write_array("equal.npy", Array2::from_elem((60, 2), 0.3).view());
    for seed in 0..6 {
        let report = folder.json(&format!("shift --net net/model.onnx --data few.npy --test equal.npy --seed {seed}"));
        assert!(report["p_value"].as_f64().unwrap() <= 1.0, "{report}");
    }
}

#[test]
fn a_class_that_was_never_seen_is_named() {
    let folder = sets();
    let line = "shift --net net/model.onnx --data old.npy --labels two.npy --test same.npy";
    folder.write_array("two.npy", Array1::from_shape_fn(300, |row| i64::from(row >= 100)).view());
    let report = folder.json(line);
    assert!(report["sentences"].to_string().contains("classes without an old sample"), "{report}");
}
