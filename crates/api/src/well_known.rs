//! Labels, annotations, taints, reasons, finalizers, field managers and names that have a meaning, each in one place.
//!
//! Keys under `liqo.io` are those that Liqo's users and clients know; keys under `spillway.dev` are ours.

/// Labels that clients and operators select by.
pub mod label {
    /// On a Node: what kind of node it is; see [`NODE_TYPE_VIRTUAL`].
    pub const NODE_TYPE: &str = "liqo.io/type";
    /// The value of [`NODE_TYPE`] on every virtual node.
    pub const NODE_TYPE_VIRTUAL: &str = "virtual-node";
    /// The ID of the peer that an object belongs to: on Nodes, VirtualNodes, NamespaceMaps, ResourceSlices, twin and tenant
    /// namespaces, Secrets.
    pub const REMOTE_CLUSTER_ID: &str = "liqo.io/remote-cluster-id";
    /// On a tenant namespace: `true`.
    pub const TENANT_NAMESPACE: &str = "liqo.io/tenant-namespace";
    /// On a local namespace: `true` makes the pod webhook act there.
    pub const SCHEDULING_ENABLED: &str = "liqo.io/scheduling-enabled";

    /// On everything that the consumer writes at the provider: the ID of the consumer.
    pub const ORIGIN: &str = "offloading.liqo.io/origin";
    /// On everything that the consumer writes at the provider: the ID of the provider.
    pub const DESTINATION: &str = "offloading.liqo.io/destination";
    /// On ShadowPods, their pods and their token Secrets: the virtual node that they belong to.
    pub const NODE_NAME: &str = "offloading.liqo.io/nodename";
    /// On a token Secret at the provider: the service account that the tokens are of.
    pub const SERVICE_ACCOUNT_NAME: &str = "offloading.liqo.io/service-account-name";
    /// On the Deployment and the pods of a virtual-kubelet: [`COMPONENT_VIRTUAL_KUBELET`].
    pub const COMPONENT: &str = "offloading.liqo.io/component";
    /// The value of [`COMPONENT`] on virtual-kubelets.
    pub const COMPONENT_VIRTUAL_KUBELET: &str = "virtual-kubelet";
    /// On the Deployment and the pods of a virtual-kubelet: the VirtualNode that they serve.
    pub const VIRTUAL_NODE: &str = "liqo.io/virtual-node";

    /// On a local pod: `true` says that it runs in another cluster.
    pub const SHADOW_POD: &str = "liqo.io/shadowPod";
    /// On a local pod: `true` says that the cluster it runs in cannot be reached.
    pub const REMOTE_UNAVAILABLE: &str = "liqo.io/remote-unavailable";
    /// On a pod or an EndpointSlice at the provider: the kind that it was made from.
    pub const MANAGED_BY: &str = "liqo.io/managed-by";
    /// The value of [`MANAGED_BY`] on pods.
    pub const MANAGED_BY_SHADOW_POD: &str = "shadowpod";
    /// The value of [`MANAGED_BY`] on EndpointSlices.
    pub const MANAGED_BY_SHADOW_ENDPOINT_SLICE: &str = "shadowendpointslice";
    /// On a ShadowPod: the user that created it, whose quota it counts against.
    pub const CREATOR_USER: &str = "liqo.io/creator-user";
    /// On a Node: whether the cluster behind it offers storage classes, `true` or `false`.
    pub const STORAGE_AVAILABLE: &str = "storage.liqo.io/available";
    /// On an object: `true` takes it out of the sight of the webhooks.
    pub const WEBHOOK_SKIP: &str = "liqo.io/webhook-skip";

    /// `true` on an object that is to be copied to the peer, `false` on the copy.
    pub const REPLICATION: &str = "liqo.io/replication";
    /// On a copy: `true`.
    pub const REPLICATED: &str = "liqo.io/replicated";
    /// On a copy: the ID of the cluster that it came from.
    pub const REPLICATION_ORIGIN: &str = "liqo.io/originID";
    /// On an object that is to be copied: the ID of the cluster that it goes to.
    pub const REPLICATION_DESTINATION: &str = "liqo.io/remoteID";

    /// On a Secret at the provider: `true` asks for a nonce to be put in it.
    pub const NONCE: &str = "liqo.io/nonce";
    /// On a Secret at the consumer: `true` asks for its nonce to be signed.
    pub const SIGNED_NONCE: &str = "liqo.io/signed-nonce";
    /// On a kubeconfig Secret: what the identity is for.
    pub const IDENTITY_TYPE: &str = "liqo.io/identity-type";
    /// On a VirtualNode, an Identity or a Secret: the ResourceSlice that it was made for.
    pub const RESOURCE_SLICE_NAME: &str = "liqo.io/resourceslice-name";

    /// On a ClusterRole at the provider: `true` opens what it grants to every tenant, in its twin namespaces.
    pub const AGGREGATE_TO_TENANT: &str = "offloading.spillway.dev/aggregate-to-tenant";

    /// On an EndpointSlice: who writes it.
    pub const ENDPOINT_SLICE_MANAGED_BY: &str = "endpointslice.kubernetes.io/managed-by";
    /// The value of [`ENDPOINT_SLICE_MANAGED_BY`] on reflected slices.
    pub const ENDPOINT_SLICE_MANAGED_BY_REFLECTION: &str = "endpointslice.reflection.liqo.io";
    /// On an EndpointSlice: the Service that it belongs to.
    pub const SERVICE_NAME: &str = "kubernetes.io/service-name";
    /// On a Node: its name.
    pub const HOSTNAME: &str = "kubernetes.io/hostname";
    /// On a Node: its role, `agent` on virtual nodes.
    pub const ROLE: &str = "kubernetes.io/role";
    /// On a Node: its operating system.
    pub const OS: &str = "kubernetes.io/os";
    /// On a Node: its architecture.
    pub const ARCH: &str = "kubernetes.io/arch";
    /// On a virtual node: `virtual-kubelet`, by which the cluster autoscaler leaves it alone.
    pub const AUTOSCALER_TYPE: &str = "type";
    /// The value of [`AUTOSCALER_TYPE`].
    pub const AUTOSCALER_TYPE_VIRTUAL_KUBELET: &str = "virtual-kubelet";
    /// On a virtual node: `true` keeps it out of the load balancers of the cloud.
    pub const EXCLUDE_FROM_LOAD_BALANCERS: &str = "node.kubernetes.io/exclude-from-external-load-balancers";
    /// The older form of [`EXCLUDE_FROM_LOAD_BALANCERS`].
    pub const EXCLUDE_FROM_LOAD_BALANCERS_ALPHA: &str = "alpha.service-controller.kubernetes.io/exclude-balancer";
    /// On an object of the installation: the application that it is part of.
    pub const APP_NAME: &str = "app.kubernetes.io/name";
    /// The value of [`APP_NAME`] on the ConfigMap that holds the cluster's ID.
    pub const APP_NAME_CLUSTER_ID: &str = "clusterid-configmap";
    /// On an object of the installation: the part of the application.
    pub const APP_COMPONENT: &str = "app.kubernetes.io/component";
}

/// Annotations that users, clients and operators write.
pub mod annotation {
    /// On a twin namespace and its RoleBinding: the NamespaceMap that wanted it, as `<namespace>/<name>`.
    pub const MANAGED_BY_NAMESPACE_MAP: &str = "liqo.io/managed-by-namespace-map";
    /// On a twin namespace: the name of the namespace at home.
    pub const ORIGINAL_NAME: &str = "liqo.io/original-name";
    /// On a local object: it is not reflected, unless the value is `false`.
    pub const SKIP_REFLECTION: &str = "liqo.io/skip-reflection";
    /// On a local object: it is reflected also where only listed objects are, unless the value is `false`.
    pub const ALLOW_REFLECTION: &str = "liqo.io/allow-reflection";
    /// On a Service: `true` keeps its node ports at the provider.
    pub const FORCE_REMOTE_NODE_PORT: &str = "liqo.io/force-remote-node-port";
    /// On a pod: how its replicas keep apart at the provider: `propagate`, `soft` or `hard`.
    pub const ANTI_AFFINITY_PRESET: &str = "liqo.io/anti-affinity-preset";
    /// On a pod: the label keys that make its replicas, separated by commas.
    pub const ANTI_AFFINITY_LABELS: &str = "liqo.io/anti-affinity-labels";
    /// On a pod: how it reaches an API server: `remote` or `disabled`.
    pub const API_SERVER_SUPPORT: &str = "liqo.io/api-server-support";
    /// On a pod: the service account that it has at the provider, under `remote` API server support.
    pub const REMOTE_SERVICE_ACCOUNT_NAME: &str = "liqo.io/remote-service-account-name";
    /// On a pod: the runtime class that it has at the provider.
    pub const REMOTE_RUNTIME_CLASS_NAME: &str = "liqo.io/remote-runtime-class-name";
    /// On a PersistentVolumeClaim: the storage class that it has at the provider.
    pub const REMOTE_STORAGE_CLASS: &str = "liqo.io/remote-storage-class";
    /// On a PersistentVolumeClaim: the access modes that it has at the provider.
    pub const REMOTE_ACCESS_MODES: &str = "liqo.io/remote-access-modes";
    /// On a Service: `true` lets providers reach each other's endpoints without the consumer in between.
    pub const USE_DIRECT_CONNECTIONS: &str = "liqo.io/use-direct-connections";
    /// On a ShadowEndpointSlice: the endpoints at other providers, as JSON.
    pub const DIRECT_CONNECTIONS_DATA: &str = "liqo.io/direct-connections-data";
    /// On a ResourceSlice: a VirtualNode is made from it, unless the value is empty or `false`.
    pub const CREATE_VIRTUAL_NODE: &str = "liqo.io/create-virtual-node";
    /// On a ResourceSlice at the provider: its quota is cordoned.
    pub const CORDON: &str = "liqo.io/cordon";
    /// On a ResourceSlice at the provider: its quota is cordoned because its tenant is.
    pub const CORDON_TENANT: &str = "liqo.io/cordon-tenant";
    /// On an Identity: the tenant namespace at the provider.
    pub const REMOTE_TENANT_NAMESPACE: &str = "liqo.io/remote-tenant-namespace";
    /// On a ForeignCluster: `true` says that it will not come back, so that what depends on it may be forced.
    pub const PERMANENTLY_UNREACHABLE: &str = "liqo.io/foreign-cluster-permanently-unreachable";
    /// On the pod template of a virtual-kubelet: the hash of the offloading patch that it started with.
    pub const OFFLOADING_PATCH_HASH: &str = "liqo.io/offloading-patch-hash";
    /// On a token Secret at the provider: the local pod that the tokens are for.
    pub const SERVICE_ACCOUNT_POD_NAME: &str = "offloading.liqo.io/service-account-for-pod-name";
    /// On a token Secret at the provider: the UID of the local pod that the tokens are for.
    pub const SERVICE_ACCOUNT_POD_UID: &str = "offloading.liqo.io/service-account-for-pod-uid";
    /// On a token Secret at the provider: when the first of its tokens ends.
    pub const SERVICE_ACCOUNT_EXPIRATION: &str = "offloading.liqo.io/service-account-expiration";

    /// On a ShadowPod and every reflected object: the UID of the local object. Where it differs from that of the living
    /// one, the remote object belongs to a former life.
    pub const ORIGIN_UID: &str = "offloading.spillway.dev/origin-uid";
    /// On a ShadowPod that is to be deleted: the seconds that the pod has to end. It may only shrink.
    pub const DELETION_GRACE_SECONDS: &str = "offloading.spillway.dev/deletion-grace-seconds";
    /// On a ShadowPod and on its pod: a digest of what was last carried over of that which may change while a pod runs
    /// (see [`crate::live`]).
    pub const LIVE_DIGEST: &str = "offloading.spillway.dev/live-digest";
    /// On a pod: what happens when it is disrupted at the provider after it has started; see [`ON_DISRUPTION_FAIL`].
    /// Without it the pod is made anew.
    pub const ON_DISRUPTION: &str = "offloading.spillway.dev/on-disruption";
    /// The value of [`ON_DISRUPTION`] by which the pod ends as Failed, for its controller to decide.
    pub const ON_DISRUPTION_FAIL: &str = "Fail";
    /// On a virtual node: the ID of the cluster behind it, which tells whose it is also when its labels do not.
    pub const NODE_CLUSTER_ID: &str = "offloading.spillway.dev/remote-cluster-id";
    /// On a virtual node: which labels, annotations and taints virtual-kubelet put on it, as JSON, so that what its
    /// VirtualNode no longer has can be taken away again, and nothing else is.
    pub const NODE_APPLIED: &str = "offloading.spillway.dev/applied";
    /// On the Deployment of shadow-pod: `true` lets it be uninstalled while pods of other clusters run, and removes them.
    pub const FORCE_UNINSTALL: &str = "offloading.spillway.dev/force-uninstall";
}

/// Taints of virtual nodes.
pub mod taint {
    /// The key of the taint that keeps pods away which were not meant to be offloaded.
    pub const NOT_ALLOWED: &str = "virtual-node.liqo.io/not-allowed";
    /// Its value.
    pub const NOT_ALLOWED_VALUE: &str = "true";
    /// Its effect.
    pub const NOT_ALLOWED_EFFECT: &str = "NoExecute";
    /// The key of the taint that a virtual node bears while peering drains it: DaemonSets put pods on cordoned nodes too.
    pub const DRAINING: &str = "offloading.spillway.dev/draining";
    /// Its effect.
    pub const DRAINING_EFFECT: &str = "NoSchedule";
}

/// Finalizers, and who releases them.
pub mod finalizer {
    /// On a ShadowPod, by shadow-pod: released when its pod is gone.
    pub const SHADOW_POD: &str = "offloading.spillway.dev/pod";
    /// On the pod of a ShadowPod, by shadow-pod: released when the outcome is recorded.
    pub const OUTCOME: &str = "offloading.spillway.dev/outcome";
    /// On a NamespaceOffloading, by namespace-offloading: released when every NamespaceMap has lost the entry.
    pub const NAMESPACE_OFFLOADING: &str = "namespaceoffloading-controller.liqo.io/finalizer";
    /// On a replicated NamespaceMap, by peering at the provider: released when the twin namespaces are gone.
    pub const NAMESPACE_MAP: &str = "namespacemap-controller.liqo.io/finalizer";
    /// On a VirtualNode, by peering at the consumer: released when its Node and its virtual-kubelet are gone.
    pub const VIRTUAL_NODE: &str = "virtualnode-controller.liqo.io/finalizer";
    /// On what is copied to a peer, by peering: released when the copy is gone.
    pub const REPLICATION: &str = "crdreplicator.liqo.io/resource";
    /// On a Tenant, by peering at the provider: released when its rights are taken back.
    pub const TENANT: &str = "tenant.liqo.io/finalizer";
}

/// Names under which each operator writes (server-side apply, events, user agent).
pub mod field_manager {
    /// The namespace-offloading operator.
    pub const NAMESPACE_OFFLOADING: &str = "spillway-namespace-offloading";
    /// The virtual-kubelet.
    pub const VIRTUAL_KUBELET: &str = "spillway-virtual-kubelet";
    /// The reflection operator.
    pub const REFLECTION: &str = "spillway-reflection";
    /// The shadow-pod operator.
    pub const SHADOW_POD: &str = "spillway-shadow-pod";
    /// The peering operator.
    pub const PEERING: &str = "spillway-peering";
    /// The admission webhooks.
    pub const ADMISSION: &str = "spillway-admission";
    /// The command line.
    pub const CLI: &str = "spillway-cli";
}

/// Reasons that appear in the status of an object.
pub mod reason {
    /// A pod that waits because requests to the remote cluster fail again and again; the message says which and why.
    pub const OFFLOADING_FAILING: &str = "OffloadingFailing";
    /// Of a pod whose remote one is being taken away, but not by its user: another one follows.
    pub const REMOTE_POD_TERMINATING: &str = "RemotePodTerminating";
    /// On a ShadowPod with an outcome: its pod ended because the ShadowPod was deleted. If that was not for its consumer, the
    /// pod is to run again.
    pub const DELETED_WHILE_RUNNING: &str = "DeletedWhileRunning";
    /// A change of a running pod that was refused; it runs on as it was.
    pub const UPDATE_REFUSED: &str = "UpdateRefused";
    /// A pod that was never started, because its namespace is not offloaded (any more) or its tenant is drained.
    pub const OFFLOADING_BACK_OFF: &str = "OffloadingBackOff";
    /// A pod that ended because its offloading did.
    pub const OFFLOADING_ABORTED: &str = "OffloadingAborted";
    /// A pod whose remote twin finished and is gone.
    pub const REMOTE_POD_TERMINATED: &str = "RemotePodTerminated";
    /// A cluster that the selector of a NamespaceOffloading chose.
    pub const CLUSTER_SELECTED: &str = "ClusterSelected";
    /// A cluster that the selector of a NamespaceOffloading passed over.
    pub const CLUSTER_NOT_SELECTED: &str = "ClusterNotSelected";
    /// A twin namespace that is there.
    pub const NAMESPACE_CREATED: &str = "NamespaceCreated";
    /// A twin namespace that is being made.
    pub const CREATING: &str = "Creating";
    /// A twin namespace that cannot be made.
    pub const CREATION_LOOP_BACK_OFF: &str = "CreationLoopBackOff";
    /// A twin namespace that is being removed.
    pub const TERMINATING: &str = "Terminating";
    /// A Node that can run pods.
    pub const KUBELET_READY: &str = "KubeletReady";
    /// A Node that cannot.
    pub const KUBELET_NOT_READY: &str = "KubeletNotReady";
    /// A Node whose provider has memory.
    pub const SUFFICIENT_MEMORY: &str = "RemoteClusterHasSufficientMemory";
    /// A Node whose provider has disk.
    pub const NO_DISK_PRESSURE: &str = "RemoteClusterHasNoDiskPressure";
    /// A Node whose provider has process IDs.
    pub const NO_PID_PRESSURE: &str = "RemoteClusterHasNoPIDPressure";
    /// A Node whose provider is reached through the network.
    pub const NETWORKING_UP: &str = "LiqoNetworkingUp";
    /// A Node whose provider is not.
    pub const NETWORKING_DOWN: &str = "LiqoNetworkingDown";
    /// A Configuration whose remote ranges can be relied on; also the type of that condition.
    pub const NETWORK_CIDRS_CONFIGURED: &str = "NetworkCIDRsConfigured";
}

/// Conditions of pods that are our own.
pub mod condition {
    /// True while the provider refuses a change of the running pod; its message says why.
    pub const UPDATE_REFUSED: &str = "offloading.spillway.dev/UpdateRefused";
}

/// Reasons of events.
pub mod event {
    /// The object was reflected.
    pub const SUCCESSFUL_REFLECTION: &str = "SuccessfulReflection";
    /// The object could not be reflected.
    pub const FAILED_REFLECTION: &str = "FailedReflection";
    /// The remote twin could not be deleted.
    pub const FAILED_DELETION: &str = "FailedDeletion";
    /// The object is not reflected, by its annotations or because its namespace is not offloaded.
    pub const REFLECTION_DISABLED: &str = "ReflectionDisabled";
    /// The tokens of a pod were passed on.
    pub const SUCCESSFUL_TOKENS_REFLECTION: &str = "SuccessfulSATokensReflection";
    /// The tokens of a pod could not be passed on.
    pub const FAILED_TOKENS_REFLECTION: &str = "FailedSATokensReflection";
    /// The pod of a ShadowPod was created.
    pub const CREATED_POD: &str = "CreatedPod";
    /// The pod of a ShadowPod could not be created.
    pub const FAILED_CREATE_POD: &str = "FailedCreatePod";
    /// The pod of a ShadowPod could not be updated.
    pub const FAILED_UPDATE_POD: &str = "FailedUpdatePod";
    /// The virtual-kubelet of a VirtualNode was created.
    pub const VK_CREATED: &str = "VkCreated";
    /// The virtual-kubelet of a VirtualNode was deleted.
    pub const VK_DELETED: &str = "VkDeleted";
    /// The selector of a NamespaceOffloading cannot be evaluated.
    pub const INVALID: &str = "Invalid";
}

/// Names of objects and keys that clients look for.
pub mod name {
    /// The name of every NamespaceOffloading.
    pub const NAMESPACE_OFFLOADING: &str = "offloading";
    /// What the name of a tenant namespace begins with; the ID of the peer follows.
    pub const TENANT_NAMESPACE_PREFIX: &str = "liqo-tenant-";
    /// What the name of a virtual-kubelet's Deployment begins with; the name of the VirtualNode follows.
    pub const VIRTUAL_KUBELET_PREFIX: &str = "vk-";
    /// The key of the cluster's ID in its ConfigMap.
    pub const CLUSTER_ID_KEY: &str = "CLUSTER_ID";
    /// The Secret that holds the keys of the cluster.
    pub const AUTHENTICATION_KEYS: &str = "authentication-keys";
    /// The key of the private key in [`AUTHENTICATION_KEYS`].
    pub const PRIVATE_KEY: &str = "privateKey";
    /// The key of the public key in [`AUTHENTICATION_KEYS`].
    pub const PUBLIC_KEY: &str = "publicKey";
    /// The Secret in which the provider puts the nonce.
    pub const NONCE_SECRET: &str = "liqo-nonce";
    /// The key of the nonce in its Secret.
    pub const NONCE_KEY: &str = "nonce";
    /// The Secret in which the consumer puts the signed nonce.
    pub const SIGNED_NONCE_SECRET: &str = "liqo-signed-nonce";
    /// The key of the signed nonce in its Secret.
    pub const SIGNED_NONCE_KEY: &str = "signedNonce";
    /// The key of the kubeconfig in the Secret of an Identity.
    pub const KUBECONFIG_KEY: &str = "kubeconfig";
    /// What the name of an Identity's Secret begins with; the name of the Identity follows.
    pub const KUBECONFIG_SECRET_PREFIX: &str = "kubeconfig-";
    /// The VkOptionsTemplate that comes with the installation.
    pub const DEFAULT_VK_OPTIONS_TEMPLATE: &str = "virtual-kubelet-default";
    /// The class of ResourceSlices that Spillway decides about itself.
    pub const DEFAULT_RESOURCE_SLICE_CLASS: &str = "default";
    /// The runtime class by which a pod goes to a virtual node whatever the strategy of its namespace.
    pub const RUNTIME_CLASS: &str = "liqo";
    /// The storage class whose volumes live where the pod does.
    pub const STORAGE_CLASS: &str = "liqo";
    /// The provisioner of [`STORAGE_CLASS`].
    pub const STORAGE_PROVISIONER: &str = "liqo.io/storage";
    /// The namespace of the volumes behind [`STORAGE_CLASS`] at home.
    pub const STORAGE_NAMESPACE: &str = "liqo-storage";
    /// What a virtual node shows as its container runtime, and no kubelet does.
    pub const NODE_RUNTIME: &str = "spillway://";
    /// The group of a consumer's control plane certificate.
    pub const CONTROL_PLANE_ORGANIZATION: &str = "liqo.io";
}
