//! Room for a result on the disk, before the work that fills it.

use crate::error::{KernelError, Result};
use std::path::Path;

/// The bytes that may still be written into a folder; `None` where the system does not tell.
pub fn free_disk(folder: &Path) -> Option<u64> {
    #[cfg(unix)]
    {
        let found = rustix::fs::statvfs(folder).ok()?;
        // What is kept for the system's own use does not count.
        Some(found.f_bavail.saturating_mul(found.f_frsize))
    }
    #[cfg(not(unix))]
    {
        let _ = folder;
        None
    }
}

/// Refuses a result that a folder has no room for.
pub fn check_disk(folder: &Path, needed: u64) -> Result<()> {
    match free_disk(folder) {
        Some(free) if free < needed => Err(KernelError::Disk { place: folder.display().to_string(), needed, free }),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_than_there_is_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        check_disk(folder.path(), 1).unwrap();
        if let Some(free) = free_disk(folder.path()) {
            assert!(free > 0);
            let error = check_disk(folder.path(), u64::MAX).unwrap_err();
            assert!(matches!(error, KernelError::Disk { needed: u64::MAX, .. }), "{error}");
        }
        // Nothing is known of a folder that is not there; whoever writes to it says so.
        check_disk(&folder.path().join("nowhere"), u64::MAX).unwrap();
    }
}
