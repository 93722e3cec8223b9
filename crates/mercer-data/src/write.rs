//! Atomic writes: a file appears complete or not at all.
//!
//! Bytes go to a temporary file in the same folder, which is flushed to the disk and then renamed; the folder is
//! flushed after that. An interrupted write leaves the old file unchanged. A temporary is locked while it is written,
//! so that those of dead processes can be recognised and [swept](crate::folder::sweep) away.

use std::io::{self, BufWriter, Cursor, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use crate::disk::{self, DiskFile, Temporary};
use crate::error::{DataError, Result, io_error};
use crate::folder::{Digester, FileEntry, Staged};

/// What to do with an existing file of the same name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Existing {
    /// Keep it and return an error.
    Refuse,
    /// Replace it once the new file is complete.
    Replace,
}

/// A file that appears when it is committed. If it is dropped before, nothing is left behind.
pub(crate) struct Output {
    /// Its final path.
    path: PathBuf,
    pub(crate) writer: BufWriter<Sink>,
    end: End,
}

/// The destination of the bytes.
enum End {
    /// A file with a name.
    Named { temporary: Temporary, existing: Existing },
    /// A part of a folder that is being written.
    Staged(Staged),
}

impl Output {
    /// Refuses an existing file now, before long work, and once more at the end.
    pub(crate) fn create(path: &Path, existing: Existing) -> Result<Self> {
        if existing == Existing::Refuse && path.symlink_metadata().is_ok() {
            return Err(DataError::Exists { place: path.display().to_string() });
        }
        let (file, temporary) = DiskFile::temporary(folder(path)).map_err(io_error(path.display()))?;
        let writer = BufWriter::new(Sink { target: Target::File(file), digester: None });
        Ok(Self { path: path.to_owned(), writer, end: End::Named { temporary, existing } })
    }

    /// A part of a folder, on disk or in memory.
    pub(crate) fn staged(path: PathBuf, file: Option<DiskFile>, staged: Staged) -> Self {
        let target = file.map_or_else(|| Target::Memory(Cursor::default()), Target::File);
        let writer = BufWriter::new(Sink { target, digester: Some(Digester::default()) });
        Self { path, writer, end: End::Staged(staged) }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn commit(self) -> Result<()> {
        let place = self.path.display().to_string();
        let mut sink = self.writer.into_inner().map_err(|error| io_error(&place)(error.into_error()))?;
        if let Target::File(file) = &sink.target {
            file.sync().map_err(io_error(&place))?;
        }
        let (temporary, existing) = match self.end {
            End::Named { temporary, existing } => (temporary, existing),
            End::Staged(staged) => {
                let entry = sink.entry().map_err(io_error(&place))?;
                let memory = match sink.target {
                    Target::Memory(bytes) => Some(bytes.into_inner()),
                    Target::File(_) => None,
                };
                return staged.record(entry, memory);
            }
        };
        temporary.persist(&self.path, existing == Existing::Refuse).map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => DataError::Exists { place: place.clone() },
            _ => io_error(&place)(error),
        })?;
        let folder = folder(&self.path);
        disk::sync_dir(folder).map_err(io_error(folder.display()))
    }
}

/// Bytes being written to a file or to memory.
pub(crate) struct Sink {
    target: Target,
    /// The running digest, as long as the bytes are written in order.
    digester: Option<Digester>,
}

enum Target {
    File(DiskFile),
    Memory(Cursor<Vec<u8>>),
}

impl Sink {
    /// Sets the length of the file.
    pub(crate) fn set_len(&mut self, length: u64) -> io::Result<()> {
        self.digester = None;
        match &mut self.target {
            Target::File(file) => file.set_len(length),
            Target::Memory(bytes) => {
                let length = usize::try_from(length).map_err(|_| io::ErrorKind::OutOfMemory)?;
                let more = length.saturating_sub(bytes.get_ref().len());
                bytes.get_mut().try_reserve(more).map_err(|_| io::ErrorKind::OutOfMemory)?;
                bytes.get_mut().resize(length, 0);
                Ok(())
            }
        }
    }

    /// The digest and the number of all bytes. They are read again if they were not written in order.
    fn entry(&mut self) -> io::Result<FileEntry> {
        if let Some(digester) = self.digester.take() {
            return Ok(digester.finish());
        }
        let mut digester = Digester::default();
        match &mut self.target {
            Target::Memory(bytes) => digester.update(bytes.get_ref()),
            Target::File(file) => {
                let mut block = vec![0; 1 << 20];
                file.seek(SeekFrom::Start(0))?;
                loop {
                    match file.read(&mut block)? {
                        0 => break,
                        read => digester.update(&block[..read]),
                    }
                }
            }
        }
        Ok(digester.finish())
    }
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = match &mut self.target {
            Target::File(file) => file.write(bytes)?,
            Target::Memory(memory) => memory.write(bytes)?,
        };
        if let Some(digester) = &mut self.digester {
            digester.update(&bytes[..written]);
        }
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.target {
            Target::File(file) => file.flush(),
            Target::Memory(_) => Ok(()),
        }
    }
}

impl Seek for Sink {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.digester = None;
        match &mut self.target {
            Target::File(file) => file.seek(to),
            Target::Memory(bytes) => bytes.seek(to),
        }
    }
}

/// The folder that a file is in.
pub(crate) fn folder(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// Writes a file of any kind atomically.
///
/// ```
/// use mercer_data::{Existing, write_atomic};
///
/// let folder = tempfile::tempdir()?;
/// let path = folder.path().join("result.json");
/// write_atomic(&path, Existing::Refuse, |writer| writer.write_all(b"{}"))?;
/// assert!(write_atomic(&path, Existing::Refuse, |writer| writer.write_all(b"{}")).is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn write_atomic(
    path: &Path,
    existing: Existing,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<()> {
    Output::create(path, existing)?.write(write)
}

impl Output {
    /// Writes everything.
    pub(crate) fn write(mut self, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<()> {
        let written = write(&mut self.writer);
        self.end(written)
    }

    fn end(self, written: io::Result<()>) -> Result<()> {
        written.map_err(io_error(self.path.display()))?;
        self.commit()
    }
}
