//! The kubelet and kube-proxy of a node.

use anyhow::Result;
use serde_json::json;

use super::probe::Probe;
use super::{Launch, Site};
use crate::certs;

pub fn kubelet(site: &Site<'_>) -> Result<Launch> {
    let config = site.node_path("kubelet.json");
    let kubeconfig = site.kubeconfig_of(&certs::client_file(site.node))?;
    let mut launch = Launch::with_args([
        format!("--config={}", config.display()),
        format!("--kubeconfig={kubeconfig}"),
        format!("--hostname-override={}", site.node.name),
        format!("--node-ip={}", site.node.address),
        "-v=2".into(),
    ]);
    launch.files = vec![(config, kubelet_config(site))];
    launch.in_node_mounts = true;
    Ok(launch)
}

pub fn kubelet_ready(_: &Site<'_>) -> Probe {
    Probe::http("http://127.0.0.1:10248/healthz")
}

fn kubelet_config(site: &Site<'_>) -> String {
    let socket = format!("unix://{}", site.home.containerd_socket(&site.node.name).display());
    let serving = certs::serving_file(site.node);
    let config = json!({
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "authentication": {
            "anonymous": { "enabled": false },
            "webhook": { "enabled": true },
            "x509": { "clientCAFile": site.pki("ca.crt") },
        },
        "authorization": { "mode": "Webhook" },
        "tlsCertFile": site.pki(&format!("{serving}.crt")),
        "tlsPrivateKeyFile": site.pki(&format!("{serving}.key")),
        "containerRuntimeEndpoint": socket,
        "cgroupDriver": "cgroupfs",
        // Two kubelets under one root kill each other's pods.
        "cgroupRoot": format!("/{}", site.home.node_cgroup(&site.node.name).display()),
        "enforceNodeAllocatable": [],
        "clusterDomain": "cluster.local",
        "clusterDNS": [site.cluster.dns_address()],
        // Pods must not inherit the host's resolver: nothing outside can be reached.
        "resolvConf": "",
        "podLogsDir": site.node_path("pod-logs"),
        "volumePluginDir": site.node_path("volume-plugins"),
        "failSwapOn": false,
        "failCgroupV1": false,
        "maxPods": 250,
        "serializeImagePulls": false,
        // The machine is shared with everything else; a full disk is not this node's business, and an image
        // that is thrown away cannot be pulled again.
        "evictionHard": {
            "memory.available": "1Mi",
            "nodefs.available": "0%",
            "nodefs.inodesFree": "0%",
            "imagefs.available": "0%",
            "imagefs.inodesFree": "0%",
        },
        "imageGCHighThresholdPercent": 100,
        "imageGCLowThresholdPercent": 99,
        "oomScoreAdj": 0,
    });
    format!("{config:#}\n")
}

pub fn proxy(site: &Site<'_>) -> Result<Launch> {
    Ok(Launch::with_args([
        format!("--kubeconfig={}", site.kubeconfig_of("kube-proxy")?),
        "--proxy-mode=nftables".into(),
        format!("--hostname-override={}", site.node.name),
        format!("--cluster-cidr={}", site.cluster.pod_cidr),
        format!("--healthz-bind-address={}:10256", site.node.address),
        format!("--metrics-bind-address={}:10249", site.node.address),
        // These write settings that the machine may not let us write.
        "--conntrack-max-per-core=0".into(),
        "--conntrack-tcp-timeout-established=0s".into(),
        "--conntrack-tcp-timeout-close-wait=0s".into(),
        "--oom-score-adj=0".into(),
    ]))
}

pub fn proxy_ready(site: &Site<'_>) -> Probe {
    Probe::http(format!("http://{}:10256/livez", site.node.address))
}
