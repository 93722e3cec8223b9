//! An open array of samples that is read in rows.

use std::borrow::Cow;
use std::io::Write;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use mercer_run::Context;
use ndarray::{ArrayD, ArrayViewD, IxDyn};

use crate::arrays::header;
use crate::bytes::Bytes;
use crate::columns::Chosen;
use crate::element::{ByteOrder, DType, DataScalar, Storable};
use crate::error::{DataError, Result, io_error};
use crate::format::npy::parse_descr;
use crate::format::{self, Format, Opened, table};
use crate::images::{ImageFolder, ImageWish};
use crate::preprocess::Preprocess;
use crate::source::Source;
use crate::stored::{Layout, Stored, checked_count, unravel};
use crate::subset::Subset;

/// An array whose first axis counts samples, open for reading and possibly far larger than memory.
///
/// Rows are converted, checked to be finite and preprocessed as they are read. Cloning is cheap: clones share the
/// bytes, and any number of threads may read at once.
///
/// ```
/// use mercer_data::{Dataset, Preprocess};
/// use ndarray::array;
///
/// let pixels = Dataset::from_array("pixels", array![[0.0, 51.0], [102.0, 255.0]].into_dyn().view())?;
/// let pixels = pixels.with_preprocess(Preprocess::new().scale(1.0 / 255.0))?;
/// assert_eq!(pixels.n_samples(), 2);
/// assert_eq!(pixels.rows::<f32>(1..2)?, array![[0.4, 1.0]].into_dyn());
/// # Ok::<(), mercer_data::DataError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Dataset {
    name: String,
    place: String,
    format: Format,
    stored: Arc<Stored>,
    is_integer: bool,
    columns: Vec<String>,
    named: bool,
    class_names: Option<Vec<String>>,
    /// The names of the stored rows.
    row_names: Option<Arc<Vec<String>>>,
    preprocess: Preprocess,
    /// The rows, if they are not all.
    subset: Option<Arc<Subset>>,
    /// After preprocessing, the samples first.
    shape: Vec<usize>,
}

impl Dataset {
    /// Opens a source. Also available as [`Source::open`].
    pub fn open(source: &Source) -> Result<Self> {
        if source.path().is_dir() {
            let folder = ImageFolder::list(source.path())?;
            return Ok(folder.open(ImageWish::default(), &Context::new())?.0.with_name(&source.name()));
        }
        Ok(Self::from_opened(source, format::open(source)?))
    }

    /// Opens chosen columns of a table.
    pub(crate) fn open_table(source: &Source, chosen: &Chosen, gzipped: bool) -> Result<Self> {
        Ok(Self::from_opened(source, table::open_columns(source.path(), chosen, gzipped)?))
    }

    fn from_opened(source: &Source, opened: Opened) -> Self {
        Self {
            name: source.name(),
            place: source.place(),
            format: opened.format,
            shape: opened.stored.shape().to_vec(),
            stored: Arc::new(opened.stored),
            is_integer: opened.is_integer,
            columns: opened.columns,
            named: opened.named,
            class_names: opened.class_names,
            row_names: None,
            preprocess: Preprocess::new(),
            subset: None,
        }
    }

    /// A data set from an array in memory, so that generated data are handled like files.
    pub fn from_array<T: Storable>(name: &str, array: ArrayViewD<'_, T>) -> Result<Self> {
        let mut bytes = Vec::with_capacity(array.len() * size_of::<T>());
        array.iter().for_each(|value| value.write_to(&mut bytes));
        let shape = array.shape().to_vec();
        let layout = Layout { dtype: T::DTYPE, order: ByteOrder::Little, shape, fortran: false };
        Stored::new(name, layout, Bytes::Owned(bytes)).map(|stored| Self::from_stored(name, Format::Memory, stored))
    }

    /// A data set of numbers that the calling program holds; they are read where they are, without a copy. The element
    /// type is written as in NumPy's files, such as `<f4`. `fortran`: the first index varies fastest.
    ///
    /// ```
    /// use mercer_data::Dataset;
    ///
    /// let columns: Vec<u8> = vec![1, 2, 3, 10, 20, 30];
    /// let set = Dataset::from_memory("pixels", "|u1", &[3, 2], true, columns)?;
    /// assert_eq!(set.rows::<f32>(1..2)?.as_slice(), Some(&[2.0, 20.0][..]));
    /// # Ok::<(), mercer_data::DataError>(())
    /// ```
    ///
    /// # Errors
    /// For an element type that is not a real number, and if the number of bytes does not agree with type and shape.
    pub fn from_memory(
        name: &str,
        element: &str,
        shape: &[usize],
        fortran: bool,
        memory: impl AsRef<[u8]> + Send + Sync + 'static,
    ) -> Result<Self> {
        let (dtype, order) = parse_descr(name, element)?;
        let layout = Layout { dtype, order, shape: shape.to_vec(), fortran };
        let stored = Stored::new(name, layout, Bytes::Shared(Box::new(memory)))?;
        Ok(Self::from_stored(name, Format::Memory, stored))
    }

    pub(crate) fn from_stored(name: &str, format: Format, stored: Stored) -> Self {
        Self {
            name: name.to_owned(),
            place: name.to_owned(),
            format,
            is_integer: stored.dtype().is_integer(),
            shape: stored.shape().to_vec(),
            stored: Arc::new(stored),
            columns: Vec::new(),
            named: false,
            class_names: None,
            row_names: None,
            preprocess: Preprocess::new(),
            subset: None,
        }
    }

    /// Some of the samples, in the given order. A sample may appear twice. Nothing is copied: the subset reads the same
    /// bytes. [`Labels::select`](crate::Labels::select) takes the labels of the same rows.
    ///
    /// ```
    /// use mercer_data::Dataset;
    /// use ndarray::array;
    ///
    /// let set = Dataset::from_array("set", array![[1.0], [2.0], [3.0]].into_dyn().view())?;
    /// let some = set.subset(&[2, 0])?;
    /// assert_eq!(some.read::<f64>()?, array![[3.0], [1.0]].into_dyn());
    /// # Ok::<(), mercer_data::DataError>(())
    /// ```
    ///
    /// # Errors
    /// [`DataError::Row`] for a row that does not exist.
    pub fn subset(&self, rows: &[usize]) -> Result<Self> {
        let n_samples = self.n_samples();
        if let Some(&row) = rows.iter().find(|&&row| row >= n_samples) {
            return Err(DataError::Row { place: self.place.clone(), row, n_samples });
        }
        let stored = |row: &usize| self.subset.as_ref().map_or(*row, |subset| subset.rows[*row]);
        let with_rows = |shape: &[usize]| std::iter::once(rows.len()).chain(shape[1..].iter().copied()).collect();
        let subset = Subset { rows: rows.iter().map(stored).collect(), shape: with_rows(self.stored_shape()) };
        checked_count(&self.place, &subset.shape)?;
        let shape: Vec<usize> = with_rows(&self.shape);
        checked_count(&self.place, &shape)?;
        // No file holds exactly these samples.
        Ok(Self { subset: Some(Arc::new(subset)), shape, format: Format::Memory, ..self.clone() })
    }

    /// Gives back the memory of a large mapped file whose rows have been read. Pages of a file count as memory of the process
    /// once they are read, so a pass over a file larger than the memory limit releases them as it goes. Rows can be read
    /// again at any time.
    pub fn release(&self) {
        self.stored.release();
    }

    /// The same data with these preprocessing steps, which replace any earlier ones.
    pub fn with_preprocess(mut self, preprocess: Preprocess) -> Result<Self> {
        let mut shape = preprocess.sample_shape(self.stored.sample_shape())?;
        shape.insert(0, self.n_samples());
        checked_count(&self.place, &shape)?;
        self.shape = shape;
        self.preprocess = preprocess;
        Ok(self)
    }

    /// The same data under another name.
    pub(crate) fn with_name(self, name: &str) -> Self {
        Self { name: name.to_owned(), ..self }
    }

    /// The same codes as a column of texts.
    pub(crate) fn with_class_names(self, names: Vec<String>) -> Self {
        Self { class_names: Some(names), ..self }
    }

    /// The same data with a name per stored row.
    pub(crate) fn with_row_names(self, names: Vec<String>) -> Self {
        Self { row_names: Some(Arc::new(names)), ..self }
    }

    /// The names of the samples, if their source gives them: the files of a folder of images.
    pub fn row_names(&self) -> Option<Vec<String>> {
        let names = self.row_names.as_ref()?;
        Some(match &self.subset {
            Some(subset) => subset.rows.iter().map(|&row| names[row].clone()).collect(),
            None => names.to_vec(),
        })
    }

    /// The preprocessing steps.
    pub fn preprocess(&self) -> &Preprocess {
        &self.preprocess
    }

    /// The name the user gave, or else the file and key.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The file and key, as errors show them.
    pub fn place(&self) -> &str {
        &self.place
    }

    /// The format of the file; [`Format::Memory`] for a subset.
    pub fn format(&self) -> Format {
        self.format
    }

    /// The type of the stored elements.
    pub fn dtype(&self) -> DType {
        self.stored.dtype()
    }

    /// Whether the stored type is an integer type; for CSV, whether every number is written as an integer.
    pub fn is_integer(&self) -> bool {
        self.is_integer
    }

    /// The shape, with the samples as first axis, after preprocessing.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// The shape before preprocessing.
    pub fn stored_shape(&self) -> &[usize] {
        self.subset.as_ref().map_or(self.stored.shape(), |subset| &subset.shape)
    }

    /// The shape of one sample, after preprocessing.
    pub fn sample_shape(&self) -> &[usize] {
        &self.shape[1..]
    }

    /// The number of samples.
    pub fn n_samples(&self) -> usize {
        self.shape[0]
    }

    /// The names of the columns, if this is a CSV file.
    pub fn columns(&self) -> &[String] {
        &self.columns
    }

    /// Whether the names of the columns are from a header, and not their numbers.
    pub fn has_header(&self) -> bool {
        self.named
    }

    /// Whether its values are names, as those of a column of texts.
    pub fn has_names(&self) -> bool {
        self.class_names.is_some()
    }

    /// The texts behind the codes, if this is a text column of a CSV file. Such a column can only be used as labels.
    pub(crate) fn class_names(&self) -> Option<&[String]> {
        self.class_names.as_deref()
    }

    /// Reads consecutive samples.
    ///
    /// NaN and infinities are errors, as are integers that `T` cannot hold exactly; both name sample and position.
    pub fn rows<T: DataScalar>(&self, rows: Range<usize>) -> Result<ArrayD<T>> {
        self.read_runs(&[rows])
    }

    /// Reads samples in the given order. A sample may appear twice.
    pub fn select<T: DataScalar>(&self, indices: &[usize]) -> Result<ArrayD<T>> {
        let runs: Vec<_> = indices.iter().map(|&row| row..row.saturating_add(1)).collect();
        self.read_runs(&runs)
    }

    /// Reads everything. Only for data that are known to be small.
    pub fn read<T: DataScalar>(&self) -> Result<ArrayD<T>> {
        self.rows(0..self.n_samples())
    }

    fn read_runs<T: DataScalar>(&self, runs: &[Range<usize>]) -> Result<ArrayD<T>> {
        if self.class_names.is_some() {
            let (place, dtype) = (self.place.clone(), "text".to_owned());
            return Err(DataError::ElementType { place, dtype, hint: "such a column can only be used as labels" });
        }
        let runs = &*self.stored_runs(runs)?;
        let values: Vec<T> = self.values_of(runs)?;
        let sample_len = self.stored.sample_len();
        if !self.dtype().is_integer()
            && let Some(index) = values.iter().position(|value| !value.is_finite())
        {
            return Err(self.not_finite(nth_row(runs, index / sample_len), index % sample_len));
        }
        let n_rows: usize = runs.iter().map(Range::len).sum();
        let array = to_array(&self.place, n_rows, self.stored.sample_shape(), values)?;
        if self.preprocess.is_empty() {
            return Ok(array);
        }
        let array = self.preprocess.apply(array)?;
        // Scaling may overflow where the data did not.
        match array.iter().enumerate().find(|(_, value)| !value.is_finite()) {
            None => Ok(array),
            Some((index, value)) => {
                let sample_len = array.len() / n_rows;
                Err(DataError::NotFinite {
                    place: self.place.clone(),
                    row: nth_row(runs, index / sample_len),
                    position: unravel(index % sample_len, self.sample_shape()),
                    value: value.wide(),
                    stage: " after preprocessing",
                })
            }
        }
    }

    /// Writes the stored array, before preprocessing, as `.npy`: with the same type, row-major, little-endian.
    pub(crate) fn write_stored(&self, writer: &mut dyn Write) -> Result<()> {
        const BLOCK: usize = 1 << 20;
        let failed = || io_error(&self.place);
        let header = header(Path::new(&self.place), self.dtype(), self.stored_shape(), 0)?;
        writer.write_all(&header).map_err(failed())?;
        let row = self.stored.sample_len() * self.dtype().size();
        let step = (BLOCK / row.max(1)).max(1);
        for start in (0..self.n_samples()).step_by(step) {
            let rows = start..(start + step).min(self.n_samples());
            for run in self.stored_runs(&[rows])?.iter() {
                writer.write_all(&self.stored.plain(run.clone())).map_err(failed())?;
            }
        }
        Ok(())
    }

    /// The size of the stored array in bytes.
    pub fn stored_bytes(&self) -> u64 {
        (self.n_samples() * self.stored.sample_len() * self.dtype().size()) as u64
    }

    /// The stored numbers, neither checked nor preprocessed.
    pub(crate) fn stored_values<T: DataScalar>(&self, runs: &[Range<usize>]) -> Result<Vec<T>> {
        self.values_of(&self.stored_runs(runs)?)
    }

    /// Checks that rows exist, and finds them in the stored array.
    fn stored_runs<'a>(&self, runs: &'a [Range<usize>]) -> Result<Cow<'a, [Range<usize>]>> {
        let n_samples = self.n_samples();
        if let Some(run) = runs.iter().find(|run| run.end > n_samples) {
            let row = run.start.max(n_samples);
            return Err(DataError::Row { place: self.place.clone(), row, n_samples });
        }
        Ok(self.subset.as_ref().map_or(Cow::Borrowed(runs), |subset| Cow::Owned(subset.stored(runs))))
    }

    fn values_of<T: DataScalar>(&self, runs: &[Range<usize>]) -> Result<Vec<T>> {
        let sample_len = self.stored.sample_len();
        let n_rows = runs.iter().fold(0_usize, |sum, run| sum.saturating_add(run.len()));
        let n_values = n_rows.saturating_mul(sample_len);
        let mut values = Vec::new();
        values.try_reserve_exact(n_values).map_err(|_| DataError::Memory {
            place: self.place.clone(),
            bytes: n_values.saturating_mul(size_of::<T>()),
        })?;
        for run in runs.iter().filter(|run| !run.is_empty()) {
            self.stored.read(run.clone(), &mut values).map_err(|inexact| DataError::Inexact {
                place: self.place.clone(),
                row: nth_row(runs, inexact.index / sample_len),
                position: unravel(inexact.index % sample_len, self.stored.sample_shape()),
                value: inexact.value,
                element: T::NAME,
            })?;
        }
        Ok(values)
    }

    /// Adds what the file holds where a value that is not finite was read.
    fn not_finite(&self, row: usize, index: usize) -> DataError {
        let mut values: Vec<f64> = Vec::new();
        let value = match self.stored.read(row..row + 1, &mut values) {
            Ok(()) => values[index],
            Err(_) => f64::NAN,
        };
        let position = unravel(index, self.stored.sample_shape());
        let stage = if value.is_finite() { ", too large for the type it is read as" } else { "" };
        DataError::NotFinite { place: self.place.clone(), row, position, value, stage }
    }
}

/// The `nth` row when these ranges of rows are read one after the other.
fn nth_row(runs: &[Range<usize>], mut nth: usize) -> usize {
    for run in runs {
        if nth < run.len() {
            return run.start + nth;
        }
        nth -= run.len();
    }
    nth
}

fn to_array<T>(place: &str, n_rows: usize, sample_shape: &[usize], values: Vec<T>) -> Result<ArrayD<T>> {
    let shape: Vec<usize> = std::iter::once(n_rows).chain(sample_shape.iter().copied()).collect();
    ArrayD::from_shape_vec(IxDyn(&shape), values).map_err(|_| DataError::TooLarge { place: place.to_owned(), shape })
}
