//! Kernel values on disk: an interrupted run goes on with them, and other runs find them.
//!
//! Every matrix is a store of its own, named by what decides its numbers. A normalised kernel is stored without its
//! normalisation, so that both forms share one store.

use super::rows::RowVisitor;
use crate::Error;
use crate::error::cannot_write;
use crate::job::Destination;
use crate::job::kernel::{Share, Target, facts};
use crate::spec::fingerprint_of_inputs;
use mercer_data::folder::digest;
use mercer_data::{Dataset, RowBlock};
use mercer_kernel::gram::{FeatureRun, Gram};
use mercer_kernel::store::{Manifest, Store, StoreLayout, Tiles};
use mercer_kernel::{FeatureMap, Kernel, KernelError, Real};
use mercer_run::Context;
use ndarray::{Array2, Ix2, s};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A folder of stores.
#[derive(Clone, Debug)]
pub(crate) struct KernelStores(PathBuf);

/// What a process added to a store.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Filled {
    /// Tiles that were computed.
    pub(crate) tiles: usize,
    /// Blocks of samples that were prepared for them.
    pub(crate) prepared: usize,
}

/// A kernel whose values are stored.
pub(crate) struct StoredKernel<T> {
    stores: KernelStores,
    kernel: Arc<dyn Kernel<T>>,
    /// Whether the values are divided by `√(κ(x,x)·κ(x',x'))` after they are read.
    normalised: bool,
    /// `1/√κ(x, x)` of the training samples, or 0; known once their values are.
    scales: Option<Vec<f64>>,
}

impl KernelStores {
    /// A folder, if values are to be kept. It is created if it is not there.
    pub(crate) fn open(folder: Option<&Path>, dry_run: bool) -> Result<Option<Self>, Error> {
        let Some(folder) = folder.filter(|_| !dry_run) else { return Ok(None) };
        if folder.exists() && !folder.is_dir() {
            let text = format!("‹cache› {}: this is a file", folder.display());
            return Err(Error::with_code("exists", text).hint("name a folder"));
        }
        std::fs::create_dir_all(folder).map_err(|error| cannot_write(folder.display(), &error))?;
        Ok(Some(Self(folder.to_owned())))
    }

    /// The features of all samples.
    pub(crate) fn features<T: Real>(
        &self,
        map: &dyn FeatureMap<T>,
        samples: &[Dataset],
        context: &Context,
    ) -> Result<Array2<T>, Error> {
        let run = FeatureRun::new(map, samples);
        let manifest = facts(&run.layout(), Vec::new(), map.identity()).fact("data", fingerprint_of_inputs(samples)?);
        let store = self.filled::<T>(&run.layout(), manifest, context, |missing, store| {
            run.run(missing, store, context).map(drop)
        })?;
        let array = store.read_all::<T>(&store.layout().arrays[0]).map_err(KernelError::from)?;
        array.into_dimensionality::<Ix2>().map_err(|error| Error::new(format!("features: {error}")))
    }

    /// Computes a part of the features of all samples, as far as it is missing.
    pub(crate) fn fill_features<T: Real>(
        &self,
        map: &dyn FeatureMap<T>,
        samples: &[Dataset],
        share: Share,
        context: &Context,
    ) -> Result<Filled, Error> {
        let run = FeatureRun::new(map, samples);
        let manifest = facts(&run.layout(), Vec::new(), map.identity()).fact("data", fingerprint_of_inputs(samples)?);
        let (store, missing) = self.begun::<T>(&run.layout(), manifest, context)?;
        let tiles = missing.common(&share.of(run.partition(share.of)));
        run.run(&tiles, &store, context)?;
        Ok(Filled { tiles: tiles.len(), prepared: tiles.len() })
    }

    /// A store and its missing tiles.
    fn begun<T: Real>(
        &self,
        layout: &StoreLayout,
        manifest: Manifest,
        context: &Context,
    ) -> Result<(Store, Tiles), Error> {
        let shape = layout.shape();
        let what = serde_json::to_string(&(&manifest.facts, &shape)).map_err(|error| Error::new(error.to_string()))?;
        let name = format!("{}.zarr", &digest(what.as_bytes())[..16]);
        let destination = Destination { resume: true, ..Destination::new(self.0.join(name)) };
        Target::store::<T>(&destination, layout, manifest, context)
    }

    /// A complete store. Tiles that are missing are computed.
    fn filled<T: Real>(
        &self,
        layout: &StoreLayout,
        manifest: Manifest,
        context: &Context,
        fill: impl FnOnce(&Tiles, &Store) -> Result<(), KernelError>,
    ) -> Result<Store, Error> {
        let (store, missing) = self.begun::<T>(layout, manifest, context)?;
        fill(&missing, &store)?;
        Ok(store)
    }
}

impl<T: Real> StoredKernel<T> {
    /// A kernel, to be normalised or not.
    pub(crate) fn new(stores: KernelStores, kernel: Arc<dyn Kernel<T>>, normalised: bool) -> Self {
        Self { stores, kernel, normalised, scales: None }
    }

    fn store(&self, gram: &Gram<'_, T>, manifest: Manifest, context: &Context) -> Result<Store, Error> {
        self.stores.filled::<T>(&gram.layout(), manifest, context, |missing, store| {
            gram.run(missing, store, context).map(drop)
        })
    }

    fn manifest(&self, gram: &Gram<'_, T>) -> Manifest {
        facts(&gram.layout(), self.kernel.beside(), self.kernel.identity())
    }

    /// Computes a part of the kernel values of the training samples, with each other or with other samples, as far as it
    /// is missing.
    pub(crate) fn fill(
        &self,
        samples: Option<&[Dataset]>,
        train: &[Dataset],
        share: Share,
        context: &Context,
    ) -> Result<Filled, Error> {
        let (gram, manifest) = match samples {
            None => {
                let gram = Gram::new(&*self.kernel, train);
                let manifest = self.manifest(&gram).fact("data", fingerprint_of_inputs(train)?);
                (gram, manifest)
            }
            Some(samples) => {
                let gram = Gram::new(&*self.kernel, samples).against(train);
                let manifest = self.across(&gram, samples, train)?;
                (gram, manifest)
            }
        };
        let (store, missing) = self.stores.begun::<T>(&gram.layout(), manifest, context)?;
        let tiles = missing.common(&share.of(gram.partition(share.of)));
        let prepared = gram.plan(&tiles, context)?.prepared_blocks;
        gram.run(&tiles, &store, context)?;
        Ok(Filled { tiles: tiles.len(), prepared })
    }

    /// The facts of new samples with the training samples.
    fn across(&self, gram: &Gram<'_, T>, samples: &[Dataset], train: &[Dataset]) -> Result<Manifest, Error> {
        let manifest = self.manifest(gram).fact("data", fingerprint_of_inputs(samples)?);
        Ok(manifest.fact("against", fingerprint_of_inputs(train)?))
    }

    /// The kernel values of the training samples with each other.
    pub(crate) fn own(&mut self, train: &[Dataset], context: &Context) -> Result<Array2<f64>, Error> {
        let gram = Gram::new(&*self.kernel, train);
        let manifest = self.manifest(&gram).fact("data", fingerprint_of_inputs(train)?);
        let store = self.store(&gram, manifest, context)?;
        let mut values = Array2::zeros((gram.layout().rows, gram.layout().rows));
        for block in 0..store.layout().row_blocks() {
            context.check()?;
            let first = block * store.layout().tile;
            let rows = block_of::<T>(&store, block)?;
            values.slice_mut(s![first..first + rows.nrows(), ..]).assign(&rows);
        }
        if self.normalised {
            let scales = scales(values.diag().iter().copied())?;
            normalise(&mut values, &scales, &scales);
            values.diag_mut().iter_mut().zip(&scales).for_each(|(x, &scale)| *x = f64::from(scale > 0.0));
            self.scales = Some(scales);
        }
        Ok(values)
    }

    /// Visits the kernel values of new samples with all training samples, in order, several rows at a time.
    pub(crate) fn visit(
        &self,
        samples: &[Dataset],
        train: &[Dataset],
        context: &Context,
        visit: &mut RowVisitor<'_>,
    ) -> Result<(), Error> {
        let gram = Gram::new(&*self.kernel, samples).against(train);
        let store = self.store(&gram, self.across(&gram, samples, train)?, context)?;
        let tile = store.layout().tile;
        let scaled = match (self.normalised, &self.scales) {
            (false, _) => None,
            (true, Some(own)) => Some((self.diagonal(samples, tile, context)?, own.clone())),
            (true, None) => Some((self.diagonal(samples, tile, context)?, self.diagonal(train, tile, context)?)),
        };
        for block in 0..store.layout().row_blocks() {
            context.check()?;
            let mut rows = block_of::<T>(&store, block)?;
            if let Some((new, own)) = &scaled {
                normalise(&mut rows, &new[block * tile..], own);
            }
            visit(block * tile, rows.view())?;
        }
        Ok(())
    }

    /// `1/√κ(x, x)` of samples, or 0.
    fn diagonal(&self, samples: &[Dataset], tile: usize, context: &Context) -> Result<Vec<f64>, Error> {
        let n_samples = samples.first().map_or(0, Dataset::n_samples);
        let mut found = Vec::with_capacity(n_samples);
        for start in (0..n_samples).step_by(tile) {
            context.check()?;
            let rows = start..(start + tile).min(n_samples);
            let block = RowBlock::<T>::read(samples, rows.clone())?;
            let block = self.kernel.prepare(&block.slices(), rows.len()).map_err(|error| error.shifted(start))?;
            found.extend(self.kernel.diagonal(&block).into_iter().map(|x| x.wide()));
        }
        scales(found.into_iter())
    }
}

/// A block of rows, the sum of its parts.
fn block_of<T: Real>(store: &Store, block: usize) -> Result<Array2<f64>, Error> {
    let mut sum: Option<Array2<f64>> = None;
    for part in store.manifest().parts() {
        let values = store.read_row_block::<T>(&part, block).map_err(KernelError::from)?.mapv(|x| x.wide());
        let values = values.into_dimensionality::<Ix2>();
        let values = values.map_err(|error| Error::new(format!("{}: {error}", store.path().display())))?;
        sum = Some(sum.map_or(values.clone(), |sum| sum + values));
    }
    sum.ok_or_else(|| Error::new(format!("{}: the store is empty", store.path().display())))
}

fn normalise(values: &mut Array2<f64>, rows: &[f64], columns: &[f64]) {
    for (mut row, scale) in values.outer_iter_mut().zip(rows) {
        row.iter_mut().zip(columns).for_each(|(x, other)| *x *= scale * other);
    }
}

/// `1/√κ(x, x)`; 0 for a sample without direction.
fn scales(diagonal: impl Iterator<Item = f64>) -> Result<Vec<f64>, Error> {
    let one = |(sample, x): (usize, f64)| match x.is_finite() {
        true => Ok(if x > 0.0 { x.sqrt().recip() } else { 0.0 }),
        false => Err(KernelError::NotFinite { place: "the diagonal of the kernel".to_owned(), sample }.into()),
    };
    diagonal.enumerate().map(one).collect()
}
