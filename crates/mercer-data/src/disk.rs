//! All disk writes of this crate go through this module, so that a test can interrupt them at any operation.
//!
//! Outside tests (and the feature `faults`), every function here is just the system call.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use tempfile::TempPath;

#[cfg(any(test, feature = "faults"))]
use crate::faults;

/// A file that is being written. Errors do not name it, because the caller knows its final name.
#[derive(Debug)]
pub(crate) struct DiskFile {
    file: File,
    path: PathBuf,
}

impl DiskFile {
    /// Creates a file that must not exist yet.
    pub(crate) fn create(path: &Path) -> io::Result<Self> {
        step(path)?;
        let file = OpenOptions::new().read(true).write(true).create_new(true).open(path)?;
        Ok(Self { file, path: path.to_owned() })
    }

    /// Creates a file with a unique name, locked for as long as it is open; see [`sweep`](crate::folder::sweep).
    pub(crate) fn temporary(folder: &Path) -> io::Result<(Self, Temporary)> {
        loop {
            step(folder)?;
            let (file, path) = temporary().tempfile_in(folder)?.into_parts();
            if lock(&file) && path.exists() {
                return Ok((Self { file, path: path.to_path_buf() }, Temporary(Some(path))));
            }
            // Another process swept it away before it was locked.
        }
    }

    pub(crate) fn sync(&self) -> io::Result<()> {
        step(&self.path)?;
        self.file.sync_all()?;
        #[cfg(any(test, feature = "faults"))]
        faults::synced(&self.path);
        Ok(())
    }

    pub(crate) fn set_len(&self, length: u64) -> io::Result<()> {
        step(&self.path)?;
        self.file.set_len(length)
    }

    pub(crate) fn lock(&self) -> bool {
        lock(&self.file)
    }
}

impl Write for DiskFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        #[cfg(any(test, feature = "faults"))]
        let bytes = &bytes[..faults::write(&self.path, bytes.len())?];
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Read for DiskFile {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        self.file.read(bytes)
    }
}

impl Seek for DiskFile {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.file.seek(to)
    }
}

/// The name of a temporary file. The file is removed when this value is dropped, unless it was renamed before.
#[derive(Debug)]
pub(crate) struct Temporary(Option<TempPath>);

impl Temporary {
    /// Gives the file its final name; with `fresh` only if no such file exists.
    pub(crate) fn persist(mut self, to: &Path, fresh: bool) -> io::Result<()> {
        step(to)?;
        let Some(path) = self.0.take() else { return Ok(()) };
        #[cfg(any(test, feature = "faults"))]
        faults::renamed(&path, to);
        let persisted = if fresh { path.persist_noclobber(to) } else { path.persist(to) };
        persisted.map_err(|error| error.error)
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if let Some(path) = self.0.take()
            && step(&path).is_err()
        {
            // A process that was killed removes nothing.
            let _ = path.keep();
        }
    }
}

/// A builder of temporaries with the permissions of ordinary files, instead of owner-only permissions.
pub(crate) fn temporary() -> tempfile::Builder<'static, 'static> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(PREFIX).suffix(SUFFIX);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        builder.permissions(fs::Permissions::from_mode(0o666));
    }
    builder
}

const PREFIX: &str = ".mercer-";
const SUFFIX: &str = ".part";

/// Whether a file or folder of this name is a temporary of ours.
pub(crate) fn is_temporary(name: &str) -> bool {
    name.len() > PREFIX.len() + SUFFIX.len() && name.starts_with(PREFIX) && name.ends_with(SUFFIX)
}

/// Takes a lock, which the system releases when the process ends. Where the file system has no locks, no process is
/// ever considered dead, so continuing without a lock is safe.
pub(crate) fn lock(file: &File) -> bool {
    !matches!(file.try_lock(), Err(fs::TryLockError::WouldBlock))
}

/// Creates a folder with a unique name.
pub(crate) fn temporary_dir(folder: &Path) -> io::Result<PathBuf> {
    step(folder)?;
    let mut builder = tempfile::Builder::new();
    Ok(builder.prefix(PREFIX).suffix(SUFFIX).tempdir_in(folder)?.keep())
}

/// Creates a folder if it does not exist.
pub(crate) fn create_dir(path: &Path) -> io::Result<()> {
    step(path)?;
    match fs::create_dir(path) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists && path.is_dir() => Ok(()),
        made => made,
    }
}

/// Makes what was created or renamed in a folder durable.
pub(crate) fn sync_dir(path: &Path) -> io::Result<()> {
    step(path)?;
    if cfg!(unix) { File::open(path)?.sync_all() } else { Ok(()) }
}

pub(crate) fn rename(from: &Path, to: &Path) -> io::Result<()> {
    step(to)?;
    fs::rename(from, to)?;
    #[cfg(any(test, feature = "faults"))]
    faults::renamed(from, to);
    Ok(())
}

/// Removes a file if it exists.
pub(crate) fn remove_file(path: &Path) -> io::Result<()> {
    step(path)?;
    gone(fs::remove_file(path))
}

/// Removes an empty folder if it exists.
pub(crate) fn remove_dir(path: &Path) -> io::Result<()> {
    step(path)?;
    gone(fs::remove_dir(path))
}

fn gone(removed: io::Result<()>) -> io::Result<()> {
    match removed {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

/// Called before every operation that changes the disk.
#[inline]
fn step(path: &Path) -> io::Result<()> {
    #[cfg(any(test, feature = "faults"))]
    faults::step(path)?;
    let _ = path;
    Ok(())
}
