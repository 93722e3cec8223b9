//! Folders of results: which of their files a command wrote, so that it replaces only these.
//!
//! A command knows the names that it writes. A file with such a name belongs to the command if the file's header says
//! so (safetensors, ONNX, descriptions), or if the folder's record does: `result.json`, which holds the `kind` of the
//! result and the list of `files` that were written with it. Every other file is foreign, even under a name that the
//! command would write.

use crate::error::{DataError, Result};
use crate::files::read_regular;
use serde::Deserialize;
use std::path::{Path, PathBuf};

/// The name of the record.
pub const RECORD: &str = "result.json";

/// Records are small; a longer file is not a record.
const LONGEST: u64 = 256 << 20;

/// The record of a folder.
#[derive(Clone, Debug, Deserialize)]
pub struct ResultRecord {
    /// The kind of the result, such as `training`.
    pub kind: String,
    /// The files that were written with it, relative to the folder; records of earlier versions do not list them.
    #[serde(default)]
    pub files: Option<Vec<String>>,
}

impl ResultRecord {
    /// The record of a folder; `None` if there is none that can be read.
    pub fn read(folder: &Path) -> Option<Self> {
        serde_json::from_slice(&read_regular(&folder.join(RECORD), LONGEST).ok()?).ok()
    }
}

/// Whether a file's own content shows that the command wrote it; `None` if such files cannot tell.
pub type Proof = fn(&Path) -> Option<bool>;

/// The files of one command in a folder.
#[derive(Clone, Debug)]
pub struct Results<'a> {
    folder: &'a Path,
    /// Every file with a name that the command writes, and whether the command wrote it.
    found: Vec<(PathBuf, bool)>,
}

impl<'a> Results<'a> {
    /// Finds the files of a command with records of this kind. `names` are relative to the folder, `more` accepts
    /// further file names, and `proof` checks the files themselves.
    ///
    /// # Errors
    /// [`DataError::Io`] if the folder cannot be read. A missing folder counts as empty.
    pub fn find(folder: &'a Path, kind: &str, names: &[&str], more: fn(&str) -> bool, proof: Proof) -> Result<Self> {
        let failed = |source| DataError::Io { place: folder.display().to_string(), source };
        let mut paths: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
        if folder.is_dir() {
            for entry in std::fs::read_dir(folder).map_err(failed)? {
                let name = entry.map_err(failed)?.file_name();
                paths.extend(name.to_str().filter(|name| more(name)).map(str::to_owned));
            }
        }
        paths.push(RECORD.to_owned());
        paths.sort();
        paths.dedup();
        let record = ResultRecord::read(folder).filter(|record| record.kind == kind);
        let listed = |name: &String| match &record {
            Some(ResultRecord { files: Some(files), .. }) => files.contains(name),
            Some(_) => true,
            None => false,
        };
        let is_own = |name: &String, path: &Path| match proof(path) {
            _ if name == RECORD => record.is_some(),
            // Files of earlier versions do not tell, and their record does not list files either.
            Some(own) => own || record.as_ref().is_some_and(|record| record.files.is_none()),
            None => listed(name),
        };
        let found = paths.iter().map(|name| (name, folder.join(name)));
        let found = found.filter(|(_, path)| path.symlink_metadata().is_ok());
        Ok(Self { folder, found: found.map(|(name, path)| (path.clone(), is_own(name, &path))).collect() })
    }

    /// Whether the command would replace anything, ours or not.
    pub fn any(&self) -> bool {
        !self.found.is_empty()
    }

    /// Returns an error if a foreign file would be replaced.
    ///
    /// # Errors
    /// [`DataError::Foreign`] names it.
    pub fn check(&self) -> Result<()> {
        match self.found.iter().find(|(path, own)| !own || !path.is_file()) {
            Some((path, _)) => Err(DataError::Foreign { place: path.display().to_string() }),
            None => Ok(()),
        }
    }

    /// Removes the command's own files, except those in `keep`. First refuses like [`check`](Self::check).
    ///
    /// # Errors
    /// [`DataError::Foreign`], and [`DataError::Io`] for a file that cannot be removed.
    pub fn clear(&self, keep: &[&str]) -> Result<()> {
        self.check()?;
        for (path, _) in &self.found {
            if !keep.iter().any(|name| *path == self.folder.join(name)) {
                let failed = |source| DataError::Io { place: path.display().to_string(), source };
                std::fs::remove_file(path).map_err(failed)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<String> =
            std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    fn results(folder: &Path) -> Results<'_> {
        let says = |path: &Path| {
            let text = path.extension().is_some_and(|extension| extension == "txt");
            text.then(|| std::fs::read_to_string(path).is_ok_and(|text| text == "ours"))
        };
        Results::find(folder, "training", &["model.npy", "state.txt"], |name| name.starts_with("epoch"), says).unwrap()
    }

    #[test]
    fn only_what_is_ours_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path();
        let write = |name: &str, text: &str| std::fs::write(path.join(name), text).unwrap();
        assert!(!results(path).any());
        write("mine.npy", "a user's");
        write("state.txt", "ours");
        write("epoch1.txt", "ours");
        assert!(results(path).any());
        results(path).clear(&["state.txt"]).unwrap();
        assert_eq!(names(path), ["mine.npy", "state.txt"]);
        // A name that we write, but not our file.
        write("epoch2.txt", "theirs");
        assert!(matches!(results(path).clear(&[]), Err(DataError::Foreign { place }) if place.ends_with("epoch2.txt")));
        assert_eq!(names(path), ["epoch2.txt", "mine.npy", "state.txt"], "nothing is removed before that is known");
        std::fs::remove_file(path.join("epoch2.txt")).unwrap();
        // A file that cannot tell is ours if the record lists it.
        write("model.npy", "numbers");
        assert!(results(path).clear(&[]).is_err());
        write(RECORD, r#"{ "kind": "training", "files": [] }"#);
        assert!(results(path).clear(&[]).is_err());
        write(RECORD, r#"{ "kind": "training", "files": ["model.npy"] }"#);
        results(path).clear(&[]).unwrap();
        assert_eq!(names(path), ["mine.npy"]);
        // The record of another command.
        write(RECORD, r#"{ "kind": "eigenfunctions" }"#);
        assert!(results(path).clear(&[]).is_err());
        // A record of an earlier version lists nothing.
        write(RECORD, r#"{ "kind": "training" }"#);
        write("model.npy", "numbers");
        write("state.txt", "says nothing");
        results(path).clear(&[]).unwrap();
        assert_eq!(names(path), ["mine.npy"]);
    }
}
