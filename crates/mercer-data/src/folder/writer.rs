//! Writing a folder.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ndarray::{ArrayBase, Data, Dimension};
use serde::Serialize;
use serde_json::Value;

use super::digest::{FileEntry, entry_of};
use super::manifest::{MOST_BYTES, Manifest, check_name, malformed};
use super::stage::{self, FILES, Stage};
use super::{FolderKind, MANIFEST, OBJECTS};
use crate::arrays::{NpyGrid, NpyWriter, header, write_whole};
use crate::dataset::Dataset;
use crate::disk::{self, DiskFile};
use crate::element::Storable;
use crate::error::{DataError, Result, io_error};
use crate::write::{Existing, Output, folder as parent};

/// A folder that is being written. Nothing is in place before [`commit`](Self::commit).
///
/// ```
/// use mercer_data::{Existing, folder::{Folder, FolderWriter, FolderKind}};
/// use ndarray::array;
///
/// const KIND: FolderKind = FolderKind { name: "example", version: 1 };
/// let place = tempfile::tempdir()?;
/// let writer = FolderWriter::create(&place.path().join("saved"), KIND, Existing::Refuse)?;
/// writer.objects().array("weights", &array![1.0, 2.0])?;
/// writer.file("notes.txt", |file| file.write_all(b"for people"))?;
/// writer.commit(&"what it is")?;
///
/// let folder = Folder::open(&place.path().join("saved"), Some(KIND))?;
/// assert_eq!(folder.content::<String>()?, "what it is");
/// assert_eq!(folder.array("weights")?.read::<f64>()?, array![1.0, 2.0].into_dyn());
/// assert!(folder.verify().is_empty());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct FolderWriter {
    kind: FolderKind,
    ledger: Arc<Mutex<Ledger>>,
    /// On disk; `None` for a folder in memory.
    place: Option<Place>,
}

struct Place {
    folder: PathBuf,
    existing: Existing,
    stage: Stage,
    /// Dropped after the stage, which is inside them.
    _made: Made,
}

/// What was written so far.
pub(super) struct Ledger {
    pub(super) manifest: Manifest,
    /// Files that were already in place.
    adopted: Vec<String>,
    /// Blobs by digest, if the folder is in memory.
    pub(super) blobs: BTreeMap<String, Vec<u8>>,
    /// The pieces in progress.
    begun: usize,
}

impl FolderWriter {
    /// Begins a folder and creates it if necessary. What dead processes left in it is finished or removed.
    ///
    /// # Errors
    /// [`DataError::Exists`] if a folder was saved here and may not be replaced, [`DataError::Foreign`] if it is of another
    /// kind or not ours, and [`DataError::Io`] if nothing can be written.
    pub fn create(folder: &Path, kind: FolderKind, existing: Existing) -> Result<Self> {
        stage::sweep(folder)?;
        standing(folder, kind, existing)?;
        let failed = || io_error(folder.display());
        let made = Made::folder(folder).map_err(failed())?;
        let stage = Stage::begin(folder).map_err(failed())?;
        let place = Place { folder: folder.to_owned(), existing, stage, _made: made };
        Ok(Self { place: Some(place), ..Self::in_memory(kind) })
    }

    /// Begins a folder in memory, for [`into_bytes`](Self::into_bytes). Only for small things.
    pub fn in_memory(kind: FolderKind) -> Self {
        let ledger = Ledger::new(kind);
        Self { kind, ledger: Arc::new(Mutex::new(ledger)), place: None }
    }

    /// Checks, before long work, that files of these names may be written.
    ///
    /// # Errors
    /// [`DataError::Exists`] and [`DataError::Foreign`], as [`create`](Self::create): a file is ours if the folder that is
    /// replaced lists it.
    pub fn claim(&self, names: &[&str]) -> Result<()> {
        names.iter().try_for_each(|name| check_name(name, true))?;
        match &self.place {
            Some(Place { folder, existing, .. }) => {
                let old = standing(folder, self.kind, *existing)?;
                names.iter().try_for_each(|name| claim(folder, old.as_ref(), *existing, name))
            }
            None => Ok(()),
        }
    }

    /// Writes a named file.
    pub fn file(&self, name: &str, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<()> {
        self.named(name)?.write(write)
    }

    /// Writes an array as a named file, such as `psi.npy`.
    pub fn array_file<T: Storable, S: Data<Elem = T>, D: Dimension>(
        &self,
        name: &str,
        array: &ArrayBase<S, D>,
    ) -> Result<()> {
        let output = self.named(name)?;
        let header = header(output.path(), T::DTYPE, array.shape(), 0)?;
        output.write(|writer| write_whole(writer, &header, array))
    }

    /// Begins an array in a named file that is written in blocks of rows.
    pub fn rows_file<T: Storable>(&self, name: &str, sample_shape: &[usize]) -> Result<NpyWriter<T>> {
        NpyWriter::begin(self.named(name)?, sample_shape)
    }

    /// Begins an array in a named file that is written in rectangles.
    pub fn grid_file<T: Storable>(&self, name: &str, shape: &[usize], columns: usize) -> Result<NpyGrid<T>> {
        NpyGrid::begin(self.named(name)?, shape, columns)
    }

    /// Lists a file that a long run has already written in place. It stays there, and its current digest is recorded.
    ///
    /// # Errors
    /// [`DataError::Io`] if it cannot be read.
    pub fn adopt(&self, name: &str) -> Result<()> {
        check_name(name, true)?;
        let Some(Place { folder, .. }) = &self.place else {
            let reason = "a folder in memory has no files at their place".to_owned();
            return Err(DataError::Argument { name: "folder", reason });
        };
        let path = folder.join(name);
        let entry = entry_of(&path).map_err(io_error(path.display()))?;
        let mut ledger = ledger(&self.ledger);
        ledger.check_fresh(name, true)?;
        ledger.adopted.push(name.to_owned());
        ledger.manifest.files.insert(name.to_owned(), entry);
        Ok(())
    }

    /// What was written so far, with its digests: objects as `objects/NAME`, and files.
    pub fn entries(&self) -> Vec<(String, FileEntry)> {
        let manifest = &ledger(&self.ledger).manifest;
        let objects = manifest.objects.iter().map(|(name, entry)| (format!("{OBJECTS}/{name}"), entry.clone()));
        objects.chain(manifest.files.iter().map(|(name, entry)| (name.clone(), entry.clone()))).collect()
    }

    /// The writer of objects.
    pub fn objects(&self) -> PartWriter<'_> {
        PartWriter { folder: self, prefix: String::new() }
    }

    /// Commits the folder with this content.
    ///
    /// # Errors
    /// As [`create`](Self::create) and [`claim`](Self::claim), if the folder has changed in the meantime. The old
    /// folder then stays.
    pub fn commit(self, content: &impl Serialize) -> Result<()> {
        let path = self.place.as_ref().map(|place| place.folder.join(MANIFEST).display().to_string());
        let content = value(path.as_deref().unwrap_or_default(), content);
        self.commit_value(content)
    }

    fn commit_value(self, content: Result<Value>) -> Result<()> {
        let Some(place) = self.place else {
            let reason = "a folder in memory is not committed but turned into bytes".to_owned();
            return Err(DataError::Argument { name: "folder", reason });
        };
        let (folder, existing) = (&place.folder, place.existing);
        let path = folder.join(MANIFEST).display().to_string();
        let (mut manifest, adopted) = {
            let ledger = ledger(&self.ledger);
            (ledger.manifest.clone(), ledger.adopted.clone())
        };
        manifest.content = content?;
        let text = manifest.sealed(&path)?;
        check_length(&path, &text)?;
        let _turn = stage::turn(folder);
        stage::sweep_in_turn(folder)?;
        let old = standing(folder, self.kind, existing)?;
        let fresh = manifest.files.keys().filter(|name| !adopted.contains(name));
        fresh.into_iter().try_for_each(|name| claim(folder, old.as_ref(), existing, name))?;
        let Place { stage, _made, .. } = place;
        stage.commit(&manifest, &text)
    }

    pub(super) fn into_ledger(self, content: &impl Serialize) -> Result<Ledger> {
        let mut ledger = ledger(&self.ledger);
        ledger.manifest.content = value("a folder in memory", content)?;
        let empty = Ledger::new(self.kind);
        Ok(std::mem::replace(&mut ledger, empty))
    }

    fn named(&self, name: &str) -> Result<Output> {
        check_name(name, true)?;
        self.claim(&[name])?;
        self.begin(name, true)
    }

    fn begin(&self, name: &str, is_file: bool) -> Result<Output> {
        check_name(name, is_file)?;
        let number = {
            let mut ledger = ledger(&self.ledger);
            ledger.check_fresh(name, is_file)?;
            ledger.begun += 1;
            ledger.begun
        };
        let staged = |path| Staged { ledger: self.ledger.clone(), name: name.to_owned(), is_file, path };
        let Some(Place { folder, stage, .. }) = &self.place else {
            return Ok(Output::staged(PathBuf::from(name), None, staged(PathBuf::new())));
        };
        let (path, shown) = if is_file {
            (stage.path().join(FILES).join(name), folder.join(name))
        } else {
            (stage.path().join(OBJECTS).join(format!("new-{number}")), folder.join(OBJECTS).join(name))
        };
        let file = DiskFile::create(&path).map_err(io_error(shown.display()))?;
        Ok(Output::staged(shown, Some(file), staged(path)))
    }
}

/// A part of a folder that is being written: a saved thing, possibly nested in another, with a common prefix for the
/// names of its objects.
#[derive(Clone)]
pub struct PartWriter<'a> {
    folder: &'a FolderWriter,
    prefix: String,
}

impl PartWriter<'_> {
    /// A part within this part.
    pub fn part(&self, name: &str) -> Self {
        Self { folder: self.folder, prefix: format!("{}{name}.", self.prefix) }
    }

    /// Writes an object.
    pub fn object(&self, name: &str, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<()> {
        self.begin(name)?.write(write)
    }

    /// Writes an array.
    pub fn array<T: Storable, S: Data<Elem = T>, D: Dimension>(
        &self,
        name: &str,
        array: &ArrayBase<S, D>,
    ) -> Result<()> {
        let output = self.begin(name)?;
        let header = header(output.path(), T::DTYPE, array.shape(), 0)?;
        output.write(|writer| write_whole(writer, &header, array))
    }

    /// Writes a set of samples as stored in its file: in its own type, before preprocessing.
    pub fn dataset(&self, name: &str, dataset: &Dataset) -> Result<()> {
        let mut output = self.begin(name)?;
        dataset.write_stored(&mut output.writer)?;
        output.commit()
    }

    /// Converts something small to content of the manifest.
    pub fn content(&self, content: &impl Serialize) -> Result<Value> {
        value(MANIFEST, content)
    }

    /// Begins an array that is written in blocks of rows.
    pub fn rows<T: Storable>(&self, name: &str, sample_shape: &[usize]) -> Result<NpyWriter<T>> {
        NpyWriter::begin(self.begin(name)?, sample_shape)
    }

    fn begin(&self, name: &str) -> Result<Output> {
        self.folder.begin(&format!("{}{name}", self.prefix), false)
    }
}

/// A piece of a folder that is being written to the stage.
pub(crate) struct Staged {
    ledger: Arc<Mutex<Ledger>>,
    name: String,
    is_file: bool,
    path: PathBuf,
}

impl Staged {
    /// Records a complete piece. Its bytes are given if the folder is in memory.
    pub(crate) fn record(self, entry: FileEntry, memory: Option<Vec<u8>>) -> Result<()> {
        let mut ledger = ledger(&self.ledger);
        ledger.check_fresh(&self.name, self.is_file)?;
        match memory {
            Some(bytes) => {
                ledger.blobs.insert(entry.digest.clone(), bytes);
            }
            None if self.is_file => {}
            // An equal one may exist; this one then replaces it.
            None => disk::rename(&self.path, &self.path.with_file_name(&entry.digest))
                .map_err(io_error(self.path.display()))?,
        }
        let manifest = &mut ledger.manifest;
        let entries = if self.is_file { &mut manifest.files } else { &mut manifest.objects };
        entries.insert(self.name, entry);
        Ok(())
    }
}

impl Ledger {
    fn new(kind: FolderKind) -> Self {
        Self { manifest: Manifest::new(kind), adopted: Vec::new(), blobs: BTreeMap::new(), begun: 0 }
    }

    fn check_fresh(&self, name: &str, is_file: bool) -> Result<()> {
        let entries = if is_file { &self.manifest.files } else { &self.manifest.objects };
        if entries.contains_key(name) {
            return Err(DataError::Exists { place: name.to_owned() });
        }
        Ok(())
    }
}

fn ledger(ledger: &Mutex<Ledger>) -> MutexGuard<'_, Ledger> {
    ledger.lock().unwrap_or_else(PoisonError::into_inner)
}

fn value(place: &str, content: &impl Serialize) -> Result<Value> {
    serde_json::to_value(content).map_err(|error| malformed(place, error))
}

/// Refuses to write a manifest that could not be read back.
pub(super) fn check_length(place: &str, text: &str) -> Result<()> {
    if text.len() as u64 > MOST_BYTES {
        return Err(malformed(place, format!("it would have {} bytes, more than can be read back", text.len())));
    }
    Ok(())
}

/// The folder that would be replaced.
pub(super) fn standing(folder: &Path, kind: FolderKind, existing: Existing) -> Result<Option<Manifest>> {
    let place = |path: &Path| path.display().to_string();
    let objects = folder.join(OBJECTS);
    if objects.symlink_metadata().is_ok_and(|found| !found.is_dir()) {
        return Err(DataError::Foreign { place: place(&objects) });
    }
    let path = folder.join(MANIFEST);
    if path.symlink_metadata().is_err() {
        return Ok(None);
    }
    if existing == Existing::Refuse {
        return Err(DataError::Exists { place: place(folder) });
    }
    match Manifest::ours(folder).filter(|manifest| manifest.kind == kind.name) {
        None => Err(DataError::Foreign { place: place(&path) }),
        manifest => Ok(manifest),
    }
}

/// Refuses a file that is not ours.
fn claim(folder: &Path, old: Option<&Manifest>, existing: Existing, name: &str) -> Result<()> {
    let path = folder.join(name);
    let place = path.display().to_string();
    match path.symlink_metadata() {
        Err(_) => Ok(()),
        Ok(_) if existing == Existing::Refuse => Err(DataError::Exists { place }),
        Ok(found) if found.is_file() && old.is_some_and(|old| old.files.contains_key(name)) => Ok(()),
        Ok(_) => Err(DataError::Foreign { place }),
    }
}

/// Folders that were created for a result, and are removed if they are empty at the end.
struct Made(Vec<PathBuf>);

impl Made {
    /// Creates a folder and its ancestors.
    fn folder(path: &Path) -> io::Result<Self> {
        let mut made = Self(Vec::new());
        let missing = |path: &&Path| !path.as_os_str().is_empty() && path.symlink_metadata().is_err();
        let mut missing: Vec<&Path> = path.ancestors().take_while(missing).collect();
        missing.reverse();
        for path in missing {
            disk::create_dir(path)?;
            made.0.push(path.to_owned());
            disk::sync_dir(parent(path))?;
        }
        Ok(made)
    }
}

impl Drop for Made {
    fn drop(&mut self) {
        for path in self.0.iter().rev() {
            // Another process may have put something into it.
            let _ = disk::remove_dir(path);
        }
    }
}
