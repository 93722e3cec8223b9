//! A progress bar on standard error, with rate and time left, for work that takes a while.

use crate::interrupt;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use mercer::net::progress::Progress as Handle;
use std::io::Write;
use std::time::{Duration, Instant};

/// Short work shows no bar.
const PATIENCE: Duration = Duration::from_millis(500);

/// A bar that appears when the work takes longer than a moment, and leaves nothing behind.
#[derive(Debug)]
pub(crate) struct Progress {
    bar: ProgressBar,
    start: Instant,
    quiet: bool,
}

impl Progress {
    pub(crate) fn new(total: u64, unit: &'static str, quiet: bool) -> Self {
        let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::hidden());
        let template = format!("{{wide_bar}} {{human_pos}}/{{human_len}} {unit} {{per_sec}}, {{eta}} left{{msg}}");
        if let Ok(style) = ProgressStyle::with_template(&template) {
            bar.set_style(style);
        }
        Self { bar, start: Instant::now(), quiet }
    }

    /// So much of the work is done.
    pub(crate) fn at(&self, position: u64) {
        // On anything but a terminal the bar stays hidden.
        if !self.quiet && self.bar.is_hidden() && self.start.elapsed() > PATIENCE {
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
        }
        self.bar.set_position(position);
    }

    /// So much of so much is done; the text says more.
    pub(crate) fn report(&self, done: u64, total: u64, text: &str) {
        self.bar.set_length(total);
        self.bar.set_message(if text.is_empty() { String::new() } else { format!(" ({text})") });
        self.at(done);
    }

    /// A line above the bar, once the work has taken so long that one wants to know.
    pub(crate) fn line(&self, text: &str) {
        if self.quiet || self.start.elapsed() <= 6 * PATIENCE {
            return;
        }
        self.bar.suspend(|| {
            let _ = writeln!(std::io::stderr(), "{text}");
        });
    }

    /// The time since the start.
    pub(crate) fn elapsed(&self) -> Duration {
        self.start.elapsed()
    }
}

/// The bar as the library sees it; Ctrl-C calls the work off.
#[derive(Debug)]
pub(crate) struct Bar(pub(crate) Progress);

impl Handle for Bar {
    fn report(&self, done: usize, total: usize, message: &str) {
        self.0.report(done as u64, total as u64, message);
    }

    fn cancelled(&self) -> bool {
        interrupt::requested()
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
