//! Pods of every kind, each to be run on a real node and on the virtual one.

use k8s_openapi::api::core::v1::{ContainerStatus, Pod};
use serde_json::{Value, json};

use crate::pods::{SERVE, is_ready, phase};

pub struct Case {
    pub name: &'static str,
    pub spec: Value,
    /// Whether a pod has come to the state that is to be compared.
    pub settled: fn(&Pod) -> bool,
}

pub fn container(name: &str, command: &str) -> Value {
    json!({"name": name, "image": "busybox:testbed", "imagePullPolicy": "Never", "command": ["sh", "-c", command]})
}

fn with(mut value: Value, fields: Value) -> Value {
    if let (Some(value), Value::Object(fields)) = (value.as_object_mut(), fields) {
        value.extend(fields);
    }
    value
}

/// Where a pod runs that must run at home.
pub const REAL_NODE: &str = "home-0";

/// Adds to a pod's spec where it is to run. Tokens are reflection's business, so none is mounted.
pub fn placed(spec: &Value, on_virtual: bool) -> Value {
    let place = if on_virtual {
        json!({"nodeSelector": {"liqo.io/type": "virtual-node"},
               "tolerations": [{"key": "virtual-node.liqo.io/not-allowed", "operator": "Exists"}]})
    } else {
        json!({"nodeSelector": {"kubernetes.io/hostname": REAL_NODE}})
    };
    let common = json!({"automountServiceAccountToken": false, "terminationGracePeriodSeconds": 2});
    with(with(common, spec.clone()), place)
}

fn main_status(pod: &Pod) -> Option<&ContainerStatus> {
    pod.status.as_ref()?.container_statuses.as_ref()?.iter().find(|status| status.name == "main")
}

fn waits_for(pod: &Pod, reasons: &[&str]) -> bool {
    let reason = main_status(pod).and_then(|status| status.state.as_ref()?.waiting.as_ref()?.reason.clone());
    reason.is_some_and(|reason| reasons.contains(&reason.as_str()))
}

fn restarts(pod: &Pod) -> i32 {
    main_status(pod).map_or(0, |status| status.restart_count)
}

/// Main runs, and has been found not to be ready.
fn runs_unready(pod: &Pod) -> bool {
    let runs = main_status(pod).and_then(|status| status.state.as_ref()).is_some_and(|state| state.running.is_some());
    runs && !is_ready(pod)
}

pub fn all() -> Vec<Case> {
    let case = |name, spec, settled| Case { name, spec, settled };
    let one = |main: Value| json!({"containers": [main]});
    let main = |command: &str| container("main", command);
    let scratch = json!({"volumes": [{"name": "scratch", "emptyDir": {}}]});
    let remembers = |command: &str, fields: Value| {
        let mounted = json!({"volumeMounts": [{"name": "scratch", "mountPath": "/scratch"}]});
        with(one(with(with(main(command), mounted), fields)), scratch.clone())
    };
    let probe = |command: &str| json!({"exec": {"command": ["sh", "-c", command]}, "periodSeconds": 1, "timeoutSeconds": 10, "failureThreshold": 1});
    let never = |spec: Value| with(spec, json!({"restartPolicy": "Never"}));
    let init = |containers: Value| with(one(main(SERVE)), json!({"initContainers": containers}));
    let sidecar = with(container("sidecar", SERVE), json!({"restartPolicy": "Always"}));
    let missing = |policy: &str| {
        // Nobody listens there: the answer is prompt and the same everywhere.
        one(with(main(SERVE), json!({"image": "127.0.0.1:1/missing:1", "imagePullPolicy": policy})))
    };
    let limits = json!({"cpu": "20m", "memory": "20Mi"});
    let from_map = json!([{"name": "X", "valueFrom": {"configMapKeyRef": {"name": "missing", "key": "x"}}}]);
    let in_two_lives = "if [ -f /scratch/first ]; then touch /scratch/second; fi; touch /scratch/first";
    vec![
        case("plain", one(main(SERVE)), is_ready),
        case("two-containers", json!({"containers": [main(SERVE), container("other", SERVE)]}), is_ready),
        case(
            "guaranteed",
            one(with(main(SERVE), json!({"resources": {"requests": limits, "limits": limits}}))),
            is_ready,
        ),
        case("init", init(json!([container("first", "true"), container("second", "true")])), is_ready),
        case("sidecar", init(json!([sidecar])), is_ready),
        case(
            "sidecar-of-a-task",
            never(json!({"initContainers": [sidecar], "containers": [main("sleep 1")]})),
            |pod| phase(pod) == "Succeeded",
        ),
        case("init-fails", never(init(json!([container("first", "exit 4")]))), |pod| phase(pod) == "Failed"),
        case("succeeds", never(one(main("echo well done >/dev/termination-log"))), |pod| phase(pod) == "Succeeded"),
        case("fails", never(one(main("echo no good >/dev/termination-log; exit 3"))), |pod| phase(pod) == "Failed"),
        case("one-of-two-fails", never(json!({"containers": [main("exit 3"), container("other", "true")]})), |pod| {
            phase(pod) == "Failed"
        }),
        case(
            "second-try",
            with(
                remembers("[ -f /scratch/again ] || { touch /scratch/again; exit 1; }", json!({})),
                json!({"restartPolicy": "OnFailure"}),
            ),
            |pod| phase(pod) == "Succeeded" && restarts(pod) == 1,
        ),
        case("crash-loop", one(main("exit 1")), |pod| waits_for(pod, &["CrashLoopBackOff"])),
        case(
            "too-much-memory",
            never(one(with(main("exec tail /dev/zero"), json!({"resources": {"limits": {"memory": "20Mi"}}})))),
            |pod| phase(pod) == "Failed",
        ),
        case("no-such-image", missing("IfNotPresent"), |pod| waits_for(pod, &["ErrImagePull", "ImagePullBackOff"])),
        case("image-never-pulled", missing("Never"), |pod| waits_for(pod, &["ErrImageNeverPull"])),
        case("no-such-config-map", one(with(main(SERVE), json!({"env": from_map}))), |pod| {
            waits_for(pod, &["CreateContainerConfigError"])
        }),
        case("never-ready", one(with(main(SERVE), json!({"readinessProbe": probe("false")}))), runs_unready),
        case(
            "never-started",
            one(with(
                main(SERVE),
                json!({"startupProbe": with(probe("false"),
             json!({"failureThreshold": 999}))}),
            )),
            runs_unready,
        ),
        case(
            "not-alive-at-first",
            remembers(
                &format!("{in_two_lives}; {SERVE}"),
                json!({"livenessProbe": with(probe("test -f /scratch/second"), json!({"initialDelaySeconds": 1}))}),
            ),
            |pod| restarts(pod) == 1 && is_ready(pod),
        ),
        case("deadline", with(one(main(SERVE)), json!({"activeDeadlineSeconds": 20})), |pod| phase(pod) == "Failed"),
        case(
            "gated",
            with(one(main(SERVE)), json!({"readinessGates": [{"conditionType": "example.com/gate"}]})),
            runs_unready,
        ),
    ]
}
