//! What runs and what does not.

use std::fmt;

use crate::state::Home;
use crate::units::Instance;

/// One process of one cluster.
#[derive(Clone, Debug)]
pub struct ComponentStatus {
    pub cluster: String,
    pub name: String,
    pub state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    Running {
        pid: i32,
    },
    /// It was started and is gone: killed, or it crashed.
    Dead,
    /// Stopped on request, or never started.
    Stopped,
}

impl fmt::Display for State {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Running { pid } => write!(out, "running (process {pid})"),
            Self::Dead => write!(out, "DEAD"),
            Self::Stopped => write!(out, "stopped"),
        }
    }
}

pub(crate) fn components(home: &Home, instances: &[Instance<'_>]) -> Vec<ComponentStatus> {
    instances
        .iter()
        .filter(|instance| instance.is_process())
        .map(|instance| {
            let recorded = instance.recorded(home);
            let state = match (recorded.alive(), recorded.identity()) {
                (Some(identity), _) => State::Running { pid: identity.pid },
                (None, Some(_)) => State::Dead,
                (None, None) => State::Stopped,
            };
            ComponentStatus { cluster: instance.cluster.name.clone(), name: instance.name(), state }
        })
        .collect()
}
