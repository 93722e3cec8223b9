//! A progress bar on standard error, with rate and time left, for work that takes a while.

use crate::console::setting;
use crate::interrupt;
use crate::visible;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use mercer::run::Listener;
use std::io::Write;
use std::time::{Duration, Instant};

/// Short work shows no bar.
const PATIENCE: Duration = Duration::from_millis(500);

/// A bar that appears once the work takes longer than a moment, and leaves nothing on the screen.
#[derive(Clone, Debug)]
pub(crate) struct Bar {
    bar: ProgressBar,
    start: Instant,
    quiet: bool,
}

impl Bar {
    pub(crate) fn new(quiet: bool) -> Self {
        let bar = ProgressBar::with_draw_target(Some(0), ProgressDrawTarget::hidden());
        let template = "{wide_bar} {human_pos}/{human_len} {msg}{per_sec}, {eta} left";
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        Self { bar, start: Instant::now(), quiet }
    }

    /// A line above the bar.
    pub(crate) fn line(&self, text: &str) {
        if !self.quiet {
            self.bar.suspend(|| {
                // Nobody may be listening.
                let _ = writeln!(std::io::stderr(), "{}", visible::text(text));
            });
        }
    }

    /// A line above the bar, if the work has taken long enough to be worth reporting.
    pub(crate) fn slow_line(&self, text: &str) {
        if self.start.elapsed() > 6 * PATIENCE {
            self.line(text);
        }
    }

    /// Removes the bar.
    pub(crate) fn clear(&self) {
        self.bar.finish_and_clear();
    }
}

/// The bar as a listener of the library; Ctrl-C cancels the work.
impl Listener for Bar {
    fn progress(&self, done: usize, total: usize, message: &str) {
        // The bar stays hidden unless standard error is a terminal.
        if !self.quiet && self.bar.is_hidden() && self.start.elapsed() > PATIENCE {
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
        }
        self.bar.set_length(total as u64);
        self.bar.set_message(if message.is_empty() { String::new() } else { format!("{message} ") });
        self.bar.set_position(done as u64);
    }

    fn note(&self, text: &str) {
        self.line(&format!("note: {}", mercer::rendered(text, &setting)));
    }

    fn cancelled(&self) -> bool {
        interrupt::requested()
    }
}
