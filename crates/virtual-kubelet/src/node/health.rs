//! From the probe of the remote API server to the health of the Node. Pure: the clock is a parameter, and a monotonic one.

use std::time::{Duration, Instant};

use spillway_operator::peer::Reach;

/// What the Ready condition of the Node is to say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Health {
    Reachable,
    /// Not known yet, or away for less time than counts: the condition stays as it is.
    Undecided,
    Away {
        reason: &'static str,
        message: String,
    },
}

/// The health, and after how long it may be another without any news.
pub fn judge(reach: &Reach, patience: Duration, now: Instant) -> (Health, Option<Duration>) {
    match reach {
        Reach::Unknown => (Health::Undecided, None),
        Reach::Reachable => (Health::Reachable, None),
        Reach::Away { since, reason, message } => {
            let left = patience.saturating_sub(now.saturating_duration_since(*since));
            if left.is_zero() {
                (Health::Away { reason, message: message.clone() }, None)
            } else {
                (Health::Undecided, Some(left))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_absence_that_lasts_makes_the_node_unready() {
        let (since, patience) = (Instant::now(), Duration::from_secs(15));
        let away = Reach::Away { since, reason: "RemoteCredentialsRefused", message: "403".into() };
        let after = |seconds| judge(&away, patience, since + Duration::from_secs(seconds));
        assert_eq!(after(0), (Health::Undecided, Some(patience)));
        assert_eq!(after(14), (Health::Undecided, Some(Duration::from_secs(1))));
        let unready = Health::Away { reason: "RemoteCredentialsRefused", message: "403".into() };
        assert_eq!(after(15), (unready.clone(), None));
        assert_eq!(after(3600), (unready, None));
        assert_eq!(judge(&Reach::Unknown, patience, since), (Health::Undecided, None));
        assert_eq!(judge(&Reach::Reachable, patience, since), (Health::Reachable, None));
    }
}
