//! A file tree for an image: programs with the libraries that they load, in a fixed order and without times.

use anyhow::{Context, Result, ensure};
use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::command::command;

/// Paths are relative to the image's root.
#[derive(Clone, Debug, Default)]
pub struct Rootfs {
    entries: BTreeMap<PathBuf, Entry>,
}

#[derive(Clone, Debug)]
enum Entry {
    Directory { mode: u32 },
    File { content: Vec<u8>, mode: u32 },
    Link { target: PathBuf },
}

impl Rootfs {
    pub fn directory(&mut self, path: &str, mode: u32) -> &mut Self {
        self.insert(Path::new(path), Entry::Directory { mode });
        self
    }

    pub fn file(&mut self, path: &str, content: impl Into<Vec<u8>>, mode: u32) -> &mut Self {
        self.insert(Path::new(path), Entry::File { content: content.into(), mode });
        self
    }

    pub fn link(&mut self, path: &str, target: &str) -> &mut Self {
        self.insert(Path::new(path), Entry::Link { target: target.into() });
        self
    }

    /// A file of the host under the same path, whatever links lead there.
    pub fn host_file(&mut self, path: &Path, mode: u32) -> Result<&mut Self> {
        let content = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
        self.insert(path, Entry::File { content, mode });
        Ok(self)
    }

    /// A program, its dynamic loader and every library that it needs.
    pub fn program(&mut self, source: &Path, path: &str) -> Result<&mut Self> {
        let content = fs::read(source).with_context(|| format!("cannot read {}", source.display()))?;
        self.file(path, content, 0o755);
        for library in libraries(source)? {
            self.host_file(&library, 0o755)?;
        }
        Ok(self)
    }

    /// What the C library loads by name when it looks up users and hosts; parts of it since glibc 2.34.
    pub fn name_service(&mut self) -> Result<&mut Self> {
        let libc = self.entries.keys().find(|path| path.ends_with("libc.so.6")).cloned();
        let Some(dir) = libc.as_deref().and_then(Path::parent).map(|dir| Path::new("/").join(dir)) else {
            return Ok(self);
        };
        for library in ["libnss_files.so.2", "libnss_dns.so.2", "libresolv.so.2"] {
            if dir.join(library).exists() {
                self.host_file(&dir.join(library), 0o755)?;
            }
        }
        self.file("etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files dns\n", 0o644);
        Ok(self)
    }

    fn insert(&mut self, path: &Path, entry: Entry) {
        let path = path.strip_prefix("/").unwrap_or(path).to_path_buf();
        for parent in path.ancestors().skip(1).filter(|parent| *parent != Path::new("")) {
            self.entries.entry(parent.to_path_buf()).or_insert(Entry::Directory { mode: 0o755 });
        }
        self.entries.insert(path, entry);
    }

    /// Writes the tree as one image layer.
    pub fn write_layer(&self, output: impl Write) -> Result<()> {
        let mut layer = tar::Builder::new(output);
        for (path, entry) in &self.entries {
            let mut header = tar::Header::new_gnu();
            header.set_mtime(0);
            header.set_uid(0);
            header.set_gid(0);
            match entry {
                Entry::Directory { mode } => {
                    header.set_entry_type(tar::EntryType::Directory);
                    header.set_mode(*mode);
                    header.set_size(0);
                    layer.append_data(&mut header, path, std::io::empty())?;
                }
                Entry::File { content, mode } => {
                    header.set_mode(*mode);
                    header.set_size(content.len() as u64);
                    layer.append_data(&mut header, path, content.as_slice())?;
                }
                Entry::Link { target } => {
                    header.set_entry_type(tar::EntryType::Symlink);
                    header.set_mode(0o777);
                    header.set_size(0);
                    layer.append_link(&mut header, path, target)?;
                }
            }
        }
        layer.into_inner()?.flush()?;
        Ok(())
    }

    /// Writes the tree into a folder, which must be empty or absent.
    pub fn write_directory(&self, dir: &Path) -> Result<()> {
        fs::create_dir_all(dir)?;
        ensure!(fs::read_dir(dir)?.next().is_none(), "{} is not empty", dir.display());
        for (path, entry) in &self.entries {
            let path = dir.join(path);
            match entry {
                Entry::Directory { mode } => {
                    fs::create_dir_all(&path)?;
                    fs::set_permissions(&path, fs::Permissions::from_mode(*mode))?;
                }
                Entry::File { content, mode } => {
                    fs::write(&path, content)?;
                    fs::set_permissions(&path, fs::Permissions::from_mode(*mode))?;
                }
                Entry::Link { target } => std::os::unix::fs::symlink(target, &path)?,
            }
        }
        Ok(())
    }
}

/// What the dynamic loader would load for a program; nothing for a static one.
fn libraries(program: &Path) -> Result<Vec<PathBuf>> {
    let output = command("ldd").arg(program).output().context("cannot run ldd")?;
    let text = String::from_utf8_lossy(&output.stdout);
    ensure!(!text.contains("not found"), "{} lacks libraries here:\n{text}", program.display());
    Ok(parse_ldd(&text))
}

fn parse_ldd(text: &str) -> Vec<PathBuf> {
    text.lines()
        .filter_map(|line| line.split_whitespace().find(|word| word.starts_with('/')).map(PathBuf::from))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_are_read_from_every_form_of_line() {
        let text = "\tlinux-vdso.so.1 (0x1)\n\tlibc.so.6 => /lib/x/libc.so.6 (0x2)\n\t/lib64/ld.so.2 (0x3)\n";
        assert_eq!(parse_ldd(text), [PathBuf::from("/lib/x/libc.so.6"), PathBuf::from("/lib64/ld.so.2")]);
        assert!(parse_ldd("\tstatically linked\n").is_empty());
    }

    #[test]
    fn the_same_tree_gives_the_same_layer_in_whatever_order_it_was_made() {
        let layer = |swap: bool| {
            let mut rootfs = Rootfs::default();
            let mut files = [("etc/a", "1"), ("usr/b", "2")];
            if swap {
                files.reverse();
            }
            for (path, content) in files {
                rootfs.file(path, content, 0o644);
            }
            let mut bytes = Vec::new();
            rootfs.write_layer(&mut bytes).unwrap();
            bytes
        };
        assert_eq!(layer(false), layer(true));
    }

    #[test]
    fn a_directory_has_the_tree_with_its_modes() {
        let folder = tempfile::tempdir().unwrap();
        let mut rootfs = Rootfs::default();
        rootfs.file("/bin/tool", "x", 0o755).link("bin/alias", "tool").directory("tmp", 0o1777);
        rootfs.write_directory(&folder.path().join("root")).unwrap();
        let mode = fs::metadata(folder.path().join("root/bin/alias")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o755);
        assert!(rootfs.write_directory(&folder.path().join("root")).is_err(), "not empty");
    }
}
