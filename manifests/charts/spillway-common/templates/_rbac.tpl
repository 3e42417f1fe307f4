{{/* A Role for the operator's lease and whatever else it has in its own namespace. Context: as of the operator, and
"rules", a list of further rules; "leaderless", if it has no lease. */}}
{{- define "spillway-common.ownNamespaceRole" -}}
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  name: {{ .fullname }}
  namespace: {{ .root.Release.Namespace }}
  labels:
    {{- include "spillway-common.labels" . | nindent 4 }}
rules:
  {{- if not .leaderless }}
  - apiGroups: [coordination.k8s.io]
    resources: [leases]
    verbs: [create]
  - apiGroups: [coordination.k8s.io]
    resources: [leases]
    resourceNames: [{{ .fullname }}]
    verbs: [get, update]
  {{- end }}
  {{- with .rules }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  name: {{ .fullname }}
  namespace: {{ .root.Release.Namespace }}
  labels:
    {{- include "spillway-common.labels" . | nindent 4 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: Role
  name: {{ .fullname }}
subjects:
  - kind: ServiceAccount
    name: {{ .fullname }}
    namespace: {{ .root.Release.Namespace }}
{{- end }}

{{/* Binds a ClusterRole of the name "role" (default: fullname) to the operator. */}}
{{- define "spillway-common.clusterRoleBinding" -}}
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  name: {{ .role | default .fullname }}
  labels:
    {{- include "spillway-common.labels" . | nindent 4 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: ClusterRole
  name: {{ .role | default .fullname }}
subjects:
  - kind: ServiceAccount
    name: {{ .fullname }}
    namespace: {{ .root.Release.Namespace }}
{{- end }}
