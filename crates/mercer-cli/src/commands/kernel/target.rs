//! `-o` of a kernel: `.npy` files or a store.

use super::report::KernelReport;
use crate::console::Console;
use crate::failure::Failure;
use crate::options::Real;
use crate::output::OutputFile;
use mercer::data::Existing;
use mercer::kernel::KernelError;
use mercer::kernel::gram::{Listing, NpyFiles, Sink, check_disk, free_disk};
use mercer::kernel::store::{Layout, Manifest, Store, StoreError, Tiles};
use serde::Serialize;
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
    Files(Box<NpyFiles<T>>, Tiles, Vec<PathBuf>),
    Store(Store, Tiles),
}

/// Room on the disk.
#[derive(Debug, Serialize)]
pub(super) struct Room {
    #[serde(skip)]
    folder: PathBuf,
    /// The bytes that will be written.
    pub(super) needed: u64,
    /// The bytes there are, if the system tells.
    pub(super) free: Option<u64>,
}

impl Room {
    pub(super) fn check(&self) -> Result<(), KernelError> {
        check_disk(&self.folder, self.needed)
    }
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
        if by_layer && !dry_run {
            let listing = Listing::path(path);
            if !self.force && !self.resume && listing.symlink_metadata().is_ok() {
                return Err(Failure::new(format!("{} exists already", listing.display())).hint("--force replaces it"));
            }
            Listing::check_place(&listing).map_err(not_ours)?;
        }
        Ok(Some(destination))
    }
}

impl Destination {
    fn is_store(&self) -> bool {
        self.path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("zarr"))
    }

    /// What these tiles of the result will take of the disk, without those that are there or that they replace.
    pub(super) fn room(&self, layout: &Layout, wanted: &Tiles) -> Result<Room, Failure> {
        let needed = match self.is_store() {
            // The old file stays until the new one is complete.
            false => layout.bytes(),
            true if self.path.exists() => {
                let store = Store::open(&self.path)?;
                let missing = store.missing()?;
                let there = store.layout().stored_bytes(&store.layout().all_tiles().without(&missing));
                match self.resume {
                    true => layout.stored_bytes(&wanted.common(&missing)),
                    false => layout.stored_bytes(wanted).saturating_sub(there),
                }
            }
            true => {
                layout.check()?;
                layout.stored_bytes(wanted)
            }
        };
        let folder = self.path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        Ok(Room { folder: folder.to_owned(), needed, free: free_disk(folder) })
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
            return Ok(Opened::Files(Box::new(files), layout.all_tiles(), paths));
        }
        let manifest = manifest()?;
        if self.existing == Existing::Replace && self.path.exists() {
            // Only what was a store before is removed.
            Store::open(&self.path)?.remove()?;
        }
        if self.resume && self.path.exists() {
            return self.resumed(&manifest, console);
        }
        match Store::create(&self.path, manifest.clone()) {
            // Another process was faster: both fill the same store.
            Err(StoreError::Exists { .. }) if self.resume => self.resumed(&manifest, console),
            created => Ok(Opened::Store(created?, layout.all_tiles())),
        }
    }

    /// A store to go on with; tiles that are damaged count as missing.
    fn resumed<T>(&self, manifest: &Manifest, console: &Console) -> Result<Opened<T>, Failure> {
        let store = Store::resume(&self.path, manifest)?;
        let checked = store.verify(console.context())?;
        if !checked.places_checked && checked.done > 0 {
            console.note(&format!(
                "note: {} was begun by an earlier version: a tile in the place of another is not found there",
                self.path.display()
            ));
        }
        for damage in &checked.damaged {
            console.note(&format!(
                "tile {} of {:?} is damaged ({}): computing it again",
                damage.tile, damage.array, damage.why
            ));
        }
        let damaged = checked.damaged.iter().map(|damage| damage.tile).collect();
        Ok(Opened::Store(store, checked.missing.and(&damaged)))
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
        written: &Tiles,
        report: &mut KernelReport,
    ) -> Result<(), Failure> {
        match opened {
            Opened::Files(files, _, paths) => {
                files.finish().map_err(|error| match error {
                    mercer::kernel::KernelError::Data(error) => (*error).into(),
                    other => Failure::new(other.to_string()),
                })?;
                report.tiles_done = layout.n_tiles();
                report.files = paths.iter().map(|path| path.display().to_string()).collect();
            }
            Opened::Store(store, _) => {
                store.check_written(written)?;
                report.tiles_done = store.n_tiles() - store.missing()?.len();
                report.files = layout.folders().iter().map(|name| self.path.join(name).display().to_string()).collect();
            }
        }
        report.complete = report.tiles_done == layout.n_tiles();
        report.output = Some(self.path.display().to_string());
        if self.listed {
            let existing = if self.resume { Existing::Replace } else { self.existing };
            report.listing().write(&Listing::path(&self.path), existing).map_err(not_ours)?;
        }
        Ok(())
    }
}

impl<T: Real> Opened<T> {
    /// The tiles that are not there yet.
    pub(super) fn missing(&self) -> &Tiles {
        match self {
            Self::Files(_, missing, _) | Self::Store(_, missing) => missing,
        }
    }

    pub(super) fn sink(&self) -> &dyn Sink<T> {
        match self {
            Self::Files(files, ..) => &**files,
            Self::Store(store, _) => store,
        }
    }
}

/// A file in the place of the list of matrices is replaced by nothing but such a list.
fn not_ours(error: KernelError) -> Failure {
    match error {
        KernelError::Data(error) => (*error).into(),
        other => Failure::new(other.to_string()).hint("move that file away, or name another result with -o"),
    }
}
