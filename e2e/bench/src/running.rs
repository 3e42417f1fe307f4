//! The operators of a run.

use anyhow::Result;

use crate::bed::Bed;
use crate::operators::Operator;

/// The operators of a run, and the slow link before the provider if there is one.
pub struct Running {
    pub virtual_kubelet: Operator,
    pub others: Vec<Operator>,
    pub delay: Option<Operator>,
    pub rtt_ms: u64,
}

impl Running {
    /// The operators by name; not the slow link, which is no part of Spillway.
    pub fn processes(&self) -> Vec<(String, u32)> {
        let all = self.others.iter().chain([&self.virtual_kubelet]);
        all.map(|operator| (operator.name.clone(), operator.pid())).collect()
    }

    /// Kills virtual-kubelet; `restart` brings it back.
    pub fn kill_virtual_kubelet(self) -> Result<Halted> {
        let Self { virtual_kubelet, others, delay, rtt_ms } = self;
        virtual_kubelet.kill()?;
        Ok(Halted { others, delay, rtt_ms })
    }

    pub async fn stop(self) -> Result<()> {
        for operator in [self.virtual_kubelet].into_iter().chain(self.others).chain(self.delay) {
            operator.stop().await?;
        }
        Ok(())
    }
}

/// Everything but virtual-kubelet.
pub struct Halted {
    others: Vec<Operator>,
    delay: Option<Operator>,
    rtt_ms: u64,
}

impl Halted {
    pub async fn restart(self, bed: &Bed) -> Result<Running> {
        let virtual_kubelet = bed.virtual_kubelet(self.rtt_ms).await?;
        Ok(Running { virtual_kubelet, others: self.others, delay: self.delay, rtt_ms: self.rtt_ms })
    }
}
