//! What the end of a pod means: finished for good, or disrupted and to be made again. One rule, no client, no clock.

use jiff::Timestamp;
use serde_json::Value;
use spillway_api::RawObject;
use spillway_api::offloading::ShadowPodPhase;
use spillway_api::raw_pod::str_of;

use crate::digest::{PodDigest, has_condition};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Has not ended, as far as one can tell.
    Alive,
    /// Ended by itself; must never run again.
    Finished(ShadowPodPhase),
    /// Ended because the cluster took it away; must run again.
    Disrupted,
}

/// Judges a pod whose deletion, if it is being deleted, the consumer did not ask for.
pub fn judge(pod: &PodDigest) -> Verdict {
    let empty = RawObject::new();
    let status = pod.last_status.as_ref().unwrap_or(&empty);
    let always = pod.restart_policy.is_empty() || pod.restart_policy == "Always";
    match pod.phase.as_str() {
        "Failed" if str_of(status, "reason") == "DeadlineExceeded" => Verdict::Finished(ShadowPodPhase::Failed),
        "Succeeded" | "Failed" if always => Verdict::Disrupted,
        "Succeeded" => Verdict::Finished(ShadowPodPhase::Succeeded),
        "Failed" if was_disrupted(pod, status) => Verdict::Disrupted,
        "Failed" => Verdict::Finished(ShadowPodPhase::Failed),
        _ => Verdict::Alive,
    }
}

fn was_disrupted(pod: &PodDigest, status: &RawObject) -> bool {
    let deleted_before_exit = pod.deletion.is_some_and(|deletion| deletion.requested <= last_exit(status));
    str_of(status, "reason") == "Evicted" || has_condition(status, "DisruptionTarget") || deleted_before_exit
}

/// When the last container ended, to the second. One that waits never ran, so it says nothing; but of a pod that can't tell
/// when anything of it ended, one must assume that it was the deletion which ended it.
fn last_exit(status: &RawObject) -> Timestamp {
    let statuses = ["initContainerStatuses", "containerStatuses"].into_iter();
    let containers: Vec<_> =
        statuses.filter_map(|field| status.get(field)).filter_map(Value::as_array).flatten().collect();
    let ended = containers.iter().filter(|container| container.pointer("/state/waiting").is_none());
    let exits = ended.map(|container| {
        let finished = container.pointer("/state/terminated/finishedAt").and_then(Value::as_str);
        finished.and_then(|text| text.parse::<Timestamp>().ok()).unwrap_or(Timestamp::MAX)
    });
    exits.max().unwrap_or(Timestamp::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::digest::PodDeletion;
    use rstest::rstest;
    use serde_json::json;

    const EXIT: &str = "2026-01-01T12:00:30Z";

    fn pod(policy: &str, phase: &str, status: Value) -> PodDigest {
        let Value::Object(mut last) = status else { panic!("an object") };
        last.entry("containerStatuses")
            .or_insert(json!([{"state": {"terminated": {"finishedAt": EXIT, "exitCode": 1}}}]));
        PodDigest {
            restart_policy: policy.to_owned(),
            phase: phase.to_owned(),
            last_status: Some(last),
            ..PodDigest::default()
        }
    }

    fn deleted(mut pod: PodDigest, requested: &str) -> PodDigest {
        pod.deletion = Some(PodDeletion { grace_seconds: 30, requested: requested.parse().unwrap() });
        pod
    }

    const SUCCEEDED: Verdict = Verdict::Finished(ShadowPodPhase::Succeeded);
    const FAILED: Verdict = Verdict::Finished(ShadowPodPhase::Failed);

    #[rstest]
    #[case("Always", "Running", Verdict::Alive)]
    #[case("Never", "Pending", Verdict::Alive)]
    #[case("Always", "Succeeded", Verdict::Disrupted)]
    #[case("Always", "Failed", Verdict::Disrupted)]
    #[case("", "Failed", Verdict::Disrupted)]
    #[case("OnFailure", "Succeeded", SUCCEEDED)]
    #[case("Never", "Succeeded", SUCCEEDED)]
    #[case("OnFailure", "Failed", FAILED)]
    #[case("Never", "Failed", FAILED)]
    fn by_restart_policy(#[case] policy: &str, #[case] phase: &str, #[case] verdict: Verdict) {
        assert_eq!(judge(&pod(policy, phase, json!({}))), verdict);
    }

    #[rstest]
    #[case("Always")]
    #[case("OnFailure")]
    #[case("Never")]
    fn a_deadline_is_an_end_for_every_policy(#[case] policy: &str) {
        assert_eq!(judge(&pod(policy, "Failed", json!({"reason": "DeadlineExceeded"}))), FAILED);
    }

    #[rstest]
    #[case(json!({"reason": "Evicted"}))]
    #[case(json!({"conditions": [{"type": "DisruptionTarget", "status": "True"}]}))]
    fn what_the_cluster_took_away_runs_again(#[case] status: Value) {
        for policy in ["Always", "OnFailure", "Never"] {
            assert_eq!(judge(&pod(policy, "Failed", status.clone())), Verdict::Disrupted);
        }
    }

    #[test]
    fn a_disruption_that_did_not_happen_is_none() {
        let status = json!({"conditions": [{"type": "DisruptionTarget", "status": "False"}]});
        assert_eq!(judge(&pod("Never", "Failed", status)), FAILED);
    }

    #[rstest]
    #[case("2026-01-01T12:00:29Z", Verdict::Disrupted)]
    #[case("2026-01-01T12:00:30Z", Verdict::Disrupted)]
    #[case("2026-01-01T12:00:31Z", FAILED)]
    fn a_deletion_before_the_exit_is_a_disruption_one_after_it_is_not(#[case] asked: &str, #[case] verdict: Verdict) {
        assert_eq!(judge(&deleted(pod("Never", "Failed", json!({})), asked)), verdict);
    }

    #[test]
    fn success_is_final_even_when_a_deletion_came_first() {
        assert_eq!(judge(&deleted(pod("Never", "Succeeded", json!({})), "2026-01-01T12:00:00Z")), SUCCEEDED);
    }

    #[test]
    fn an_exit_without_a_time_after_a_deletion_is_a_disruption() {
        for statuses in
            [json!([{"state": {"waiting": {}}}]), json!([{"state": {"terminated": {"exitCode": 1}}}]), json!([])]
        {
            let unknown = pod("Never", "Failed", json!({"containerStatuses": statuses}));
            assert_eq!(judge(&deleted(unknown, "2026-01-01T12:00:00Z")), Verdict::Disrupted);
        }
    }

    #[test]
    fn a_container_that_never_started_does_not_hide_the_failure_of_an_init_container() {
        let failed = pod(
            "Never",
            "Failed",
            json!({
                "initContainerStatuses": [{"state": {"terminated": {"finishedAt": EXIT, "exitCode": 1}}}],
                "containerStatuses": [{"state": {"waiting": {"reason": "PodInitializing"}}}],
            }),
        );
        assert_eq!(judge(&deleted(failed, "2026-01-01T13:00:00Z")), FAILED, "deleted an hour after it had failed");
    }
}
