//! The few categories that decide what happens after an error. A category is a metric label; an error text is not.

use std::time::Duration;

use kube::api::Preconditions;

/// What an error means for the work that met it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Category {
    /// The other side did not answer or asked for patience: back off and try again.
    Transient,
    /// Somebody wrote first: read again and decide anew.
    Conflict,
    /// The request was understood and refused: report it on the object; a change or a slow retry may help.
    Permanent,
}

impl Category {
    pub fn as_str(self) -> &'static str {
        match self {
            Category::Transient => "transient",
            Category::Conflict => "conflict",
            Category::Permanent => "permanent",
        }
    }
}

/// An error that knows its category.
pub trait Categorised: std::fmt::Display {
    fn category(&self) -> Category;

    /// How long the server asked us to wait, if it did.
    fn retry_after(&self) -> Option<Duration> {
        None
    }
}

impl Categorised for kube::Error {
    fn category(&self) -> Category {
        match self {
            kube::Error::Api(status) => of_status_code(status.code),
            _ => Category::Transient,
        }
    }

    fn retry_after(&self) -> Option<Duration> {
        let kube::Error::Api(status) = self else {
            return None;
        };
        let seconds = status.details.as_ref()?.retry_after_seconds;
        (seconds > 0).then(|| Duration::from_secs(u64::from(seconds)))
    }
}

/// 403 counts as permanent: admission and quota refuse with it, and the user must see what they said.
fn of_status_code(code: u16) -> Category {
    match code {
        409 => Category::Conflict,
        400 | 402 | 403 | 405 | 406 | 411..=422 => Category::Permanent,
        _ => Category::Transient,
    }
}

/// A request that failed, named by what it was to achieve.
#[derive(Debug, thiserror::Error)]
#[error("cannot {action}: {}", words(.source))]
pub struct RequestError {
    action: &'static str,
    source: kube::Error,
}

/// For `map_err`.
pub fn while_trying(action: &'static str) -> impl Fn(kube::Error) -> RequestError {
    move |source| RequestError { action, source }
}

impl Categorised for RequestError {
    fn category(&self) -> Category {
        self.source.category()
    }

    fn retry_after(&self) -> Option<Duration> {
        self.source.retry_after()
    }
}

/// What an API server said, in its own words; kube's own text repeats the whole answer as a debug print. Where there was no
/// answer, what lies at the bottom of it tells most.
pub fn words(error: &kube::Error) -> String {
    if let kube::Error::Api(status) = error {
        return format!("{} ({})", status.message, status.code);
    }
    let (text, cause) = (error.to_string(), bottom(error).to_string());
    if text.contains(&cause) { text } else { format!("{text}: {cause}") }
}

fn bottom<'a>(error: &'a (dyn std::error::Error + 'static)) -> &'a (dyn std::error::Error + 'static) {
    error.source().map_or(error, bottom)
}

/// For a deletion with a UID precondition, or a patch of what may be gone: it is gone, or another of the same name is there.
/// Either way the step is done, and an event tells what is next.
pub fn settled<T>(result: kube::Result<T>) -> kube::Result<()> {
    match result {
        Ok(_) => Ok(()),
        Err(error) if is_not_found(&error) || is_conflict(&error) => Ok(()),
        Err(error) => Err(error),
    }
}

/// The precondition that a write hits this object and no later one of the same name.
pub fn only(uid: String) -> Preconditions {
    Preconditions { uid: Some(uid), resource_version: None }
}

/// True for an answer that says the object is not there.
pub fn is_not_found(error: &kube::Error) -> bool {
    has_code(error, 404)
}

/// True for an answer that says the object exists already, or was changed by somebody else.
pub fn is_conflict(error: &kube::Error) -> bool {
    has_code(error, 409)
}

fn has_code(error: &kube::Error, code: u16) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == code)
}

/// Turns "not found" into `None`.
pub fn found<T>(result: kube::Result<T>) -> kube::Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) if is_not_found(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_without_an_answer_tells_its_cause() {
        let refused = std::io::Error::other("connection refused");
        assert_eq!(words(&kube::Error::Service(Box::new(Failed(refused)))), "ServiceError: failed: connection refused");
    }

    #[derive(Debug, thiserror::Error)]
    #[error("failed")]
    struct Failed(#[source] std::io::Error);

    #[test]
    fn status_codes_fall_into_categories() {
        let table = [
            (400, Category::Permanent),
            (401, Category::Transient), // a credential that is being renewed
            (403, Category::Permanent),
            (404, Category::Transient), // the namespace or CRD may be on its way
            (408, Category::Transient),
            (409, Category::Conflict),
            (422, Category::Permanent),
            (429, Category::Transient),
            (500, Category::Transient),
            (503, Category::Transient),
        ];
        for (code, category) in table {
            assert_eq!(of_status_code(code), category, "code {code}");
        }
    }
}
