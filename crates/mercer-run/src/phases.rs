//! Where the time of a run goes.

use std::sync::Mutex;
use std::time::Instant;

/// A phase of the work, and the seconds it took.
#[derive(Clone, Debug, PartialEq)]
pub struct Timed {
    /// What was done.
    pub name: &'static str,
    /// Total time of all phases of this name. The time of a nested phase does not count for the outer one.
    pub seconds: f64,
}

/// The phases of a run.
#[derive(Debug, Default)]
pub(crate) struct Phases {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    all: Vec<Timed>,
    /// The phases in progress, innermost last: the index in `all`, and the time since which the phase has been the
    /// innermost.
    open: Vec<(usize, Instant)>,
}

impl State {
    fn place(&mut self, name: &'static str) -> usize {
        self.all.iter().position(|part| part.name == name).unwrap_or_else(|| {
            self.all.push(Timed { name, seconds: 0.0 });
            self.all.len() - 1
        })
    }

    /// Credits the time until now to the innermost phase.
    fn settle(&mut self, now: Instant) {
        if let Some((place, since)) = self.open.last_mut() {
            self.all[*place].seconds += now.duration_since(*since).as_secs_f64();
            *since = now;
        }
    }
}

/// A phase in progress.
#[derive(Debug)]
pub struct Phase<'a> {
    phases: &'a Phases,
}

impl Phases {
    pub(crate) fn begin(&self, name: &'static str) -> Phase<'_> {
        let mut state = self.lock();
        let now = Instant::now();
        state.settle(now);
        let place = state.place(name);
        state.open.push((place, now));
        Phase { phases: self }
    }

    pub(crate) fn add(&self, name: &'static str, seconds: f64) {
        let mut state = self.lock();
        let place = state.place(name);
        state.all[place].seconds += seconds;
    }

    pub(crate) fn all(&self) -> Vec<Timed> {
        let mut state = self.lock();
        state.settle(Instant::now());
        state.all.clone()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

impl Drop for Phase<'_> {
    fn drop(&mut self) {
        let mut state = self.phases.lock();
        let now = Instant::now();
        state.settle(now);
        state.open.pop();
        if let Some((_, since)) = state.open.last_mut() {
            *since = now;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    /// Every moment belongs to exactly one phase, so the phases add up to the whole.
    #[test]
    fn inner_parts_are_not_counted_twice() {
        let phases = Phases::default();
        let start = Instant::now();
        let outer = phases.begin("kernel");
        std::thread::sleep(Duration::from_millis(10));
        drop(phases.begin("reading"));
        {
            let _inner = phases.begin("writing");
            std::thread::sleep(Duration::from_millis(30));
        }
        drop(outer);
        drop(phases.begin("kernel"));
        let all = phases.all();
        let whole = start.elapsed().as_secs_f64();
        assert_eq!(all.iter().map(|part| part.name).collect::<Vec<_>>(), ["kernel", "reading", "writing"]);
        let sum: f64 = all.iter().map(|part| part.seconds).sum();
        assert!(all[2].seconds >= 0.03 && all[0].seconds >= 0.01 && sum <= whole, "{all:?} of {whole}");
    }
}
