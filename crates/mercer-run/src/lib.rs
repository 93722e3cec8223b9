//! The context of a run: its memory limit, its threads, its listener, and its cancellation.
//!
//! A [`Context`] is passed down from the caller that starts the work to every long loop. Nothing in it is global: two
//! runs in one process have two contexts.

mod context;
mod groups;
mod memory;
pub mod names;
mod phases;

pub use context::{Cancelled, Context, Listener, NoThreads};
pub use memory::{PROCESS_NOISE, available, default_memory, peak_memory, resident_memory};
pub use phases::{Phase, Timed};
