//! Whoever saves a machine, eigenfunctions or a posterior may be killed at any operation on the disk: what is there then is the old
//! one or the new one, whole, or nothing; and every flipped bit is found.

use mercer::data::faults::{Fault, Faults};
use mercer::data::folder::{self, Folder, MANIFEST};
use mercer::data::{DataError, Existing};
use mercer::learn::KernelMachine;
use mercer::learn::laplace::Posterior;
use mercer::spectral::Eigenfunctions;
use std::path::{Path, PathBuf};

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/folders/v1").join(name)
}

type Save = fn(&Path, bool) -> bool;
type Load = fn(&Path) -> bool;

/// How each is saved, the new one or the old one, and which of the two is there.
const THINGS: [(&str, Save, Load); 3] = [
    (
        "machine",
        |path, new| {
            let mut machine = KernelMachine::load(&fixture("machine")).expect("loads");
            machine.samples.ids = machine.samples.ids.filter(|_| new);
            machine.save(path, Existing::Replace).is_ok()
        },
        |path| KernelMachine::load(path).expect("whole").samples.ids.is_some(),
    ),
    (
        "eigenfunctions",
        |path, new| {
            let functions = Eigenfunctions::<f64>::load(&fixture("eigenfunctions"), None).expect("loads");
            let functions = functions.truncated(if new { 1 } else { 2 });
            functions.save(path, Existing::Replace).is_ok()
        },
        |path| Eigenfunctions::<f64>::load(path, None).expect("whole").n_components() == 1,
    ),
    (
        "posterior",
        |path, new| {
            let name = if new { "posterior-through-functions" } else { "posterior" };
            Posterior::<f64>::load(&fixture(name)).expect("loads").save(path, Existing::Replace).is_ok()
        },
        |path| Posterior::<f64>::load(path).expect("whole").functions.len() == 1,
    ),
];

/// Nothing, the old one or the new one.
fn found(path: &Path, load: Load) -> Option<bool> {
    match Folder::open(path, None) {
        Ok(folder) => {
            assert!(folder.verify().is_empty(), "{:?}", folder.verify());
            Some(load(path))
        }
        Err(DataError::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => None,
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn saving_may_end_anywhere() {
    for (name, save, load) in THINGS {
        for replaces in [false, true] {
            for at in 0.. {
                let root = tempfile::tempdir().expect("a folder");
                let path = root.path().join("saved");
                assert!(!replaces || save(&path, false));
                let faults = Faults::below(root.path(), Fault::Kill { at });
                let is_saved = save(&path, true);
                let is_over = faults.operations() <= at;
                drop(faults);
                let there = found(&path, load);
                match is_saved {
                    true => assert_eq!(there, Some(true), "{name} at {at}"),
                    false => assert!(there != Some(false) || replaces, "{name} at {at}"),
                }
                assert!(there.is_some() || !replaces, "{name} at {at}: the old one is gone");
                assert!(save(&path, true), "{name} at {at}: it cannot be repeated");
                let left =
                    std::fs::read_dir(&path).expect("a folder").map(|entry| entry.expect("an entry").file_name());
                let mut left: Vec<_> = left.map(|name| name.to_string_lossy().into_owned()).collect();
                left.sort();
                let values: &[&str] = if name == "eigenfunctions" { &["values.npy"] } else { &[] };
                assert_eq!(left, [&[MANIFEST, "objects"], values].concat(), "{name} at {at}");
                if is_over {
                    assert!(is_saved && at > 30, "{name}: {at} operations");
                    break;
                }
            }
        }
    }
}

/// One flip per sixteen bytes, in every file of every kind of folder.
#[test]
fn flipped_bits_are_found_and_named() {
    let mut flips = 0;
    for (name, save, load) in THINGS {
        let root = tempfile::tempdir().expect("a folder");
        let path = root.path().join("saved");
        assert!(save(&path, true));
        let objects = std::fs::read_dir(path.join("objects")).expect("objects").map(|entry| entry.expect("one").path());
        let mut files: Vec<PathBuf> = objects.chain([path.join(MANIFEST)]).collect();
        files.extend((name == "eigenfunctions").then(|| path.join("values.npy")));
        for file in files {
            let bytes = std::fs::read(&file).expect("reads");
            for at in (0..bytes.len()).step_by(16) {
                let mut flipped = bytes.clone();
                flipped[at + (at / 16) % 16.min(bytes.len() - at)] ^= 1 << (at / 16 % 8);
                std::fs::write(&file, flipped).expect("writes");
                let errors = Folder::open(&path, None).map_or_else(|error| vec![error], |folder| folder.verify());
                // An object that two parts share is named for both.
                let named = |error: &DataError| match error {
                    DataError::Damaged { place, .. } => place.starts_with(&file.display().to_string()),
                    _ => false,
                };
                assert!(!errors.is_empty() && errors.iter().all(named), "{name}, {}: {errors:?}", file.display());
                flips += 1;
            }
            std::fs::write(&file, bytes).expect("writes");
        }
        assert!(load(&path));
        folder::remove(&path, folder::FolderKind { name, version: 1 }).expect("removes");
        assert!(!path.exists());
    }
    assert!(flips > 500, "{flips}");
}
