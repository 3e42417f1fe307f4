//! Every field of a pod's spec and what becomes of it on the way. A test compares the table with the schema of a real API
//! server; a field that is newer than the table is carried.

use spillway_api::RawObject;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Treatment {
    /// Goes over as it is.
    Carried,
    /// Goes over in another form, which `forge` makes.
    Translated(&'static str),
    /// Stays at home on purpose.
    Dropped(&'static str),
    /// A pod that has it cannot run on a virtual node.
    Refused(&'static str),
}

use Treatment::{Carried, Dropped, Refused, Translated};

const FIRST_SCHEDULING: Treatment = Dropped("it was about the nodes of the consumer, and has done its work");
const HOSTS: Treatment = Dropped("the provider's hosts are not shared with its tenants");
const PRIORITIES: Treatment = Dropped("the priorities of the provider are its own");
const CONTAINERS: Treatment =
    Translated("what they are told of the pod itself is told of the one at home; no ports of hosts with hostNetwork");
const ACCOUNTS: Treatment = Dropped("the service accounts of the provider are its own");

pub const POD_SPEC: &[(&str, Treatment)] = &[
    ("activeDeadlineSeconds", Carried),
    ("affinity", Translated("the virtual node's node affinity, and anti-affinity as the pod's annotation asks for it")),
    ("automountServiceAccountToken", Translated("false: no token of the provider's is mounted")),
    ("containers", CONTAINERS),
    ("dnsConfig", Carried),
    ("dnsPolicy", Carried),
    ("enableServiceLinks", Carried),
    ("ephemeralContainers", Carried),
    ("hostAliases", Carried),
    ("hostIPC", HOSTS),
    ("hostNetwork", HOSTS),
    ("hostPID", HOSTS),
    ("hostUsers", Carried),
    ("hostname", Carried),
    ("hostnameOverride", Carried),
    ("imagePullSecrets", Carried),
    ("initContainers", CONTAINERS),
    ("nodeName", FIRST_SCHEDULING),
    ("nodeSelector", Translated("the virtual node's")),
    ("os", Carried),
    ("overhead", Dropped("the provider's admission sets that of its own runtime class")),
    ("preemptionPolicy", PRIORITIES),
    ("priority", PRIORITIES),
    ("priorityClassName", PRIORITIES),
    ("readinessGates", Dropped("who sets their conditions does so at home, where they are counted in")),
    ("resourceClaims", Refused("resource claims name devices of this cluster, which a pod in another one cannot have")),
    ("resources", Carried),
    ("restartPolicy", Carried),
    ("runtimeClassName", Translated("the annotation's, the pod's own or the virtual node's")),
    ("schedulerName", FIRST_SCHEDULING),
    ("schedulingGates", FIRST_SCHEDULING),
    ("securityContext", Carried),
    ("serviceAccount", ACCOUNTS),
    ("serviceAccountName", ACCOUNTS),
    ("setHostnameAsFQDN", Carried),
    ("shareProcessNamespace", Carried),
    ("subdomain", Carried),
    ("terminationGracePeriodSeconds", Carried),
    ("tolerations", Translated("without those of virtual nodes and of everything, with the virtual node's")),
    ("topologySpreadConstraints", FIRST_SCHEDULING),
    ("volumes", Translated("without projected tokens, which the provider would issue for an account of its own")),
    ("workloadRef", FIRST_SCHEDULING),
];

pub fn treatment(field: &str) -> Treatment {
    POD_SPEC.iter().find(|(name, _)| *name == field).map_or(Carried, |(_, treatment)| *treatment)
}

/// Why a pod cannot run on a virtual node, if so.
pub fn refusal(spec: &RawObject) -> Option<String> {
    spec.iter().find_map(|(field, value)| match treatment(field) {
        Refused(why) if !value.is_null() && value.as_array().is_none_or(|list| !list.is_empty()) => {
            Some(format!("spec.{field}: {why}"))
        }
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_field_has_one_row_in_order() {
        assert!(POD_SPEC.is_sorted_by(|a, b| a.0 < b.0));
    }

    #[test]
    fn a_pod_with_claims_is_refused_in_words() {
        let spec = |claims| json!({"resourceClaims": claims}).as_object().cloned().unwrap();
        assert_eq!(refusal(&spec(json!([]))), None);
        let refused = refusal(&spec(json!([{"name": "gpu"}]))).unwrap();
        assert!(refused.starts_with("spec.resourceClaims: "), "{refused}");
    }

    #[test]
    fn a_field_of_the_future_is_carried() {
        assert_eq!(treatment("fieldOfTheFuture"), Carried);
    }
}
