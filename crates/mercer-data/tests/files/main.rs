//! The readers and writers on real files: NumPy's, our own, broken and hostile ones.

mod broken;
mod csv;
mod idx;
mod images;
mod inputs;
mod labels;
mod npy;
mod npz;
mod preprocess;
mod texts;
mod write;

use std::path::{Path, PathBuf};

use mercer_data::{Dataset, Result, Source};

/// A file that NumPy wrote.
fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name)
}

fn open(path: &Path, key: Option<&str>) -> Result<Dataset> {
    Source::new(path, key).open()
}

/// The message of an error, which must contain these words.
#[track_caller]
fn fails<T>(result: Result<T>, words: &[&str]) {
    let Err(error) = result else { panic!("should have failed with {words:?}") };
    let message = error.to_string();
    for word in words {
        assert!(message.contains(word), "`{message}` lacks `{word}`");
    }
}

/// A folder with one file in it.
fn file(name: &str, bytes: &[u8]) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    std::fs::write(&path, bytes).unwrap();
    (folder, path)
}
