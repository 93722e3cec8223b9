//! Reading a folder. Only data that match their digests are returned.

use std::fs::File;
use std::io::Read;
use std::ops::Deref;
use std::path::{Path, PathBuf};

use ndarray::ArrayD;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::digest::{Digester, FileEntry, digest};
use super::manifest::{Manifest, check_version, malformed};
use super::{FolderKind, MANIFEST, OBJECTS, stage};
use crate::bytes::Bytes;
use crate::dataset::Dataset;
use crate::element::DataScalar;
use crate::error::{DataError, Result, io_error};
use crate::files::open_regular;
use crate::format::{Format, npy};

/// Larger files are mapped instead of read into memory.
const MAPPED: u64 = 1 << 20;

/// A saved folder, open for reading.
#[derive(Debug)]
pub struct Folder {
    place: String,
    pub(super) manifest: Manifest,
    backing: Backing,
}

#[derive(Debug)]
pub(super) enum Backing {
    Disk(PathBuf),
    /// All bytes, and where the blob of each digest begins.
    Memory(super::bytes::Blobs),
}

/// Bytes that match the digest in the manifest.
#[derive(Debug)]
pub struct Blob(Bytes);

impl Deref for Blob {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.0.as_slice()
    }
}

impl Folder {
    /// Opens a folder, which must be of the given kind, if any. A commit left by a dead writer is finished first.
    ///
    /// # Errors
    /// [`DataError::Damaged`] if the manifest was changed, [`DataError::Version`] if it is newer than this program,
    /// [`DataError::Kind`] if the folder is of another kind, and [`DataError::Io`] if there is no manifest.
    pub fn open(folder: &Path, kind: Option<FolderKind>) -> Result<Self> {
        let place = folder.join(MANIFEST).display().to_string();
        let swept = if stage::has_committed(folder) { stage::sweep(folder) } else { Ok(()) };
        let manifest = {
            let _glance = stage::glance(folder);
            Manifest::read(folder)
        };
        // If nothing can be moved, the old folder may still be complete.
        let manifest = match (manifest, swept) {
            (Err(DataError::Io { .. }), Err(error)) => return Err(error),
            (manifest, _) => manifest?,
        };
        Self::new(place, manifest, Backing::Disk(folder.to_owned()), kind)
    }

    pub(super) fn new(place: String, manifest: Manifest, backing: Backing, kind: Option<FolderKind>) -> Result<Self> {
        if let Some(kind) = kind {
            if manifest.kind != kind.name {
                let (found, wanted) = (with_article(&manifest.kind), with_article(kind.name));
                return Err(DataError::Kind { place, found, wanted });
            }
            check_version(&place, manifest.kind_version, kind.version)?;
        }
        Ok(Self { place, manifest, backing })
    }

    /// What was saved, such as `machine`.
    pub fn kind(&self) -> &str {
        &self.manifest.kind
    }

    /// The version of the format.
    pub fn kind_version(&self) -> u32 {
        self.manifest.kind_version
    }

    /// The version of the program that wrote it.
    pub fn written_by(&self) -> &str {
        &self.manifest.mercer
    }

    /// A digest of the content and of all objects. Named files do not count.
    pub fn fingerprint(&self) -> String {
        let mut text = self.manifest.content.to_string();
        for (name, entry) in &self.manifest.objects {
            text += &format!("\n{} {name}", entry.digest);
        }
        digest(text.as_bytes())
    }

    /// The manifest, as errors show it.
    pub fn place(&self) -> &str {
        &self.place
    }

    /// An error about the content of the manifest.
    pub fn malformed(&self, reason: impl ToString) -> DataError {
        malformed(&self.place, reason)
    }

    /// The content of the manifest.
    pub fn content<C: DeserializeOwned>(&self) -> Result<C> {
        C::deserialize(&self.manifest.content).map_err(|error| self.malformed(error))
    }

    /// All objects with their digests and lengths, in the order of their names.
    pub fn object_entries(&self) -> impl Iterator<Item = (&str, &FileEntry)> {
        self.manifest.objects.iter().map(|(name, entry)| (name.as_str(), entry))
    }

    /// The names of all objects, in order.
    pub fn object_names(&self) -> impl Iterator<Item = &str> {
        self.manifest.objects.keys().map(String::as_str)
    }

    /// The names of all named files, in order.
    pub fn file_names(&self) -> impl Iterator<Item = &str> {
        self.manifest.files.keys().map(String::as_str)
    }

    /// The whole folder as a part.
    pub fn objects(&self) -> Part<'_> {
        Part { folder: self, prefix: String::new() }
    }

    /// Reads an object.
    ///
    /// # Errors
    /// [`DataError::Damaged`] if it was changed.
    pub fn object(&self, name: &str) -> Result<Blob> {
        self.load(&self.found(&self.manifest.objects, name)?).map(|(bytes, _)| Blob(bytes))
    }

    /// Opens an array object. Large arrays are mapped.
    ///
    /// # Errors
    /// [`DataError::Damaged`] if it was changed.
    pub fn array(&self, name: &str) -> Result<Dataset> {
        let found = self.found(&self.manifest.objects, name)?;
        self.dataset(&found)
    }

    /// Reads a named file.
    ///
    /// # Errors
    /// [`DataError::Damaged`] if it was changed.
    pub fn file(&self, name: &str) -> Result<Blob> {
        self.load(&self.found(&self.manifest.files, name)?).map(|(bytes, _)| Blob(bytes))
    }

    /// Opens a named file that is an array.
    ///
    /// # Errors
    /// [`DataError::Damaged`] if it was changed.
    pub fn array_file(&self, name: &str) -> Result<Dataset> {
        let found = self.found(&self.manifest.files, name)?;
        self.dataset(&found)
    }

    /// Reads everything, and returns an error for every object and file that was changed.
    pub fn verify(&self) -> Vec<DataError> {
        let objects = self.manifest.objects.keys().map(|name| self.found(&self.manifest.objects, name));
        let files = self.manifest.files.keys().map(|name| self.found(&self.manifest.files, name));
        let checked = objects.chain(files).map(|found| self.load(&found?).map(|_| ()));
        checked.filter_map(Result::err).collect()
    }

    fn found<'a>(
        &'a self,
        entries: &'a std::collections::BTreeMap<String, FileEntry>,
        name: &str,
    ) -> Result<Found<'a>> {
        let entry = entries.get(name).ok_or_else(|| DataError::MissingKey {
            place: self.place.clone(),
            key: name.to_owned(),
            available: entries.keys().cloned().collect(),
        })?;
        let is_object = std::ptr::eq(entries, &self.manifest.objects);
        let path = match &self.backing {
            Backing::Disk(folder) if is_object => folder.join(OBJECTS).join(&entry.digest),
            Backing::Disk(folder) => folder.join(name),
            Backing::Memory(_) => Path::new(&self.place).join(name),
        };
        let shown = if is_object { format!("{} ({name})", path.display()) } else { path.display().to_string() };
        Ok(Found { entry, path, shown })
    }

    /// The bytes, and their file. Length and digest have been checked.
    fn load(&self, found: &Found<'_>) -> Result<(Bytes, Option<File>)> {
        let Found { entry, path, shown } = found;
        let damaged = |reason: String| DataError::Damaged { place: shown.clone(), reason };
        let (bytes, file) = match &self.backing {
            Backing::Memory(blobs) => {
                (Bytes::Owned(blobs.get(entry).ok_or_else(|| damaged("it is missing".to_owned()))?.to_vec()), None)
            }
            Backing::Disk(_) => {
                let (mut file, length) = open_regular(path).map_err(|error| match error.kind() {
                    std::io::ErrorKind::NotFound => damaged("it is missing".to_owned()),
                    _ => io_error(shown)(error),
                })?;
                if length != entry.bytes {
                    return Err(damaged(format!("it has {length} bytes instead of {}", entry.bytes)));
                }
                let too_large =
                    || DataError::Io { place: shown.clone(), source: std::io::ErrorKind::OutOfMemory.into() };
                let size = usize::try_from(length).map_err(|_| too_large())?;
                if length > MAPPED {
                    (Bytes::map(shown, &file, 0, size)?, Some(file))
                } else {
                    let mut bytes = Vec::with_capacity(size);
                    (&mut file).take(length).read_to_end(&mut bytes).map_err(io_error(shown))?;
                    (Bytes::Owned(bytes), None)
                }
            }
        };
        let mut digester = Digester::default();
        digester.update(bytes.as_slice());
        if digester.finish() != **entry {
            return Err(damaged("its digest differs from the one in the manifest".to_owned()));
        }
        Ok((bytes, file))
    }

    fn dataset(&self, found: &Found<'_>) -> Result<Dataset> {
        let (bytes, file) = self.load(found)?;
        let stored = match file {
            Some(file) => npy::map(&found.shown, &file, 0, found.entry.bytes)?,
            None => npy::inflate(&found.shown, &mut bytes.as_slice(), found.entry.bytes)?,
        };
        // It cannot be opened again without the folder.
        Ok(Dataset::from_stored(&found.shown, Format::Memory, stored))
    }
}

/// Compares a file with its digest in the manifest of its folder. A file that no manifest lists passes.
///
/// # Errors
/// [`DataError::Damaged`] names the file, or the manifest.
pub fn check_listed(path: &Path) -> Result<()> {
    let folder = crate::write::folder(path);
    if folder.join(MANIFEST).symlink_metadata().is_err() && !stage::has_committed(folder) {
        return Ok(());
    }
    let listing = match Folder::open(folder, None) {
        // Another program's file of the same name.
        Err(DataError::Malformed { .. }) => return Ok(()),
        opened => opened?,
    };
    match path.file_name().and_then(|name| name.to_str()) {
        Some(name) if listing.manifest.files.contains_key(name) => listing.file(name).map(|_| ()),
        _ => Ok(()),
    }
}

struct Found<'a> {
    entry: &'a FileEntry,
    path: PathBuf,
    shown: String,
}

fn with_article(kind: &str) -> String {
    match kind.chars().next() {
        Some('a' | 'e' | 'i' | 'o' | 'u') if !kind.ends_with('s') => format!("an {kind}"),
        _ if kind.ends_with('s') => kind.to_owned(),
        _ => format!("a {kind}"),
    }
}

/// A part of a folder: a saved thing, possibly nested in another, with a common prefix for the names of its objects.
#[derive(Clone, Debug)]
pub struct Part<'a> {
    folder: &'a Folder,
    prefix: String,
}

impl Part<'_> {
    /// A part within this part.
    pub fn part(&self, name: &str) -> Self {
        Self { folder: self.folder, prefix: format!("{}{name}.", self.prefix) }
    }

    /// Whether there is an object of this name.
    pub fn has(&self, name: &str) -> bool {
        self.folder.manifest.objects.contains_key(&self.full(name))
    }

    /// Reads an object.
    ///
    /// # Errors
    /// As [`Folder::object`].
    pub fn object(&self, name: &str) -> Result<Blob> {
        self.folder.object(&self.full(name))
    }

    /// Opens an object that is an array.
    ///
    /// # Errors
    /// As [`Folder::array`].
    pub fn array(&self, name: &str) -> Result<Dataset> {
        self.folder.array(&self.full(name))
    }

    /// Reads what [`PartWriter::content`](super::PartWriter::content) wrote.
    pub fn content<C: DeserializeOwned>(&self, content: &Value) -> Result<C> {
        C::deserialize(content).map_err(|error| self.malformed(error))
    }

    /// Reads an array with these sizes, where they are known, and checks that its numbers are finite.
    pub fn read<T: DataScalar>(&self, name: &str, shape: &[Option<usize>]) -> Result<ArrayD<T>> {
        let dataset = self.array(name)?;
        let found = dataset.stored_shape();
        let fits = |(found, known): (&usize, &Option<usize>)| known.is_none_or(|known| known == *found);
        if found.len() != shape.len() || !found.iter().zip(shape).all(fits) {
            let reason = format!("`{}` has the shape {found:?}, which does not fit the other parts", self.full(name));
            return Err(self.malformed(reason));
        }
        dataset.read()
    }

    /// An error about the content of the manifest.
    pub fn malformed(&self, reason: impl ToString) -> DataError {
        self.folder.malformed(reason)
    }

    /// The manifest, as errors show it.
    pub fn place(&self) -> &str {
        &self.folder.place
    }

    fn full(&self, name: &str) -> String {
        format!("{}{name}", self.prefix)
    }
}
