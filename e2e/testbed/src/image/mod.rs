//! Container images without Docker: a file tree from the machine's own programs, and an archive around it.

pub mod archive;
pub mod product;
pub mod rootfs;
pub mod stock;
