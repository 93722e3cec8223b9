//! Surrogates: kernel machines that stand in for a network, shared by the jobs that explain and audit.
//!
//! [`Classified`] is a network with its training samples and their classes, [`KernelRows`] are the kernel values or features
//! of those samples, and [`Surrogate`] is a machine fitted on them.

mod classified;
mod fit;
mod ids;
mod needs;
mod rows;
mod settings;
mod stores;

pub(crate) use classified::{Classified, TestSet, classes_of};
pub(crate) use fit::{CHOSEN_AMONG, Fitted, ROUGH, ROUGH_STEPS, Surrogate, SurrogateForm};
pub(crate) use ids::{Ids, names_in};
pub(crate) use needs::{check_memory, needed_bytes};
pub(crate) use rows::KernelRows;
pub use settings::{FitTo, SurrogateMachine, SurrogateSpec};
pub(crate) use stores::KernelStores;
