//! The resources of a run and the listener that follows it.

use crate::memory::default_memory;
use crate::phases::{Phase, Phases, Timed};
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Receives the progress and the notes of a long computation.
///
/// Every method does nothing by default.
pub trait Listener: Send + Sync {
    /// `done` of `total` units of work are finished; `message` says what they are.
    fn progress(&self, done: usize, total: usize, message: &str) {
        let _ = (done, total, message);
    }

    /// A phase of the work begins.
    fn phase(&self, name: &str) {
        let _ = name;
    }

    /// Something the user should know that is not an error.
    fn note(&self, text: &str) {
        let _ = text;
    }

    /// Whether to stop. This is called often. To stop a run from elsewhere, use [`Context::cancel`].
    fn cancelled(&self) -> bool {
        false
    }
}

/// A listener that ignores everything.
struct Nobody;

impl Listener for Nobody {}

/// The work was cancelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("interrupted")]
pub struct Cancelled;

/// The requested threads could not be started.
#[derive(Debug, thiserror::Error)]
#[error("could not start {threads} threads: {reason}")]
pub struct NoThreads {
    /// How many were requested.
    pub threads: usize,
    /// The system's reason.
    pub reason: String,
}

/// The state shared by all clones of a context.
struct Shared {
    cancelled: AtomicBool,
    listener: Arc<dyn Listener>,
    phases: Phases,
    notes: Mutex<Vec<String>>,
    pool: Option<Arc<rayon::ThreadPool>>,
}

impl Shared {
    fn new(listener: Arc<dyn Listener>, pool: Option<Arc<rayon::ThreadPool>>) -> Self {
        let (phases, notes) = (Phases::default(), Mutex::default());
        Self { cancelled: AtomicBool::new(false), listener, phases, notes, pool }
    }
}

/// Passes on whether a run is cancelled, and nothing else.
struct Muted(Context);

impl Listener for Muted {
    fn progress(&self, _: usize, _: usize, _: &str) {}

    fn cancelled(&self) -> bool {
        self.0.cancelled()
    }
}

/// The context of a run. Clones are handles to the same run.
///
/// ```
/// use mercer_run::Context;
///
/// let context = Context::new().with_memory(1 << 30);
/// assert_eq!(context.memory(), 1 << 30);
/// assert!(context.check().is_ok());
/// context.cancel();
/// assert!(context.clone().check().is_err());
/// ```
#[derive(Clone)]
pub struct Context {
    memory: Option<usize>,
    shared: Arc<Shared>,
}

impl Default for Context {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Context {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cancelled = self.shared.cancelled.load(Ordering::Relaxed);
        formatter.debug_struct("Context").field("memory", &self.memory).field("cancelled", &cancelled).finish()
    }
}

impl Context {
    /// A context without a listener, on the caller's threads, within the free memory.
    pub fn new() -> Self {
        Self::listening(Nobody)
    }

    /// A context with this listener.
    pub fn listening(listener: impl Listener + 'static) -> Self {
        Self { memory: None, shared: Arc::new(Shared::new(Arc::new(listener), None)) }
    }

    /// A new run with the same listener and memory, and with its own threads for work inside
    /// [`install`](Self::install).
    ///
    /// # Errors
    /// [`NoThreads`] if the system cannot start them.
    pub fn with_threads(self, threads: usize) -> Result<Self, NoThreads> {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
        let pool = pool.map_err(|error| NoThreads { threads, reason: error.to_string() })?;
        Ok(self.with_pool(Arc::new(pool)))
    }

    /// A new run with the same listener and memory on the threads of a pool that the caller keeps.
    pub fn with_pool(self, pool: Arc<rayon::ThreadPool>) -> Self {
        let listener = Arc::clone(&self.shared.listener);
        Self { memory: self.memory, shared: Arc::new(Shared::new(listener, Some(pool))) }
    }

    /// A part of this run that tells nothing: it is cancelled with the run, and its progress, notes and phases are
    /// dropped.
    pub fn quiet(&self) -> Self {
        let shared = Shared::new(Arc::new(Muted(self.clone())), self.shared.pool.clone());
        Self { memory: self.memory, shared: Arc::new(shared) }
    }

    /// The same run, limited to this many bytes. Everything the process holds counts.
    pub fn with_memory(&self, bytes: usize) -> Self {
        Self { memory: Some(bytes), shared: Arc::clone(&self.shared) }
    }

    /// The same run with the memory that is left when the caller holds this many bytes.
    pub fn with_reserved(&self, bytes: usize) -> Self {
        self.with_memory(self.memory().saturating_sub(bytes))
    }

    /// The bytes that the run may use: the promised limit, or [`default_memory`] at this moment.
    pub fn memory(&self) -> usize {
        self.memory.unwrap_or_else(default_memory)
    }

    /// The limit that the user was promised, if there is one.
    pub fn promised_memory(&self) -> Option<usize> {
        self.memory
    }

    /// Runs the work on the threads of this context.
    pub fn install<R: Send>(&self, work: impl FnOnce() -> R + Send) -> R {
        match &self.shared.pool {
            Some(pool) => pool.install(work),
            None => work(),
        }
    }

    /// `done` of `total` units of work are finished; `message` says what they are.
    pub fn report(&self, done: usize, total: usize, message: &str) {
        self.shared.listener.progress(done, total, message);
    }

    /// Something the user should know that is not an error.
    pub fn note(&self, text: &str) {
        self.shared.notes.lock().unwrap_or_else(PoisonError::into_inner).push(text.to_owned());
        self.shared.listener.note(text);
    }

    /// The notes so far.
    pub fn notes(&self) -> Vec<String> {
        self.shared.notes.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Begins a phase of the work. It ends when the result is dropped. Phases of the same name add up.
    pub fn phase(&self, name: &'static str) -> Phase<'_> {
        self.shared.listener.phase(name);
        self.shared.phases.begin(name)
    }

    /// Adds seconds that were measured elsewhere to a phase.
    pub fn record_phase(&self, name: &'static str, seconds: f64) {
        self.shared.phases.add(name, seconds);
    }

    /// The phases so far, in the order in which they began.
    pub fn phases(&self) -> Vec<Timed> {
        self.shared.phases.all()
    }

    /// Asks the work to stop.
    pub fn cancel(&self) {
        self.shared.cancelled.store(true, Ordering::Relaxed);
    }

    /// Whether to stop at the next opportunity. Long calls ask often, and leave a state that can be resumed.
    pub fn cancelled(&self) -> bool {
        self.shared.cancelled.load(Ordering::Relaxed) || self.shared.listener.cancelled()
    }

    /// Returns an error once the work is cancelled.
    ///
    /// # Errors
    /// [`Cancelled`].
    pub fn check(&self) -> Result<(), Cancelled> {
        if self.cancelled() { Err(Cancelled) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Heard(Arc<Mutex<Vec<String>>>);

    impl Listener for Heard {
        fn progress(&self, done: usize, total: usize, message: &str) {
            self.0.lock().unwrap().push(format!("{done}/{total} {message}"));
        }

        fn note(&self, text: &str) {
            self.0.lock().unwrap().push(text.to_owned());
        }
    }

    #[test]
    fn clones_and_smaller_budgets_are_of_the_same_run() {
        let heard = Heard::default();
        let texts = Arc::clone(&heard.0);
        let context = Context::listening(heard);
        let small = context.with_memory(1000).with_reserved(300);
        assert_eq!((small.memory(), small.promised_memory(), context.promised_memory()), (700, Some(700), None));
        small.report(1, 2, "tiles");
        context.note("a note");
        assert_eq!(*texts.lock().unwrap(), ["1/2 tiles", "a note"]);
        assert_eq!(small.notes(), ["a note"]);
        small.cancel();
        assert_eq!(context.check(), Err(Cancelled));
        assert!(!Context::new().cancelled());
    }

    #[test]
    fn work_runs_on_the_threads_of_its_context() {
        let three = Context::new().with_threads(3).unwrap();
        assert_eq!(three.install(rayon::current_num_threads), 3);
        assert_eq!(Context::new().install(rayon::current_num_threads), rayon::current_num_threads());
    }
}
