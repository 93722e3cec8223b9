//! Data sets in and out: NumPy's npy and npz, IDX, CSV, texts as tokens, folders of images, synthetic sets, and the
//! embedded handwritten digits.
//!
//! A user names data as `[name=]FILE[:KEY]`, a [`Source`]. Once opened, it is a [`Dataset`], which returns rows as
//! arrays of `f32` or `f64` without loading the whole file. A [`Preprocess`] defines the steps that are applied to
//! them. A label file becomes [`Labels`], numbered in the [`ClassOrder`] of the model they are compared with.
//! [`open_inputs`] decides which columns of a table are inputs.
//!
//! Files are not trusted. Sizes are checked against the file before anything is allocated, pickles are refused, and a
//! value that is not finite is an error that gives its position.
//!
//! ```
//! use mercer_data::{Existing, Source, write_npy};
//!
//! let folder = tempfile::tempdir()?;
//! let path = folder.path().join("x.npy");
//! write_npy(&path, &ndarray::array![[1.0, 2.0], [3.0, 4.0]], Existing::Refuse)?;
//! let data = Source::new(&path, None).open()?;
//! assert_eq!(data.shape(), [2, 2]);
//! assert_eq!(data.rows::<f32>(1..2)?, ndarray::array![[3.0, 4.0]].into_dyn());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod arrays;
mod batches;
mod block;
mod bytes;
mod classes;
mod columns;
mod dataset;
mod describe;
pub mod digits;
mod disk;
mod element;
mod error;
#[cfg(any(test, feature = "faults"))]
#[doc(hidden)]
pub mod faults;
mod files;
mod fingerprint;
pub mod folder;
mod format;
mod images;
mod inputs;
mod labels;
mod preprocess;
pub mod random;
mod results;
mod source;
mod stored;
mod subset;
pub mod synthetic;
mod tokens;
mod write;

pub use arrays::{NpyGrid, NpyWriter, write_npy};
pub use batches::{RowBatch, RowBatches, shuffled};
pub use block::RowBlock;
pub use classes::{ClassOrder, parse_classes};
pub use columns::{Columns, ImageShape, Reading};
pub use dataset::Dataset;
pub use describe::{Description, NpzEntry, Summary, describe, summarise};
pub use element::{DType, DataScalar, Storable};
pub use error::{DataError, Result};
pub use files::{open_regular, read_regular, read_regular_text};
pub use fingerprint::Fingerprint;
pub use format::Format;
pub use images::{ImageFolder, ImageWish, LONGEST_SIDE};
pub use inputs::{Names, OpenInputs, Role, TextColumn, Used, column_of_names, open_inputs, open_text};
pub use labels::{Classes, Labels, open_labelled, open_labels};
pub use preprocess::{Preprocess, Step};
pub use results::{Proof, RECORD, ResultRecord, Results};
pub use source::Source;
pub use tokens::{TokenPart, Tokenizer, Tokens};
pub use write::{Existing, write_atomic};
