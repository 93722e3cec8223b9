//! Opening untrusted files.
//!
//! A name may lead to a pipe, on which a reader waits forever, or to a device such as `/dev/zero`, which never ends. So
//! only regular files are opened, and the reader checks their size before a byte is read.

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::path::Path;

/// Opens a regular file, following symbolic links, and returns its length.
///
/// # Errors
/// The system's error; a folder is [`ErrorKind::IsADirectory`], and a pipe, socket or device
/// [`ErrorKind::InvalidInput`].
pub fn open_regular(path: &Path) -> io::Result<(File, u64)> {
    // Checked before opening, because opening a pipe waits for a writer.
    check(&std::fs::metadata(path)?)?;
    let file = File::open(path)?;
    let metadata = file.metadata()?;
    check(&metadata)?;
    Ok((file, metadata.len()))
}

fn check(metadata: &std::fs::Metadata) -> io::Result<()> {
    if metadata.is_dir() {
        return Err(io::Error::new(ErrorKind::IsADirectory, "this is a folder"));
    }
    if !metadata.is_file() {
        let text = "not a regular file: pipes, sockets and devices are not read";
        return Err(io::Error::new(ErrorKind::InvalidInput, text));
    }
    Ok(())
}

/// Reads a regular file of at most `most` bytes.
///
/// ```
/// let path = std::env::temp_dir().join("mercer-read-regular.txt");
/// std::fs::write(&path, b"four")?;
/// assert_eq!(mercer_data::read_regular(&path, 4)?, b"four");
/// assert!(mercer_data::read_regular(&path, 3).is_err());
/// # std::fs::remove_file(&path)?;
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Errors
/// As [`open_regular`]; [`ErrorKind::FileTooLarge`] if it is longer, and [`ErrorKind::OutOfMemory`] if there is not
/// enough memory.
pub fn read_regular(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let (file, length) = open_regular(path)?;
    if length > most {
        let text = format!("the file has {length} bytes, but at most {most} are allowed");
        return Err(io::Error::new(ErrorKind::FileTooLarge, text));
    }
    let mut bytes = Vec::new();
    let room = usize::try_from(length).ok().and_then(|length| bytes.try_reserve_exact(length).ok());
    if room.is_none() {
        let text = format!("not enough memory for its {length} bytes");
        return Err(io::Error::new(ErrorKind::OutOfMemory, text));
    }
    // The file may have grown in the meantime.
    file.take(length).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Reads a regular text file of at most `most` bytes.
///
/// # Errors
/// As [`read_regular`]; [`ErrorKind::InvalidData`] if it is not UTF-8.
pub fn read_regular_text(path: &Path, most: u64) -> io::Result<String> {
    let bytes = read_regular(path, most)?;
    String::from_utf8(bytes).map_err(|_| io::Error::new(ErrorKind::InvalidData, "this is not UTF-8 text"))
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn devices_pipes_and_folders_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        for path in [Path::new("/dev/zero"), &pipe] {
            let error = read_regular(path, u64::MAX).unwrap_err();
            assert!(error.to_string().contains("not a regular file"), "{}: {error}", path.display());
        }
        assert_eq!(read_regular(folder.path(), 10).unwrap_err().kind(), ErrorKind::IsADirectory);
    }

    #[test]
    fn a_length_is_checked_before_anything_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let sparse = folder.path().join("sparse");
        File::create(&sparse).unwrap().set_len(1 << 40).unwrap();
        assert_eq!(read_regular(&sparse, 1 << 20).unwrap_err().kind(), ErrorKind::FileTooLarge);
    }
}
