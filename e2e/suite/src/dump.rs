//! What a failed test leaves for whoever reads its output: objects, events and the operators' logs.

use spillway_testbed::Testbed;

use crate::install::NAMESPACE;

/// Prints what `kubectl` says of the namespaces involved and the operators' logs, on both sides.
pub fn print(testbed: &Testbed, involved: &[(&str, &str)]) {
    for (cluster, namespace) in involved {
        kubectl(testbed, cluster, &["get", "pods,shadowpods", "-n", namespace, "-o", "wide"]);
        kubectl(testbed, cluster, &["get", "events", "-n", namespace, "--sort-by=.lastTimestamp"]);
        kubectl(
            testbed,
            cluster,
            &["get", "pods,shadowpods", "-n", namespace, "-o", "yaml", "--show-managed-fields=false"],
        );
    }
    for cluster in testbed.clusters() {
        kubectl(testbed, &cluster.name, &["get", "nodes,virtualnodes,namespacemaps", "-A", "-o", "wide"]);
        kubectl(testbed, &cluster.name, &["get", "pods", "-A", "-o", "wide"]);
        kubectl(
            testbed,
            &cluster.name,
            &[
                "logs",
                "-n",
                NAMESPACE,
                "--all-containers",
                "--prefix",
                "--tail=60",
                "-l",
                "app.kubernetes.io/part-of=spillway",
            ],
        );
        for tenant in tenants(testbed, &cluster.name) {
            let kubelets = "offloading.liqo.io/component=virtual-kubelet";
            kubectl(testbed, &cluster.name, &["logs", "-n", &tenant, "--prefix", "--tail=60", "-l", kubelets]);
        }
    }
}

/// The tenant namespaces, where virtual-kubelets run.
fn tenants(testbed: &Testbed, cluster: &str) -> Vec<String> {
    let args = ["get", "namespaces", "-l", "liqo.io/tenant-namespace=true", "-o", "jsonpath={.items[*].metadata.name}"];
    let output = testbed.kubectl(cluster).ok().and_then(|mut kubectl| kubectl.args(args).output().ok());
    let names = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
    names.split_whitespace().map(str::to_owned).collect()
}

fn kubectl(testbed: &Testbed, cluster: &str, args: &[&str]) {
    let output = testbed.kubectl(cluster).map(|mut kubectl| kubectl.args(args).output());
    println!("--- {cluster}: kubectl {}", args.join(" "));
    match output {
        Ok(Ok(output)) => {
            let text = String::from_utf8_lossy(&output.stdout);
            let lines: Vec<_> = text.lines().take(400).collect();
            println!("{}\n{}", lines.join("\n"), String::from_utf8_lossy(&output.stderr));
        }
        Ok(Err(error)) => println!("cannot be run: {error}"),
        Err(error) => println!("cannot be run: {error:#}"),
    }
}
