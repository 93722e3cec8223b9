//! How much memory there is, and how much the process holds.

use std::path::Path;

/// The memory to use if nothing is said: three quarters of what is free, or four gigabytes where the system does not tell.
pub fn default_memory() -> usize {
    available().map_or(4 << 30, |bytes| bytes / 4 * 3)
}

/// Bytes that the process can still get: what the machine has free, what its own limit (`ulimit -v`) leaves, and what those of the
/// control groups leave that it is in (a container's, a batch system's). `None` where the system does not tell.
pub fn available() -> Option<usize> {
    let info = std::fs::read_to_string("/proc/meminfo").ok()?;
    let free = kilobytes(&info, "MemAvailable:")?.min(address_space());
    Some(crate::groups::room(Path::new("/proc")).map_or(free, |room| room.min(free)))
}

/// What two processes that do the same hold at the same time differs by less: which pages of code are mapped together with those
/// that are needed depends on where the program was loaded. In 25 starts each, up to 1.16 MiB were seen. Whoever suggests an amount of
/// memory to another process adds it.
pub const PROCESS_NOISE: usize = 5 << 18;

/// The bytes that the process holds now; zero where the system does not tell.
pub fn resident_memory() -> usize {
    // Its pages are counted one by one here; the sum that `status` shows is behind by some dozen pages for every processor.
    match field("/proc/self/smaps_rollup", "Rss:") {
        0 => field("/proc/self/status", "VmRSS:"),
        bytes => bytes,
    }
}

/// The most bytes that the process has held so far; zero where the system does not tell. It belongs to the process, not to the
/// second run in it.
pub fn peak_memory() -> usize {
    field("/proc/self/status", "VmHWM:")
}

/// A number of kilobytes that the system shows in a file, in bytes; zero if it is not there.
fn field(file: &str, name: &str) -> usize {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    kilobytes(&text, name).unwrap_or(0)
}

fn kilobytes(text: &str, name: &str) -> Option<usize> {
    let line = text.lines().find(|line| line.starts_with(name))?;
    line.split_whitespace().nth(1)?.parse::<usize>().ok()?.checked_mul(1024)
}

/// What the limit of the address space leaves of it.
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
        // The system keeps the peak by the way, thread by thread: it may lag behind what is held by a little.
        const LAG: usize = 16 << 20;
        let held = resident_memory();
        assert!(held > 0 && peak_memory() + LAG >= held, "{held} {}", peak_memory());
        assert!(default_memory() < available().unwrap());
    }
}
