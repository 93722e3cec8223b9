//! `-o` of a kernel: `.npy` files or a store.

use super::report::KernelReport;
use crate::console::Console;
use crate::failure::{Failure, cannot_write};
use crate::options::Real;
use crate::output::OutputFile;
use mercer::data::{Existing, write_atomic};
use mercer::kernel::gram::{NpyFiles, Sink};
use mercer::kernel::store::{Layout, Manifest, Store, StoreError};
use mercer::net::progress::Silent;
use std::path::{Path, PathBuf};

/// Where the result goes.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Output")]
pub(super) struct Target {
    /// Write to this .npy file or .zarr store
    #[arg(short = 'o', long = "out", value_name = "OUT.npy|OUT.zarr")]
    path: Option<PathBuf>,

    /// Replace what is there already
    #[arg(long, conflicts_with = "resume")]
    force: bool,

    /// Go on with a store that was interrupted or is being filled by others
    #[arg(long)]
    resume: bool,
}

/// A place for the result that can be written to.
#[derive(Debug)]
pub(super) struct Destination {
    path: PathBuf,
    existing: Existing,
    resume: bool,
    /// Also a list of the files, for several matrices.
    listed: bool,
}

/// An opened destination.
pub(super) enum Opened<T> {
    Files(Box<NpyFiles<T>>, usize, Vec<PathBuf>),
    Store(Store, Vec<usize>),
}

impl Target {
    /// Refuses what could not be written in the end, before the work begins.
    pub(super) fn check(
        &self,
        dry_run: bool,
        some_tiles: bool,
        by_layer: bool,
    ) -> Result<Option<Destination>, Failure> {
        let Some(path) = &self.path else {
            let missing = Failure::new("there is no place for the result").hint("-o OUT.npy or -o OUT.zarr");
            return if dry_run { Ok(None) } else { Err(missing) };
        };
        let place = path.display();
        let existing = if self.force { Existing::Replace } else { Existing::Refuse };
        let destination = Destination { path: path.clone(), existing, resume: self.resume, listed: by_layer };
        if destination.is_store() {
            let exists = path.symlink_metadata().is_ok();
            if exists && !self.resume && !self.force && !dry_run {
                return Err(Failure::new(format!("{place} exists already"))
                    .hint("--resume goes on with it; --force replaces it"));
            }
            if exists && !path.join("zarr.json").is_file() {
                return Err(Failure::new(format!("-o {place}: this is not a store")).hint("name another folder"));
            }
            let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
            if !folder.is_dir() {
                let text = format!("-o {place}: there is no folder {}", folder.display());
                return Err(Failure::new(text).hint("create it first"));
            }
        } else {
            if !path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("npy")) {
                return Err(Failure::new(format!("-o {place}: the result is a .npy file or a .zarr store"))
                    .hint(format!("-o {}", path.with_extension("npy").display())));
            }
            if self.resume || some_tiles {
                let flag = if self.resume { "--resume" } else { "--tiles" };
                return Err(Failure::new(format!("{flag} needs a store: a .npy file is written as a whole"))
                    .hint(format!("-o {}", path.with_extension("zarr").display())));
            }
            if !dry_run && !by_layer {
                OutputFile { path: self.path.clone(), force: self.force }.check()?;
            }
        }
        if by_layer && !dry_run && !self.force && !self.resume && destination.listing().exists() {
            return Err(
                Failure::new(format!("{} exists already", destination.listing().display())).hint("--force replaces it")
            );
        }
        Ok(Some(destination))
    }
}

impl Destination {
    fn is_store(&self) -> bool {
        self.path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("zarr"))
    }

    /// The list of the matrices.
    fn listing(&self) -> PathBuf {
        self.path.with_file_name("result.json")
    }

    /// What Ctrl-C leaves behind.
    pub(super) fn how_to_go_on(&self) -> String {
        if self.is_store() {
            "the same command with --resume goes on where this stopped".to_owned()
        } else {
            format!("nothing was written; a store can be resumed: -o {}", self.path.with_extension("zarr").display())
        }
    }

    /// Makes or opens what is written to.
    pub(super) fn open<T: Real>(
        &self,
        layout: &Layout,
        manifest: impl FnOnce() -> Result<Manifest, Failure>,
        console: &Console,
    ) -> Result<Opened<T>, Failure> {
        if !self.is_store() {
            let paths = self.files(layout);
            let files = NpyFiles::create(layout.clone(), &paths, self.existing).map_err(|error| match error {
                mercer::kernel::KernelError::Data(error) => (*error).into(),
                other => Failure::new(other.to_string()),
            })?;
            return Ok(Opened::Files(Box::new(files), layout.n_tiles(), paths));
        }
        let manifest = manifest()?;
        if self.existing == Existing::Replace && self.path.exists() {
            // Only what was a store before is removed.
            Store::open(&self.path)?;
            std::fs::remove_dir_all(&self.path).map_err(|error| cannot_write(self.path.display(), &error))?;
        }
        if self.resume && self.path.exists() {
            return self.resumed(&manifest, console);
        }
        match Store::create(&self.path, manifest.clone()) {
            // Another process was faster: both fill the same store.
            Err(StoreError::Exists { .. }) if self.resume => self.resumed(&manifest, console),
            created => Ok(Opened::Store(created?, (0..layout.n_tiles()).collect())),
        }
    }

    /// A store to go on with; tiles that are damaged count as missing.
    fn resumed<T>(&self, manifest: &Manifest, console: &Console) -> Result<Opened<T>, Failure> {
        let store = Store::resume(&self.path, manifest)?;
        let mut missing = store.missing()?;
        let checked = store.verify(&Silent::default())?;
        for damage in &checked.damaged {
            console.note(&format!(
                "tile {} of {:?} is damaged ({}): computing it again",
                damage.tile, damage.array, damage.why
            ));
            missing.push(damage.tile);
        }
        missing.sort_unstable();
        missing.dedup();
        Ok(Opened::Store(store, missing))
    }

    /// The `.npy` files, one per matrix.
    fn files(&self, layout: &Layout) -> Vec<PathBuf> {
        let stem = self.path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let named = |matrix: &String| self.path.with_file_name(format!("{stem}.{matrix}.npy"));
        let folders = layout.folders();
        if self.listed {
            return folders.iter().map(named).collect();
        }
        // The kernel itself, and what there is beside it.
        std::iter::once(self.path.clone()).chain(folders[1..].iter().map(named)).collect()
    }

    /// Completes the files, and says in the report what is where.
    pub(super) fn close<T: Real>(
        &self,
        opened: Opened<T>,
        layout: &Layout,
        report: &mut KernelReport,
    ) -> Result<(), Failure> {
        match opened {
            Opened::Files(files, n_tiles, paths) => {
                files.finish().map_err(|error| match error {
                    mercer::kernel::KernelError::Data(error) => (*error).into(),
                    other => Failure::new(other.to_string()),
                })?;
                report.tiles_done = n_tiles;
                report.files = paths.iter().map(|path| path.display().to_string()).collect();
            }
            Opened::Store(store, _) => {
                report.tiles_done = store.n_tiles() - store.missing()?.len();
                report.files = layout.folders().iter().map(|name| self.path.join(name).display().to_string()).collect();
            }
        }
        report.complete = report.tiles_done == layout.n_tiles();
        report.output = Some(self.path.display().to_string());
        if self.listed {
            let text = serde_json::to_string_pretty(report).unwrap_or_default();
            let existing = if self.resume { Existing::Replace } else { self.existing };
            write_atomic(&self.listing(), existing, |writer| writer.write_all(text.as_bytes()))?;
        }
        Ok(())
    }
}

impl<T: Real> Opened<T> {
    /// The tiles that are not there yet.
    pub(super) fn missing(&self) -> Result<Vec<usize>, Failure> {
        Ok(match self {
            Self::Files(_, n_tiles, _) => (0..*n_tiles).collect(),
            Self::Store(_, missing) => missing.clone(),
        })
    }

    pub(super) fn sink(&self) -> &dyn Sink<T> {
        match self {
            Self::Files(files, ..) => &**files,
            Self::Store(store, _) => store,
        }
    }
}
