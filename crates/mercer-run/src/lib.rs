//! The context of a run: its memory limit, its threads, its listener, and its cancellation.
//!
//! A [`Context`] is passed down from the caller that starts the work to every long loop. Nothing in it is global: two
//! runs in one process have two contexts.
//!
//! ```
//! use mercer_run::{Cancelled, Context};
//!
//! let context = Context::new().with_memory(1 << 30);
//! let sum = |n: usize| -> Result<usize, Cancelled> {
//!     let _phase = context.phase("adding");
//!     (0..n).try_fold(0, |sum, next| context.check().map(|()| sum + next))
//! };
//! assert_eq!(sum(5)?, 10);
//! context.cancel();
//! assert!(sum(5).is_err());
//! # Ok::<(), Cancelled>(())
//! ```

mod context;
mod groups;
mod memory;
pub mod names;
mod phases;

pub use context::{Cancelled, Context, Listener, NoThreads};
pub use memory::{PROCESS_NOISE, available, default_memory, peak_memory, resident_memory, resident_memory_roughly};
pub use phases::{Phase, Timed};
