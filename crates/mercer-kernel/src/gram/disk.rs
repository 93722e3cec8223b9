//! Checks the disk space for a result before the work begins.

use crate::error::{KernelError, Result};
use std::path::Path;

/// The free bytes for a folder; `None` if the system does not report them.
pub fn free_disk(folder: &Path) -> Option<u64> {
    #[cfg(unix)]
    {
        let found = rustix::fs::statvfs(folder).ok()?;
        // Space reserved for the system does not count.
        Some(found.f_bavail.saturating_mul(found.f_frsize))
    }
    #[cfg(not(unix))]
    {
        let _ = folder;
        None
    }
}

/// Rejects a result that does not fit into a folder.
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
        // Nothing is known about a missing folder; the writer will report it.
        check_disk(&folder.path().join("nowhere"), u64::MAX).unwrap();
    }
}
