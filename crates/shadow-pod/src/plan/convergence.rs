//! From any state, whatever happens in between, following the plan ends where it should: against an API server and a
//! kubelet in miniature, which hold real objects.

use std::collections::BTreeSet;

use kube::ResourceExt;
use proptest::prelude::*;
use serde_json::{Value, json};
use spillway_api::RawPod;
use spillway_api::offloading::{ShadowPod, ShadowPodStatus};
use spillway_api::well_known::{annotation, finalizer};

use super::{Circumstances, Step, plan};
use crate::digest::{self, PodDigest};
use crate::{disruption, forge};

/// What may happen to a pod and its ShadowPod, other than by this operator.
#[derive(Clone, Copy, Debug)]
enum Happens {
    /// This operator looks, and does what is next.
    Look,
    /// It is killed, and forgets what it only remembers.
    Restart,
    Scheduled,
    Started,
    ContainerRestarted,
    Exited {
        code: i64,
    },
    Evicted,
    /// Somebody deletes the pod.
    Deleted {
        grace: i64,
    },
    /// The kubelet ends a pod that is being deleted.
    Ended,
    OwnerStripped,
    Changed,
    ShadowDeleted,
}

fn happens() -> impl Strategy<Value = Happens> {
    prop_oneof![
        6 => Just(Happens::Look),
        1 => Just(Happens::Restart),
        2 => Just(Happens::Scheduled),
        3 => Just(Happens::Started),
        2 => Just(Happens::ContainerRestarted),
        1 => prop_oneof![Just(0), Just(1)].prop_map(|code| Happens::Exited { code }),
        1 => Just(Happens::Evicted),
        2 => prop_oneof![Just(0), Just(30)].prop_map(|grace| Happens::Deleted { grace }),
        2 => Just(Happens::Ended),
        1 => Just(Happens::OwnerStripped),
        1 => Just(Happens::Changed),
        1 => Just(Happens::ShadowDeleted),
    ]
}

struct World {
    shadow: Option<ShadowPod>,
    pod: Option<RawPod>,
    remembered: Option<PodDigest>,
    /// What is remembered of the pod that is gone.
    last: Option<PodDigest>,
    now: jiff::Timestamp,
    pods_made: u32,
    made_after_the_end: bool,
    /// The pods that a status once named.
    shown: BTreeSet<String>,
    /// Restarts in pods that were lost: of those that were shown, and of all.
    lost_restarts: (i64, i64),
}

impl World {
    fn new(policy: &str, fails_on_disruption: bool) -> Self {
        let mut annotations = json!({"offloading.spillway.dev/origin-uid": "l1"});
        if fails_on_disruption {
            annotations[annotation::ON_DISRUPTION] = json!(annotation::ON_DISRUPTION_FAIL);
        }
        let shadow = serde_json::from_value(json!({
            "apiVersion": "offloading.liqo.io/v1beta1", "kind": "ShadowPod",
            "metadata": {"name": "web", "namespace": "n", "uid": "s1", "generation": 1, "annotations": annotations,
                         "labels": {"offloading.liqo.io/origin": "rome"}},
            "spec": {"pod": {"restartPolicy": policy, "terminationGracePeriodSeconds": 30, "containers": [{"name": "main"}]}},
        }));
        Self {
            shadow: Some(shadow.unwrap()),
            pod: None,
            remembered: None,
            last: None,
            now: "2026-01-01T00:00:00Z".parse().unwrap(),
            pods_made: 0,
            made_after_the_end: false,
            shown: BTreeSet::new(),
            lost_restarts: (0, 0),
        }
    }

    fn status(&self) -> ShadowPodStatus {
        self.shadow.as_ref().and_then(|shadow| shadow.status.clone()).unwrap_or_default()
    }

    fn look(&mut self) -> Step {
        let shadow = self.shadow.clone().map(digest::shadow);
        let pod = self.pod.clone().and_then(|pod| digest::pod(pod, self.remembered.as_ref()));
        self.remembered = pod.clone();
        let around = Circumstances {
            now: self.now,
            last: self.last.as_ref(),
            pod_may_come: false,
            node_is_lost: false,
            update_waits: false,
        };
        plan(shadow.as_ref(), pod.as_ref(), around)
    }

    fn act(&mut self, step: Step) {
        match step {
            Step::Nothing => {}
            Step::Wait(delay) => self.now += delay,
            Step::CreatePod => self.create(),
            Step::UpdatePod => {
                let wanted = forge::wanted(self.shadow.as_ref().unwrap());
                self.pod.as_mut().unwrap().metadata.annotations = wanted.metadata.annotations;
            }
            Step::AdoptPod { .. } => {
                let owner = forge::owner("web", "s1");
                self.pod.as_mut().unwrap().metadata.owner_references = Some(vec![owner]);
            }
            Step::DeletePod { grace_seconds, .. } => self.delete(grace_seconds.map(i64::from)),
            Step::DropPod { grace_seconds, .. } => {
                self.pod.as_mut().unwrap().metadata.finalizers = None;
                self.delete(grace_seconds.map(i64::from));
            }
            Step::DeleteOrphan { .. } => {
                assert!(self.shadow.is_none(), "there is but one life here, and its ShadowPod is not gone");
                self.delete(None);
            }
            Step::ReleasePod { .. } | Step::ReleaseOrphan { .. } => {
                let is_going = self.shadow.as_ref().is_some_and(|shadow| shadow.metadata.deletion_timestamp.is_some());
                let has_ended = matches!(self.phase().as_str(), "Succeeded" | "Failed");
                let counts = is_going && has_ended && self.policy() != "Always";
                assert!(!counts || self.status().phase.is_final(), "how it ended is kept for who deleted it");
                self.pod.as_mut().unwrap().metadata.finalizers = None;
                self.collect();
            }
            Step::GuardShadow => {
                self.shadow.as_mut().unwrap().metadata.finalizers = Some(vec![finalizer::SHADOW_POD.to_owned()]);
            }
            // Here the consumer takes note of an outcome as soon as there is one.
            Step::ReleaseShadow | Step::ReleaseUnnoted => {
                assert!(self.pod.is_none(), "the pod goes first");
                self.shadow = None;
            }
            Step::WriteStatus(status) | Step::Show(status) | Step::CountLost { status, .. } => {
                assert!(!self.status().phase.is_final(), "an outcome is written once");
                assert_ne!(self.status(), *status, "no write without a difference");
                self.shown.extend(status.pod_uid.clone());
                self.shadow.as_mut().unwrap().status = Some(*status);
            }
        }
    }

    fn create(&mut self) {
        assert!(self.pod.is_none(), "a name is taken once");
        self.made_after_the_end |= self.status().phase.is_final();
        self.count_lost(self.last.clone());
        self.last = None;
        self.pods_made += 1;
        let mut pod = forge::pod(self.shadow.as_ref().unwrap());
        pod.metadata.uid = Some(format!("p{}", self.pods_made));
        pod.status = json!({"phase": "Pending"}).as_object().cloned().unwrap();
        self.pod = Some(pod);
    }

    /// As the API server does it.
    fn delete(&mut self, grace: Option<i64>) {
        let Some(pod) = &mut self.pod else { return };
        let ended = matches!(pod.status_str("phase"), "Succeeded" | "Failed") || pod.spec_str("nodeName").is_empty();
        let grace = if ended { 0 } else { grace.unwrap_or(30) };
        let grace = pod.metadata.deletion_grace_period_seconds.map_or(grace, |before| before.min(grace));
        pod.metadata.deletion_timestamp = Some(spillway_api::k8s::Time(self.now));
        pod.metadata.deletion_grace_period_seconds = Some(grace);
        self.collect();
    }

    /// Removes a pod that nothing holds.
    fn collect(&mut self) {
        let Some(pod) = &self.pod else { return };
        if pod.metadata.deletion_grace_period_seconds != Some(0) || !pod.finalizers().is_empty() {
            return;
        }
        let wanted = self.shadow.as_ref().is_some_and(|shadow| shadow.metadata.deletion_timestamp.is_none());
        let gone = digest::pod(pod.clone(), self.remembered.as_ref());
        if wanted && !self.status().phase.is_final() {
            self.lost_restarts.1 += gone.as_ref().map_or(0, |gone| gone.restarts.values().sum::<i64>());
        }
        self.last = gone;
        self.pod = None;
    }

    /// What must have been counted of a pod that is gone.
    fn count_lost(&mut self, gone: Option<PodDigest>) {
        let shown = gone.filter(|gone| self.shown.contains(&gone.uid));
        self.lost_restarts.0 += shown.map_or(0, |gone| gone.restarts.values().sum::<i64>());
    }

    fn set(&mut self, phase: &str, state: Value) {
        let Some(pod) = &mut self.pod else { return };
        let restarts = disruption::restarts(&pod.status).values().sum::<i64>();
        let container = json!({"name": "main", "restartCount": restarts, "state": state, "containerID": "c://1"});
        pod.status = json!({"phase": phase, "containerStatuses": [container]}).as_object().cloned().unwrap();
    }

    fn phase(&self) -> String {
        self.pod.as_ref().map(|pod| pod.status_str("phase").to_owned()).unwrap_or_default()
    }

    fn is_scheduled(&self) -> bool {
        self.pod.as_ref().is_some_and(|pod| !pod.spec_str("nodeName").is_empty())
    }

    fn is_deleted(&self) -> bool {
        self.pod.as_ref().is_some_and(|pod| pod.metadata.deletion_timestamp.is_some())
    }

    fn happen(&mut self, happens: Happens) {
        self.now += jiff::SignedDuration::from_secs(1);
        let exit = self.now.to_string();
        let running = self.phase() == "Running";
        match happens {
            Happens::Look => {
                let step = self.look();
                self.act(step);
            }
            Happens::Restart => {
                let held = self.shadow.as_ref().is_some_and(|shadow| !forge::pod(shadow).finalizers().is_empty());
                let last = self.last.take().filter(|_| held);
                self.count_lost(last);
                self.remembered = None;
            }
            Happens::Scheduled if self.phase() == "Pending" && !self.is_deleted() => {
                self.pod.as_mut().unwrap().spec.insert("nodeName".to_owned(), json!("n1"));
            }
            Happens::Started if self.phase() == "Pending" && !self.is_deleted() && self.is_scheduled() => {
                self.set("Running", json!({"running": {}}));
            }
            Happens::ContainerRestarted if running && !self.is_deleted() => {
                let pod = self.pod.as_mut().unwrap();
                let count = &mut pod.status["containerStatuses"][0]["restartCount"];
                *count = json!(count.as_i64().unwrap() + 1);
            }
            Happens::Exited { code } if running && self.policy() != "Always" => self.exit(code, &exit),
            Happens::Evicted if running => {
                self.exit(137, &exit);
                self.pod.as_mut().unwrap().status.insert("reason".to_owned(), json!("Evicted"));
            }
            Happens::Deleted { grace } => self.delete(Some(grace)),
            Happens::Ended if self.is_deleted() => {
                if running {
                    self.exit(143, &exit);
                }
                self.delete(Some(0));
            }
            // One that was let go is on its way out, and nothing would tell whose it was.
            Happens::OwnerStripped => {
                if let Some(pod) = self.pod.as_mut().filter(|pod| pod.metadata.deletion_timestamp.is_none()) {
                    pod.metadata.owner_references = None;
                }
            }
            Happens::Changed => {
                if let Some(shadow) = &mut self.shadow {
                    shadow.labels_mut().insert("changed".to_owned(), exit.replace(':', "."));
                }
            }
            Happens::ShadowDeleted => {
                if let Some(shadow) = &mut self.shadow {
                    shadow.metadata.deletion_timestamp = Some(spillway_api::k8s::Time(self.now));
                    if shadow.finalizers().is_empty() {
                        self.shadow = None;
                    }
                }
            }
            _ => {}
        }
    }

    fn policy(&self) -> String {
        self.pod.as_ref().map(|pod| pod.spec_str("restartPolicy").to_owned()).unwrap_or_default()
    }

    fn exit(&mut self, code: i64, at: &str) {
        let phase = if code == 0 { "Succeeded" } else { "Failed" };
        self.set(phase, json!({"terminated": {"exitCode": code, "finishedAt": at, "startedAt": at}}));
    }

    /// Nothing happens any more but what a scheduler, a kubelet and the garbage collector do.
    fn settle(&mut self) -> Result<(), TestCaseError> {
        for _ in 0..100 {
            let owned = self.pod.as_ref().is_some_and(|pod| !pod.owner_references().is_empty());
            if owned && self.shadow.is_none() && !self.is_deleted() {
                self.delete(None);
            }
            for progress in [Happens::Scheduled, Happens::Started, Happens::Ended] {
                self.happen(progress);
            }
            let step = self.look();
            if step == Step::Nothing && matches!(self.phase().as_str(), "Running" | "Succeeded" | "Failed" | "") {
                return Ok(());
            }
            self.act(step);
        }
        Err(TestCaseError::fail("it never comes to rest"))
    }
}

proptest! {
    #[test]
    fn whatever_happens_it_ends_where_it_should(
        policy in prop_oneof![Just("Always"), Just("OnFailure"), Just("Never")],
        fails in any::<bool>(),
        history in prop::collection::vec(happens(), 0..60),
    ) {
        let mut world = World::new(policy, fails);
        for happens in history {
            world.happen(happens);
        }
        world.settle()?;
        let status = world.status();
        prop_assert!(!world.made_after_the_end, "what has finished never runs again");
        match &world.shadow {
            None => prop_assert!(world.pod.is_none(), "nothing is left behind"),
            Some(shadow) if shadow.metadata.deletion_timestamp.is_some() => prop_assert!(false, "nothing hangs"),
            Some(_) if status.phase.is_final() => {
                prop_assert!(status.outcome.is_some());
                prop_assert!(policy != "Always" || fails, "always means always");
            }
            Some(shadow) => {
                let pod = world.pod.as_ref().expect("a pod");
                prop_assert_eq!((world.phase(), world.is_deleted()), ("Running".to_owned(), false));
                prop_assert_eq!(&status.pod_uid, &pod.metadata.uid);
                prop_assert_eq!(&pod.annotations()[annotation::LIVE_DIGEST], &forge::live_digest(shadow));
                prop_assert_eq!(&pod.owner_references()[0].uid, "s1");
                let former = status.former_restarts.values().sum::<i64>();
                let (counted, all) = world.lost_restarts;
                prop_assert!(counted <= former && former <= all, "{counted} <= {former} <= {all}");
            }
        }
    }
}
