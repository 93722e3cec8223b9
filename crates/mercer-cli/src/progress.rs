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

/// A bar that appears when the work takes longer than a moment, and leaves nothing behind.
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

    /// A line above the bar, once the work has taken so long that one wants to know.
    pub(crate) fn slow_line(&self, text: &str) {
        if self.start.elapsed() > 6 * PATIENCE {
            self.line(text);
        }
    }

    /// Takes the bar away.
    pub(crate) fn clear(&self) {
        self.bar.finish_and_clear();
    }
}

/// The bar as the library sees it; Ctrl-C calls the work off.
impl Listener for Bar {
    fn progress(&self, done: usize, total: usize, message: &str) {
        // On anything but a terminal the bar stays hidden.
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
