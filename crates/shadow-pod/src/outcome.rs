//! What the end of a pod means: finished for good, or disrupted and to be made again. One rule, no client, no clock.

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use spillway_api::RawObject;
use spillway_api::offloading::ShadowPodPhase;
use spillway_api::raw_pod::str_of;

use crate::digest::PodDigest;

/// How far the clocks of nodes and of the API server may be apart, with what rounding to seconds adds, before the order of
/// a deletion and an exit that nobody saw happen is told wrongly.
const CLOCKS_AGREE_WITHIN: SignedDuration = SignedDuration::from_secs(5);

/// What was seen weighs more than what clocks say, unless they are further apart than any that are kept in time: then its
/// node was cut off, and the pod had long ended when somebody took it for alive.
const CLOCKS_ARE_KEPT_WITHIN: SignedDuration = SignedDuration::from_secs(30);

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
    let status = &pod.last_status();
    match pod.phase.as_str() {
        "Failed" if str_of(status, "reason") == "DeadlineExceeded" => Verdict::Finished(ShadowPodPhase::Failed),
        "Succeeded" | "Failed" if pod.always_restarts() => Verdict::Disrupted,
        "Succeeded" => Verdict::Finished(ShadowPodPhase::Succeeded),
        "Failed" if was_disrupted(pod, status) => Verdict::Disrupted,
        "Failed" => Verdict::Finished(ShadowPodPhase::Failed),
        _ => Verdict::Alive,
    }
}

fn was_disrupted(pod: &PodDigest, status: &RawObject) -> bool {
    if str_of(status, "reason") == "Evicted" {
        return true;
    }
    if let Some(target) = disruption_target(status) {
        // Its kubelet notes a disruption when it has ended the pod; the control plane takes also those away that have ended
        // by themselves, before anybody knew.
        let since = str_of(target, "lastTransitionTime").parse().ok();
        let had_failed = since.is_some_and(|at| failed_by_itself(pod, status) && exit_preceded(at, status));
        return str_of(target, "reason") == "TerminationByKubelet" || !had_failed;
    }
    pod.deletion.is_some_and(|deletion| match pod.deleted_alive {
        _ if !failed_by_itself(pod, status) => true,
        true => !exit_preceded(deletion.requested, status),
        false => exit_followed(deletion.requested, status),
    })
}

/// Whether it may have: a kubelet calls a pod that is taken away Failed whatever became of its containers, but by itself
/// only one fails that is never restarted, and of which a container did.
fn failed_by_itself(pod: &PodDigest, status: &RawObject) -> bool {
    let code = |container: &Value| container.pointer("/state/terminated/exitCode").and_then(Value::as_i64);
    pod.restart_policy == "Never" && deciding(status).filter_map(code).any(|code| code != 0)
}

fn disruption_target(status: &RawObject) -> Option<&RawObject> {
    let conditions = status.get("conditions").and_then(Value::as_array).into_iter().flatten();
    conditions
        .filter_map(Value::as_object)
        .find(|condition| str_of(condition, "type") == "DisruptionTarget" && str_of(condition, "status") == "True")
}

/// Whether the pod had ended long enough before a disruption that no difference of clocks explains it.
fn exit_preceded(disruption: Timestamp, status: &RawObject) -> bool {
    last_exit(status).is_some_and(|exit| disruption.duration_since(exit) > CLOCKS_ARE_KEPT_WITHIN)
}

/// Whether the deletion is what ended a pod that was first seen when it had been deleted and had failed, both. Where it was
/// seen between the two, or the API server left it a grace, that is known without this: see [`PodDigest::deleted_alive`].
///
/// The one time is the API server's, the other the node's. Far apart they tell the order, whatever the clocks; close
/// together they don't, and how the containers ended must do: by the signals of a deletion, or in a way of their own.
fn exit_followed(deletion: Timestamp, status: &RawObject) -> bool {
    // Of a pod that can't tell when anything of it ended, one must assume that it was the deletion which ended it.
    let Some(exit) = last_exit(status) else { return true };
    let after = exit.duration_since(deletion);
    if after.abs() > CLOCKS_AGREE_WITHIN { after.is_positive() } else { was_killed(status) }
}

/// When the last container ended, to the second. One that waits never ran, so it says nothing.
fn last_exit(status: &RawObject) -> Option<Timestamp> {
    let ended = deciding(status).filter(|container| container.pointer("/state/waiting").is_none());
    let exits = ended.map(|container| {
        let finished = container.pointer("/state/terminated/finishedAt").and_then(Value::as_str);
        finished.and_then(|text| text.parse::<Timestamp>().ok())
    });
    exits.collect::<Option<Vec<_>>>()?.into_iter().max()
}

/// The containers whose end is the end of the pod: a sidecar is only ended with them.
fn deciding(status: &RawObject) -> impl Iterator<Item = &Value> {
    let list = |name| status.get(name).and_then(Value::as_array).into_iter().flatten();
    let any_ran = list("containerStatuses").any(|container| container.pointer("/state/waiting").is_none());
    list(if any_ran { "containerStatuses" } else { "initContainerStatuses" })
}

/// By SIGKILL or SIGTERM, and not for want of memory.
fn was_killed(status: &RawObject) -> bool {
    deciding(status).filter_map(|container| container.pointer("/state/terminated")).any(|terminated| {
        let code = terminated.get("exitCode").and_then(Value::as_i64);
        matches!(code, Some(137 | 143)) && terminated.get("reason").and_then(Value::as_str) != Some("OOMKilled")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::digest::PodDeletion;
    use rstest::rstest;
    use serde_json::json;
    use spillway_api::Packed;

    const EXIT: &str = "2026-01-01T12:00:30Z";

    fn pod(policy: &str, phase: &str, status: Value) -> PodDigest {
        let Value::Object(mut last) = status else { panic!("an object") };
        last.entry("containerStatuses")
            .or_insert(json!([{"state": {"terminated": {"finishedAt": EXIT, "exitCode": 1}}}]));
        PodDigest {
            restart_policy: policy.to_owned(),
            phase: phase.to_owned(),
            last_status: Some(Packed::of(&last)),
            ..PodDigest::default()
        }
    }

    /// As it is seen after its kubelet, or whoever deletes an ended pod, has left no grace.
    fn deleted(mut pod: PodDigest, requested: &str) -> PodDigest {
        pod.deletion = Some(PodDeletion { grace_seconds: 0, requested: requested.parse().unwrap() });
        pod
    }

    fn exited(code: i64, reason: &str) -> PodDigest {
        let terminated = json!({"finishedAt": EXIT, "exitCode": code, "reason": reason});
        pod("Never", "Failed", json!({"containerStatuses": [{"state": {"terminated": terminated}}]}))
    }

    const SUCCEEDED: Verdict = Verdict::Finished(ShadowPodPhase::Succeeded);
    const FAILED: Verdict = Verdict::Finished(ShadowPodPhase::Failed);

    #[rstest]
    #[case("Always", "Running", Verdict::Alive)]
    #[case("Never", "Pending", Verdict::Alive)]
    #[case("Always", "Succeeded", Verdict::Disrupted)]
    #[case("Always", "Failed", Verdict::Disrupted)]
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
    #[case::exit_after_it("2026-01-01T11:00:00Z", Verdict::Disrupted)]
    #[case::at_once("2026-01-01T12:00:30Z", Verdict::Disrupted)]
    #[case::with_clocks_somewhat_apart("2026-01-01T12:01:00Z", Verdict::Disrupted)]
    #[case::on_a_node_that_was_cut_off("2026-01-01T12:01:01Z", FAILED)]
    fn one_that_was_taken_for_alive_at_its_deletion_was_disrupted_unless_it_had_long_ended(
        #[case] asked: &str,
        #[case] verdict: Verdict,
    ) {
        for code in [1, 143] {
            let pod = PodDigest { deleted_alive: true, ..deleted(exited(code, "Error"), asked) };
            assert_eq!(judge(&pod), verdict);
        }
    }

    #[rstest]
    #[case::by_the_kubelet("TerminationByKubelet", "2026-01-01T13:00:00Z", Verdict::Disrupted)]
    #[case::evicted_while_it_ran("EvictionByEvictionAPI", "2026-01-01T12:00:20Z", Verdict::Disrupted)]
    #[case::evicted_after_it_had_failed("EvictionByEvictionAPI", "2026-01-01T12:05:00Z", FAILED)]
    #[case::given_up_after_it_had_failed("DeletionByTaintManager", "2026-01-01T12:05:00Z", FAILED)]
    fn who_takes_a_pod_away_that_has_failed_by_itself_does_not_undo_that(
        #[case] reason: &str,
        #[case] at: &str,
        #[case] verdict: Verdict,
    ) {
        let target = json!({"type": "DisruptionTarget", "status": "True", "reason": reason, "lastTransitionTime": at});
        assert_eq!(judge(&pod("Never", "Failed", json!({"conditions": [target]}))), verdict);
    }

    #[test]
    fn a_pod_that_was_taken_away_while_it_waited_had_not_failed() {
        let before = json!({"state": {"terminated": {"finishedAt": EXIT, "exitCode": 0}}});
        let waits = json!({"state": {"waiting": {"reason": "ImagePullBackOff"}}});
        let status = json!({"initContainerStatuses": [before, waits.clone()], "containerStatuses": [waits]});
        let late = PodDigest { deleted_alive: true, ..deleted(pod("Never", "Failed", status), "2026-01-01T13:00:00Z") };
        assert_eq!(judge(&late), Verdict::Disrupted);
        let crashed = PodDigest { restart_policy: "OnFailure".into(), ..exited(1, "Error") };
        let crashed = PodDigest { deleted_alive: true, ..deleted(crashed, "2026-01-01T13:00:00Z") };
        assert_eq!(judge(&crashed), Verdict::Disrupted, "it waited to be restarted");
    }

    #[test]
    fn a_sidecar_that_is_ended_with_its_pod_was_not_killed_by_a_deletion() {
        let ended =
            |code: i64| json!({"state": {"terminated": {"finishedAt": EXIT, "exitCode": code, "reason": "Error"}}});
        let statuses = json!({"initContainerStatuses": [ended(143)], "containerStatuses": [ended(1)]});
        assert_eq!(judge(&deleted(pod("Never", "Failed", statuses), "2026-01-01T12:00:31Z")), FAILED);
    }

    #[rstest]
    #[case::long_after_the_deletion("2026-01-01T12:00:24Z", 1, "Error", Verdict::Disrupted)]
    #[case::long_before_it("2026-01-01T12:00:36Z", 1, "Error", FAILED)]
    #[case::long_before_it_though_killed("2026-01-01T12:00:36Z", 137, "Error", FAILED)]
    #[case::close_and_by_itself("2026-01-01T12:00:29Z", 1, "Error", FAILED)]
    #[case::close_and_by_itself_on_a_node_whose_clock_is_behind("2026-01-01T12:00:33Z", 1, "Error", FAILED)]
    #[case::close_and_killed("2026-01-01T12:00:29Z", 137, "Error", Verdict::Disrupted)]
    #[case::close_and_killed_on_a_node_whose_clock_is_behind("2026-01-01T12:00:33Z", 143, "Error", Verdict::Disrupted)]
    #[case::close_and_out_of_memory("2026-01-01T12:00:29Z", 137, "OOMKilled", FAILED)]
    fn of_what_was_not_seen_clocks_tell_if_far_apart_and_else_signals(
        #[case] asked: &str,
        #[case] code: i64,
        #[case] reason: &str,
        #[case] verdict: Verdict,
    ) {
        assert_eq!(judge(&deleted(exited(code, reason), asked)), verdict);
        let onfailure = PodDigest { restart_policy: "OnFailure".into(), ..exited(code, reason) };
        assert_eq!(judge(&deleted(onfailure, asked)), Verdict::Disrupted, "it would have been restarted");
        let always = PodDigest { restart_policy: "Always".into(), ..exited(code, reason) };
        assert_eq!(judge(&deleted(always, asked)), Verdict::Disrupted, "always means always");
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
