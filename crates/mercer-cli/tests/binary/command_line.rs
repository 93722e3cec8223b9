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
}

#[test]
fn wrong_arguments() {
    let folder = Folder::with(&["mlp.onnx", "mlp.x.npy"]);
    folder.refuse("predict --net mlp.onnx", &["--data"]);
    folder.refuse("predikt", &["predict"]);
    folder.refuse("info", &["FILE"]);
    folder.refuse("info mlp.onnx --shape none", &["--shape"]);
    for extra in ["--batch 0", "--precision f16", "--scale 1/0", "--layout hwc", "--threads 0", "--mean a", "--nothing"]
    {
        let run = folder.run(&format!("predict --net mlp.onnx --data mlp.x.npy -o out.npy {extra}"));
        assert_eq!(run.code, Some(2), "{extra}");
        assert!(run.err.contains(extra.split(' ').next().unwrap()), "{extra}: {}", run.err);
    }
    folder.refuse("predict --net mlp.onnx --data x= -o out.npy", &["x="]);
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
