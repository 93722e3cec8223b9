//! How much memory there is, and how much the process holds.

/// The memory to use if nothing is said: three quarters of what is free, or four gigabytes where the system does not tell.
pub fn default_memory() -> usize {
    available().map_or(4 << 30, |bytes| bytes / 4 * 3)
}

/// Bytes that the process can still get: what the machine has free, and what its own limit (`ulimit -v`) leaves. `None`
/// where the system does not tell.
pub fn available() -> Option<usize> {
    let info = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = info.lines().find(|line| line.starts_with("MemAvailable:"))?;
    let kibibytes: usize = line.split_whitespace().nth(1)?.parse().ok()?;
    Some((kibibytes * 1024).min(address_space()))
}

/// The bytes that the process holds now; zero where the system does not tell.
pub fn resident_memory() -> usize {
    status("VmRSS:")
}

/// The most bytes that the process has held so far; zero where the system does not tell. It belongs to the process, not to the
/// second run in it.
pub fn peak_memory() -> usize {
    status("VmHWM:")
}

fn status(name: &str) -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let field = || {
        let line = status.lines().find(|line| line.starts_with(name))?;
        let kibibytes: usize = line.split_whitespace().nth(1)?.parse().ok()?;
        Some(kibibytes * 1024)
    };
    field().unwrap_or(0)
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
        assert!(resident_memory() > 0 && peak_memory() >= resident_memory());
        assert!(default_memory() < available().unwrap());
    }
}
