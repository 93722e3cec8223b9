//! Threads for calls from Python.
//!
//! There is no global pool. A call takes a free pool or makes one, and gives it back. Threads do not survive a fork, so
//! pools are kept by process: a forked child makes its own. The list is only locked while Python's lock is held, so a
//! fork never finds it locked.

use rayon::{ThreadPool, ThreadPoolBuilder};
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, PoisonError};

/// Pools that no call uses, with the process they belong to.
static FREE: Mutex<Vec<(u32, Arc<ThreadPool>)>> = Mutex::new(Vec::new());

/// The number of threads of a call: as given, or `OMP_NUM_THREADS`, or one per core.
pub(crate) fn threads(given: Option<NonZeroUsize>) -> usize {
    let variable = || std::env::var("OMP_NUM_THREADS").ok()?.split(',').next()?.trim().parse::<NonZeroUsize>().ok();
    let cores = || std::thread::available_parallelism().ok();
    given.or_else(variable).or_else(cores).map_or(1, NonZeroUsize::get)
}

/// A free pool with this many threads, or a new one.
pub(crate) fn take(threads: usize) -> Result<Arc<ThreadPool>, rayon::ThreadPoolBuildError> {
    let process = std::process::id();
    let mut free = FREE.lock().unwrap_or_else(PoisonError::into_inner);
    // The threads of pools from before a fork are gone: dropping such a pool would wait for them.
    let (own, foreign) = std::mem::take(&mut *free).into_iter().partition(|(owner, _)| *owner == process);
    *free = own;
    std::mem::forget::<Vec<_>>(foreign);
    if let Some(at) = free.iter().position(|(_, pool)| pool.current_num_threads() == threads) {
        return Ok(free.swap_remove(at).1);
    }
    drop(free);
    let name = |index| format!("mercer-{index}");
    Ok(Arc::new(ThreadPoolBuilder::new().num_threads(threads).thread_name(name).build()?))
}

/// Gives a pool back for later calls.
pub(crate) fn give_back(pool: Arc<ThreadPool>) {
    FREE.lock().unwrap_or_else(PoisonError::into_inner).push((std::process::id(), pool));
}
