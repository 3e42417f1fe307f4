//! Whether a component serves.

use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use crate::command::{inside, succeeds};

pub enum Probe {
    /// A URL that must answer with success, asked from inside the node.
    Http { url: String, curl_args: Vec<String> },
    /// A socket that must accept.
    Socket(PathBuf),
    /// A file or folder that must be there.
    Path(PathBuf),
}

impl Probe {
    /// Health endpoints only: whose certificate serves them does not matter.
    pub fn http(url: impl Into<String>) -> Self {
        Self::Http { url: url.into(), curl_args: vec!["--insecure".into()] }
    }

    pub fn passes(&self, network_namespace: &Path) -> bool {
        match self {
            Self::Http { url, curl_args } => succeeds(
                inside(network_namespace, "curl")
                    .args(["--silent", "--fail", "--noproxy", "*", "--max-time", "5"])
                    .args(curl_args)
                    .arg(url),
            ),
            Self::Socket(path) => UnixStream::connect(path).is_ok(),
            Self::Path(path) => path.exists(),
        }
    }

    pub fn describe(&self) -> String {
        match self {
            Self::Http { url, .. } => url.clone(),
            Self::Socket(path) | Self::Path(path) => path.display().to_string(),
        }
    }
}
