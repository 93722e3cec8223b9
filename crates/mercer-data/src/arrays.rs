//! Arrays as `.npy` files, written at once, in blocks of rows, or in rectangles.

use std::io::{self, Seek, SeekFrom, Write};
use std::marker::PhantomData;
use std::path::Path;

use ndarray::{ArrayBase, ArrayView, Data, Dimension};

use crate::element::{DType, Storable};
use crate::error::{DataError, Result, io_error};
use crate::format::npy;
use crate::write::{Existing, Output, write_atomic};

/// Writes an array as `.npy`, atomically.
pub fn write_npy<T: Storable, S: Data<Elem = T>, D: Dimension>(
    path: &Path,
    array: &ArrayBase<S, D>,
    existing: Existing,
) -> Result<()> {
    let header = header(path, T::DTYPE, array.shape(), 0)?;
    write_atomic(path, existing, |writer| write_whole(writer, &header, array))
}

/// An array and its header.
pub(crate) fn write_whole<T: Storable, S: Data<Elem = T>, D: Dimension>(
    writer: &mut dyn Write,
    header: &[u8],
    array: &ArrayBase<S, D>,
) -> io::Result<()> {
    writer.write_all(header)?;
    write_elements(writer, array.iter().copied())
}

/// Writes an array as `.npy` in blocks of rows, for results larger than memory.
///
/// The number of rows need not be known in advance. [`finish`](Self::finish) fills it in and gives the file its name.
/// Without that call there is no file.
///
/// ```
/// use mercer_data::{Existing, NpyWriter, Source};
/// use ndarray::array;
///
/// let folder = tempfile::tempdir()?;
/// let path = folder.path().join("predictions.npy");
/// let mut writer = NpyWriter::<f32>::create(&path, &[2], Existing::Refuse)?;
/// writer.append(array![[1.0, 2.0]].view())?;
/// writer.append(array![[3.0, 4.0], [5.0, 6.0]].view())?;
/// writer.finish()?;
/// assert_eq!(Source::new(&path, None).open()?.shape(), [3, 2]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct NpyWriter<T> {
    file: Output,
    sample_shape: Vec<usize>,
    n_rows: usize,
    header: usize,
    element: PhantomData<T>,
}

impl<T: Storable> NpyWriter<T> {
    /// Begins a file whose rows have this shape; an empty shape makes the array one-dimensional.
    pub fn create(path: &Path, sample_shape: &[usize], existing: Existing) -> Result<Self> {
        Self::begin(Output::create(path, existing)?, sample_shape)
    }

    pub(crate) fn begin(mut file: Output, sample_shape: &[usize]) -> Result<Self> {
        // Leave room for the longest number of rows, so that the header can be rewritten at the end.
        let header = header(file.path(), T::DTYPE, &whole(usize::MAX, sample_shape), 0)?;
        let begun = file.writer.write_all(&header);
        begun.map_err(io_error(file.path().display()))?;
        let (sample_shape, header) = (sample_shape.to_vec(), header.len());
        Ok(Self { file, sample_shape, n_rows: 0, header, element: PhantomData })
    }

    /// Adds rows; the first axis of the view counts them.
    pub fn append<D: Dimension>(&mut self, rows: ArrayView<'_, T, D>) -> Result<()> {
        match rows.shape().split_first() {
            Some((n_rows, sample_shape)) if sample_shape == self.sample_shape => {
                write_elements(&mut self.file.writer, rows.iter().copied())
                    .map_err(io_error(self.file.path().display()))?;
                self.n_rows += n_rows;
                Ok(())
            }
            _ => Err(DataError::Shape {
                place: self.file.path().display().to_string(),
                shape: rows.shape().to_vec(),
                reason: format!("rows of shape {:?} were expected", self.sample_shape),
            }),
        }
    }

    /// The rows written so far.
    pub fn n_rows(&self) -> usize {
        self.n_rows
    }

    /// Completes the file and gives it its name.
    pub fn finish(mut self) -> Result<()> {
        let shape = whole(self.n_rows, &self.sample_shape);
        let header = header(self.file.path(), T::DTYPE, &shape, self.header)?;
        let writer = &mut self.file.writer;
        let rewritten = writer.seek(SeekFrom::Start(0)).and_then(|_| writer.write_all(&header));
        rewritten.map_err(io_error(self.file.path().display()))?;
        self.file.commit()
    }
}

/// Writes an array as `.npy` in rectangles, in any order, for matrices larger than memory.
///
/// Without [`finish`](Self::finish) there is no file.
///
/// ```
/// use mercer_data::{Existing, NpyGrid, Source};
///
/// let folder = tempfile::tempdir()?;
/// let path = folder.path().join("matrix.npy");
/// let mut grid = NpyGrid::<f32>::create(&path, &[2, 3], 3, Existing::Refuse)?;
/// grid.write(0, 1, 2, &[2.0, 3.0, 5.0, 6.0])?;
/// grid.write(0, 0, 1, &[1.0, 4.0])?;
/// grid.finish()?;
/// let matrix = Source::new(&path, None).open()?.read::<f32>()?;
/// assert_eq!(matrix, ndarray::array![[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]].into_dyn());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct NpyGrid<T> {
    file: Output,
    columns: usize,
    header: usize,
    element: PhantomData<T>,
}

impl<T: Storable> NpyGrid<T> {
    /// Begins a file of this shape, treated as a row-major matrix with this many columns.
    pub fn create(path: &Path, shape: &[usize], columns: usize, existing: Existing) -> Result<Self> {
        Self::begin(Output::create(path, existing)?, shape, columns)
    }

    pub(crate) fn begin(mut file: Output, shape: &[usize], columns: usize) -> Result<Self> {
        let path = file.path().to_owned();
        let too_large = || DataError::TooLarge { place: path.display().to_string(), shape: shape.to_vec() };
        let header = header(&path, T::DTYPE, shape, 0)?;
        let size = shape.iter().try_fold(T::DTYPE.size(), |size, &length| size.checked_mul(length));
        let size = size.and_then(|size| size.checked_add(header.len())).ok_or_else(too_large)?;
        let begun = file.writer.write_all(&header).and_then(|()| file.writer.flush());
        let sized = begun.and_then(|()| file.writer.get_mut().set_len(size as u64));
        sized.map_err(io_error(path.display()))?;
        Ok(Self { file, columns, header: header.len(), element: PhantomData })
    }

    /// Writes rows of `width` numbers, starting at this row and column.
    pub fn write(&mut self, row: usize, column: usize, width: usize, rectangle: &[T]) -> Result<()> {
        let place = self.file.path().display().to_string();
        for (at, line) in rectangle.chunks(width.max(1)).enumerate() {
            let element = (row + at) * self.columns + column;
            let offset = self.header + element * T::DTYPE.size();
            let writer = &mut self.file.writer;
            let written =
                writer.seek(SeekFrom::Start(offset as u64)).and_then(|_| write_elements(writer, line.iter().copied()));
            written.map_err(io_error(&place))?;
        }
        Ok(())
    }

    /// Completes the file and gives it its name.
    pub fn finish(self) -> Result<()> {
        self.file.commit()
    }
}

fn whole(n_rows: usize, sample_shape: &[usize]) -> Vec<usize> {
    std::iter::once(n_rows).chain(sample_shape.iter().copied()).collect()
}

fn write_elements<T: Storable>(writer: &mut (impl Write + ?Sized), values: impl Iterator<Item = T>) -> io::Result<()> {
    const BLOCK: usize = 64 << 10;
    let mut block = Vec::with_capacity(BLOCK + 8);
    for value in values {
        value.write_to(&mut block);
        if block.len() >= BLOCK {
            writer.write_all(&block)?;
            block.clear();
        }
    }
    writer.write_all(&block)
}

/// A header of at least `shortest` bytes. As in NumPy, it is padded to a multiple of 64 and ends in a newline.
pub(crate) fn header(path: &Path, dtype: DType, shape: &[usize], shortest: usize) -> Result<Vec<u8>> {
    const PREFIX: usize = 10;
    let lengths = shape.iter().map(|length| format!("{length},")).collect::<Vec<_>>().join(" ");
    let descr = npy::descr(dtype);
    let text = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({lengths}), }}");
    let length = (PREFIX + text.len() + 1).max(shortest).next_multiple_of(64);
    let too_long = |_| DataError::TooLarge { place: path.display().to_string(), shape: shape.to_vec() };
    let after_prefix = u16::try_from(length - PREFIX).map_err(too_long)?;
    let mut header = [npy::MAGIC.as_slice(), &[1, 0], &after_prefix.to_le_bytes(), text.as_bytes()].concat();
    header.resize(length - 1, b' ');
    header.push(b'\n');
    Ok(header)
}
