//! The guarantees of folders, tested at every operation and every byte.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use ndarray::{Array1, Array2, array};

use super::*;
use crate::error::{DataError, Result};
use crate::faults::{Fault, Faults, forge};
use crate::{Existing, write_atomic};

const KIND: FolderKind = FolderKind { name: "machine", version: 3 };

/// Two things that share a part and differ in all others; the second one is smaller.
fn write(folder: &Path, which: usize, existing: Existing) -> Result<()> {
    let writer = FolderWriter::create(folder, KIND, existing)?;
    let own = Array1::from_elem(40 + which, which as f64);
    writer.objects().array("own", &own)?;
    writer.objects().part("basis").array("shared", &array![[1.0_f32, 2.0]])?;
    let mut rows = writer.rows_file::<f64>("psi.npy", &[2])?;
    rows.append(Array2::from_elem((3, 2), which as f64).view())?;
    rows.finish()?;
    if which == 1 {
        writer.objects().object("extra", |file| file.write_all(b"only in the first"))?;
        writer.file("plot.svg", |file| file.write_all(b"<svg/>"))?;
    }
    writer.commit(&which)
}

/// Which of them is there, complete; `None` if there is none.
fn read(folder: &Path) -> Option<usize> {
    if !folder.join(MANIFEST).exists() && !stage::has_committed(folder) {
        return None;
    }
    let folder = Folder::open(folder, Some(KIND)).unwrap();
    let which = folder.content::<usize>().unwrap();
    assert!(folder.verify().is_empty(), "{:?}", folder.verify());
    let own = folder.array("own").unwrap().read::<f64>().unwrap();
    assert_eq!(own, Array1::from_elem(40 + which, which as f64).into_dyn());
    let psi = folder.array_file("psi.npy").unwrap().read::<f64>().unwrap();
    assert_eq!(psi, Array2::from_elem((3, 2), which as f64).into_dyn());
    let shared = folder.objects().part("basis").array("shared").unwrap().read::<f32>().unwrap();
    assert_eq!(shared, array![[1.0, 2.0]].into_dyn());
    Some(which)
}

/// All files below a folder, by their paths in it.
fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    fn below(root: &Path, folder: &Path, found: &mut BTreeMap<PathBuf, Vec<u8>>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                below(root, &path, found);
                // Empty folders count, too.
                found.insert(path.strip_prefix(root).unwrap().to_owned(), Vec::new());
            } else {
                found.insert(path.strip_prefix(root).unwrap().to_owned(), std::fs::read(&path).unwrap());
            }
        }
    }
    let mut found = BTreeMap::new();
    if folder.exists() {
        below(folder, folder, &mut found);
    }
    found
}

/// What an uninterrupted writer leaves.
fn expected(which: usize) -> BTreeMap<PathBuf, Vec<u8>> {
    let root = tempfile::tempdir().unwrap();
    let folder = root.path().join("saved");
    write(&folder, which, Existing::Refuse).unwrap();
    files(&folder)
}

fn begin(before: Option<usize>) -> (tempfile::TempDir, PathBuf) {
    let root = tempfile::tempdir().unwrap();
    let folder = root.path().join("deep").join("saved");
    if let Some(before) = before {
        write(&folder, before, Existing::Refuse).unwrap();
        std::fs::write(folder.join("mine.txt"), "a user's").unwrap();
    }
    (root, folder)
}

/// A writer is interrupted. The folder is then complete (old or new) or absent, and the next run removes all remains.
fn disturb(before: Option<usize>, fault: Fault) {
    let (root, folder) = begin(before);
    let existing = if before.is_some() { Existing::Replace } else { Existing::Refuse };
    let faults = Faults::below(root.path(), fault);
    let written = write(&folder, 2, existing);
    drop(faults);
    if matches!(fault, Fault::Full { .. }) && written.is_err() {
        // A surviving process cleans up.
        assert_eq!(folder.exists(), before.is_some(), "{fault:?}");
    }
    let found = read(&folder);
    match (&written, found) {
        (Ok(()), found) => assert_eq!(found, Some(2), "{fault:?}"),
        (Err(_), found) => assert!(found == before || found == Some(2), "{fault:?}: {found:?}"),
    }
    if found.is_none() {
        // An interrupted run is repeated without permission to replace anything.
        write(&folder, 2, Existing::Refuse).unwrap_or_else(|error| panic!("{fault:?}: {error}"));
    } else {
        write(&folder, 2, Existing::Replace).unwrap_or_else(|error| panic!("{fault:?}: {error}"));
    }
    let mut left = files(&folder);
    if before.is_some() {
        assert_eq!(left.remove(Path::new("mine.txt")).unwrap(), b"a user's");
    }
    assert_eq!(left, expected(2), "{fault:?}");
}

/// The same where the next process is a writer instead of a reader.
fn disturb_twice(before: Option<usize>, fault: Fault) {
    let (root, folder) = begin(before);
    let existing = if before.is_some() { Existing::Replace } else { Existing::Refuse };
    let faults = Faults::below(root.path(), fault);
    let _ = write(&folder, 2, existing);
    drop(faults);
    write(&folder, 1, Existing::Replace).unwrap_or_else(|error| panic!("{fault:?}: {error}"));
    assert_eq!(read(&folder), Some(1));
    let mut left = files(&folder);
    left.remove(Path::new("mine.txt"));
    assert_eq!(left, expected(1), "{fault:?}");
}

#[test]
fn a_writer_may_end_anywhere() {
    for before in [None, Some(1), Some(2)] {
        let (root, folder) = begin(before);
        let faults = Faults::below(root.path(), Fault::Never);
        write(&folder, 2, if before.is_some() { Existing::Replace } else { Existing::Refuse }).unwrap();
        let (operations, bytes) = (faults.operations(), faults.bytes());
        drop(faults);
        assert!(operations > 35 && bytes > 500, "{operations} operations, {bytes} bytes");
        for at in 0..operations {
            disturb(before, Fault::Fail { at });
            disturb(before, Fault::Kill { at });
            disturb(before, Fault::PowerCut { at });
            disturb_twice(before, Fault::Kill { at });
        }
        for bytes in (0..bytes).step_by(37) {
            disturb(before, Fault::Full { bytes });
        }
    }
}

/// A process that finishes another's work may be killed, too.
#[test]
fn finishing_may_end_anywhere() {
    let prepare = |at| {
        let (root, folder) = begin(Some(1));
        let faults = Faults::below(root.path(), Fault::Kill { at });
        let _ = write(&folder, 2, Existing::Replace);
        drop(faults);
        (root, folder)
    };
    let operations = {
        let (root, folder) = begin(Some(1));
        let faults = Faults::below(root.path(), Fault::Never);
        write(&folder, 2, Existing::Replace).unwrap();
        faults.operations()
    };
    let mut tried = 0;
    for first in (0..operations).rev().take(24) {
        for second in 0.. {
            let (root, folder) = prepare(first);
            let faults = Faults::below(root.path(), Fault::Kill { at: second });
            let swept = sweep(&folder);
            let is_over = faults.operations() <= second;
            drop(faults);
            assert!(matches!(read(&folder), Some(1 | 2)), "{first} {second}");
            sweep(&folder).unwrap();
            assert!(matches!(read(&folder), Some(1 | 2)), "{first} {second}");
            assert!(files(&folder).keys().all(|path| !path.to_string_lossy().contains(".part")), "{first} {second}");
            tried += 1;
            if is_over {
                swept.unwrap();
                break;
            }
        }
    }
    assert!(tried > 100, "{tried}");
}

/// A removed folder is gone, or still there, or removed by the next process.
#[test]
fn removing_may_end_anywhere() {
    for at in 0.. {
        let (root, folder) = begin(Some(1));
        let faults = Faults::below(root.path(), Fault::Kill { at });
        let removed = remove(&folder, KIND);
        let is_over = faults.operations() <= at;
        drop(faults);
        assert!(matches!(read(&folder), None | Some(1)), "{at}");
        remove(&folder, KIND).unwrap();
        assert_eq!(files(&folder).into_keys().collect::<Vec<_>>(), [Path::new("mine.txt")], "{at}");
        if is_over {
            removed.unwrap();
            break;
        }
    }
    let (_root, folder) = begin(Some(1));
    let error = remove(&folder, FolderKind { name: "posterior", version: 1 }).unwrap_err();
    assert!(matches!(error, DataError::Foreign { .. }) && read(&folder) == Some(1));
}

/// A released folder is complete, or unfinished with the files that stay, and can be completed with them.
#[test]
fn releasing_may_end_anywhere() {
    let keep = ["psi.npy".to_owned()];
    for at in 0.. {
        let (root, folder) = begin(Some(1));
        let psi = std::fs::read(folder.join("psi.npy")).unwrap();
        let faults = Faults::below(root.path(), Fault::Kill { at });
        let released = release(&folder, KIND, &keep);
        let is_over = faults.operations() <= at;
        drop(faults);
        assert!(matches!(read(&folder), None | Some(1)), "{at}");
        release(&folder, KIND, &keep).unwrap();
        let left = files(&folder);
        assert_eq!(left.keys().collect::<Vec<_>>(), [Path::new("mine.txt"), Path::new("psi.npy")], "{at}");
        assert_eq!(left[Path::new("psi.npy")], psi);
        let writer = FolderWriter::create(&folder, KIND, Existing::Refuse).unwrap();
        assert!(writer.file("psi.npy", |_| Ok(())).is_err(), "it is not listed");
        writer.adopt("psi.npy").unwrap();
        writer.commit(&()).unwrap();
        assert_eq!(std::fs::read(folder.join("psi.npy")).unwrap(), psi);
        if is_over {
            released.unwrap();
            break;
        }
    }
    let (_root, folder) = begin(Some(1));
    assert!(release(&folder, FolderKind { name: "posterior", version: 1 }, &keep).is_err() && read(&folder) == Some(1));
}

/// A file is checked where it is opened by its name, if the manifest beside it lists it.
#[test]
fn a_listed_file_is_checked() {
    let (_root, folder) = begin(Some(1));
    let psi = folder.join("psi.npy");
    let damaged = |place: &Path| match check_listed(&psi) {
        Err(DataError::Damaged { place: named, .. }) => named.starts_with(&place.display().to_string()),
        _ => false,
    };
    check_listed(&psi).unwrap();
    check_listed(&folder.join("mine.txt")).unwrap();
    std::fs::write(&psi, b"another").unwrap();
    assert!(damaged(&psi));
    std::fs::remove_file(&psi).unwrap();
    assert!(damaged(&psi));
    let manifest = folder.join(MANIFEST);
    let text = std::fs::read_to_string(&manifest).unwrap();
    std::fs::write(&manifest, text.replace("machine", "Machine")).unwrap();
    assert!(damaged(&manifest));
    // Another program's manifest says nothing about files of ours.
    std::fs::write(&manifest, b"{}").unwrap();
    check_listed(&psi).unwrap();
    std::fs::remove_file(&manifest).unwrap();
    check_listed(&psi).unwrap();
}

/// Every byte of every file is flipped once, in a bit that changes from byte to byte.
#[test]
fn flipped_bits_are_found_and_named() {
    let (_root, folder) = begin(None);
    write(&folder, 1, Existing::Refuse).unwrap();
    let mut flips = 0;
    for (name, bytes) in files(&folder).into_iter().filter(|(_, bytes)| !bytes.is_empty()) {
        let path = folder.join(&name);
        for at in 0..bytes.len() {
            let mut flipped = bytes.clone();
            flipped[at] ^= 1 << (at % 8);
            std::fs::write(&path, &flipped).unwrap();
            let errors = Folder::open(&folder, Some(KIND)).map_or_else(|error| vec![error], |folder| folder.verify());
            let named = |error: &DataError| match error {
                DataError::Damaged { place, .. } => place.starts_with(&path.display().to_string()),
                _ => false,
            };
            assert!(matches!(&errors[..], [error] if named(error)), "{}, byte {at}: {errors:?}", name.display());
            flips += 1;
        }
        for cut in [0, bytes.len() / 2, bytes.len() - 1] {
            std::fs::write(&path, &bytes[..cut]).unwrap();
            let errors = Folder::open(&folder, Some(KIND)).map_or_else(|error| vec![error], |folder| folder.verify());
            let [error] = &errors[..] else { panic!("{}: {errors:?}", name.display()) };
            assert!(error.to_string().contains(&path.display().to_string()), "{error}");
        }
        std::fs::write(&path, &bytes).unwrap();
    }
    assert!(flips > 1500, "{flips}");
    assert_eq!(read(&folder), Some(1));
}

#[test]
fn only_what_is_ours_is_replaced() {
    let (_root, folder) = begin(Some(1));
    let refused = |existing| write(&folder, 2, existing).unwrap_err();
    assert!(matches!(refused(Existing::Refuse), DataError::Exists { .. }));
    let manifest = std::fs::read(folder.join(MANIFEST)).unwrap();
    // A damaged folder is ours, too.
    std::fs::write(folder.join(MANIFEST), [&manifest[..manifest.len() - 3], b" }\n"].concat()).unwrap();
    write(&folder, 1, Existing::Replace).unwrap();
    for foreign in ["not JSON", r#"{ "format": "mercer folder" }"#] {
        std::fs::write(folder.join(MANIFEST), foreign).unwrap();
        assert!(matches!(refused(Existing::Replace), DataError::Foreign { place } if place.ends_with(MANIFEST)));
    }
    std::fs::remove_file(folder.join(MANIFEST)).unwrap();
    // Without a manifest nothing shows that this file is ours.
    assert!(matches!(refused(Existing::Replace), DataError::Foreign { place } if place.ends_with("psi.npy")));
    assert!(matches!(refused(Existing::Refuse), DataError::Exists { place } if place.ends_with("psi.npy")));
    std::fs::write(folder.join(MANIFEST), &manifest).unwrap();
    let other = FolderKind { name: "posterior", version: 1 };
    let error = FolderWriter::create(&folder, other, Existing::Replace).err().unwrap();
    assert!(matches!(error, DataError::Foreign { place } if place.ends_with(MANIFEST)));
    let error = Folder::open(&folder, Some(other)).unwrap_err().to_string();
    assert!(error.ends_with("holds a machine, not a posterior"), "{error}");
    assert_eq!(read(&folder), Some(1));
    assert_eq!(std::fs::read(folder.join("mine.txt")).unwrap(), b"a user's");
    // Named files are claimed before any work.
    let writer = FolderWriter::create(&folder, KIND, Existing::Replace).unwrap();
    writer.claim(&["psi.npy", "new.npy"]).unwrap();
    assert!(matches!(writer.claim(&["mine.txt"]), Err(DataError::Foreign { .. })));
}

#[test]
fn versions_and_names_are_checked() {
    let (_root, folder) = begin(Some(1));
    let newest = FolderKind { version: 2, ..KIND };
    let error = Folder::open(&folder, Some(newest)).unwrap_err();
    assert!(matches!(error, DataError::Version { found: 3, known: 2, .. }), "{error}");
    let manifest = std::fs::read(folder.join(MANIFEST)).unwrap();
    let long = format!("\"{}\"", "x".repeat(300));
    for (from, to, why) in [
        ("\"version\": 1", "\"version\": 7", "its version is 7, but this program supports versions up to 1"),
        ("\"version\": 1", "\"version\": 0", "version is 0"),
        ("mercer folder", "other folder", "this is a other folder"),
        ("\"plot.svg\"", "\"../plot.svg\"", "cannot be the name"),
        ("\"plot.svg\"", "\"folder.json\"", "cannot be the name"),
        ("\"plot.svg\"", "\".hidden\"", "cannot be the name"),
        ("\"plot.svg\"", "\"\"", "cannot be the name"),
        ("\"own\"", "\"a/b\"", "cannot be the name"),
        ("\"own\"", &long, "cannot be the name"),
        ("\"digest\": \"", "\"digest\": \"../", "is malformed"),
    ] {
        std::fs::write(folder.join(MANIFEST), &manifest).unwrap();
        forge(&folder, from, to);
        let error = Folder::open(&folder, Some(KIND)).unwrap_err().to_string();
        assert!(error.contains(why), "{to}: {error}");
    }
    // A length that is not true is noticed before anything is made room for.
    std::fs::write(folder.join(MANIFEST), &manifest).unwrap();
    forge(&folder, "\"bytes\": ", "\"bytes\": 99999999999999");
    assert!(matches!(&Folder::open(&folder, None).unwrap().verify()[..], [DataError::Damaged { .. }]));
}

#[test]
fn folders_of_bytes() {
    let make = || {
        let writer = FolderWriter::in_memory(KIND);
        writer.objects().array("own", &array![1.0, 2.0])?;
        writer.objects().array("same", &array![1.0, 2.0])?;
        writer.file("notes.txt", |file| file.write_all(b"for people"))?;
        writer.into_bytes(&"content")
    };
    let bytes = make().unwrap();
    assert_eq!(bytes, make().unwrap());
    let check = |bytes: &[u8]| -> Result<Vec<DataError>> {
        let folder = Folder::from_bytes(bytes.to_vec(), Some(KIND))?;
        let errors = folder.verify();
        if errors.is_empty() {
            assert_eq!(folder.content::<String>()?, "content");
            assert_eq!(folder.array("own")?.read::<f64>()?, folder.array("same")?.read::<f64>()?);
            assert_eq!(&*folder.file("notes.txt")?, b"for people");
        }
        Ok(errors)
    };
    assert!(check(&bytes).unwrap().is_empty());
    for at in 0..bytes.len() {
        let mut flipped = bytes.clone();
        flipped[at] ^= 1 << (at % 8);
        assert!(check(&flipped).is_err() || !check(&flipped).unwrap().is_empty(), "byte {at}");
        assert!(check(&bytes[..at]).is_err(), "cut at {at}");
    }
}

/// A folder on disk as bytes holds the same things, without the files for people.
#[test]
fn a_folder_becomes_bytes() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("saved");
    let writer = FolderWriter::create(&path, KIND, Existing::Refuse).unwrap();
    writer.objects().array("own", &array![1.0, 2.0]).unwrap();
    writer.objects().array("same", &array![1.0, 2.0]).unwrap();
    writer.objects().array("other", &array![3.0]).unwrap();
    writer.file("notes.txt", |file| file.write_all(b"for people")).unwrap();
    writer.commit(&"content").unwrap();
    let saved = Folder::open(&path, Some(KIND)).unwrap();
    let bytes = saved.to_bytes().unwrap();
    let folder = Folder::from_bytes(bytes.clone(), Some(KIND)).unwrap();
    assert!(folder.verify().is_empty() && folder.file_names().next().is_none());
    assert_eq!((folder.content::<String>().unwrap().as_str(), folder.fingerprint()), ("content", saved.fingerprint()));
    for name in ["own", "same", "other"] {
        assert_eq!(&*folder.object(name).unwrap(), &*saved.object(name).unwrap());
    }
    assert_eq!(folder.to_bytes().unwrap(), bytes);
}

/// Samples are kept in their own type, whatever the order of their file, and without preprocessing.
#[test]
fn samples_keep_their_type() {
    let root = tempfile::tempdir().unwrap();
    let header = |text: &str| {
        let mut header = [b"\x93NUMPY\x01\x00".as_slice(), &118_u16.to_le_bytes(), text.as_bytes()].concat();
        header.resize(128, b' ');
        header
    };
    let plain = header("{'descr': '<i2', 'fortran_order': False, 'shape': (2, 3), }");
    let other = header("{'descr': '>i2', 'fortran_order': True, 'shape': (2, 3), }");
    std::fs::write(root.path().join("plain.npy"), [plain, (1..7).flat_map(i16::to_le_bytes).collect()].concat())
        .unwrap();
    let columns = [1_i16, 4, 2, 5, 3, 6].into_iter().flat_map(i16::to_be_bytes).collect();
    std::fs::write(root.path().join("other.npy"), [other, columns].concat()).unwrap();
    let writer = FolderWriter::in_memory(KIND);
    for name in ["plain", "other"] {
        let samples = crate::Source::new(root.path().join(format!("{name}.npy")), None).open().unwrap();
        let samples = samples.with_preprocess(crate::Preprocess::new().scale(0.5).flatten()).unwrap();
        writer.objects().dataset(name, &samples).unwrap();
    }
    let folder = Folder::from_bytes(writer.into_bytes(&()).unwrap(), None).unwrap();
    assert_eq!(&*folder.object("plain").unwrap(), &*folder.object("other").unwrap());
    let read = folder.array("other").unwrap();
    assert_eq!((read.dtype(), read.shape()), (crate::DType::I16, &[2, 3][..]));
    assert_eq!(read.read::<f64>().unwrap(), array![[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]].into_dyn());
}

/// Samples come back as they were, from the folder or from where they were.
#[test]
fn samples_come_back() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("x.npy");
    crate::write_npy(&path, &array![[1_u8, 2], [3, 4], [5, 6]], Existing::Refuse).unwrap();
    let steps = crate::Preprocess::new().scale(1.0 / 255.0);
    let input = crate::Source::new(&path, None).open().unwrap().with_preprocess(steps).unwrap();
    let names = array![7_i64, -1, 7];
    let classes = crate::Classes::read(&crate::Dataset::from_array("y", names.into_dyn().view()).unwrap()).unwrap();
    for labels in [crate::Labels::Classes(classes), crate::Labels::Targets(array![[1.5], [2.0], [-3.0]])] {
        let ids = Some(vec!["a".to_owned(), "b".to_owned(), "ü".to_owned()]);
        let samples =
            SavedSamples { inputs: vec![input.clone()], labels: Some(labels), ids, ..SavedSamples::default() };
        for most in [100, 5] {
            let writer = FolderWriter::in_memory(KIND);
            let content = samples.write_up_to(&writer.objects().part("samples"), most).unwrap();
            let bytes = writer.into_bytes(&content).unwrap();
            let folder = Folder::from_bytes(bytes, None).unwrap();
            let read = || SavedSamples::read(&folder.objects().part("samples"), &folder.content().unwrap());
            let found = read().unwrap();
            assert_eq!((&found.labels, &found.ids), (&samples.labels, &samples.ids));
            assert_eq!(found.inputs[0].read::<f64>().unwrap(), input.read::<f64>().unwrap());
            assert_eq!(found.inputs[0].dtype(), crate::DType::U8);
            // Without the file, or with another one.
            let moved = root.path().join("moved.npy");
            std::fs::rename(&path, &moved).unwrap();
            assert_eq!(read().is_ok(), most == 100);
            crate::write_npy(&path, &array![[1_u8, 2], [3, 4], [5, 7]], Existing::Replace).unwrap();
            match read() {
                Ok(_) => assert_eq!(most, 100),
                Err(error) => assert!(matches!(error, DataError::Changed { .. }) && most == 5, "{error}"),
            }
            std::fs::rename(&moved, &path).unwrap();
        }
    }
}

/// Temporaries of live processes stay, those of dead ones are removed, and single files are written as safely as
/// folders.
#[test]
fn temporaries_are_swept() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("result.json");
    let live = FolderWriter::create(root.path(), KIND, Existing::Refuse).unwrap();
    live.objects().array("own", &array![1.0]).unwrap();
    let save = |text: &'static [u8]| write_atomic(&path, Existing::Replace, |file| file.write_all(text));
    save(b"old").unwrap();
    let operations = {
        let faults = Faults::below(root.path(), Fault::Never);
        save(b"old").unwrap();
        faults.operations()
    };
    assert!(operations >= 5, "{operations}");
    for at in 0..operations {
        for fault in [Fault::Kill { at }, Fault::PowerCut { at }, Fault::Fail { at }, Fault::Full { bytes: 1 }] {
            save(b"old").unwrap();
            let faults = Faults::below(root.path(), fault);
            let saved = save(b"new");
            drop(faults);
            let found = std::fs::read(&path).unwrap();
            assert!(found == b"new" || saved.is_err() && found == b"old", "{fault:?}");
            write_atomic(&path, Existing::Replace, |file| {
                // While this one is written.
                sweep(root.path()).map_err(std::io::Error::other)?;
                file.write_all(b"newest")
            })
            .unwrap();
            assert_eq!(std::fs::read(&path).unwrap(), b"newest");
            let left = files(root.path());
            let temporary =
                |path: &&PathBuf| path.components().count() == 1 && path.to_string_lossy().contains(".part");
            assert_eq!(left.keys().filter(temporary).count(), 1, "the stage of the living: {left:?}");
        }
    }
    live.commit(&()).unwrap();
    assert!(Folder::open(root.path(), Some(KIND)).unwrap().verify().is_empty());
}

#[cfg(unix)]
#[test]
fn a_place_that_cannot_be_written_to_is_noticed_first() {
    use std::os::unix::fs::PermissionsExt;
    let root = tempfile::tempdir().unwrap();
    std::fs::set_permissions(root.path(), std::fs::Permissions::from_mode(0o555)).unwrap();
    // The administrator may write anywhere.
    if std::fs::write(root.path().join("probe"), b"").is_err() {
        assert!(FolderWriter::create(&root.path().join("saved"), KIND, Existing::Refuse).is_err());
        assert!(FolderWriter::create(root.path(), KIND, Existing::Refuse).is_err());
        assert!(prepare(root.path()).is_err() && prepare(&root.path().join("deep/saved")).is_err());
    }
    std::fs::set_permissions(root.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    prepare(&root.path().join("deep/saved")).unwrap();
    assert!(files(root.path()).keys().all(|path| path == Path::new("probe")));
}
