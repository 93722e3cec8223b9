//! How much memory is available, and how much the process holds.

use std::path::Path;

/// The default memory limit: three quarters of what is available, or four gigabytes where that is unknown.
pub fn default_memory() -> usize {
    available().map_or(4 << 30, |bytes| bytes / 4 * 3)
}

/// The bytes that the process can still get. This is the least of the machine's free memory, what the process limit
/// (`ulimit -v`) leaves, and what the limits of its control groups leave (of a container or a batch system). `None`
/// where the system does not report it.
pub fn available() -> Option<usize> {
    let info = std::fs::read_to_string("/proc/meminfo").ok()?;
    let free = kilobytes(&info, "MemAvailable:")?.min(address_space());
    Some(crate::groups::room(Path::new("/proc")).map_or(free, |room| room.min(free)))
}

/// An upper bound on how much the memory of two processes that do the same work differs. Which code pages are mapped
/// along with those that are needed depends on where the program was loaded. In 25 starts each, differences of up to
/// 1.16 MiB were seen. Code that suggests a limit to another process adds this amount.
pub const PROCESS_NOISE: usize = 5 << 18;

/// The bytes that the process holds now; zero where the system does not report them.
pub fn resident_memory() -> usize {
    // This file counts the pages one by one. The sum in `status` lags by a few dozen pages per processor.
    match field("/proc/self/smaps_rollup", "Rss:") {
        0 => field("/proc/self/status", "VmRSS:"),
        bytes => bytes,
    }
}

/// The bytes that the process holds now, to within a megabyte per processor; zero where the system does not report them.
/// This takes microseconds. [`resident_memory`] walks all pages, which takes milliseconds in a process that holds
/// gigabytes.
pub fn resident_memory_roughly() -> usize {
    const PAGE: usize = 4096;
    let text = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    text.split_whitespace().nth(1).and_then(|pages| pages.parse::<usize>().ok()).map_or(0, |pages| pages * PAGE)
}

/// The most bytes that the process has held so far; zero where the system does not report them. The peak is that of the
/// whole process: a second run in the same process sees the peak of the first.
pub fn peak_memory() -> usize {
    field("/proc/self/status", "VmHWM:")
}

/// A field in kilobytes from a file of the proc file system, in bytes; zero if it is missing.
fn field(file: &str, name: &str) -> usize {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    kilobytes(&text, name).unwrap_or(0)
}

fn kilobytes(text: &str, name: &str) -> Option<usize> {
    let line = text.lines().find(|line| line.starts_with(name))?;
    line.split_whitespace().nth(1)?.parse::<usize>().ok()?.checked_mul(1024)
}

/// What the limit on the address space leaves.
#[cfg(target_os = "linux")]
fn address_space() -> usize {
    const PAGE: usize = 4096;
    let mut limit = libc::rlimit { rlim_cur: libc::RLIM_INFINITY, rlim_max: libc::RLIM_INFINITY };
    // SAFETY: the call only writes into the structure it is given.
    let told = unsafe { libc::getrlimit(libc::RLIMIT_AS, &raw mut limit) } == 0;
    if !told || limit.rlim_cur == libc::RLIM_INFINITY {
        return usize::MAX;
    }
    let pages = std::fs::read_to_string("/proc/self/statm").ok();
    let pages = pages.and_then(|text| text.split_whitespace().next()?.parse::<usize>().ok());
    usize::try_from(limit.rlim_cur).unwrap_or(usize::MAX).saturating_sub(pages.unwrap_or(0) * PAGE)
}

#[cfg(not(target_os = "linux"))]
fn address_space() -> usize {
    usize::MAX
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn what_is_held_is_less_than_the_peak() {
        // The kernel updates the peak lazily, thread by thread, so it may lag a little behind what is held.
        const LAG: usize = 16 << 20;
        let held = resident_memory();
        assert!(held > 0 && peak_memory() + LAG >= held, "{held} {}", peak_memory());
        assert!(default_memory() < available().unwrap());
    }
}
