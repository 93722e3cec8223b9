//! safetensors files: named arrays, written atomically, read with their shapes checked.

use crate::element::Element;
use crate::error::{NetError, Result};
use crate::network::{Network, Values};
use half::{bf16, f16};
use mercer_data::{Existing, write_atomic};
use safetensors::tensor::{Dtype, Metadata, SafeTensors, TensorView};
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// Arrays to be written as one safetensors file: what a run needs to go on.
#[derive(Debug, Default)]
pub struct Tensors {
    arrays: Vec<(String, Dtype, Vec<usize>, Vec<u8>)>,
    notes: HashMap<String, String>,
}

impl Tensors {
    /// Adds an array in the precision that it has.
    pub fn push<T: Element>(&mut self, name: impl Into<String>, shape: &[usize], values: &[T]) {
        let single = T::NAME == "f32";
        let mut bytes = Vec::with_capacity(values.len() * if single { 4 } else { 8 });
        for value in values {
            if single {
                bytes.extend_from_slice(&(value.wide() as f32).to_le_bytes());
            } else {
                bytes.extend_from_slice(&value.wide().to_le_bytes());
            }
        }
        let dtype = if single { Dtype::F32 } else { Dtype::F64 };
        self.arrays.push((name.into(), dtype, shape.to_vec(), bytes));
    }

    /// Text that goes into the header.
    pub fn note(&mut self, key: &str, text: String) {
        self.notes.insert(key.to_owned(), text);
    }

    /// Replaces a file atomically.
    pub fn write(&self, path: &Path) -> Result<()> {
        let refuse = |error| NetError::Setting(format!("{}: {error}", path.display()));
        let mut views = Vec::with_capacity(self.arrays.len());
        for (name, dtype, shape, bytes) in &self.arrays {
            views.push((name.as_str(), TensorView::new(*dtype, shape.clone(), bytes).map_err(refuse)?));
        }
        let notes = (!self.notes.is_empty()).then(|| self.notes.clone());
        let bytes = safetensors::serialize(views, notes).map_err(refuse)?;
        Ok(write_atomic(path, Existing::Replace, |writer| writer.write_all(&bytes))?)
    }
}

/// A safetensors file that was read. Nothing in it is trusted.
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

    /// A text of the header.
    pub fn note(&self, key: &str) -> Result<Option<String>> {
        let (_, header): (usize, Metadata) =
            SafeTensors::read_metadata(&self.bytes).map_err(|error| self.broken(error))?;
        Ok(header.metadata().as_ref().and_then(|notes| notes.get(key).cloned()))
    }

    /// The names of its tensors.
    pub fn names(&self) -> Result<Vec<String>> {
        Ok(self.open()?.names().into_iter().map(str::to_owned).collect())
    }

    pub(crate) fn error(&self, tensor: &str, reason: impl Into<String>) -> NetError {
        NetError::Tensor { path: self.path.clone(), tensor: tensor.to_owned(), reason: reason.into() }
    }

    /// A tensor of this shape, in the precision it has in the file (halves become single).
    pub fn values(&self, name: &str, shape: &[usize]) -> Result<Values> {
        let file = self.open()?;
        let view = file.tensor(name).map_err(|_| self.error(name, "is missing"))?;
        if view.shape() != shape {
            return Err(self.error(name, format!("has shape {:?}, {shape:?} is needed", view.shape())));
        }
        let data = view.data();
        let values = match view.dtype() {
            Dtype::F64 => Values::from_slice(&numbers(data, f64::from_le_bytes)),
            Dtype::F32 => Values::from_slice(&numbers(data, f32::from_le_bytes)),
            Dtype::F16 => Values::from_slice(&numbers(data, |bytes| f16::from_le_bytes(bytes).to_f32())),
            Dtype::BF16 => Values::from_slice(&numbers(data, |bytes| bf16::from_le_bytes(bytes).to_f32())),
            other => return Err(self.error(name, format!("holds {other:?}; F64, F32, F16 and BF16 can be read"))),
        };
        match values.to_vec::<f64>().iter().position(|x| !x.is_finite()) {
            None => Ok(values),
            Some(at) => Err(self.error(name, format!("is not finite at element {at}"))),
        }
    }
}

fn numbers<const N: usize, T>(bytes: &[u8], decode: impl Fn([u8; N]) -> T) -> Vec<T> {
    bytes.as_chunks::<N>().0.iter().map(|&chunk| decode(chunk)).collect()
}

impl Network {
    /// Writes the parameters under their names as a safetensors file, atomically.
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
        let mut tensors = Tensors::default();
        for parameter in self.parameters() {
            match parameter.values() {
                Values::F32(values) => tensors.push(parameter.name(), parameter.shape(), values),
                Values::F64(values) => tensors.push(parameter.name(), parameter.shape(), values),
            }
        }
        tensors.write(path.as_ref())
    }

    /// Replaces the parameters by those of a safetensors file. It has to have all of them, with their shapes, and no
    /// others; if it does not, the network stays as it is.
    pub fn load_safetensors(&mut self, path: impl AsRef<Path>) -> Result<()> {
        let file = TensorFile::read(path.as_ref())?;
        let read: Result<Vec<Values>> =
            self.parameters().iter().map(|parameter| file.values(parameter.name(), parameter.shape())).collect();
        let read = read?;
        if let Some(name) = file.names()?.iter().find(|name| self.parameters().iter().all(|p| p.name() != *name)) {
            return Err(file.error(name, "is not a parameter of the network"));
        }
        self.set_values(read);
        Ok(())
    }
}
