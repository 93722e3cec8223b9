//! A fresh folder to run the binary in.

use mercer::data::folder::Folder as Saved;
use mercer::data::{Existing, Source, Storable, write_npy};
use ndarray::{ArrayD, ArrayView, Dimension};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Output, Stdio};

/// Address space in KiB: what nobody may need for a bad file, and more than honest work on a small one takes.
const MEMORY: usize = 600_000;

pub(crate) struct Folder {
    folder: tempfile::TempDir,
}

/// What a run left behind.
pub(crate) struct Run {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Folder {
    /// A folder with these files of `tests/fixtures`.
    pub(crate) fn with(fixtures: &[&str]) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        for name in fixtures {
            std::fs::copy(fixture(name), folder.path().join(name)).expect(name);
        }
        Self { folder }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, bytes: &[u8]) {
        std::fs::write(self.path(name), bytes).expect(name);
    }

    pub(crate) fn write_array<T: Storable, D: Dimension>(&self, name: &str, array: ArrayView<'_, T, D>) {
        write_npy(&self.path(name), &array, Existing::Refuse).expect(name);
    }

    pub(crate) fn read(&self, name: &str) -> ArrayD<f64> {
        read(&self.path(name))
    }

    /// An object of something that was saved, by its name in the manifest.
    pub(crate) fn object(&self, saved: &str, name: &str) -> Vec<u8> {
        Saved::open(&self.path(saved), None).and_then(|saved| Ok(saved.object(name)?.to_vec())).expect(name)
    }

    /// An array of something that was saved, by its name in the manifest.
    pub(crate) fn saved(&self, saved: &str, name: &str) -> ArrayD<f64> {
        Saved::open(&self.path(saved), None).and_then(|saved| saved.array(name)?.read()).expect(name)
    }

    /// The names of the files in the folder, also of hidden ones.
    pub(crate) fn files(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.folder.path()).expect("the folder");
        let mut names: Vec<_> =
            entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    /// The binary with these arguments, in this folder, with little memory.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.command_within(MEMORY, arguments);
        command.args(["--threads", "2"]);
        command
    }

    /// The binary with these arguments, in this folder, with so many KiB of address space.
    pub(crate) fn command_within(&self, memory: usize, arguments: &[&str]) -> Command {
        let binary = env!("CARGO_BIN_EXE_mercer");
        let mut command = if cfg!(unix) {
            let mut shell = Command::new("sh");
            shell.args(["-c", &format!("ulimit -v {memory}; exec \"$0\" \"$@\""), binary]);
            shell
        } else {
            Command::new(binary)
        };
        command.args(arguments).current_dir(self.folder.path()).stdin(Stdio::null());
        command
    }

    /// Runs the binary. Nothing may ever panic.
    pub(crate) fn run(&self, line: &str) -> Run {
        let arguments: Vec<&str> = line.split_whitespace().collect();
        Run::new(line, self.command(&arguments).output().expect("mercer runs"))
    }

    /// Runs the binary, which must succeed, and returns what it printed.
    pub(crate) fn succeed(&self, line: &str) -> String {
        let run = self.run(line);
        assert_eq!(run.code, Some(0), "mercer {line}: {}{}", run.out, run.err);
        run.out
    }

    /// The tour, which needs more memory than small files do; it must succeed.
    pub(crate) fn demo(&self, options: &[&str]) -> String {
        const ROOM: usize = 2_500_000;
        let arguments: Vec<&str> = ["demo", "--threads", "2"].into_iter().chain(options.iter().copied()).collect();
        let run = Run::new("demo", self.command_within(ROOM, &arguments).output().expect("mercer runs"));
        assert_eq!(run.code, Some(0), "mercer demo: {}{}", run.out, run.err);
        run.out
    }

    /// Runs the binary with `--json`, which must succeed.
    pub(crate) fn json(&self, line: &str) -> serde_json::Value {
        serde_json::from_str(&self.succeed(&format!("{line} --json"))).expect("JSON")
    }

    /// Runs the binary, which must refuse with an error that says all of `words` and leave no file behind.
    pub(crate) fn refuse(&self, line: &str, words: &[&str]) {
        let before = self.files();
        let run = self.run(line);
        assert_eq!(run.code, Some(2), "mercer {line}: {}{}", run.out, run.err);
        assert!(run.err.starts_with("error: "), "mercer {line}: {}", run.err);
        for word in words {
            assert!(run.err.contains(word), "mercer {line}: no {word:?} in: {}", run.err);
        }
        assert_eq!(self.files(), before, "mercer {line} left files behind");
    }
}

impl Run {
    /// What a run printed and returned; no panic.
    pub(crate) fn new(line: &str, output: Output) -> Self {
        let Output { status, stdout, stderr } = output;
        let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
        let run = Self { code: sound(status).code(), out: text(stdout), err: text(stderr) };
        assert!(
            !run.err.contains("this is a bug in mercer") && !run.err.contains("panicked"),
            "mercer {line}: {}",
            run.err
        );
        run
    }
}

/// How a run ended, which is never by a panic: those have an exit code of their own. Every test that runs the binary looks
/// at its end through this.
pub(crate) fn sound(status: ExitStatus) -> ExitStatus {
    assert_ne!(status.code(), Some(101), "mercer panicked");
    status
}

pub(crate) fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name)
}

pub(crate) fn read(path: &Path) -> ArrayD<f64> {
    Source::new(path, None).open().and_then(|dataset| dataset.read()).expect("an array")
}

/// The Frobenius norm of the difference, relative to that of the second.
pub(crate) fn difference(left: &ArrayD<f64>, right: &ArrayD<f64>) -> f64 {
    assert_eq!(left.shape(), right.shape());
    let norm = |array: &ArrayD<f64>| array.iter().map(|x| x * x).sum::<f64>().sqrt();
    norm(&(left - right)) / norm(right)
}
