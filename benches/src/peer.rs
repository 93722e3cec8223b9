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

    /// Seconds of one repetition of a case: PyTorch's, and ours called from Python in the same process. `None` for what
    /// it does not know.
    pub(super) fn time(&mut self, case: &str) -> [Option<f64>; 2] {
        let mut answer = String::new();
        if writeln!(self.input, "{case}").and_then(|()| self.output.read_line(&mut answer)).is_err() {
            return [None, None];
        }
        let mut numbers = answer.split_whitespace().map(|number| number.parse().ok());
        [numbers.next().flatten(), numbers.next().flatten()]
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
