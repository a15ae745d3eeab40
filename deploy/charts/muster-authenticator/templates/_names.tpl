{{- define "muster.name" -}}
{{- $whole := printf "%s-%s" .Release.Name .Chart.Name }}
{{- contains .Chart.Name .Release.Name | ternary .Release.Name $whole | trunc 53 | trimSuffix "-" }}
{{- end }}

{{- define "muster.serviceAccount" -}}
{{ .Values.serviceAccount.name | default (include "muster.name" .) }}
{{- end }}

{{- define "muster.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "muster.labels" -}}
{{ include "muster.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/part-of: muster
{{- end }}

{{- define "muster.image" -}}
{{- with .Values.image }}
{{- if .digest }}{{ .repository }}@{{ .digest }}{{ else }}{{ .repository }}:{{ .tag | default $.Chart.AppVersion }}{{ end }}
{{- end }}
{{- end }}

{{- define "muster.config" -}}
{{- $config := deepCopy .Values.config }}
{{- if not $config.clusterID }}{{ fail "config.clusterID is the name that tokens are made for: set it" }}{{ end }}
{{- $server := dict "stateDir" .Values.stateDir "bindAddress" .Values.address "healthAddress" (printf "127.0.0.1:%d" (int .Values.healthPort)) }}
{{- if and .Values.metricsPort (not ($config.mapping | default dict).fileOnly) }}
{{- $server = mergeOverwrite $server (dict "metricsAddress" (printf "127.0.0.1:%d" (int .Values.metricsPort))) }}
{{- end }}
{{- $mapping := dict "namespace" .Release.Namespace }}
{{- $whole := dict "apiVersion" "authenticator.muster.dev/v1alpha1" "kind" "AuthenticatorConfiguration" "server" $server "mapping" $mapping }}
{{- toYaml (mergeOverwrite $whole $config) }}
{{- end }}
