{{/* What the mode does. Empty is false. */}}
{{- define "muster.approves" -}}
{{- if has .Values.policy.mode (list "approve-only" "approve-and-sign") }}yes{{ end }}
{{- end }}

{{- define "muster.signs" -}}
{{- if has .Values.policy.mode (list "sign-only" "approve-and-sign") }}yes{{ end }}
{{- end }}

{{- define "muster.prunes" -}}
{{- $keep := (.Values.policy.pruning | default dict).keep | default 2 }}
{{- if and (ne .Values.policy.mode "observe") (ge (int $keep) 0) }}yes{{ end }}
{{- end }}

{{/* The signers for which it may approve, in JSON. Requests to all others are for people to approve, whatever the mode. */}}
{{- define "muster.approvable" -}}
{{- $names := list }}
{{- range .Values.policy.signers }}
{{- if has .name (list "kubernetes.io/kube-apiserver-client-kubelet" "kubernetes.io/kubelet-serving") }}{{ $names = append $names .name }}{{ end }}
{{- end }}
{{- $names | toJson }}
{{- end }}

{{/* Whether it reads which addresses are Services', as the policy reserves none. Empty is false. */}}
{{- define "muster.readsServices" -}}
{{- if not ((.Values.policy.policy | default dict).reserved | default dict).addresses }}yes{{ end }}
{{- end }}

{{- define "muster.registerNamespace" -}}
{{ .Values.register.namespace | default .Release.Namespace }}
{{- end }}

{{/* The sources of the inventory, in JSON, with the namespace of each ConfigMap filled in. */}}
{{- define "muster.sources" -}}
{{- $sources := list }}
{{- range (.Values.policy.inventory | default dict).sources }}
{{- $source := deepCopy . }}
{{- with (($source.static | default dict).configMap) }}{{ $_ := set . "namespace" (.namespace | default $.Release.Namespace) }}{{ end }}
{{- $sources = append $sources $source }}
{{- end }}
{{- $sources | toJson }}
{{- end }}

{{/* The policy file. */}}
{{- define "muster.policy" -}}
{{- $p := deepCopy .Values.policy }}
{{- $_ := set $p "apiVersion" "certificates.muster.dev/v1alpha1" }}
{{- $_ := set $p "kind" "CertificateControllerConfiguration" }}
{{- with $p.inventory }}{{ $_ := set . "sources" (include "muster.sources" $ | fromJsonArray) }}{{ end }}
{{- $_ := set $p "register" (dict "namespace" (include "muster.registerNamespace" .)) }}
{{- $_ := set $p "leaderElection" (dict "enabled" true "namespace" .Release.Namespace "name" (include "muster.name" .)) }}
{{- $_ := set $p "health" (dict "bindAddress" (printf "%s:%d" (ternary "127.0.0.1" "0.0.0.0" .Values.hostNetwork) (int .Values.health.port))) }}
{{- if .Values.metrics.enabled }}{{ $_ := set $p "metrics" (dict "bindAddress" (printf "0.0.0.0:%d" (int .Values.metrics.port))) }}{{ end }}
{{- toYaml $p }}
{{- end }}

{{/* What no schema can say. */}}
{{- define "muster.check" -}}
{{- if eq (include "muster.registerNamespace" .) "kube-system" }}
{{- fail "register.namespace is kube-system: the controller would be allowed to write every ConfigMap there, such as extension-apiserver-authentication, which others trust. Install the release into a namespace of its own, or name one in register.namespace." }}
{{- end }}
{{- if and (include "muster.signs" .) (not .Values.policy.keys) }}
{{- fail (printf "policy.mode %s signs, so policy.keys must name a key. To leave the signing to kube-controller-manager, use approve-only." .Values.policy.mode) }}
{{- end }}
{{- if and .Values.policy.keys (not (include "muster.signs" .)) }}
{{- fail (printf "policy.mode %s signs nothing, but policy.keys names a key: leave it away, so that nothing can steal it from here." .Values.policy.mode) }}
{{- end }}
{{- range .Values.mounts }}
{{- if ne 1 (len (pick . "secret" "configMap" "hostPath")) }}
{{- fail (printf "the mount %s must be one of secret, configMap and hostPath" .name) }}
{{- end }}
{{- end }}
{{- end }}
