//! The table of a run, with the machine it ran on.

use super::Measured;

fn machine() -> String {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let field = |name: &str| {
        let line = info.lines().find(|line| line.starts_with(name))?;
        line.split(':').nth(1).map(|value| value.trim().to_owned())
    };
    let vectors = field("flags").map_or("", |flags| if flags.contains("avx512f") { "AVX-512" } else { "no AVX-512" });
    let cpu = field("model name").unwrap_or_else(|| "unknown CPU".to_owned());
    format!("{cpu} ({vectors}), {} cores", std::thread::available_parallelism().map_or(0, usize::from))
}

pub(super) fn print(lines: &[Measured]) {
    println!("{}, one thread, mercer {}\n", machine(), env!("CARGO_PKG_VERSION"));
    println!(
        "| case | ms | GF/s | of faer's GEMM | faer GF/s | peak MiB | PyTorch ms | against PyTorch | from Python ms |"
    );
    println!("|---|---:|---:|---:|---:|---:|---:|---:|---:|");
    for line in lines {
        let rate = line.flops / line.seconds;
        let (torch, ratio) = match line.torch {
            Some(seconds) => (format!("{:.2}", seconds * 1e3), format!("{:.2}×", seconds / line.seconds)),
            None => ("–".to_owned(), "–".to_owned()),
        };
        let python = line.python.map_or_else(|| "–".to_owned(), |seconds| format!("{:.2}", seconds * 1e3));
        println!(
            "| {} | {:.2} | {:.1} | {:.0} % | {:.1} | {} | {torch} | {ratio} | {python} |",
            line.name,
            line.seconds * 1e3,
            rate / 1e9,
            100.0 * rate / line.gemm,
            line.gemm / 1e9,
            line.peak >> 20,
        );
    }
}
