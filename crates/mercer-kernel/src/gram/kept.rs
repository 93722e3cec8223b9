//! A Gram matrix computed earlier: an array file, a store, or one file per layer with their [`Listing`].
//!
//! A store may hold several matrices. Those of layers are summands; standard errors are beside the kernel and are not
//! part of it. Reading returns the sum of the summands.

use super::listing::Listing;
use crate::error::{KernelError, Result};
use crate::kernel::Real;
use crate::store::{Manifest, Store};
use mercer_data::{Dataset, Source};
use mercer_run::Context;
use ndarray::ArrayD;
use serde::Deserialize;

/// A matrix that has been located but not read.
#[derive(Debug)]
pub struct KeptGram {
    place: String,
    pub(super) parts: Parts,
}

#[derive(Debug)]
pub(super) enum Parts {
    /// The arrays of a store to sum.
    Store(Box<Store>, Vec<String>),
    /// The files to sum.
    Files(Vec<Dataset>),
}

impl KeptGram {
    /// Locates a matrix: a store, an array file, or the list of a matrix's layers. The list is also found by the name
    /// given to the command that wrote it (`layers.npy` for `layers.json`).
    pub fn open(source: &Source) -> Result<Self> {
        let (path, place) = (source.path(), source.place());
        let is_named = |ending: &str| path.extension().is_some_and(|own| own.eq_ignore_ascii_case(ending));
        if is_named("zarr") || path.join("zarr.json").is_file() {
            let store = Store::open(path)?;
            let names = store.manifest().parts();
            return Ok(Self { place, parts: Parts::Store(Box::new(store), names) });
        }
        let listing = path.with_extension("json");
        if source.key().is_none() && (is_named("json") || (!path.exists() && listing.is_file())) {
            let list = Listing::read(&listing)?;
            if let Some(store) = list.store(&listing) {
                return Self::open(&Source::new(store, None));
            }
            let files = list.files(&listing);
            let sets: Vec<Dataset> =
                files.iter().map(|file| Source::new(file, None).open()).collect::<Result<_, _>>()?;
            let same = sets.windows(2).all(|pair| pair[0].shape() == pair[1].shape());
            if sets.is_empty() || !same {
                let text = format!("{}: its matrices have different shapes, or there are none", listing.display());
                return Err(KernelError::Setting(text));
            }
            return Ok(Self { place, parts: Parts::Files(sets) });
        }
        Ok(Self { place, parts: Parts::Files(vec![source.open()?]) })
    }

    /// The shape of the matrix: two axes, or four for a matrix-valued kernel.
    pub fn shape(&self) -> Vec<usize> {
        match &self.parts {
            Parts::Store(store, _) => store.layout().shape(),
            Parts::Files(sets) => sets.first().map_or(Vec::new(), |set| set.shape().to_vec()),
        }
    }

    /// The number of rows of the matrix, and of rows per sample.
    ///
    /// # Errors
    /// [`KernelError::Setting`] if it is not the matrix of samples with themselves.
    pub fn square(&self) -> Result<(usize, usize)> {
        let shape = self.shape();
        match shape[..] {
            [n, m] if n == m && n > 0 => Ok((n, 1)),
            [n, c, m, d] if n == m && c == d && n * c > 0 => Ok((n * c, c)),
            _ => Err(KernelError::Setting(format!("{}: an array of shape {shape:?} is no Gram matrix", self.place))),
        }
    }

    /// The file or store.
    pub fn place(&self) -> &str {
        &self.place
    }

    /// The peak memory of [`read`](Self::read): the sum, and a part that is added to it.
    pub fn bytes<T>(&self) -> usize {
        let numbers = self.shape().into_iter().fold(self.n_parts().min(2), usize::saturating_mul);
        numbers.saturating_mul(size_of::<T>())
    }

    /// The number of summands.
    pub fn n_parts(&self) -> usize {
        match &self.parts {
            Parts::Store(_, names) => names.len(),
            Parts::Files(sets) => sets.len(),
        }
    }

    /// The fingerprint of the samples of the rows, if it is known.
    pub fn data(&self) -> Option<&str> {
        match &self.parts {
            Parts::Store(store, _) => store.manifest().facts.get("data").and_then(|data| data.as_str()),
            Parts::Files(_) => None,
        }
    }

    /// The matrix, the sum of its parts. An error if there is not enough memory.
    pub fn read<T: Real>(&self, context: &Context) -> Result<ArrayD<T>> {
        let (needed, allowed) = (self.bytes::<T>(), context.memory());
        if needed > allowed {
            let text = format!("{}: the matrix needs {needed} bytes of memory, but {allowed} are free", self.place);
            return Err(KernelError::Setting(text));
        }
        let parts: Box<dyn Iterator<Item = Result<ArrayD<T>>> + '_> = match &self.parts {
            Parts::Store(store, names) => {
                Box::new(names.iter().map(|name| Ok(store.read_watched::<T>(name, context)?)))
            }
            Parts::Files(sets) => Box::new(sets.iter().map(|set| Ok(set.read::<T>()?))),
        };
        let mut sum: Option<ArrayD<T>> = None;
        for part in parts {
            let part = part?;
            context.check()?;
            match &mut sum {
                Some(sum) => *sum += &part,
                None => sum = Some(part),
            }
        }
        sum.ok_or_else(|| KernelError::Setting(format!("{}: there is no matrix in it", self.place)))
    }
}

impl Manifest {
    /// The arrays that sum to the kernel: all except those beside it.
    pub fn parts(&self) -> Vec<String> {
        let beside = self.beside();
        self.layout.arrays.iter().filter(|name| !beside.contains(name)).cloned().collect()
    }

    /// The arrays that describe the kernel and are not part of it, as named by
    /// [`Kernel::beside`](crate::Kernel::beside). They are noted in the manifest; before they were noted, there were
    /// only standard errors.
    pub fn beside(&self) -> Vec<String> {
        let noted = self.notes.get(BESIDE).and_then(|names| Vec::<String>::deserialize(names).ok());
        noted.unwrap_or_else(|| vec![crate::montecarlo::STANDARD_ERROR.to_owned()])
    }

    /// Adds the names of the arrays that are not part of the kernel.
    pub fn with_beside(self, names: Vec<String>) -> Self {
        self.note(BESIDE, names)
    }
}

/// The note with the arrays that are not part of the kernel.
const BESIDE: &str = "beside the kernel";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{StoreColumns, StoreLayout};
    use mercer_data::{DType, Existing, write_npy};
    use ndarray::{Array2, array};
    use std::path::Path;

    fn layout(arrays: &[&str]) -> StoreLayout {
        let columns = StoreColumns::Samples { count: 2, symmetric: true };
        let arrays = arrays.iter().map(|&name| name.to_owned()).collect();
        StoreLayout { arrays, rows: 2, columns, per_sample: 1, tile: 2, precision: DType::F32 }
    }

    fn store(path: &Path, manifest: Manifest) {
        let matrices = manifest.layout.arrays.len();
        let store = Store::create(path, manifest).unwrap();
        let tiles: Vec<Vec<f32>> = (0..matrices).map(|at| vec![1.0 + at as f32, 0.5, 0.5, 10.0]).collect();
        store.write(0, &tiles.iter().map(Vec::as_slice).collect::<Vec<_>>()).unwrap();
    }

    fn read(path: &Path) -> ArrayD<f64> {
        KeptGram::open(&Source::new(path, None)).unwrap().read(&Context::new()).unwrap()
    }

    #[test]
    fn layers_are_summed_and_standard_errors_are_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        store(&path("layers.zarr"), Manifest::new(layout(&["one", "two", "three"])).fact("data", "aa"));
        let found = KeptGram::open(&Source::new(path("layers.zarr"), None)).unwrap();
        assert_eq!((found.n_parts(), found.data(), found.shape()), (3, Some("aa"), vec![2, 2]));
        assert_eq!(read(&path("layers.zarr")), array![[6.0, 1.5], [1.5, 30.0]].into_dyn());
        // As they were written before they were noted, and under any name and in any place since.
        store(&path("old.zarr"), Manifest::new(layout(&["kernel", "standard error"])));
        assert_eq!(read(&path("old.zarr")), array![[1.0, 0.5], [0.5, 10.0]].into_dyn());
        let noted = Manifest::new(layout(&["spread", "kernel"])).with_beside(vec!["spread".to_owned()]);
        store(&path("noted.zarr"), noted);
        assert_eq!(read(&path("noted.zarr")), array![[2.0, 0.5], [0.5, 10.0]].into_dyn());
        // A layer may have that name once it is noted that nothing lies beside.
        store(&path("named.zarr"), Manifest::new(layout(&["fc", "standard error"])).with_beside(Vec::new()));
        assert_eq!(read(&path("named.zarr")), array![[3.0, 1.0], [1.0, 20.0]].into_dyn());
    }

    #[test]
    fn files_of_layers_are_found_by_their_list() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let write = |name: &str, value: f64| {
            write_npy(&path(name), &Array2::from_elem((2, 2), value), Existing::Refuse).unwrap();
        };
        write("layers.one.npy", 1.0);
        write("layers.two.npy", 2.5);
        let files = vec!["elsewhere/layers.one.npy".into(), "elsewhere/layers.two.npy".into()];
        let listing = Listing::new(vec!["one".to_owned(), "two".to_owned()], files);
        listing.write(&path("layers.json"), Existing::Refuse).unwrap();
        for name in ["layers.json", "layers.npy"] {
            assert_eq!(read(&path(name)), Array2::from_elem((2, 2), 3.5).into_dyn(), "{name}");
        }
        // A list of the arrays of a store is that store.
        store(&path("stored.zarr"), Manifest::new(layout(&["one", "two"])));
        let files = vec!["elsewhere/stored.zarr/one".into(), "elsewhere/stored.zarr/two".into()];
        let listing = Listing::new(vec!["one".to_owned(), "two".to_owned()], files);
        listing.write(&path("stored.json"), Existing::Refuse).unwrap();
        assert_eq!(read(&path("stored.json")), array![[3.0, 1.0], [1.0, 20.0]].into_dyn());
        // A file of that name comes first.
        write("layers.npy", 7.0);
        assert_eq!(read(&path("layers.npy")), Array2::from_elem((2, 2), 7.0).into_dyn());
        assert!(KeptGram::open(&Source::new(path("nothing.npy"), None)).is_err());
    }
}
