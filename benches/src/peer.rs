//! PyTorch beside us: a Python process that is asked for one measurement at a time.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

pub(super) struct Peer {
    process: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Peer {
    /// Starts `benches/torch_peer.py` with this interpreter.
    pub(super) fn start(python: &str) -> Option<Self> {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/torch_peer.py");
        let mut process = Command::new(python).arg(script).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().ok()?;
        let (input, output) = (process.stdin.take()?, BufReader::new(process.stdout.take()?));
        Some(Self { process, input, output })
    }

    /// Seconds of one repetition of a case, or `None` if it does not know the case.
    pub(super) fn time(&mut self, case: &str) -> Option<f64> {
        writeln!(self.input, "{case}").ok()?;
        let mut answer = String::new();
        self.output.read_line(&mut answer).ok()?;
        answer.trim().parse().ok()
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
