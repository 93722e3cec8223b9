//! Ctrl-C and SIGTERM. The first signal asks the work to stop where it can be resumed. A second signal, or one second,
//! ends the process at once.

use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

static ASKED: AtomicBool = AtomicBool::new(false);

/// The exit code of an interrupted command.
pub(crate) const EXIT: u8 = 130;

/// A dense factorisation cannot be interrupted. After this time the process exits wherever it is. This is safe because
/// every file is either complete or absent.
const GRACE: Duration = Duration::from_millis(800);

/// From now on a signal only sets a flag; see [`requested`].
pub(crate) fn watch() {
    // Without a handler the system's default remains, which is good enough.
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

/// Whether the user asked to stop.
pub(crate) fn requested() -> bool {
    ASKED.load(Ordering::SeqCst)
}
