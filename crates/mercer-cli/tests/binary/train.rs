//! `mercer train` and `mercer demo`.

use crate::folder::{Folder, sound};
use ndarray::{Array1, Array2};
use std::process::Stdio;
use std::time::Duration;

const ARCHITECTURE: &str = "[mlp]\ninputs = [2]\nwidths = [16]\noutputs = 2\n";
const LINE: &str = "train --arch mlp.toml --data x.npy --labels y.npy -o run";

/// Points in a square; the class is the quadrant's sign.
fn folder() -> Folder {
    let folder = Folder::with(&[]);
    folder.write("mlp.toml", ARCHITECTURE.as_bytes());
    let points = Array2::from_shape_fn((256, 2), |(row, column)| {
        let step = [0.754_878, 0.569_84][column];
        2.0 * ((row as f32 * step).fract() - 0.5)
    });
    let classes: Array1<i64> = points.outer_iter().map(|point| i64::from(point[0] * point[1] > 0.0)).collect();
    folder.write_array("x.npy", points.view());
    folder.write_array("y.npy", classes.view());
    folder
}

#[test]
fn a_network_is_trained() {
    let folder = folder();
    let options =
        "--epochs 60 --batch 32 --learning-rate 0.02 --schedule cosine --warm-up 1 --test x.npy --test-labels y.npy";
    let json = folder.json(&format!("{LINE} {options} --checkpoint-at 0,60"));
    assert_eq!(json["history"].as_array().unwrap().len(), 60);
    let accuracy = json["history"][59]["evaluation_accuracy"].as_f64().unwrap();
    assert!(accuracy > 0.9, "{accuracy}");
    for name in
        ["model.onnx", "weights.safetensors", "result.json", "run.json", "folder.json", "epoch-00000.safetensors"]
    {
        assert!(folder.path("run").join(name).exists(), "{name}");
    }
    folder.succeed("replay run");
    let written: serde_json::Value =
        serde_json::from_slice(&std::fs::read(folder.path("run/result.json")).unwrap()).unwrap();
    // The findings are in both; what was measured is another one every time, and in the record.
    for (name, value) in written.as_object().unwrap() {
        assert_eq!(*value, json[name], "{name}");
    }
    assert!(written["measurements"].is_null() && json["measurements"]["seconds"].as_f64().unwrap() > 0.0);
    let predicted = folder.json("predict --net run/model.onnx --data x.npy --labels y.npy");
    assert_eq!(predicted["accuracy"].as_f64(), Some(accuracy));
    assert_eq!(folder.json("info run/model.onnx")["n_params"], json["n_params"]);
}

#[test]
fn every_optimiser_learns() {
    let folder = folder();
    for options in [
        "--optimiser gd --learning-rate 0.5 --epochs 400",
        "--optimiser sgd --momentum 0.9 --nesterov --schedule step --step-every 20 --step-factor 0.5 --epochs 40",
        "--optimiser adamw --learning-rate 0.01 --epochs 40",
        "--optimiser adagrad --learning-rate 0.1 --epochs 40",
        "--optimiser adam --learning-rate 0.01 --loss squared --epochs 40 --precision f64",
    ] {
        let json = folder.json(&format!("{LINE} --force {options}"));
        let losses: Vec<f64> =
            json["history"].as_array().unwrap().iter().map(|epoch| epoch["loss"].as_f64().unwrap()).collect();
        assert!(losses.last().unwrap() < &(0.7 * losses[0]), "{options}: {losses:?}");
    }
}

/// One output for two classes, until the loss is small; the rate drops on the way.
#[test]
fn one_output_learns_until_the_loss_is_small() {
    let folder = folder();
    folder.write("mlp.toml", b"[mlp]\ninputs = [2]\nwidths = [16]\noutputs = 1\n");
    let options = "--loss sigmoid-squared --learning-rate 0.05 --batch 16 --epochs 200 --stop-loss 0.02";
    let line = format!("{LINE} {options} --schedule step --step-at 2,4 --step-factor 0.9");
    let json = folder.json(&line);
    let history = json["history"].as_array().unwrap();
    assert_eq!(json["stopped_after"], history.len());
    assert!(history.len() < 200 && history[history.len() - 1]["loss"].as_f64().unwrap() < 0.02);
    let rate = |epoch: usize| history[epoch - 1]["learning_rate"].as_f64().unwrap() / 0.05;
    assert!((rate(2) - 1.0).abs() < 1e-12 && (rate(3) - 0.9).abs() < 1e-12 && (rate(5) - 0.81).abs() < 1e-12);
    let predicted = folder.json("predict --net run/model.onnx --data x.npy --labels y.npy");
    assert!(predicted["accuracy"].as_f64().unwrap() > 0.9, "{predicted}");
    folder.succeed("replay run");
    assert!(folder.succeed(&format!("{line} --force")).contains("until the loss was small enough"));
}

/// `--optimiser sgd` is the plain one; momentum is asked for.
#[test]
fn sgd_is_plain() {
    let folder = folder();
    let weights = |options: &str| {
        folder.succeed(&format!("{LINE} --force --epochs 3 --optimiser sgd {options}"));
        std::fs::read(folder.path("run/weights.safetensors")).unwrap()
    };
    assert_eq!(weights(""), weights("--momentum 0"));
    assert_ne!(weights(""), weights("--momentum 0.9"));
    assert_eq!(folder.json(&format!("{LINE} --force --optimiser sgd"))["optimiser"]["momentum"], 0.0);
    folder.refuse(&format!("{LINE} --force --optimiser sgd --nesterov"), &["--nesterov", "--momentum 0.9"]);
}

/// `--force` takes away what an earlier run wrote, and nothing of the user's.
#[test]
fn force_leaves_what_is_not_ours() {
    let folder = folder();
    folder.succeed(&format!("{LINE} --epochs 4 --checkpoint-at 1,4"));
    folder.write("run/mine.safetensors", b"a user's");
    folder.write("run/notes.txt", b"a user's");
    std::fs::copy(folder.path("run/weights.safetensors"), folder.path("run/best.safetensors")).unwrap();
    folder.refuse(&format!("{LINE} --epochs 2"), &["already holds results", "--force"]);
    folder.succeed(&format!("{LINE} --epochs 2 --force"));
    for kept in ["mine.safetensors", "notes.txt", "best.safetensors", "model.onnx", "result.json"] {
        assert!(folder.path("run").join(kept).is_file(), "{kept}");
    }
    assert!(!folder.path("run/epoch-00004.safetensors").exists(), "a checkpoint of the earlier run");
    // Files of others under the names of results.
    for (name, bytes) in [
        ("model.onnx", b"another's".as_slice()),
        ("weights.safetensors", b"another's"),
        ("result.json", br#"{ "kind": "eigenfunctions" }"#),
        ("epoch-00007.safetensors", b"another's"),
        ("run.json", b"another's"),
        ("folder.json", b"another's"),
    ] {
        let path = folder.path("run").join(name);
        let own = std::fs::read(&path).ok();
        std::fs::write(&path, bytes).unwrap();
        folder.refuse(&format!("{LINE} --epochs 2 --force"), &[name, "left alone", "another folder"]);
        folder.refuse(&format!("{LINE} --epochs 2 --resume"), &[name, "left alone"]);
        assert_eq!(std::fs::read(&path).unwrap(), bytes, "{name}");
        match own {
            Some(own) => std::fs::write(&path, own).unwrap(),
            None => std::fs::remove_file(&path).unwrap(),
        }
    }
    folder.succeed(&format!("{LINE} --epochs 2 --force"));
}

#[test]
fn the_same_seed_gives_the_same_bits() {
    let folder = folder();
    let weights = |options: &str| {
        folder.succeed(&format!("{LINE} --force --epochs 3 {options}"));
        std::fs::read(folder.path("run/weights.safetensors")).unwrap()
    };
    assert_eq!(weights("--seed 1"), weights("--seed 1"));
    assert_ne!(weights("--seed 1"), weights("--seed 2"));
}

#[cfg(unix)]
#[test]
fn ctrl_c_leaves_a_run_to_go_on_with() {
    let folder = folder();
    let options = "--epochs 400 --batch 4";
    folder.succeed(&format!("{} {options}", LINE.replace("-o run", "-o whole")));
    let line = format!("{LINE} {options}");
    let arguments: Vec<&str> = line.split_whitespace().collect();
    let child = folder.command(&arguments).stderr(std::process::Stdio::piped()).spawn().unwrap();
    while !folder.path("run/state.safetensors").exists() {
        std::thread::sleep(Duration::from_millis(5));
    }
    let killed = std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(killed.unwrap().success());
    let output = child.wait_with_output().unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(sound(output.status).code(), Some(130), "{text}");
    assert!(text.contains("--resume") && text.contains("mercer train"), "{text}");
    assert!(!folder.path("run/model.onnx").exists());
    folder.refuse(&line, &["run", "--resume", "--force"]);
    folder.succeed(&format!("{line} --resume"));
    let weights = |name: &str| std::fs::read(folder.path(name).join("weights.safetensors")).unwrap();
    assert!(weights("run") == weights("whole"), "the resumed run ends elsewhere");
    folder.refuse(&format!("{LINE} --epochs 500 --batch 5 --resume"), &["another run", "try:"]);
}

/// A kill at any moment leaves a folder that is whole, or goes on with `--resume`; and nothing of it stays behind.
#[cfg(unix)]
#[test]
fn a_kill_leaves_a_run_to_go_on_with() {
    let folder = folder();
    let line = format!("{LINE} --epochs 40 --batch 32 --checkpoint-every 10");
    folder.succeed(&line.replace("-o run", "-o whole"));
    let arguments: Vec<&str> = line.split_whitespace().collect();
    for wait in [1, 20, 40, 60, 80, 100, 150] {
        let mut child = folder.command(&arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(wait));
        child.kill().unwrap();
        child.wait().unwrap();
        folder.succeed(&format!("{line} --resume"));
        for name in ["model.onnx", "weights.safetensors", "state.safetensors", "epoch-00010.safetensors", "result.json"]
        {
            let [killed, whole] = ["run", "whole"].map(|run| std::fs::read(folder.path(run).join(name)).unwrap());
            assert!(killed == whole, "{name} after {wait} ms");
        }
        folder.succeed("info run");
        let hidden = std::fs::read_dir(folder.path("run")).unwrap();
        let hidden = hidden.filter(|entry| entry.as_ref().unwrap().file_name().as_encoded_bytes()[0] == b'.');
        assert_eq!(hidden.count(), 0, "after {wait} ms");
        std::fs::remove_dir_all(folder.path("run")).unwrap();
    }
}

/// Checkpoints in the place of a network's own weights.
#[test]
fn weights_of_a_checkpoint() {
    let folder = folder();
    folder.succeed(&format!("{LINE} --epochs 3 --checkpoint-at 0,3"));
    let kernel = |name: &str, weights: &str| {
        folder.succeed(&format!("kernel --net run/model.onnx {weights} --data x.npy --kernel trace -o {name}.npy"));
        folder.read(&format!("{name}.npy"))
    };
    let own = kernel("own", "");
    assert_eq!(kernel("last", "--weights run/epoch-00003.safetensors"), own);
    assert_ne!(kernel("first", "--weights run/epoch-00000.safetensors"), own);
    let path = folder.path("run/epoch-00000.safetensors");
    let mut bytes = std::fs::read(&path).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    std::fs::write(&path, bytes).unwrap();
    let line = "kernel --net run/model.onnx --weights run/epoch-00000.safetensors --data x.npy --kernel trace -o k.npy";
    folder.refuse(line, &["epoch-00000.safetensors", "damaged"]);
    let run = folder.run("info run");
    assert_eq!(run.code, Some(1), "{}{}", run.out, run.err);
    assert!(
        run.out.contains("epoch-00000.safetensors") && run.err.contains("1 file damaged"),
        "{}{}",
        run.out,
        run.err
    );
}

#[test]
fn what_cannot_be_trained() {
    let folder = folder();
    let refuse = |line: &str, words: &[&str]| folder.refuse(line, words);
    refuse("train --arch mlp.toml --data x.npy -o run", &["--labels"]);
    refuse("train --arch none.toml --data x.npy --labels y.npy -o run", &["none.toml", "No such file"]);
    refuse(&format!("{LINE} --momentum 0.5"), &["--momentum", "sgd"]);
    refuse(&format!("{LINE} --optimiser lion"), &["--optimiser", "adamw"]);
    refuse(&format!("{LINE} --epochs 0"), &["--epochs"]);
    refuse(&format!("{LINE} --test x.npy"), &["--test-labels"]);
    for setting in ["--head 2", "--params *", "--redraw", "--node out"] {
        refuse(&format!("{LINE} {setting}"), &["--arch", setting.split(' ').next().unwrap()]);
    }
    folder.write("wide.toml", b"[mlp]\ninputs = [3]\nwidths = [16]\noutputs = 2\n");
    refuse(&LINE.replace("mlp.toml", "wide.toml"), &["x.npy", "wide.toml", "[3]"]);
    folder.write("narrow.toml", b"[mlp]\ninputs = [2]\nwidths = [16]\noutputs = 1\n");
    let narrow = LINE.replace("mlp.toml", "narrow.toml");
    refuse(&format!("{narrow} --loss squared"), &["narrow.toml", "outputs = 2", "sigmoid-squared"]);
    folder.write_array("three.npy", Array1::from_iter((0..256).map(|row| row % 3_i64)).view());
    refuse(&narrow.replace("y.npy", "three.npy"), &["narrow.toml", "1 output", "3 classes", "outputs = 3"]);
    folder.write("broken.toml", b"[mlp]\ninputs = [2\n");
    refuse(&LINE.replace("mlp.toml", "broken.toml"), &["broken.toml", "line"]);
    folder.write("unknown.toml", b"[transformer]\nlayers = 3\n");
    refuse(&LINE.replace("mlp.toml", "unknown.toml"), &["unknown.toml", "transformer", "mlp"]);
    folder.write_array("short.npy", Array1::<i64>::zeros(9).view());
    refuse(&LINE.replace("y.npy", "short.npy"), &["256 samples", "short.npy", "9 labels"]);
    folder.write("file", b"");
    refuse(&LINE.replace("-o run", "-o file"), &["-o file"]);
}

#[test]
fn a_network_beyond_all_memory() {
    let folder = folder();
    for width in ["1000000000000", "10000000000", "4000000000000000000"] {
        let text = format!("[mlp]\ninputs = [2]\nwidths = [{width}, {width}]\noutputs = 2\n");
        folder.write("huge.toml", text.as_bytes());
        folder.refuse(&LINE.replace("mlp.toml", "huge.toml"), &["huge.toml"]);
    }
}

#[test]
fn settings_that_make_no_sense() {
    let folder = folder();
    for (options, word) in [
        ("--learning-rate 1e30", "learning"),
        ("--learning-rate -1", "learning"),
        ("--learning-rate nan", "learning"),
        ("--weight-decay -1", "weight"),
        ("--warm-up -1", "warm"),
        ("--schedule step --step-factor 0", "factor"),
        ("--optimiser gd --batch 10", "gd"),
        ("--schedule step --step-every 5 --step-at 3", "--step-at"),
        ("--step-at 3", "--schedule step"),
        ("--schedule step --step-at 3,2", "--step-at"),
        ("--stop-loss 0", "--stop-loss"),
        ("--stop-loss nan", "--stop-loss"),
        ("--crop-margin 0", "--crop-margin"),
        ("--crop-margin 1", "images"),
        ("--flip", "images"),
        ("--checkpoint-at 99", "99"),
    ] {
        let run = folder.run(&format!("{LINE} --force {options}"));
        assert_eq!(run.code, Some(2), "{options}: {}{}", run.out, run.err);
        assert!(run.err.contains(word), "{options}: {}", run.err);
    }
}

#[test]
fn the_demo() {
    let folder = Folder::with(&[]);
    let text = folder.demo(&[]);
    assert!(text.contains("Try next") && text.contains("of 355 unseen digits"), "{text}");
    // Five sentences: what the network can do, and that the labels that were planted wrong are found.
    let said: Vec<&str> = text.split("\n\n").nth(1).unwrap().lines().collect();
    assert_eq!(said.len(), 5, "{text}");
    let found = said.iter().find(|line| line.starts_with("Of 20 labels that are known to be wrong, ")).unwrap();
    let found: usize = found.split(" wrong, ").nth(1).unwrap().split(' ').next().unwrap().parse().unwrap();
    assert!(found >= 18, "{text}");
    let page = std::fs::read_to_string(folder.path("mercer-demo/report.html")).unwrap();
    assert!(said.iter().all(|line| page.contains(line)) && page.len() < 2_000_000);
    // The commands it shows run as they stand.
    let commands = text.split("Try next:").nth(1).unwrap().replace("\\\n", " ");
    let commands: Vec<&str> = commands.lines().map(str::trim).filter(|line| line.starts_with("mercer ")).collect();
    assert!(commands.len() >= 4, "{text}");
    for command in commands.iter().filter(|command| !command.contains("your-own")) {
        folder.succeed(command.strip_prefix("mercer ").unwrap());
    }
    let line =
        "predict --net mercer-demo/model.onnx --data mercer-demo/test-images.npy --labels mercer-demo/test-labels.npy";
    assert!(folder.json(line)["accuracy"].as_f64().unwrap() > 0.95);
    folder.refuse("demo", &["mercer-demo", "--force"]);
    let again: serde_json::Value = serde_json::from_str(&folder.demo(&["--force", "-q", "--json"])).unwrap();
    assert_eq!(again["kind"], "training");
    // The same bytes, but for the time and memory that records hold.
    let plain = |page: &str| -> Vec<String> {
        let measured = |part: &&str| !part.contains("<dt>time<") && !part.contains("<dt>peak memory<");
        page.split("<div>").filter(measured).map(str::to_owned).collect()
    };
    same_parts(&plain(&page), &plain(&std::fs::read_to_string(folder.path("mercer-demo/report.html")).unwrap()));
}

/// Two pages have the same parts; if not, the first difference is shown, not two whole pages.
fn same_parts(first: &[String], second: &[String]) {
    if let Some((at, (one, two))) = first.iter().zip(second).enumerate().find(|(_, (one, two))| one != two) {
        let from = one.bytes().zip(two.bytes()).take_while(|(one, two)| one == two).count();
        let around = |text: &str| {
            let part = &text.as_bytes()[from.saturating_sub(200)..(from + 200).min(text.len())];
            String::from_utf8_lossy(part).into_owned()
        };
        let before = first[..at].concat();
        let id = before.rsplit(" id=\"").next().and_then(|rest| rest.split('"').next()).unwrap_or_default().to_owned();
        panic!("the pages differ in part {at}, after id {id}:\n{}\n---- and ----\n{}", around(one), around(two));
    }
    assert_eq!(first.len(), second.len(), "one page has more parts; those of the other are the same");
}

#[test]
fn a_table_of_numbers() {
    let folder = folder();
    folder.write("line.toml", b"[mlp]\ninputs = [1]\nwidths = [8]\noutputs = 1\n");
    let rows: String = (0..50).map(|row| format!("{},{}\n", row as f64 / 50.0, row as f64 / 25.0 + 0.25)).collect();
    folder.write("line.csv", format!("x,y\n{rows}").as_bytes());
    let line = "train --arch line.toml --data line.csv --labels line.csv:y --epochs 100 --learning-rate 0.02 -o run";
    let json = folder.json(line);
    assert!(json["history"][99]["loss"].as_f64().unwrap() < 0.01);
    assert!(json["history"][99]["accuracy"].is_null() && json["class_names"].is_null());
}
