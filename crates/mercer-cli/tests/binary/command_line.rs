//! Arguments, help and pipes.

use crate::folder::Folder;
use std::io::Read;
use std::process::Stdio;

#[test]
fn help_teaches() {
    let folder = Folder::with(&[]);
    let text = folder.succeed("--help");
    for word in ["info", "predict", "completions", "Examples:", "Exit codes"] {
        assert!(text.contains(word), "{word} in {text}");
    }
    for command in ["info", "predict", "completions"] {
        let text = folder.succeed(&format!("{command} --help"));
        assert!(text.contains("Examples:") && text.contains("Usage: mercer"), "{command}: {text}");
    }
    assert!(folder.succeed("--version").starts_with("mercer "));
    // The long form has everything: flags that the short form leaves out, and what each choice means.
    // `help` takes names of commands alone.
    let help = |names: &[&str]| {
        let run = folder.command_within(600_000, &[&["help"], names].concat()).output().expect("mercer runs");
        assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
        String::from_utf8(run.stdout).expect("text")
    };
    let (short, long) = (folder.succeed("eigen nystrom --help"), help(&["eigen", "nystrom"]));
    assert!(!short.contains("--import-limit") && long.contains("--import-limit"));
    assert!(long.contains("rpcholesky: By randomly pivoted Cholesky decomposition"), "{long}");
    assert!(help(&["eigen"]).contains("orthonormal under the data"));
}

#[test]
fn manual_pages() {
    let folder = Folder::with(&[]);
    folder.succeed("manual man");
    for (page, word) in
        [("mercer", "mercer\\-eigen"), ("mercer-eigen-nystrom", "landmark\\-choice"), ("mercer-train", "optimiser")]
    {
        let text = std::fs::read_to_string(folder.path(&format!("man/{page}.1"))).unwrap();
        assert!(text.contains(".SH SYNOPSIS") && text.contains(word), "{page}: {text}");
    }
    // Rarely used flags are in it.
    assert!(std::fs::read_to_string(folder.path("man/mercer-eigen-nystrom.1")).unwrap().contains("import\\-limit"));
    folder.refuse("manual man", &["--force"]);
    folder.succeed("manual man --force");
}

#[test]
fn names_come_from_one_table() {
    let folder = Folder::with(&["mlp.onnx", "mlp.x.npy"]);
    folder.refuse("eigen nystrom --kernel rbf() --data mlp.x.npy --landmark-choice k-means -o out", &["k-means++"]);
    folder.refuse("eigen nystorm --kernel rbf() --data mlp.x.npy -o out", &["nystrom"]);
    folder.refuse("uncertainty --net mlp.onnx --data x --labels y --test x --method crown -o out", &["kron", "diag"]);
}

#[test]
fn a_dry_run_writes_nothing() {
    let folder = Folder::with(&["mlp.onnx", "mlp.x.npy", "mlp.labels.npy"]);
    folder.write("mlp.toml", b"[mlp]\ninputs = [4]\nwidths = [8]\noutputs = 3\n");
    let before = folder.files();
    for line in [
        "eigen exact --kernel rbf() --data mlp.x.npy -k 3 -o out",
        "eigen shared --kernel rbf() --data mlp.x.npy -k 3 -o out",
        "predict --net mlp.onnx --data mlp.x.npy -o out.npy",
        "train --arch mlp.toml --data mlp.x.npy --labels mlp.labels.npy -o out",
        "kernel --kernel rbf() --data mlp.x.npy -o out.npy",
        "uncertainty --net mlp.onnx --data mlp.x.npy --labels mlp.labels.npy --test mlp.x.npy -o out",
    ] {
        let text = folder.succeed(&format!("{line} --dry-run"));
        assert!(text.contains("10 samples") || text.contains("[10, 10]"), "{line}: {text}");
        assert_eq!(folder.files(), before, "{line}");
        folder.json(&format!("{line} --dry-run"));
    }
}

#[test]
fn wrong_arguments() {
    let folder = Folder::with(&["mlp.onnx", "mlp.x.npy"]);
    folder.refuse("predict --net mlp.onnx", &["--data"]);
    folder.refuse("predikt", &["predict"]);
    folder.refuse("info", &["FILE"]);
    folder.refuse("info mlp.onnx --shape none", &["--shape"]);
    for extra in ["--chunk 0", "--precision f16", "--scale 1/0", "--layout hwc", "--threads 0", "--mean a", "--nothing"]
    {
        let run = folder.run(&format!("predict --net mlp.onnx --data mlp.x.npy -o out.npy {extra}"));
        assert_eq!(run.code, Some(2), "{extra}");
        assert!(run.err.contains(extra.split(' ').next().unwrap()), "{extra}: {}", run.err);
    }
    folder.refuse("predict --net mlp.onnx --data x= -o out.npy", &["x="]);
}

/// Negative numbers are values, not flags, alone and in lists; what they may not be is said in words.
#[test]
fn negative_numbers_are_numbers() {
    let folder = Folder::with(&["mlp.onnx", "mlp.x.npy"]);
    let predict = "predict --net mlp.onnx --data mlp.x.npy";
    folder.succeed(&format!("{predict} --mean -1 -o one.npy"));
    let n_columns = folder.read("mlp.x.npy").shape()[1];
    let list = vec!["-1"; n_columns].join(",");
    folder.succeed(&format!("{predict} --mean {list} -o list.npy"));
    assert_eq!(folder.read("one.npy"), folder.read("list.npy"));
    let eigen = "eigen exact --kernel rbf --data mlp.x.npy -o out";
    folder.refuse(&format!("{eigen} -k -3"), &["-3", "whole number"]);
    folder.refuse(&format!("{predict} -o out.npy --chunk 0"), &["--chunk", "at least 1"]);
    folder.refuse(&format!("{predict} -o out.npy --std x"), &["--std", "a number is needed"]);
}

#[test]
fn a_reader_may_stop_reading() {
    let folder = Folder::with(&["cnn.onnx"]);
    for arguments in [&["completions", "zsh"][..], &["info", "cnn.onnx", "--json"]] {
        let mut child =
            folder.command(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("mercer runs");
        drop(child.stdout.take());
        let mut errors = String::new();
        child.stderr.take().unwrap().read_to_string(&mut errors).unwrap();
        assert!(child.wait().unwrap().success(), "{errors}");
        assert_eq!(errors, "");
    }
}

#[test]
fn completions() {
    let folder = Folder::with(&[]);
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        assert!(folder.succeed(&format!("completions {shell}")).contains("predict"), "{shell}");
    }
}
