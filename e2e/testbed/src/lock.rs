//! One command at a time per testbed: an advisory lock on a folder, released by the kernel when its holder dies.

use anyhow::{Context, Result};
use std::fs::{self, File, TryLockError};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Held until dropped.
#[derive(Debug)]
pub struct DirLock {
    _folder: File,
}

impl DirLock {
    /// Makes the folder if need be and waits for whoever holds it.
    pub fn acquire(dir: &Path, what: &str) -> Result<Self> {
        loop {
            fs::create_dir_all(dir).with_context(|| format!("cannot make {}", dir.display()))?;
            let Ok(folder) = File::open(dir) else { continue };
            match folder.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => {
                    eprintln!("waiting for another command that works on {what} …");
                    folder.lock().with_context(|| format!("cannot lock {}", dir.display()))?;
                }
                Err(TryLockError::Error(error)) => {
                    return Err(error).with_context(|| format!("cannot lock {}", dir.display()));
                }
            }
            // The former holder may have removed the folder: a lock on what is gone protects nothing.
            let held = folder.metadata()?;
            if fs::metadata(dir).is_ok_and(|now| (now.dev(), now.ino()) == (held.dev(), held.ino())) {
                return Ok(Self { _folder: folder });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;
    use std::time::Duration;

    #[test]
    fn the_second_waits_and_survives_the_removal_of_the_folder() {
        let parent = tempfile::tempdir().unwrap();
        let dir = parent.path().join("bed");
        let first = DirLock::acquire(&dir, "a test").unwrap();
        let (sender, receiver) = mpsc::channel();
        let waiting = dir.clone();
        let second = std::thread::spawn(move || {
            let lock = DirLock::acquire(&waiting, "a test").unwrap();
            sender.send(waiting.exists()).unwrap();
            drop(lock);
        });
        assert!(receiver.recv_timeout(Duration::from_millis(100)).is_err());
        fs::remove_dir(&dir).unwrap();
        drop(first);
        assert!(receiver.recv_timeout(Duration::from_secs(5)).unwrap());
        second.join().unwrap();
    }
}
