//! Files of a store: atomic, durable, and only within its folder.
//!
//! A chunk is written to a temporary file in `ARRAY/.parts`, flushed to the disk, renamed to its place, and the folder
//! is flushed after that. Temporary files are in one folder, so that those of killed processes are found without
//! listing all chunks. A writer holds a lock on its own file, which the system releases when the process ends, so that
//! a live file is never mistaken for a stale one.

use super::error::{Result, StoreError, io_error};
use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::path::Path;
use std::time::{Duration, SystemTime};

/// The folder of temporaries in the folder of an array.
const PARTS: &str = ".parts";

/// The folder of an array with the places of its chunks.
const PLACES: &str = ".places";

/// The record of the run that filled a store.
const RECORD: &str = "run.json";

/// Far longer than the time between creating a temporary file and locking it.
const GRACE: Duration = Duration::from_secs(600);

/// A builder of temporaries with the permissions of ordinary files and folders.
pub(super) fn temporary<'a>(mode: u32) -> tempfile::Builder<'a, 'static> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(".mercer-").suffix(".part");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        builder.permissions(fs::Permissions::from_mode(mode));
    }
    #[cfg(not(unix))]
    let _ = mode;
    builder
}

/// Writes the file `array/folders[0]/…/name`, replacing an existing file and creating missing folders.
pub(super) fn write(array: &Path, folders: &[String], name: &str, parts: &[&[u8]]) -> Result<()> {
    let temporaries = make_folder(array, PARTS)?;
    let mut folder = array.to_owned();
    for own in folders {
        folder = make_folder(&folder, own)?;
    }
    let path = folder.join(name);
    let mut file = temporary(0o666).tempfile_in(&temporaries).map_err(io_error(&path))?;
    // If the file system has no locks, temporary files are never considered stale.
    let _ = file.as_file().try_lock();
    let written = parts.iter().try_for_each(|part| file.write_all(part)).and_then(|()| file.as_file().sync_all());
    written.map_err(io_error(&path))?;
    file.persist(&path).map_err(|error| io_error(&path)(error.error))?;
    sync_folder(&folder)
}

/// Opens the file `array/folders[0]/…/name`, if it exists.
pub(super) fn open(array: &Path, folders: &[String], name: &str) -> Result<Option<File>> {
    let mut folder = array.to_owned();
    for own in folders {
        folder.push(own);
        if !is_folder(&folder)? {
            return Ok(None);
        }
    }
    let path = folder.join(name);
    match fs::symlink_metadata(&path) {
        Ok(found) if found.is_file() => File::open(&path).map(Some).map_err(io_error(&path)),
        Ok(_) => Ok(None),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(io_error(&path)(error)),
    }
}

/// Creates the folder of places in the folder of an array, so that places are recorded from the beginning.
pub(super) fn make_places(array: &Path) -> Result<()> {
    make_folder(array, PLACES).map(|_| ())
}

/// Whether an array records the places of its chunks; arrays of earlier versions do not.
pub(super) fn keeps_places(array: &Path) -> Result<bool> {
    is_folder(&array.join(PLACES))
}

/// Records that the chunk of these blocks has this checksum, as the name of an empty file. The file exists or not, and
/// all writers of a chunk create the same one.
///
/// It is not flushed. If it is lost in a power failure, the chunk counts as damaged and is computed again.
pub(super) fn keep_place(array: &Path, (row, column): (usize, usize), checksum: u32) -> Result<()> {
    let folder = make_folder(&make_folder(array, PLACES)?, &row.to_string())?;
    let path = folder.join(place_name(column, checksum));
    File::create(&path).map(|_| ()).map_err(io_error(&path))
}

/// Takes back what [`keep_place`] recorded.
pub(super) fn forget_place(array: &Path, (row, column): (usize, usize), checksum: u32) {
    let _ = fs::remove_file(array.join(PLACES).join(row.to_string()).join(place_name(column, checksum)));
}

/// Whether the chunk of these blocks was written with this checksum.
pub(super) fn has_place(array: &Path, (row, column): (usize, usize), checksum: u32) -> Result<bool> {
    let path = array.join(PLACES).join(row.to_string()).join(place_name(column, checksum));
    path.try_exists().map_err(io_error(&path))
}

fn place_name(column: usize, checksum: u32) -> String {
    format!("{column}.{checksum:08x}")
}

/// The folder of this name in another one. It is created if it is missing, and rejected if it is not a folder.
fn make_folder(parent: &Path, name: &str) -> Result<std::path::PathBuf> {
    let path = parent.join(name);
    if !is_folder(&path)? {
        match fs::create_dir(&path) {
            // Another writer created it first.
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            made => made.map_err(io_error(&path))?,
        }
        sync_folder(parent)?;
        is_folder(&path)?;
    }
    Ok(path)
}

/// Whether the folder exists. Anything else of that name is an error, because a link might lead out of the store.
pub(super) fn is_folder(path: &Path) -> Result<bool> {
    match fs::symlink_metadata(path) {
        Ok(found) if found.is_dir() => Ok(true),
        Ok(_) => Err(StoreError::Malformed {
            place: path.display().to_string(),
            reason: "a folder is expected here".to_owned(),
        }),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) => Err(io_error(path)(error)),
    }
}

/// An error that names the first entry of a folder that is not temporary, a place or one of these.
pub(super) fn only_ours(folder: &Path, ours: impl Fn(&str) -> bool) -> Result<()> {
    for entry in fs::read_dir(folder).map_err(io_error(folder))? {
        let entry = entry.map_err(io_error(folder))?;
        let name = entry.file_name();
        let known = |name: &str| ours(name) || [PARTS, PLACES, RECORD].contains(&name) || name.starts_with(".mercer-");
        if !name.to_str().is_some_and(known) {
            return Err(StoreError::Foreign { file: entry.path().display().to_string() });
        }
    }
    Ok(())
}

/// Flushes a folder after files were created or renamed in it.
pub(super) fn sync_folder(folder: &Path) -> Result<()> {
    if cfg!(unix) { File::open(folder).and_then(|folder| folder.sync_all()).map_err(io_error(folder)) } else { Ok(()) }
}

/// Removes stale temporary files in an array's folder. They are harmless, so failures are ignored.
pub(super) fn remove_stale(array: &Path) {
    let Ok(entries) = fs::read_dir(array.join(PARTS)) else { return };
    for entry in entries.flatten() {
        let path = entry.path();
        let is_ours =
            entry.file_name().to_str().is_some_and(|name| name.starts_with(".mercer-") && name.ends_with(".part"));
        if is_ours && entry.file_type().is_ok_and(|kind| kind.is_file()) && is_stale(&path).unwrap_or(false) {
            let _ = fs::remove_file(path);
        }
    }
}

fn is_stale(path: &Path) -> io::Result<bool> {
    let file = File::open(path)?;
    let age = SystemTime::now().duration_since(file.metadata()?.modified()?).unwrap_or_default();
    Ok(age > GRACE && file.try_lock().is_ok())
}

/// Calls `found` with every existing chunk of the grid, by listing folders.
///
/// Names that do not belong to chunks, and entries of another kind, are skipped.
pub(super) fn list(folder: &Path, grid: &[usize], found: &mut impl FnMut(&[usize])) -> Result<()> {
    fn descend(folder: &Path, grid: &[usize], key: &mut Vec<usize>, found: &mut impl FnMut(&[usize])) -> Result<()> {
        let Some((&length, rest)) = grid.split_first() else { return Ok(()) };
        let entries = match fs::read_dir(folder) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            entries => entries.map_err(io_error(folder))?,
        };
        for entry in entries {
            let entry = entry.map_err(io_error(folder))?;
            let Some(index) = entry.file_name().to_str().and_then(decimal).filter(|&index| index < length) else {
                continue;
            };
            let kind = entry.file_type().map_err(io_error(folder))?;
            key.push(index);
            if rest.is_empty() && kind.is_file() {
                found(key);
            } else if !rest.is_empty() && kind.is_dir() {
                descend(&entry.path(), rest, key, found)?;
            }
            key.pop();
        }
        Ok(())
    }
    descend(folder, grid, &mut Vec::with_capacity(grid.len()), found)
}

/// A number in the form of a key: `01` and `+1` are rejected.
fn decimal(name: &str) -> Option<usize> {
    name.parse().ok().filter(|number: &usize| number.to_string() == name)
}
