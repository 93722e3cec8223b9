//! Ctrl-C: the first asks the work to stop where it can go on later, the second ends it at once.

use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};

static ASKED: AtomicBool = AtomicBool::new(false);

/// From now on Ctrl-C is a request; see [`requested`].
pub(crate) fn watch() {
    // Without a handler the system's own way of stopping remains, which is good enough to go on with.
    let _ = ctrlc::set_handler(|| {
        if ASKED.swap(true, Ordering::SeqCst) {
            std::process::exit(130);
        }
        let _ = writeln!(std::io::stderr(), "\nstopping; press Ctrl-C again to stop at once");
    });
}

/// Whether the user wants to stop.
pub(crate) fn requested() -> bool {
    ASKED.load(Ordering::SeqCst)
}
