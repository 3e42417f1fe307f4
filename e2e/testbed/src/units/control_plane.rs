//! etcd, the API server, the controller-manager and the scheduler.

use anyhow::Result;

use super::probe::Probe;
use super::{Launch, Site};
use crate::plan::API_PORT;

const ETCD_URL: &str = "http://127.0.0.1:2379";

pub fn etcd(site: &Site<'_>) -> Result<Launch> {
    Ok(Launch::with_args([
        format!("--name={}", site.cluster.name),
        format!("--data-dir={}", site.cluster_path("etcd").display()),
        format!("--listen-client-urls={ETCD_URL}"),
        format!("--advertise-client-urls={ETCD_URL}"),
        "--listen-peer-urls=http://127.0.0.1:2380".into(),
        "--initial-advertise-peer-urls=http://127.0.0.1:2380".into(),
        format!("--initial-cluster={}=http://127.0.0.1:2380", site.cluster.name),
        format!("--listen-metrics-urls=http://{}:2381", site.cluster.api_address),
        // A testbed that loses power is made anew; waiting for the disk only slows the tests.
        "--unsafe-no-fsync".into(),
        "--log-level=warn".into(),
        "--quota-backend-bytes=8589934592".into(),
        "--auto-compaction-mode=periodic".into(),
        "--auto-compaction-retention=10m".into(),
    ]))
}

pub fn etcd_ready(_: &Site<'_>) -> Probe {
    Probe::http(format!("{ETCD_URL}/health"))
}

pub fn apiserver(site: &Site<'_>) -> Result<Launch> {
    let cluster = site.cluster;
    Ok(Launch::with_args([
        format!("--etcd-servers={ETCD_URL}"),
        format!("--advertise-address={}", cluster.api_address),
        "--bind-address=0.0.0.0".into(),
        format!("--secure-port={API_PORT}"),
        format!("--service-cluster-ip-range={}", cluster.service_cidr),
        format!("--tls-cert-file={}", site.pki("apiserver.crt")),
        format!("--tls-private-key-file={}", site.pki("apiserver.key")),
        format!("--client-ca-file={}", site.pki("ca.crt")),
        "--authorization-mode=Node,RBAC".into(),
        "--enable-admission-plugins=NodeRestriction".into(),
        "--allow-privileged=true".into(),
        format!("--kubelet-client-certificate={}", site.pki("apiserver-kubelet-client.crt")),
        format!("--kubelet-client-key={}", site.pki("apiserver-kubelet-client.key")),
        // Without it any serving certificate of a kubelet passes.
        format!("--kubelet-certificate-authority={}", site.pki("ca.crt")),
        "--kubelet-preferred-address-types=InternalIP".into(),
        "--service-account-issuer=https://kubernetes.default.svc.cluster.local".into(),
        format!("--service-account-key-file={}", site.pki("service-account.pub")),
        format!("--service-account-signing-key-file={}", site.pki("service-account.key")),
        format!("--requestheader-client-ca-file={}", site.pki("front-proxy-ca.crt")),
        "--requestheader-allowed-names=front-proxy-client".into(),
        "--requestheader-username-headers=X-Remote-User".into(),
        "--requestheader-group-headers=X-Remote-Group".into(),
        "--requestheader-extra-headers-prefix=X-Remote-Extra-".into(),
        format!("--proxy-client-cert-file={}", site.pki("front-proxy-client.crt")),
        format!("--proxy-client-key-file={}", site.pki("front-proxy-client.key")),
        "--enable-aggregator-routing=true".into(),
        "--shutdown-delay-duration=0s".into(),
    ]))
}

pub fn apiserver_ready(site: &Site<'_>) -> Probe {
    Probe::Http {
        url: format!("{}/readyz", site.cluster.api_url()),
        curl_args: [("--cacert", "ca.crt"), ("--cert", "admin.crt"), ("--key", "admin.key")]
            .into_iter()
            .flat_map(|(flag, file)| [flag.to_owned(), site.pki(file)])
            .collect(),
    }
}

pub fn controller_manager(site: &Site<'_>) -> Result<Launch> {
    let kubeconfig = site.kubeconfig_of("kube-controller-manager")?;
    let mut launch = Launch::with_args([
        format!("--kubeconfig={kubeconfig}"),
        format!("--authentication-kubeconfig={kubeconfig}"),
        format!("--authorization-kubeconfig={kubeconfig}"),
        "--leader-elect=false".into(),
        "--use-service-account-credentials=true".into(),
        format!("--root-ca-file={}", site.pki("ca.crt")),
        format!("--service-account-private-key-file={}", site.pki("service-account.key")),
        format!("--cluster-signing-cert-file={}", site.pki("ca.crt")),
        format!("--cluster-signing-key-file={}", site.pki("ca.key")),
        format!("--cluster-cidr={}", site.cluster.pod_cidr),
        format!("--service-cluster-ip-range={}", site.cluster.service_cidr),
        // Else it makes one in /usr.
        format!("--flex-volume-plugin-dir={}", site.cluster_path("volume-plugins").display()),
        // The plan fixes each node's pod CIDR; see `node_ready`.
        "--allocate-node-cidrs=false".into(),
    ]);
    launch.args.extend(rate(site));
    Ok(launch)
}

pub fn controller_manager_ready(_: &Site<'_>) -> Probe {
    Probe::http("https://127.0.0.1:10257/healthz")
}

pub fn scheduler(site: &Site<'_>) -> Result<Launch> {
    let kubeconfig = site.kubeconfig_of("kube-scheduler")?;
    let mut launch = Launch::with_args([
        format!("--kubeconfig={kubeconfig}"),
        format!("--authentication-kubeconfig={kubeconfig}"),
        format!("--authorization-kubeconfig={kubeconfig}"),
        "--leader-elect=false".into(),
    ]);
    launch.args.extend(rate(site));
    Ok(launch)
}

pub fn scheduler_ready(_: &Site<'_>) -> Probe {
    Probe::http("https://127.0.0.1:10259/healthz")
}

fn rate(site: &Site<'_>) -> Vec<String> {
    site.spec
        .api_qps
        .map(|qps| vec![format!("--kube-api-qps={qps}"), format!("--kube-api-burst={}", qps.saturating_mul(2))])
        .unwrap_or_default()
}
