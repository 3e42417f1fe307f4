{{/* Labels as clients look for them: they know this Deployment as the controller-manager. */}}
{{- define "spillway-peering.context" -}}
fullname: spillway-peering
name: controller-manager
component: controller-manager
container: controller-manager
command: /usr/bin/peering
{{- end }}

{{/* consumer, provider or both. Neither given means both. */}}
{{- define "spillway-peering.role" -}}
{{- $consumer := .Values.roles.consumer | default false -}}
{{- $provider := .Values.roles.provider | default false -}}
{{- if eq $consumer $provider }}
{{- if and (not $consumer) .Values.roles }}{{ fail "roles: set consumer or provider (or both) to true, or leave both out" }}{{ end -}}
both
{{- else if $consumer }}consumer{{ else }}provider{{ end }}
{{- end }}
