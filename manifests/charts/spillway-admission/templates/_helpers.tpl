{{- define "spillway-admission.context" -}}
fullname: spillway-admission
name: webhook
container: admission
command: /usr/bin/admission
leaderless: true
{{- end }}

{{/* Every webhook that is switched on, as entries of the configuration. */}}
{{- define "spillway-admission.webhooks" -}}
{{- if .Values.daemonSets.keepOffVirtualNodes }}
- name: daemonsets.admission.spillway.dev
  admissionReviewVersions: [v1]
  # No caBundle: the operator writes it.
  clientConfig:
    service:
      name: spillway-admission
      namespace: {{ .Release.Namespace }}
      path: /mutate/daemonsets
      port: 443
  rules:
    - apiGroups: [apps]
      apiVersions: [v1]
      operations: [CREATE, UPDATE]
      resources: [daemonsets]
      scope: Namespaced
  matchPolicy: Equivalent
  namespaceSelector:
    matchExpressions:
      - {key: liqo.io/webhook-skip, operator: NotIn, values: ["true"]}
  objectSelector:
    matchExpressions:
      - {key: liqo.io/webhook-skip, operator: NotIn, values: ["true"]}
  # What another webhook adds to a DaemonSet may be a term without ours.
  reinvocationPolicy: IfNeeded
  sideEffects: None
  timeoutSeconds: 5
  # A DaemonSet must be possible while the operator is away, also that of the network which it needs to come back.
  failurePolicy: Ignore
{{- end }}
{{- end }}
