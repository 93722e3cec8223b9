//! The memory limits of the process's control groups. Containers, services and batch systems set them.

use std::fs::read_to_string;
use std::path::{Component, Path, PathBuf};

/// The bytes still available under the limits of the groups and of their ancestors; `None` if none has a limit. `proc`
/// is the path of the proc file system.
pub(crate) fn room(proc: &Path) -> Option<usize> {
    let groups = read_to_string(proc.join("self/cgroup")).ok()?;
    let mounts = read_to_string(proc.join("self/mountinfo")).ok()?;
    groups.lines().filter_map(|line| Hierarchy::parse(line, &mounts)?.room()).min()
}

/// The two versions of the kernel's interface.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Version {
    One,
    Two,
}

/// A group and the root of its hierarchy.
#[derive(Debug, PartialEq)]
struct Hierarchy {
    version: Version,
    top: PathBuf,
    /// Relative to the top.
    group: PathBuf,
}

impl Hierarchy {
    /// Reads a line of `cgroup`, `number:controllers:/path`, with the table of mounts; `None` if the line is not about
    /// memory.
    fn parse(line: &str, mounts: &str) -> Option<Self> {
        let mut fields = line.splitn(3, ':');
        let (_, controllers, path) = (fields.next()?, fields.next()?, fields.next()?);
        let version = match controllers {
            "" => Version::Two,
            names if names.split(',').any(|name| name == "memory") => Version::One,
            _ => return None,
        };
        let (root, top) = mounts.lines().find_map(|line| mount(line, version))?;
        // In a container only a part of the tree is mounted. The rest cannot be seen.
        let group = Path::new(path).strip_prefix(root).ok().filter(|path| is_plain(path)).unwrap_or(Path::new(""));
        Some(Self { version, top: top.into(), group: group.strip_prefix("/").unwrap_or(group).to_owned() })
    }

    /// The least memory that the group or an ancestor leaves.
    fn room(&self) -> Option<usize> {
        self.group.ancestors().filter_map(|group| room_in(&self.top.join(group), self.version)).min()
    }
}

fn is_plain(path: &Path) -> bool {
    path.components().all(|part| matches!(part, Component::Normal(_) | Component::RootDir))
}

/// The root and the mount point of a hierarchy, from `id parent device ROOT PLACE options … - TYPE source OPTIONS`.
fn mount(line: &str, version: Version) -> Option<(&str, &str)> {
    let (place, kind) = line.split_once(" - ")?;
    let mut kind = kind.split(' ');
    let (name, options) = (kind.next()?, kind.nth(1)?);
    let wanted = match version {
        Version::Two => name == "cgroup2",
        Version::One => name == "cgroup" && options.split(',').any(|option| option == "memory"),
    };
    let mut place = place.split(' ').skip(3);
    wanted.then_some((place.next()?, place.next()?))
}

/// The memory one group leaves: its limit minus what its processes hold. File pages that the kernel can drop do not
/// count.
fn room_in(group: &Path, version: Version) -> Option<usize> {
    let number = |file: &str| read_to_string(group.join(file)).ok()?.trim().parse::<usize>().ok();
    let (limits, used, dropped): (&[&str], &str, &[&str]) = match version {
        Version::Two => (&["memory.max", "memory.high"], "memory.current", &["active_file", "inactive_file"]),
        Version::One => {
            (&["memory.limit_in_bytes"], "memory.usage_in_bytes", &["total_active_file", "total_inactive_file"])
        }
    };
    // "max" is not a number and means no limit.
    let limit = limits.iter().filter_map(|file| number(file)).min()?;
    let statistics = read_to_string(group.join("memory.stat")).unwrap_or_default();
    let files: usize = statistics
        .lines()
        .filter_map(|line| line.split_once(' '))
        .filter(|(name, _)| dropped.contains(name))
        .filter_map(|(_, value)| value.trim().parse::<usize>().ok())
        .fold(0, usize::saturating_add);
    Some(limit.saturating_sub(number(used).unwrap_or(0).saturating_sub(files)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A tree of files, `(path, content)`; `@` stands for the folder.
    fn room_of(files: &[(&str, &str)]) -> Option<usize> {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().display().to_string();
        for (path, content) in files {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, content.replace('@', &place)).unwrap();
        }
        room(&folder.path().join("proc"))
    }

    const TWO: (&str, &str) = (
        "proc/self/mountinfo",
        "22 1 0:2 / /sys rw - sysfs sysfs rw\n30 23 0:26 / @/top rw,nosuid shared:4 - cgroup2 cgroup2 rw\n",
    );

    #[test]
    fn the_narrowest_group_counts() {
        let group = ("proc/self/cgroup", "0::/user/job\n");
        let tree = [
            TWO,
            group,
            ("top/user/memory.max", "5000\n"),
            ("top/user/memory.current", "1500\n"),
            ("top/user/memory.stat", "anon 600\nfile 900\ninactive_file 700\nactive_file 100\n"),
            ("top/user/job/memory.max", "max\n"),
            ("top/user/job/memory.high", "4500\n"),
            ("top/user/job/memory.current", "200\n"),
        ];
        // 5000 − (1500 − 800) and 4500 − 200.
        assert_eq!(room_of(&tree), Some(4300));
        assert_eq!(room_of(&tree[..7]), Some(4300));
        assert_eq!(room_of(&tree[..2]), None);
        // A group that holds more than its limit leaves nothing.
        let full = [TWO, group, ("top/user/memory.max", "100"), ("top/user/memory.current", "300")];
        assert_eq!(room_of(&full), Some(0));
        // No groups, and malformed files.
        assert_eq!(room_of(&[]), None);
        assert_eq!(room_of(&[("proc/self/cgroup", "nothing"), ("proc/self/mountinfo", "a - b\n - \n")]), None);
    }

    #[test]
    fn groups_of_the_first_version_and_of_containers() {
        let mounts = (
            "proc/self/mountinfo",
            "31 23 0:27 /docker/a1 @/memory ro - cgroup cgroup rw,memory\n32 23 0:28 / @/cpu ro - cgroup cgroup rw,cpu\n",
        );
        let limits = [
            mounts,
            ("memory/memory.limit_in_bytes", "9000"),
            ("memory/memory.usage_in_bytes", "1000"),
            ("memory/memory.stat", "inactive_file 1\ntotal_inactive_file 300\ntotal_active_file 100\n"),
            ("memory/inner/memory.limit_in_bytes", "4000"),
        ];
        let with = |path: &'static str| {
            let mut files = limits.to_vec();
            files.push(("proc/self/cgroup", path));
            room_of(&files)
        };
        // The group of the container is the top of what it sees.
        assert_eq!(with("3:cpu:/docker/a1\n2:memory,hugetlb:/docker/a1\n"), Some(8400));
        assert_eq!(with("2:memory:/docker/a1/inner\n"), Some(4000));
        // A group elsewhere, a group above, and a group without the memory controller.
        assert_eq!(with("2:memory:/other\n"), Some(8400));
        assert_eq!(with("2:memory:/docker/a1/../..\n"), Some(8400));
        assert_eq!(with("3:cpu:/docker/a1\n"), None);
    }
}
