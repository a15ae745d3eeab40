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

{{- define "muster.subject" -}}
- {kind: ServiceAccount, name: {{ include "muster.serviceAccount" . }}, namespace: {{ .Release.Namespace }}}
{{- end }}

{{- /* The Secret of the webhook's own authority. */}}
{{- define "muster.authority" -}}
{{ include "muster.name" . }}-authority
{{- end }}

{{- define "muster.config" -}}
{{- $address := contains ":" .Values.address | ternary (printf "[%s]" .Values.address) .Values.address }}
{{- $server := dict "bindAddress" (printf "%s:8443" $address) "certificate" "/tls/tls.crt" "key" "/tls/tls.key" "healthAddress" (printf "%s:9440" $address) "metricsAddress" (printf "%s:9441" $address) }}
{{- if not .Values.certificate.secret }}
{{- $authority := dict "namespace" .Release.Namespace "secret" (include "muster.authority" .) "service" (include "muster.name" .) "webhookConfiguration" "pod-identity-webhook" }}
{{- $server = mergeOverwrite $server (dict "certificate" "/tls/tls.pem" "key" "/tls/tls.pem" "authority" $authority) }}
{{- end }}
{{- if .Values.clientCA }}{{ $_ := set $server "clientCA" "/etc/muster/client-ca.pem" }}{{ end }}
{{- $whole := dict "apiVersion" "podidentity.muster.dev/v1alpha1" "kind" "PodIdentityWebhookConfiguration" "server" $server "configMapNamespace" .Release.Namespace }}
{{- if .Values.associations }}{{ $_ := set $whole "containerCredentials" (dict "file" "/etc/muster/associations.json") }}{{ end }}
{{- if .Values.trust }}{{ $_ := set $whole "account" (dict "trustFile" "/etc/muster/trust.pem") }}{{ end }}
{{- toYaml (mergeOverwrite $whole (deepCopy .Values.config)) }}
{{- end }}
