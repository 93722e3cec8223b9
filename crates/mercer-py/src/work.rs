//! Long work: on other threads, while Python's lock is free, until it is done or somebody presses Ctrl-C.

use crate::failure::{bug, raised};
use crate::pool;
use mercer::Error;
use mercer::run::{Context, Listener};
use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use std::num::NonZeroUsize;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How often signals are looked for and progress is told.
const TICK: Duration = Duration::from_millis(50);

/// How long cancelled work may take to stop. A dense factorisation cannot be interrupted: it is left to end by itself.
const GRACE: Duration = Duration::from_millis(700);

/// What a call may use, and whom it tells of its progress: `progress(done, total, message)` and
/// `note(text)`.
#[derive(FromPyObject)]
pub(crate) struct Resources {
    memory: Option<usize>,
    threads: Option<NonZeroUsize>,
    progress: Option<Py<PyAny>>,
    note: Option<Py<PyAny>>,
}

/// What there is to tell.
#[derive(Default)]
struct News {
    progress: Option<(usize, usize, String)>,
    notes: Vec<String>,
}

struct Reporter(Arc<Mutex<News>>);

impl Reporter {
    fn update(&self, change: impl FnOnce(&mut News)) {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

impl Listener for Reporter {
    fn progress(&self, done: usize, total: usize, message: &str) {
        self.update(|news| news.progress = Some((done, total, message.to_owned())));
    }

    fn note(&self, text: &str) {
        self.update(|news| news.notes.push(text.to_owned()));
    }
}

impl Resources {
    /// Runs the work. Python's signal handlers run meanwhile; if one raises an exception, the work is cancelled and the
    /// exception is raised.
    pub(crate) fn run<R: Send + 'static>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&Context) -> Result<R, Error> + Send + 'static,
    ) -> PyResult<R> {
        let pool = pool::take(pool::threads(self.threads)).map_err(|error| PyOSError::new_err(error.to_string()))?;
        let news = Arc::new(Mutex::new(News::default()));
        let mut context = Context::listening(Reporter(Arc::clone(&news))).with_pool(Arc::clone(&pool));
        if let Some(bytes) = self.memory {
            context = context.with_memory(bytes);
        }
        let (send, mut receive) = channel();
        let handle = context.clone();
        pool.spawn(move || {
            let outcome = catch_unwind(AssertUnwindSafe(|| work(&handle)));
            drop(handle);
            // Nobody listens to work that was left behind.
            let _ = send.send(outcome);
        });
        let mut stopped: Option<(Instant, PyErr)> = None;
        loop {
            let (outcome, back) = py.detach(move || (receive.recv_timeout(TICK), receive));
            receive = back;
            match (outcome, &stopped) {
                (Ok(outcome), _) => {
                    pool::give_back(pool);
                    if let Some((_, error)) = stopped {
                        return Err(error);
                    }
                    self.tell(py, &news)?;
                    return match outcome {
                        Ok(Ok(found)) => Ok(found),
                        Ok(Err(error)) => Err(raised(py, &error)),
                        Err(_) => Err(bug()),
                    };
                }
                (Err(RecvTimeoutError::Disconnected), _) => return Err(bug()),
                (Err(RecvTimeoutError::Timeout), None) => {
                    if let Err(error) = py.check_signals().and_then(|()| self.tell(py, &news)) {
                        context.cancel();
                        stopped = Some((Instant::now(), error));
                    }
                }
                (Err(RecvTimeoutError::Timeout), Some((since, _))) if since.elapsed() < GRACE => {}
                // The threads end by themselves; the next call has others.
                (Err(RecvTimeoutError::Timeout), Some(_)) => match stopped {
                    Some((_, error)) => return Err(error),
                    None => return Err(bug()),
                },
            }
        }
    }

    /// Tells Python what is new.
    fn tell(&self, py: Python<'_>, news: &Mutex<News>) -> PyResult<()> {
        let News { progress, notes } = std::mem::take(&mut *news.lock().unwrap_or_else(PoisonError::into_inner));
        if let (Some(progress), Some(callback)) = (progress, &self.progress) {
            callback.call1(py, progress)?;
        }
        if let Some(callback) = &self.note {
            notes.iter().try_for_each(|text| {
                callback.call1(py, (mercer::rendered(text, &crate::failure::keyword),)).map(drop)
            })?;
        }
        Ok(())
    }
}
