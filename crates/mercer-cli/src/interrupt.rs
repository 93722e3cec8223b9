//! Ctrl-C and SIGTERM: the first asks the work to stop where it can go on later; the second, or a second of time, ends it at once.

use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

static ASKED: AtomicBool = AtomicBool::new(false);

/// The exit code of what was interrupted.
pub(crate) const EXIT: u8 = 130;

/// A dense factorisation cannot be asked to stop. After so long the program leaves wherever it is, which is safe because every
/// file appears complete or not at all.
const GRACE: Duration = Duration::from_millis(800);

/// From now on a signal is a request; see [`requested`].
pub(crate) fn watch() {
    // Without a handler the system's own way of stopping remains, which is good enough to go on with.
    let _ = ctrlc::set_handler(|| {
        if ASKED.swap(true, Ordering::SeqCst) {
            std::process::exit(EXIT.into());
        }
        let _ = writeln!(std::io::stderr(), "\nstopping");
        std::thread::spawn(|| {
            std::thread::sleep(GRACE);
            let _ = writeln!(std::io::stderr(), "error: interrupted");
            std::process::exit(EXIT.into());
        });
    });
}

/// Whether the user wants to stop.
pub(crate) fn requested() -> bool {
    ASKED.load(Ordering::SeqCst)
}
