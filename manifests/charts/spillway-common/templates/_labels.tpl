{{/* What selects the pods of an operator. Context: dict "root" . "name" … "component" … */}}
{{- define "spillway-common.selectorLabels" -}}
app.kubernetes.io/name: {{ .name }}
app.kubernetes.io/component: {{ .component | default .name }}
{{- end }}

{{- define "spillway-common.labels" -}}
{{ include "spillway-common.selectorLabels" . }}
app.kubernetes.io/part-of: spillway
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_" }}
{{- end }}
