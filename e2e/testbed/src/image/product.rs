//! The image of the product: the release binaries, what they load, and nothing else; no shell.

use anyhow::{Context, Result, ensure};
use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};

use super::archive::{Config, Image};
use super::rootfs::Rootfs;

/// Whom the image's processes run as.
pub const USER: &str = "65532:65532";
const AUTHORITIES: &str = "/etc/ssl/certs/ca-certificates.crt";

/// The file tree with each of `binaries` (names below `bin_dir`) in `/usr/bin`.
pub fn rootfs(bin_dir: &Path, binaries: &[String]) -> Result<Rootfs> {
    ensure!(!binaries.is_empty(), "name at least one binary");
    let mut rootfs = Rootfs::default();
    for binary in binaries {
        let source: PathBuf = bin_dir.join(binary);
        rootfs.program(&source, &format!("usr/bin/{binary}"))?;
    }
    rootfs
        .name_service()?
        .host_file(Path::new(AUTHORITIES), 0o644)?
        .directory("tmp", 0o1777)
        .file("etc/passwd", "root:x:0:0:root:/:/none\nnonroot:x:65532:65532:nonroot:/:/none\n", 0o644)
        .file("etc/group", "root:x:0:\nnonroot:x:65532:\n", 0o644);
    Ok(rootfs)
}

/// Writes the image as a docker-archive.
pub fn build(bin_dir: &Path, binaries: &[String], reference: &str, out: &Path) -> Result<()> {
    let (_, tag) = reference.rsplit_once(':').context("the tag is missing: NAME:TAG")?;
    ensure!(tag != "latest", "a tag other than `latest` is needed: kubelets always pull that one");
    let config = Config { user: USER.into(), ..Config::default() };
    let image = Image { rootfs: rootfs(bin_dir, binaries)?, reference: reference.into(), config };
    let temporary = out.with_extension("tar.new");
    let file = File::create(&temporary).with_context(|| format!("cannot write {}", temporary.display()))?;
    image.write(BufWriter::new(file))?;
    std::fs::rename(&temporary, out).with_context(|| format!("cannot write {}", out.display()))
}
