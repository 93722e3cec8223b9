//! Stages, in which a folder is assembled. What a dead process left in a stage is finished or removed.

use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use super::manifest::Manifest;
use super::writer::standing;
use super::{FolderKind, MANIFEST, OBJECTS};
use crate::disk::{self, DiskFile};
use crate::error::{DataError, Result, io_error};
use crate::write::Existing;

/// In a stage: the named files, the manifest being replaced, and the lock.
pub(super) const FILES: &str = "files";
const REPLACED: &str = "replaced.json";
const LOCK: &str = "lock";

/// In a stage: the manifest of a folder that is being removed without a replacement.
const REMOVED: &str = "removed.json";

/// The stage of a live process. It is removed when this value is dropped, unless others have to finish it.
#[derive(Debug)]
pub(super) struct Stage {
    folder: PathBuf,
    path: PathBuf,
    /// Open, and locked, for as long as the stage is ours.
    _lock: DiskFile,
    is_sealed: bool,
}

impl Stage {
    /// Creates a stage in a folder. This fails if the folder is not writable.
    pub(super) fn begin(folder: &Path) -> io::Result<Self> {
        loop {
            let path = disk::temporary_dir(folder)?;
            match DiskFile::create(&path.join(LOCK)) {
                Ok(lock) if lock.lock() && path.join(LOCK).exists() => {
                    let stage = Self { folder: folder.to_owned(), path, _lock: lock, is_sealed: false };
                    disk::create_dir(&stage.path.join(OBJECTS))?;
                    disk::create_dir(&stage.path.join(FILES))?;
                    return Ok(stage);
                }
                // Another process swept it away before it was locked.
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => {
                    let _ = disk::remove_dir(&path);
                    return Err(error);
                }
            }
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Writes the manifest, which commits the folder, and moves everything into place.
    ///
    /// The caller has the [`turn`].
    pub(super) fn commit(mut self, manifest: &Manifest, text: &str) -> Result<()> {
        let folder = self.folder.clone();
        let place = folder.join(MANIFEST).display().to_string();
        self.seal(text).map_err(io_error(&place))?;
        self.is_sealed = true;
        roll_forward(&folder, &self.path, manifest).map_err(io_error(folder.display()))?;
        // The new folder is complete. What cannot be removed now is removed by the next process.
        let _ = tidy(&folder, &self.path).and_then(|()| dismantle(&self.path));
        Ok(())
    }

    fn seal(&self, text: &str) -> io::Result<()> {
        disk::sync_dir(&self.path.join(OBJECTS))?;
        disk::sync_dir(&self.path.join(FILES))?;
        self.write(MANIFEST, text)
    }

    /// Writes a manifest into the stage and flushes it.
    fn write(&self, name: &str, text: &str) -> io::Result<()> {
        use std::io::Write;
        let mut file = DiskFile::create(&self.path.join(name))?;
        file.write_all(text.as_bytes())?;
        file.sync()?;
        disk::sync_dir(&self.path)?;
        disk::sync_dir(&self.folder)
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        if !self.is_sealed {
            let _ = dismantle(&self.path);
        }
    }
}

/// The right to move things in a folder, until this value is dropped. Only one process has it at a time.
///
/// It is a lock on the folder itself. Where there are no such locks, two writers of one folder are not kept apart.
pub(super) fn turn(folder: &Path) -> Option<File> {
    opened(folder).filter(|folder| folder.lock().is_ok())
}

/// The right to read a folder while no process moves things in it.
pub(super) fn glance(folder: &Path) -> Option<File> {
    opened(folder).filter(|folder| folder.lock_shared().is_ok())
}

/// A folder as a file that can be locked. A pipe of that name would wait for a writer.
fn opened(folder: &Path) -> Option<File> {
    folder.is_dir().then(|| File::open(folder).ok()).flatten()
}

/// Finishes or removes what dead processes left in a folder: temporary files and stages.
///
/// A missing folder counts as empty. Call this when preparing a folder for results.
///
/// # Errors
/// [`DataError::Io`] if something cannot be read, moved or removed.
pub fn sweep(folder: &Path) -> Result<()> {
    if temporaries(folder)?.is_empty() {
        return Ok(());
    }
    let _turn = turn(folder);
    sweep_in_turn(folder)
}

/// Checks, before long work, that a folder is writable, and [sweeps](sweep) it. It need not exist yet.
///
/// # Errors
/// [`DataError::Io`] if nothing can be written.
pub fn prepare(folder: &Path) -> Result<()> {
    sweep(folder)?;
    let exists = |path: &&Path| path.as_os_str().is_empty() || path.exists();
    let nearest = folder.ancestors().find(exists).filter(|path| !path.as_os_str().is_empty());
    let nearest = nearest.unwrap_or(Path::new("."));
    DiskFile::temporary(nearest).map(|_| ()).map_err(io_error(folder.display()))
}

/// The same for a caller that has the [`turn`].
pub(super) fn sweep_in_turn(folder: &Path) -> Result<()> {
    for path in temporaries(folder)? {
        let failed = io_error(path.display());
        match path.symlink_metadata() {
            Ok(found) if found.is_dir() => finish(folder, &path).map_err(failed)?,
            Ok(found) if found.is_file() && abandoned(&path).is_some() => disk::remove_file(&path).map_err(failed)?,
            _ => {}
        }
    }
    Ok(())
}

/// Removes what was saved in a folder, and the folder itself if nothing else is in it. A folder in which nothing was
/// saved is unchanged.
///
/// # Errors
/// [`DataError::Foreign`] if the folder is of another kind, or not ours.
pub fn remove(folder: &Path, kind: FolderKind) -> Result<()> {
    sweep(folder)?;
    let _turn = turn(folder);
    if standing(folder, kind, Existing::Replace)?.is_none() {
        return Ok(());
    }
    let failed = || io_error(folder.display());
    let mut stage = Stage::begin(folder).map_err(failed())?;
    disk::rename(&folder.join(MANIFEST), &stage.path.join(REMOVED)).map_err(failed())?;
    // From here on, the next process finishes the removal.
    stage.is_sealed = true;
    tidy(folder, &stage.path).and_then(|()| dismantle(&stage.path)).map_err(failed())?;
    // It may contain files of the user.
    let _ = disk::remove_dir(folder);
    Ok(())
}

/// Makes a saved folder unfinished again: removes its manifest and everything it lists, except files of these names,
/// which stay in place to be rewritten. A folder in which nothing was saved is unchanged.
///
/// # Errors
/// [`DataError::Foreign`] if the folder is of another kind, or not ours.
pub fn release(folder: &Path, kind: FolderKind, keep: &[String]) -> Result<()> {
    sweep(folder)?;
    let _turn = turn(folder);
    let Some(mut old) = standing(folder, kind, Existing::Replace)? else { return Ok(()) };
    old.files.retain(|name, _| !keep.contains(name));
    let failed = || io_error(folder.display());
    let text = old.sealed(&folder.join(MANIFEST).display().to_string())?;
    let mut stage = Stage::begin(folder).map_err(failed())?;
    // As long as the manifest is in place, this list removes nothing.
    stage.write(REMOVED, &text).map_err(failed())?;
    disk::remove_file(&folder.join(MANIFEST)).map_err(failed())?;
    stage.is_sealed = true;
    disk::sync_dir(folder).and_then(|()| tidy(folder, &stage.path)).map_err(failed())?;
    dismantle(&stage.path).map_err(failed())
}

/// Whether something of this kind is saved in a folder, damaged or not.
pub fn holds(folder: &Path, kind: FolderKind) -> bool {
    (has_committed(folder) && sweep(folder).is_ok() || folder.join(MANIFEST).is_file())
        && Manifest::ours(folder).is_some_and(|manifest| manifest.kind == kind.name)
}

/// Whether a dead process left a committed folder that is not in place yet.
pub(super) fn has_committed(folder: &Path) -> bool {
    let temporaries = temporaries(folder).unwrap_or_default();
    temporaries.iter().any(|path| Manifest::read(path).is_ok() && abandoned(&path.join(LOCK)).is_some())
}

fn temporaries(folder: &Path) -> Result<Vec<PathBuf>> {
    let failed = || io_error(folder.display());
    let entries = match fs::read_dir(folder) {
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => return Ok(Vec::new()),
        entries => entries.map_err(failed())?,
    };
    let mut paths = Vec::new();
    for entry in entries {
        let entry = entry.map_err(failed())?;
        if entry.file_name().to_str().is_some_and(disk::is_temporary) {
            paths.push(entry.path());
        }
    }
    paths.sort();
    Ok(paths)
}

/// The lock of a file whose owner is dead.
fn abandoned(path: &Path) -> Option<File> {
    let file = File::open(path).ok()?;
    // Another process may have removed it in the meantime.
    (file.try_lock().is_ok() && path.exists()).then_some(file)
}

/// Finishes or removes a stage, if its owner is dead.
fn finish(folder: &Path, stage: &Path) -> io::Result<()> {
    if stage.join(LOCK).symlink_metadata().is_err() {
        // A stage gets its lock first and loses it last, so a stage without a lock is empty or not ours.
        let _ = disk::remove_dir(stage);
        return Ok(());
    }
    let Some(_lock) = abandoned(&stage.join(LOCK)) else { return Ok(()) };
    match Manifest::read(stage) {
        // Everything was flushed before the commit. If the disk lost it nevertheless, the old folder is better.
        Ok(manifest) if is_complete(folder, stage, &manifest) => roll_forward(folder, stage, &manifest)?,
        // Committed by a newer version, which knows what to do.
        Err(DataError::Version { .. }) => return Ok(()),
        _ => {}
    }
    tidy(folder, stage)?;
    dismantle(stage)
}

/// Whether all parts exist, in place or in the stage, or the old folder is already gone.
fn is_complete(folder: &Path, stage: &Path, manifest: &Manifest) -> bool {
    let found = |path: PathBuf, bytes| path.symlink_metadata().is_ok_and(|found| found.len() == bytes);
    let either = |staged: PathBuf, placed: PathBuf, bytes| found(staged, bytes) || found(placed, bytes);
    let mut objects = manifest.digests().into_iter();
    let mut files = manifest.files.iter();
    stage.join(REPLACED).exists()
        || objects.all(|(name, bytes)| either(stage.join(OBJECTS).join(name), folder.join(OBJECTS).join(name), bytes))
            && files.all(|(name, entry)| either(stage.join(FILES).join(name), folder.join(name), entry.bytes))
}

/// Moves a committed folder into place. What was moved before is skipped.
fn roll_forward(folder: &Path, stage: &Path, manifest: &Manifest) -> io::Result<()> {
    let current = folder.join(MANIFEST);
    if current.symlink_metadata().is_ok() {
        disk::rename(&current, &stage.join(REPLACED))?;
        disk::sync_dir(stage)?;
        disk::sync_dir(folder)?;
    }
    let digests = manifest.digests();
    if !digests.is_empty() {
        let objects = folder.join(OBJECTS);
        disk::create_dir(&objects)?;
        for digest in digests.keys() {
            move_to(&stage.join(OBJECTS).join(digest), &objects.join(digest))?;
        }
        disk::sync_dir(&objects)?;
    }
    for name in manifest.files.keys() {
        move_to(&stage.join(FILES).join(name), &folder.join(name))?;
    }
    disk::sync_dir(folder)?;
    disk::rename(&stage.join(MANIFEST), &current)?;
    disk::sync_dir(folder)
}

fn move_to(from: &Path, to: &Path) -> io::Result<()> {
    match disk::rename(from, to) {
        Err(error) if error.kind() == ErrorKind::NotFound && to.exists() => Ok(()),
        moved => moved,
    }
}

/// Removes what only the replaced folder listed.
fn tidy(folder: &Path, stage: &Path) -> io::Result<()> {
    if let Some(old) = Manifest::ours_at(&stage.join(REMOVED)) {
        return remove_listed(folder, &old, Manifest::read(folder).ok().as_ref());
    }
    match (Manifest::ours_at(&stage.join(REPLACED)), Manifest::read(folder)) {
        (Some(old), Ok(new)) => remove_listed(folder, &old, Some(&new)),
        _ => Ok(()),
    }
}

/// Removes what the first manifest lists and the second does not.
fn remove_listed(folder: &Path, old: &Manifest, new: Option<&Manifest>) -> io::Result<()> {
    for name in old.files.keys().filter(|name| !new.is_some_and(|new| new.files.contains_key(*name))) {
        disk::remove_file(&folder.join(name))?;
    }
    let (digests, objects) = (new.map(Manifest::digests).unwrap_or_default(), folder.join(OBJECTS));
    for digest in old.digests().keys().filter(|digest| !digests.contains_key(*digest)) {
        disk::remove_file(&objects.join(digest))?;
    }
    if digests.is_empty() {
        // It may contain a file of the user.
        let _ = disk::remove_dir(&objects);
    }
    Ok(())
}

/// Removes a stage: its manifest first, so that it does not look committed, and its lock last.
fn dismantle(stage: &Path) -> io::Result<()> {
    disk::remove_file(&stage.join(MANIFEST))?;
    for folder in [stage.join(OBJECTS), stage.join(FILES)] {
        let entries = match fs::read_dir(&folder) {
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            entries => entries?,
        };
        for entry in entries {
            disk::remove_file(&entry?.path())?;
        }
        disk::remove_dir(&folder)?;
    }
    disk::remove_file(&stage.join(REPLACED))?;
    disk::remove_file(&stage.join(REMOVED))?;
    disk::remove_file(&stage.join(LOCK))?;
    disk::remove_dir(stage)
}
