{{/* The image: the chart's own setting, else the umbrella's global one, else the version of the chart. */}}
{{- define "spillway-common.image" -}}
{{- $own := .Values.image -}}
{{- $global := dig "image" dict (.Values.global | default dict) -}}
{{- $repository := $own.repository | default $global.repository | default "spillway/spillway" -}}
{{- $tag := $own.tag | default $global.tag | default .Chart.AppVersion -}}
{{- printf "%s:%s" $repository $tag -}}
{{- end }}

{{- define "spillway-common.pullPolicy" -}}
{{- $global := dig "image" dict (.Values.global | default dict) -}}
{{- .Values.image.pullPolicy | default $global.pullPolicy | default "IfNotPresent" -}}
{{- end }}

{{/* The names of the pull Secrets as a list of references; empty when there are none. */}}
{{- define "spillway-common.pullSecrets" -}}
{{- $global := dig "image" dict (.Values.global | default dict) -}}
{{- range (.Values.image.pullSecrets | default $global.pullSecrets | default list) }}
- name: {{ . }}
{{- end }}
{{- end }}
