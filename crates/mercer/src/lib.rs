//! A workbench for neural kernels: the library behind the `mercer` command.
//!
//! Every crate is a module here: [`net`] opens a trained network and runs it, [`kernel`] computes its tangent kernel,
//! [`spectral`] takes kernels apart, [`learn`] has machines on them and says how sure a network may be, [`report`] draws, [`data`]
//! reads and writes data sets larger than memory, [`linalg`] is the linear algebra below.
//!
//! ```
//! use mercer::prelude::*;
//! use mercer::net::graph::{Batch, GraphBuilder};
//! use mercer::net::network::Values;
//! use mercer::net::op::{Function, Unary};
//!
//! // A network of one primitive; `Network::from_onnx("model.onnx")` opens a trained one.
//! let mut builder = GraphBuilder::new();
//! let input = builder.input("x", [1, 2], Batch::axis(0));
//! let output = builder.node("size", Unary(Function::Abs), &[input])?;
//! builder.output("y", output);
//! let network = Network::from_graph(builder.finish(), Vec::<Values>::new())?;
//!
//! let data = Dataset::from_array("points", ndarray::array![[1.0, -2.0], [3.0, 4.0]].into_dyn().view())?;
//! let rows = data.rows::<f64>(0..2)?;
//! let values = rows.as_slice().expect("rows are contiguous");
//! let prediction = network.predict(&[(values, data.sample_shape())], 2, None, None)?;
//! assert_eq!(prediction.values, [1.0, 2.0, 3.0, 4.0]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod demo;
mod error;
pub mod info;
pub mod job;
mod json;
pub mod spec;
pub mod text;

pub use error::{AboutNetwork, Error, Hint, rendered};
pub use json::Json;
pub use mercer_data as data;
pub use mercer_kernel as kernel;
pub use mercer_learn as learn;
pub use mercer_linalg as linalg;
pub use mercer_net as net;
pub use mercer_report as report;
pub use mercer_run as run;
pub use mercer_spectral as spectral;

/// What most programs need: `use mercer::prelude::*`.
pub mod prelude {
    pub use mercer_data::{Dataset, Existing, Labels, Preprocess, Source, write_npy};
    pub use mercer_net::network::{Input, Parameter, Prediction};
    pub use mercer_net::{NetError, Network};
    pub use mercer_run::Context;
}
