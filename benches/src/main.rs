//! The benchmarks: `cargo xtask bench [--only TEXT] [--rounds N] [--torch PYTHON]`.
//!
//! One thread. Every round measures faer's product, our work and, if asked for, PyTorch's one after the other, so that all
//! three see the same machine; the best round counts. The work of a case is its floating-point operations in products
//! (forward, and twice that for the reverse pass, without the gradient of the input where there is none).

mod cases;
mod eigen;
mod laplace;
mod limits;
mod machines;
mod peer;
mod table;
mod threads;

use cases::Case;
use peer::Peer;
use std::time::Instant;

/// faer's product of two 1024 × 1024 matrices in `f32`: operations per second.
fn gemm_rate() -> f64 {
    const SIDE: usize = 1024;
    let (a, b) = (vec![0.5f32; SIDE * SIDE], vec![0.25f32; SIDE * SIDE]);
    let mut c = vec![0.0f32; SIDE * SIDE];
    let start = Instant::now();
    const REPEATS: usize = 8;
    for _ in 0..REPEATS {
        mercer_linalg::gemm([SIDE; 3], (&a, SIDE, 1), (&b, SIDE, 1), false, &mut c);
    }
    let seconds = start.elapsed().as_secs_f64();
    std::hint::black_box(&c);
    (REPEATS * 2 * SIDE * SIDE * SIDE) as f64 / seconds
}

/// One line of the table.
struct Measured {
    name: &'static str,
    seconds: f64,
    flops: f64,
    gemm: f64,
    torch: Option<f64>,
    /// The same work through the Python package.
    python: Option<f64>,
    /// Resident bytes of the process at their highest while the case ran, where the system tells.
    peak: usize,
}

fn measure(case: &mut Case, rounds: usize, peer: &mut Option<Peer>) -> Measured {
    let mut measured = Measured {
        name: case.name,
        seconds: f64::INFINITY,
        flops: case.flops,
        gemm: 0.0,
        torch: None,
        python: None,
        peak: 0,
    };
    // Begins the count of the peak again; where that is not allowed, it is the highest of all cases so far.
    let _ = std::fs::write("/proc/self/clear_refs", "5");
    // Long enough for the clock, short enough for many rounds.
    (case.run)();
    measured.peak = mercer_run::peak_memory();
    let start = Instant::now();
    (case.run)();
    let repeats = (0.1 / start.elapsed().as_secs_f64()).ceil().clamp(1.0, 200.0) as usize;
    for _ in 0..rounds {
        measured.gemm = measured.gemm.max(gemm_rate());
        let start = Instant::now();
        (0..repeats).for_each(|_| (case.run)());
        measured.seconds = measured.seconds.min(start.elapsed().as_secs_f64() / repeats as f64);
        if let Some(peer) = peer {
            let [torch, python] = peer.time(case.name);
            let best = |one: Option<f64>, other: Option<f64>| one.into_iter().chain(other).reduce(f64::min);
            (measured.torch, measured.python) = (best(measured.torch, torch), best(measured.python, python));
        }
    }
    measured
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let value = |flag: &str| arguments.iter().position(|a| a == flag).and_then(|at| arguments.get(at + 1));
    let rounds = value("--rounds").and_then(|n| n.parse().ok()).unwrap_or(5);
    let only = value("--only").cloned().unwrap_or_default();
    let mut peer = value("--torch").and_then(|python| Peer::start(python));
    // Everything but the last table is measured on one thread.
    rayon::ThreadPoolBuilder::new().num_threads(1).build_global().expect("a thread starts");
    let mut lines = Vec::new();
    let machines = laplace::all().into_iter().chain(machines::all());
    for make in cases::all().into_iter().chain(limits::all()).chain(eigen::all()).chain(machines) {
        let mut case = make();
        if case.name.contains(&only) {
            lines.push(measure(&mut case, rounds, &mut peer));
        }
    }
    table::print(&lines);
    threads::print(&only, rounds);
}
