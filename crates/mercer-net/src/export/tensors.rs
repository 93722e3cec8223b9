//! safetensors files: named arrays, written atomically, read with their shapes checked.

use super::seal::{ENTRY, Note, WEIGHTS, digest};
use crate::element::Element;
use crate::error::{NetError, Result};
use crate::network::{Network, Values};
use half::{bf16, f16};
use mercer_data::{Existing, write_atomic};
use safetensors::tensor::{Dtype, SafeTensors, TensorView};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// Arrays to be written as one safetensors file: weights, or the state of a run.
#[derive(Debug)]
pub struct Tensors {
    kind: String,
    arrays: Vec<(String, Dtype, Vec<usize>, Vec<u8>)>,
}

impl Tensors {
    /// For a file of this kind, such as `weights`.
    pub fn new(kind: &str) -> Self {
        Self { kind: kind.to_owned(), arrays: Vec::new() }
    }

    /// Adds an array in its own precision.
    pub fn push<T: Element>(&mut self, name: impl Into<String>, shape: &[usize], values: &[T]) {
        let dtype = dtype::<T>();
        let single = dtype == Dtype::F32;
        let mut bytes = Vec::with_capacity(values.len() * if single { 4 } else { 8 });
        for value in values {
            if single {
                bytes.extend_from_slice(&(value.wide() as f32).to_le_bytes());
            } else {
                bytes.extend_from_slice(&value.wide().to_le_bytes());
            }
        }
        self.arrays.push((name.into(), dtype, shape.to_vec(), bytes));
    }

    /// Replaces a file atomically, with a digest of everything, which [`TensorFile::verify`] checks.
    pub fn write(&self, path: &Path) -> Result<()> {
        self.write_with(path, None)
    }

    /// Replaces a file atomically, with a header and a digest of everything, which [`TensorFile::unseal`] checks.
    pub fn write_sealed<H: Serialize>(&self, path: &Path, header: &H) -> Result<()> {
        self.write_with(
            path,
            Some(serde_json::to_string(header).map_err(|error| NetError::Setting(error.to_string()))?),
        )
    }

    fn write_with(&self, path: &Path, header: Option<String>) -> Result<()> {
        let bytes = self.to_bytes(header)?;
        Ok(write_atomic(path, Existing::Replace, |writer| writer.write_all(&bytes))?)
    }

    fn to_bytes(&self, header: Option<String>) -> Result<Vec<u8>> {
        let refuse = |error: safetensors::SafeTensorError| NetError::Setting(format!("safetensors: {error}"));
        let mut views = Vec::with_capacity(self.arrays.len());
        for (name, dtype, shape, bytes) in &self.arrays {
            views.push((name.as_str(), TensorView::new(*dtype, shape.clone(), bytes).map_err(refuse)?));
        }
        let digest = Some(digest(header.as_deref().unwrap_or(&self.kind), &views));
        let note = serde_json::to_string(&Note { kind: self.kind.clone(), digest, header });
        let note = note.map_err(|error| NetError::Setting(error.to_string()))?;
        safetensors::serialize(views, Some(HashMap::from([(ENTRY.to_owned(), note)]))).map_err(refuse)
    }
}

/// The file's type for a scalar.
fn dtype<T: Element>() -> Dtype {
    if T::NAME == "f32" { Dtype::F32 } else { Dtype::F64 }
}

/// A safetensors file that was read. Its contents are not trusted.
#[derive(Debug)]
pub struct TensorFile {
    path: PathBuf,
    bytes: Vec<u8>,
}

impl TensorFile {
    /// Reads a file.
    pub fn read(path: &Path) -> Result<Self> {
        let bytes = mercer_data::read_regular(path, u64::MAX)
            .map_err(|source| NetError::Io { path: path.to_owned(), source })?;
        let file = Self { path: path.to_owned(), bytes };
        file.open()?;
        Ok(file)
    }

    fn broken(&self, error: impl std::fmt::Display) -> NetError {
        NetError::Setting(format!("{}: not a readable safetensors file: {error}", self.path.display()))
    }

    fn open(&self) -> Result<SafeTensors<'_>> {
        SafeTensors::deserialize(&self.bytes).map_err(|error| self.broken(error))
    }

    /// The header of a file of this kind that was [sealed](Tensors::write_sealed).
    ///
    /// # Errors
    /// [`NetError::State`] if it is another file, or anything in it was changed.
    pub fn unseal<H: DeserializeOwned>(&self, kind: &str) -> Result<H> {
        let damaged = |error: String| self.refused(format!("its header is damaged: {error}"));
        let found = match Note::read(&self.bytes).map_err(damaged)? {
            Some(found) if found.kind == kind => found,
            Some(found) => return Err(self.refused(format!("it holds {}, not {kind}", found.kind))),
            None => return Err(self.refused(format!("it does not hold {kind}"))),
        };
        let (Some(header), Some(written)) = (found.header, found.digest) else {
            return Err(self.refused("it has no digest: an earlier version wrote it, or it was changed"));
        };
        let file = self.open()?;
        let tensors: Vec<(&str, TensorView<'_>)> = file.iter().collect();
        if digest(&header, &tensors) != written {
            return Err(self.refused("its digest does not match: the file was damaged or changed after it was written"));
        }
        serde_json::from_str(&header).map_err(|error| damaged(error.to_string()))
    }

    /// Compares one of our files with its digest. Files written by other programs have none and are accepted.
    ///
    /// # Errors
    /// [`Damaged`](mercer_data::DataError::Damaged) if anything in it was changed.
    pub fn verify(&self) -> Result<()> {
        let damaged =
            |reason: String| mercer_data::DataError::Damaged { place: self.path.display().to_string(), reason };
        let Some(note) = Note::read(&self.bytes).map_err(damaged)? else { return Ok(()) };
        let written = note.digest.ok_or_else(|| damaged("it has no digest".to_owned()))?;
        let file = self.open()?;
        let tensors: Vec<(&str, TensorView<'_>)> = file.iter().collect();
        match digest(note.header.as_deref().unwrap_or(&note.kind), &tensors) == written {
            true => Ok(()),
            false => Err(damaged("its digest does not match its content".to_owned()).into()),
        }
    }

    /// The error for a state that cannot be used.
    pub fn refused(&self, reason: impl Into<String>) -> NetError {
        NetError::State { path: self.path.clone(), reason: reason.into() }
    }

    /// The names of its tensors.
    pub fn names(&self) -> Result<Vec<String>> {
        Ok(self.open()?.names().into_iter().map(str::to_owned).collect())
    }

    /// The error for a tensor that does not match.
    pub fn error(&self, tensor: &str, reason: impl Into<String>) -> NetError {
        NetError::Tensor { path: self.path.clone(), tensor: tensor.to_owned(), reason: reason.into() }
    }

    /// A tensor of this shape in the precision of the file (half precision becomes single).
    pub fn values(&self, name: &str, shape: &[usize]) -> Result<Values> {
        let file = self.open()?;
        let view = self.view(&file, name, shape)?;
        let data = view.data();
        let values = match view.dtype() {
            Dtype::F64 => Values::from_slice(&numbers(data, f64::from_le_bytes)),
            Dtype::F32 => Values::from_slice(&numbers(data, f32::from_le_bytes)),
            Dtype::F16 => Values::from_slice(&numbers(data, |bytes| f16::from_le_bytes(bytes).to_f32())),
            Dtype::BF16 => Values::from_slice(&numbers(data, |bytes| bf16::from_le_bytes(bytes).to_f32())),
            other => {
                return Err(self.error(name, format!("has type {other:?}; only F64, F32, F16 and BF16 are supported")));
            }
        };
        match values.to_vec::<f64>().iter().position(|x| !x.is_finite()) {
            None => Ok(values),
            Some(at) => Err(self.error(name, format!("is not finite at element {at}"))),
        }
    }

    /// A tensor of this shape, which must be in the precision of `T`: a state resumes with exactly the numbers it was
    /// saved with.
    pub fn exact<T: Element>(&self, name: &str, shape: &[usize]) -> Result<Vec<T>> {
        let file = self.open()?;
        let (found, needed) = (self.view(&file, name, shape)?.dtype(), dtype::<T>());
        if found != needed {
            return Err(self.error(name, format!("has type {found:?}, but {needed:?} is needed")));
        }
        Ok(self.values(name, shape)?.to_vec::<T>())
    }

    fn view<'a>(&self, file: &SafeTensors<'a>, name: &str, shape: &[usize]) -> Result<TensorView<'a>> {
        let view = file.tensor(name).map_err(|_| self.error(name, "is missing"))?;
        if view.shape() != shape {
            return Err(self.error(name, format!("has shape {:?}, but {shape:?} is needed", view.shape())));
        }
        Ok(view)
    }
}

fn numbers<const N: usize, T>(bytes: &[u8], decode: impl Fn([u8; N]) -> T) -> Vec<T> {
    bytes.as_chunks::<N>().0.iter().map(|&chunk| decode(chunk)).collect()
}

impl Network {
    /// Writes the parameters and running statistics under their names as a safetensors file, atomically.
    ///
    /// ```
    /// use mercer_net::arch::Mlp;
    ///
    /// let folder = tempfile::tempdir()?;
    /// let path = folder.path().join("weights.safetensors");
    /// let trained = Mlp::new(2, &[4], 1).build(1)?;
    /// trained.save_safetensors(&path)?;
    /// let mut other = Mlp::new(2, &[4], 1).build(2)?;
    /// other.load_safetensors(&path)?;
    /// assert_eq!(other.parameters()[0].values(), trained.parameters()[0].values());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn save_safetensors(&self, path: impl AsRef<Path>) -> Result<()> {
        self.tensors().write(path.as_ref())
    }

    /// The same file in memory.
    pub fn to_safetensors_bytes(&self) -> Result<Vec<u8>> {
        self.tensors().to_bytes(None)
    }

    fn tensors(&self) -> Tensors {
        let mut tensors = Tensors::new(WEIGHTS);
        for parameter in self.parameters().iter().chain(self.statistics()) {
            match parameter.values() {
                Values::F32(values) => tensors.push(parameter.name(), parameter.shape(), values),
                Values::F64(values) => tensors.push(parameter.name(), parameter.shape(), values),
            }
        }
        tensors
    }

    /// Replaces the parameters by those of a safetensors file. The file must have exactly the network's parameters,
    /// with their shapes, and its digest must match if it has one. Otherwise the network is unchanged. Running
    /// statistics are replaced as well; the file has all of them or none.
    pub fn load_safetensors(&mut self, path: impl AsRef<Path>) -> Result<()> {
        let file = TensorFile::read(path.as_ref())?;
        file.verify()?;
        let read: Result<Vec<Values>> =
            self.parameters().iter().map(|parameter| file.values(parameter.name(), parameter.shape())).collect();
        let read = read?;
        let names = file.names()?;
        let own = || self.parameters().iter().chain(self.statistics());
        if let Some(name) = names.iter().find(|name| own().all(|p| p.name() != *name)) {
            return Err(file.error(name, "is not a parameter of the network"));
        }
        let statistics: Vec<Values> =
            match self.statistics().iter().any(|known| names.iter().any(|n| n == known.name())) {
                true => self
                    .statistics()
                    .iter()
                    .map(|known| file.values(known.name(), known.shape()))
                    .collect::<Result<_>>()?,
                false => self.statistics().iter().map(|known| known.values().clone()).collect(),
            };
        self.set_values(read);
        self.set_statistics(statistics);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arch::Mlp;

    /// Flips every byte once, in a bit that varies from byte to byte. The error names the file, and the network is
    /// unchanged.
    #[test]
    fn flipped_bits_of_weights_are_found() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("weights.safetensors");
        Mlp::new(2, &[3], 1).build(1).unwrap().save_safetensors(&path).unwrap();
        let bytes = std::fs::read(&path).unwrap();
        let mut network = Mlp::new(2, &[3], 1).build(2).unwrap();
        let before = network.parameters()[0].values().clone();
        for at in 0..bytes.len() {
            let mut flipped = bytes.clone();
            flipped[at] ^= 1 << (at % 8);
            std::fs::write(&path, flipped).unwrap();
            let error = network.load_safetensors(&path).expect_err("damaged").to_string();
            assert!(error.contains("weights.safetensors"), "byte {at}: {error}");
            assert_eq!(*network.parameters()[0].values(), before, "byte {at}");
        }
        std::fs::write(&path, &bytes).unwrap();
        network.load_safetensors(&path).unwrap();
        // Files of other programs have no digest.
        let views = network.parameters().iter().map(|parameter| {
            let bytes = parameter.values().to_vec::<f32>().iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<u8>>();
            (parameter.name().to_owned(), parameter.shape().to_vec(), bytes)
        });
        let views: Vec<_> = views.collect();
        let views =
            views.iter().map(|(name, shape, bytes)| (name, TensorView::new(Dtype::F32, shape.clone(), bytes).unwrap()));
        let foreign = HashMap::from([("format".to_owned(), "pt".to_owned())]);
        std::fs::write(&path, safetensors::serialize(views, Some(foreign)).unwrap()).unwrap();
        network.load_safetensors(&path).unwrap();
    }
}
