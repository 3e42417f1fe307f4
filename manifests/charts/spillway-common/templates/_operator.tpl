{{/*
The Deployment of an operator, its ServiceAccount and what goes with them.
Context: dict
  "root" .         the chart's context
  "fullname"       the name of every object
  "name"           label app.kubernetes.io/name
  "component"      label app.kubernetes.io/component (default: name)
  "container"      the name of the container
  "command"        the binary
  "args"           a list of arguments besides the common ones
*/}}
{{- define "spillway-common.operator" -}}
{{- $values := .root.Values -}}
apiVersion: v1
kind: ServiceAccount
metadata:
  name: {{ .fullname }}
  namespace: {{ .root.Release.Namespace }}
  labels:
    {{- include "spillway-common.labels" . | nindent 4 }}
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ .fullname }}
  namespace: {{ .root.Release.Namespace }}
  labels:
    {{- include "spillway-common.labels" . | nindent 4 }}
spec:
  replicas: {{ $values.replicas }}
  selector:
    matchLabels:
      {{- include "spillway-common.selectorLabels" . | nindent 6 }}
  template:
    metadata:
      labels:
        {{- with $values.podLabels }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
        {{- include "spillway-common.labels" . | nindent 8 }}
      {{- $annotations := include "spillway-common.podAnnotations" . }}
      {{- with $annotations }}
      annotations:
        {{- . | nindent 8 }}
      {{- end }}
    spec:
      serviceAccountName: {{ .fullname }}
      {{- with include "spillway-common.pullSecrets" .root }}
      imagePullSecrets:
        {{- . | nindent 8 }}
      {{- end }}
      securityContext:
        runAsNonRoot: true
        runAsUser: 65532
        runAsGroup: 65532
        seccompProfile:
          type: RuntimeDefault
      containers:
        - name: {{ .container }}
          image: {{ include "spillway-common.image" .root }}
          imagePullPolicy: {{ include "spillway-common.pullPolicy" .root }}
          command:
            - {{ .command }}
          args:
            - --metrics-address=0.0.0.0:8080
            - --log={{ $values.logLevel }}
            - --log-format={{ $values.logFormat }}
            {{- range .args }}
            - {{ . | quote }}
            {{- end }}
          env:
            - name: POD_NAME
              valueFrom:
                fieldRef:
                  fieldPath: metadata.name
            - name: POD_NAMESPACE
              valueFrom:
                fieldRef:
                  fieldPath: metadata.namespace
            - name: POD_UID
              valueFrom:
                fieldRef:
                  fieldPath: metadata.uid
          ports:
            - name: metrics
              containerPort: 8080
          livenessProbe:
            httpGet:
              path: /livez
              port: metrics
          readinessProbe:
            httpGet:
              path: /readyz
              port: metrics
            periodSeconds: 2
          resources:
            {{- toYaml $values.resources | nindent 12 }}
          securityContext:
            allowPrivilegeEscalation: false
            readOnlyRootFilesystem: true
            capabilities:
              drop:
                - ALL
      {{- with $values.nodeSelector }}
      nodeSelector:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with $values.tolerations }}
      tolerations:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with $values.affinity }}
      affinity:
        {{- toYaml . | nindent 8 }}
      {{- end }}
{{- if $values.podDisruptionBudget.enabled }}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: {{ .fullname }}
  namespace: {{ .root.Release.Namespace }}
  labels:
    {{- include "spillway-common.labels" . | nindent 4 }}
spec:
  maxUnavailable: 1
  selector:
    matchLabels:
      {{- include "spillway-common.selectorLabels" . | nindent 6 }}
{{- end }}
{{- if $values.flowSchema.enabled }}
---
apiVersion: flowcontrol.apiserver.k8s.io/v1
kind: FlowSchema
metadata:
  name: {{ .fullname }}
  labels:
    {{- include "spillway-common.labels" . | nindent 4 }}
spec:
  matchingPrecedence: 1000
  priorityLevelConfiguration:
    name: {{ $values.flowSchema.priorityLevel }}
  distinguisherMethod:
    type: ByUser
  rules:
    - subjects:
        - kind: ServiceAccount
          serviceAccount:
            name: {{ .fullname }}
            namespace: {{ .root.Release.Namespace }}
      resourceRules:
        - apiGroups: ["*"]
          resources: ["*"]
          verbs: ["*"]
          namespaces: ["*"]
          clusterScope: true
{{- end }}
{{- if $values.serviceMonitor.enabled }}
---
apiVersion: v1
kind: Service
metadata:
  name: {{ .fullname }}-metrics
  namespace: {{ .root.Release.Namespace }}
  labels:
    {{- include "spillway-common.labels" . | nindent 4 }}
spec:
  clusterIP: None
  selector:
    {{- include "spillway-common.selectorLabels" . | nindent 4 }}
  ports:
    - name: metrics
      port: 8080
      targetPort: metrics
---
apiVersion: monitoring.coreos.com/v1
kind: ServiceMonitor
metadata:
  name: {{ .fullname }}
  namespace: {{ .root.Release.Namespace }}
  labels:
    {{- include "spillway-common.labels" . | nindent 4 }}
    {{- with $values.serviceMonitor.labels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
spec:
  selector:
    matchLabels:
      {{- include "spillway-common.selectorLabels" . | nindent 6 }}
  endpoints:
    - port: metrics
      interval: {{ $values.serviceMonitor.interval }}
{{- end }}
{{- end }}

{{- define "spillway-common.podAnnotations" -}}
{{- if .root.Values.metrics.scrapeAnnotations -}}
prometheus.io/scrape: "true"
prometheus.io/port: "8080"
prometheus.io/path: /metrics
{{- end }}
{{- with .root.Values.podAnnotations }}
{{ toYaml . }}
{{- end }}
{{- end }}
