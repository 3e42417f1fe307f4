//! CoreDNS, as a process on the first node behind the Service `kube-system/kube-dns`.

use anyhow::Result;

use super::probe::Probe;
use super::{Launch, Site};

const READY: &str = "127.0.0.1:8053";

pub fn coredns(site: &Site<'_>) -> Result<Launch> {
    let corefile = site.cluster_path("Corefile");
    let mut launch = Launch::with_args(["-conf".to_owned(), corefile.display().to_string()]);
    // Names outside the cluster have no answer: nothing outside can be reached.
    let text = format!(
        ".:53 {{\n\
         \x20   bind {address}\n\
         \x20   errors\n\
         \x20   ready {READY}\n\
         \x20   kubernetes cluster.local in-addr.arpa ip6.arpa {{\n\
         \x20       kubeconfig {kubeconfig}\n\
         \x20       pods insecure\n\
         \x20       ttl 5\n\
         \x20   }}\n\
         \x20   loadbalance\n\
         }}\n",
        address = site.cluster.api_address,
        kubeconfig = site.kubeconfig_of("coredns")?,
    );
    launch.files = vec![(corefile, text)];
    Ok(launch)
}

pub fn coredns_ready(_: &Site<'_>) -> Probe {
    Probe::http(format!("http://{READY}/ready"))
}
