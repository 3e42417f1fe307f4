//! Errors named by the action that failed. What a user can mend carries the reason of its condition.

use std::time::Duration;

use spillway_operator::error::words;
use spillway_operator::{Categorised, Category};

use super::forge::ForgeError;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Nothing can be done until somebody changes an object; the condition says which.
    #[error("{message}")]
    Blocked { reason: &'static str, message: String },
    #[error("cannot {action}: {}", words(source))]
    Request { action: String, source: kube::Error },
}

impl Error {
    pub fn blocked(reason: &'static str, message: impl Into<String>) -> Self {
        Error::Blocked { reason, message: message.into() }
    }

    /// For `map_err`: names the action that a request was part of.
    pub fn request(action: impl Into<String>) -> impl FnOnce(kube::Error) -> Self {
        let action = action.into();
        move |source| Error::Request { action, source }
    }

    pub fn reason(&self) -> &'static str {
        match self {
            Error::Blocked { reason, .. } => reason,
            Error::Request { .. } => "Refused",
        }
    }
}

impl From<ForgeError> for Error {
    fn from(error: ForgeError) -> Self {
        Error::blocked(error.reason(), error.to_string())
    }
}

impl Categorised for Error {
    fn category(&self) -> Category {
        match self {
            Error::Blocked { .. } => Category::Permanent,
            Error::Request { source, .. } => source.category(),
        }
    }

    fn retry_after(&self) -> Option<Duration> {
        match self {
            Error::Blocked { .. } => None,
            Error::Request { source, .. } => source.retry_after(),
        }
    }
}
