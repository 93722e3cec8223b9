//! Fault injection: kills a process at its n-th disk operation, or fills the disk.
//!
//! For tests only. A fault applies below one folder and in all threads, so that tests can run in parallel.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What happens, and when. Operations are counted from 0: creating, flushing, renaming or removing a file or folder,
/// and every write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Nothing happens; operations are only counted.
    Never,
    /// One operation fails; later ones succeed.
    Fail {
        /// The index of the operation.
        at: usize,
    },
    /// The process ends: this operation is done halfway (a write) or not at all, and no other follows.
    Kill {
        /// The index of the operation.
        at: usize,
    },
    /// The power fails: like [`Kill`](Self::Kill), and files that were not flushed lose the second half of their
    /// content.
    PowerCut {
        /// The index of the operation.
        at: usize,
    },
    /// The disk has room for this many bytes.
    Full {
        /// How many.
        bytes: usize,
    },
}

struct Plan {
    id: u64,
    root: PathBuf,
    fault: Fault,
    operations: usize,
    bytes: usize,
    is_dead: bool,
    /// Files that were written and not flushed.
    pending: BTreeSet<PathBuf>,
}

static PLANS: Mutex<(u64, Vec<Plan>)> = Mutex::new((0, Vec::new()));

fn plans() -> MutexGuard<'static, (u64, Vec<Plan>)> {
    PLANS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A fault that applies until this value is dropped.
#[derive(Debug)]
pub struct Faults(u64);

impl Faults {
    /// Applies this fault to everything below a folder.
    pub fn below(root: &Path, fault: Fault) -> Self {
        let mut plans = plans();
        plans.0 += 1;
        let id = plans.0;
        let root = root.to_owned();
        plans.1.push(Plan { id, root, fault, operations: 0, bytes: 0, is_dead: false, pending: BTreeSet::new() });
        Self(id)
    }

    /// The operations so far.
    pub fn operations(&self) -> usize {
        plans().1.iter().find(|plan| plan.id == self.0).map_or(0, |plan| plan.operations)
    }

    /// The bytes that were written so far.
    pub fn bytes(&self) -> usize {
        plans().1.iter().find(|plan| plan.id == self.0).map_or(0, |plan| plan.bytes)
    }
}

impl Drop for Faults {
    fn drop(&mut self) {
        plans().1.retain(|plan| plan.id != self.0);
    }
}

/// Changes the manifest of a folder and seals it again, as an attacker could but accidental damage could not.
///
/// # Panics
/// If there is no manifest, or nothing to change in it.
pub fn forge(folder: &Path, from: &str, to: &str) {
    let path = folder.join(crate::folder::MANIFEST);
    let text = std::fs::read_to_string(&path).expect("a manifest");
    let (_, body) = text.split_once('\n').expect("a seal");
    assert!(body.contains(from), "{from}");
    let body = body.replacen(from, to, 1);
    let seal = crate::folder::digest(body.as_bytes());
    std::fs::write(&path, format!("{{ \"digest\": \"{seal}\",\n{body}")).expect("a manifest");
}

/// Calls a function with the plan that applies to a path.
fn with<T: Default>(path: &Path, act: impl FnOnce(&mut Plan) -> T) -> T {
    plans().1.iter_mut().find(|plan| path.starts_with(&plan.root)).map(act).unwrap_or_default()
}

pub(crate) fn step(path: &Path) -> io::Result<()> {
    with(path, |plan| Some(plan.step())).unwrap_or(Ok(()))
}

/// How many of these bytes reach the disk.
pub(crate) fn write(path: &Path, bytes: usize) -> io::Result<usize> {
    with(path, |plan| Some(plan.write(path, bytes))).unwrap_or(Ok(bytes))
}

pub(crate) fn synced(path: &Path) {
    with(path, |plan| plan.pending.remove(path));
}

pub(crate) fn renamed(from: &Path, to: &Path) {
    with(from, |plan| {
        if plan.pending.remove(from) {
            plan.pending.insert(to.to_owned());
        }
    });
}

impl Plan {
    fn step(&mut self) -> io::Result<()> {
        if self.is_dead {
            return Err(io::Error::other("the process was killed by a test"));
        }
        let now = self.operations;
        self.operations += 1;
        match self.fault {
            Fault::Fail { at } if at == now => Err(io::Error::other("a test lets this fail")),
            Fault::Kill { at } if at == now => self.die(),
            Fault::PowerCut { at } if at == now => {
                for path in &self.pending {
                    let file = std::fs::OpenOptions::new().write(true).open(path);
                    let _ = file.and_then(|file| file.set_len(file.metadata()?.len() / 2));
                }
                self.die()
            }
            _ => Ok(()),
        }
    }

    fn die(&mut self) -> io::Result<()> {
        self.is_dead = true;
        Err(io::Error::other("the process was killed by a test"))
    }

    fn write(&mut self, path: &Path, bytes: usize) -> io::Result<usize> {
        let was_dead = self.is_dead;
        let mut allowed = bytes;
        match self.step() {
            // The write that was in progress at the end.
            Err(error) if matches!(self.fault, Fault::Kill { .. }) && !was_dead => {
                allowed = bytes / 2;
                if allowed == 0 {
                    return Err(error);
                }
            }
            Err(error) => return Err(error),
            Ok(()) => {}
        }
        if let Fault::Full { bytes: room } = self.fault {
            allowed = allowed.min(room.saturating_sub(self.bytes));
            if allowed == 0 && bytes > 0 {
                return Err(io::ErrorKind::StorageFull.into());
            }
        }
        self.bytes += allowed;
        self.pending.insert(path.to_owned());
        Ok(allowed)
    }
}
