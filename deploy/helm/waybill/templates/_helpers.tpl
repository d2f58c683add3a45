{{/* Labels of every object. */}}
{{- define "waybill.labels" -}}
app.kubernetes.io/name: waybill
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{/* Labels by which the pods of a role are selected: (dict "root" $ "role" …). They can never change. */}}
{{- define "waybill.selector" -}}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .role }}
{{- end }}

{{/* Labels that the PodMonitor attaches, as matchers of PromQL: no other installation's series has them. */}}
{{- define "waybill.scope" -}}
namespace={{ .Release.Namespace | quote }},release={{ .Release.Name | quote }}
{{- end }}

{{- define "waybill.serviceAccount" -}}
{{- .Values.serviceAccount.name | default (ternary .Release.Name "default" .Values.serviceAccount.create) }}
{{- end }}

{{- define "waybill.image" -}}
{{- $tag := .Values.image.tag | default .Chart.AppVersion }}
{{- .Values.image.repository }}:{{ ternary $tag (toJson $tag) (kindIs "string" $tag) }}
{{- end }}

{{/* Ingest speaks HTTPS where it has a certificate. */}}
{{- define "waybill.scheme" -}}
{{ ternary "HTTPS" "HTTP" (and (eq .role "ingest") (not (empty .root.Values.config.INGEST_TLS_CERT_FILE))) }}
{{- end }}

{{/* Of the config map, as JSON: Kubernetes takes strings only. toJson, since toString writes a million as 1e+06. */}}
{{- define "waybill.config" -}}
{{- $data := dict }}
{{- range $name, $value := .Values.config }}
{{- if not (kindIs "invalid" $value) }}
{{- $_ := set $data $name (ternary $value (toJson $value) (kindIs "string" $value)) }}
{{- end }}
{{- end }}
{{- toJson $data }}
{{- end }}

{{/*
What the secrets and config maps hold that the pods name: (dict "root" $ "env" … "envFrom" … "volumes" …). A changed one then restarts
the pods with the next upgrade. Without a cluster, as in "helm template", nothing can be read and the sum is always the same.
*/}}
{{- define "waybill.sources" -}}
{{- $named := list (list "Secret" .root.Values.existingSecret) }}
{{- range .env }}
{{- with dig "valueFrom" "secretKeyRef" "name" "" . }}{{ $named = append $named (list "Secret" .) }}{{ end }}
{{- with dig "valueFrom" "configMapKeyRef" "name" "" . }}{{ $named = append $named (list "ConfigMap" .) }}{{ end }}
{{- end }}
{{- range .envFrom }}
{{- with dig "secretRef" "name" "" . }}{{ $named = append $named (list "Secret" .) }}{{ end }}
{{- with dig "configMapRef" "name" "" . }}{{ $named = append $named (list "ConfigMap" .) }}{{ end }}
{{- end }}
{{- range .volumes }}
{{- with dig "secret" "secretName" "" . }}{{ $named = append $named (list "Secret" .) }}{{ end }}
{{- with dig "configMap" "name" "" . }}{{ $named = append $named (list "ConfigMap" .) }}{{ end }}
{{- range dig "projected" "sources" list . }}
{{- with dig "secret" "name" "" . }}{{ $named = append $named (list "Secret" .) }}{{ end }}
{{- with dig "configMap" "name" "" . }}{{ $named = append $named (list "ConfigMap" .) }}{{ end }}
{{- end }}
{{- end }}
{{- $found := list }}
{{- range uniq $named }}
{{- $object := lookup "v1" (first .) $.root.Release.Namespace (last .) }}
{{- $found = append $found (list . (get $object "data") (get $object "binaryData")) }}
{{- end }}
{{- toJson $found | sha256sum }}
{{- end }}

{{/* Of a pod: it may do nothing but run. */}}
{{- define "waybill.podSecurity" -}}
runAsNonRoot: true
runAsUser: 10001
runAsGroup: 10001
fsGroup: 10001
seccompProfile:
  type: RuntimeDefault
{{- end }}

{{- define "waybill.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: ["ALL"]
{{- end }}

{{- define "waybill.envFrom" -}}
- configMapRef:
    name: {{ .Release.Name }}-config
- secretRef:
    name: {{ .Values.existingSecret }}
{{- end }}

{{/* The folders that are written to. */}}
{{- define "waybill.volumes" -}}
- name: data
  emptyDir: {}
- name: tmp
  emptyDir: {}
{{- end }}

{{- define "waybill.volumeMounts" -}}
- name: data
  mountPath: /data
- name: tmp
  mountPath: /tmp
{{- end }}
