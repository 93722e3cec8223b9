//! Where a kernel goes: `.npy` files or a store.

use crate::Error;
use crate::job::Destination;
use crate::job::destination::parent;
use mercer_data::Existing;
use mercer_kernel::gram::{Listing, NpyFiles, Sink, check_disk, free_disk};
use mercer_kernel::store::{Manifest, Store, StoreError, StoreLayout, Tiles};
use mercer_kernel::{KernelError, Real};
use mercer_run::Context;
use serde::Serialize;
use std::path::{Path, PathBuf};

/// A checked destination for the result.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    path: PathBuf,
    existing: Existing,
    resume: bool,
    /// Also a list of the files, for several matrices.
    listed: bool,
}

/// What was written.
pub(super) struct Written {
    pub(super) tiles_done: usize,
    pub(super) files: Vec<String>,
}

/// An opened destination.
pub(super) enum Opened<T> {
    Files(Box<NpyFiles<T>>, Tiles, Vec<PathBuf>),
    Store(Store, Tiles),
}

/// Room on the disk.
#[derive(Clone, Debug, Serialize)]
pub struct Room {
    #[serde(skip)]
    folder: PathBuf,
    /// The bytes that will be written.
    pub needed: u64,
    /// The free bytes, if the system reports them.
    pub free: Option<u64>,
}

impl Room {
    pub(super) fn check(&self) -> Result<(), KernelError> {
        check_disk(&self.folder, self.needed)
    }
}

impl Target {
    /// Rejects a result that could not be written, before the work begins.
    pub(super) fn check(
        destination: &Destination,
        partial: Option<&str>,
        by_layer: bool,
    ) -> Result<Option<Self>, Error> {
        let Destination { force, resume, dry_run, .. } = *destination;
        let Some(path) = &destination.path else {
            let missing = Error::new("there is no destination for the result").hint("‹out› OUT.npy or ‹out› OUT.zarr");
            return if dry_run { Ok(None) } else { Err(missing) };
        };
        let place = path.display();
        let target = Self { path: path.clone(), existing: destination.existing(), resume, listed: by_layer };
        if target.is_store() {
            let exists = path.symlink_metadata().is_ok();
            if exists && !resume && !force && !dry_run {
                return Err(Error::with_code("exists", format!("{place} exists already"))
                    .hint("‹resume› continues it; ‹force› replaces it"));
            }
            if exists && !path.join("zarr.json").is_file() {
                return Err(Error::new(format!("‹out› {place}: this is not a store")).hint("name another folder"));
            }
            destination.check_parent()?;
        } else {
            if !path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("npy")) {
                return Err(Error::new(format!("‹out› {place}: the result is a .npy file or a .zarr store"))
                    .hint(format!("‹out› {}", path.with_extension("npy").display())));
            }
            if let Some(setting) = if resume { Some("resume") } else { partial } {
                return Err(Error::new(format!("‹{setting}› needs a store: a .npy file is written as a whole"))
                    .hint(format!("‹out› {}", path.with_extension("zarr").display())));
            }
            if !dry_run && !by_layer {
                destination.check_array()?;
            }
        }
        if by_layer && !dry_run {
            destination.check_parent()?;
            let listing = Listing::path(path);
            if !force && !resume && listing.symlink_metadata().is_ok() {
                let text = format!("{} exists already", listing.display());
                return Err(Error::with_code("exists", text).hint("‹force› replaces it"));
            }
            Listing::check_place(&listing).map_err(not_ours)?;
        }
        Ok(Some(target))
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Writes the list of several matrices beside them.
    pub(super) fn write_listing(&self, listing: &Listing) -> Result<(), Error> {
        let existing = if self.resume { Existing::Replace } else { self.existing };
        listing.write(&Listing::path(&self.path), existing).map_err(not_ours)
    }

    fn is_store(&self) -> bool {
        self.path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("zarr"))
    }

    /// The disk space that these tiles will take, without existing tiles and tiles that they replace.
    pub(super) fn room(&self, layout: &StoreLayout, wanted: &Tiles) -> Result<Room, Error> {
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
        let folder = parent(&self.path);
        Ok(Room { folder: folder.to_owned(), needed, free: free_disk(folder) })
    }

    /// What remains after Ctrl-C.
    pub(super) fn how_to_go_on(&self) -> String {
        if self.is_store() {
            "the same command with --resume continues from here".to_owned()
        } else {
            format!("nothing was written; a store can be resumed: -o {}", self.path.with_extension("zarr").display())
        }
    }

    /// Creates or opens the destination.
    pub(super) fn open<T: Real>(
        &self,
        layout: &StoreLayout,
        manifest: impl FnOnce() -> Manifest,
        context: &Context,
    ) -> Result<Opened<T>, Error> {
        if !self.is_store() {
            let paths = self.files(layout);
            let files = NpyFiles::create(layout.clone(), &paths, self.existing)?;
            return Ok(Opened::Files(Box::new(files), layout.all_tiles(), paths));
        }
        let manifest = manifest();
        if self.existing == Existing::Replace && self.path.exists() {
            // Only an existing store is removed.
            Store::open(&self.path)?.remove()?;
        }
        if self.resume && self.path.exists() {
            return self.resumed(&manifest, context);
        }
        match Store::create(&self.path, manifest.clone()) {
            // Another process created it first; both fill the same store.
            Err(StoreError::Exists { .. }) if self.resume => self.resumed(&manifest, context),
            created => Ok(Opened::Store(created?, layout.all_tiles())),
        }
    }

    /// A store and its missing tiles: a new store, or one with the same facts to resume.
    pub(crate) fn store<T: Real>(
        destination: &Destination,
        layout: &StoreLayout,
        manifest: Manifest,
        context: &Context,
    ) -> Result<(Store, Tiles), Error> {
        let missing = || Error::new("there is no destination for the store").hint("‹out› OUT.zarr");
        let target = Self::check(destination, None, false)?.ok_or_else(missing)?;
        target.room(layout, &layout.all_tiles())?.check()?;
        match target.open::<T>(layout, || manifest, context)? {
            Opened::Store(store, tiles) => Ok((store, tiles)),
            Opened::Files(..) => Err(missing()),
        }
    }

    /// A store to resume; damaged tiles count as missing.
    fn resumed<T>(&self, manifest: &Manifest, context: &Context) -> Result<Opened<T>, Error> {
        let store = Store::resume(&self.path, manifest)?;
        let checked = store.verify(context)?;
        if !checked.places_checked && checked.done > 0 {
            context.note(&format!(
                "{} was begun by an earlier version: swapped tiles cannot be detected there",
                self.path.display()
            ));
        }
        for damage in &checked.damaged {
            context.note(&format!(
                "tile {} of {:?} is damaged ({}): computing it again",
                damage.tile, damage.array, damage.why
            ));
        }
        let damaged = checked.damaged.iter().map(|damage| damage.tile).collect();
        Ok(Opened::Store(store, checked.missing.and(&damaged)))
    }

    /// The `.npy` files, one per matrix.
    fn files(&self, layout: &StoreLayout) -> Vec<PathBuf> {
        let stem = self.path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let named = |matrix: &String| self.path.with_file_name(format!("{stem}.{matrix}.npy"));
        let folders = layout.folders();
        if self.listed {
            return folders.iter().map(named).collect();
        }
        // The kernel itself, and the matrices beside it.
        std::iter::once(self.path.clone()).chain(folders[1..].iter().map(named)).collect()
    }

    /// Completes the files, and returns their paths.
    pub(super) fn close<T: Real>(
        &self,
        opened: Opened<T>,
        layout: &StoreLayout,
        written: &Tiles,
    ) -> Result<Written, Error> {
        Ok(match opened {
            Opened::Files(files, _, paths) => {
                files.finish()?;
                let files = paths.iter().map(|path| path.display().to_string()).collect();
                Written { tiles_done: layout.n_tiles(), files }
            }
            Opened::Store(store, _) => {
                store.check_written(written)?;
                let tiles_done = store.n_tiles() - store.missing()?.len();
                let folder = |name: &String| self.path.join(name).display().to_string();
                Written { tiles_done, files: layout.folders().iter().map(folder).collect() }
            }
        })
    }
}

impl<T: Real> Opened<T> {
    /// The missing tiles.
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

/// A file at the path of the list of matrices is replaced only if it is such a list.
fn not_ours(error: KernelError) -> Error {
    match error {
        KernelError::Data(error) => (*error).into(),
        other => Error::new(other.to_string()).hint("move that file away, or name another result with -o"),
    }
}
