//! How long calls tell how far they are, and learn that they should stop.

use std::sync::atomic::{AtomicBool, Ordering};

/// The other end of a long computation: hears how far it is, and may call it off.
///
/// ```
/// use mercer_net::progress::{Progress, Silent};
///
/// let handle = Silent::default();
/// handle.report(1, 10, "epoch 1");
/// assert!(!handle.cancelled());
/// handle.cancel();
/// assert!(handle.cancelled());
/// ```
pub trait Progress: Sync {
    /// `done` of `total` units of work are finished; `message` says what they are.
    fn report(&self, done: usize, total: usize, message: &str);

    /// Whether to stop at the next opportunity. Long calls ask often and leave resumable state.
    fn cancelled(&self) -> bool {
        false
    }
}

/// Shows nothing; can be cancelled from another thread.
#[derive(Debug, Default)]
pub struct Silent {
    cancelled: AtomicBool,
}

impl Silent {
    /// Asks the computation to stop.
    pub fn cancel(&self) {
        self.cancelled.store(true, Ordering::Relaxed);
    }
}

impl Progress for Silent {
    fn report(&self, _: usize, _: usize, _: &str) {}

    fn cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }
}
