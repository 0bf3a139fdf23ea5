{{- define "dgdr.fullname" -}}
{{- $release := ternary .Release.Name (printf "%s-%s" .Release.Name .Chart.Name) (contains .Chart.Name .Release.Name) -}}
{{- .Values.fullnameOverride | default $release | trunc 50 | trimSuffix "-" -}}
{{- end -}}

{{- define "dgdr.operator" -}}
{{ include "dgdr.fullname" . }}-operator
{{- end -}}

{{- define "dgdr.publisher" -}}
{{ include "dgdr.fullname" . }}-publisher
{{- end -}}

{{- define "dgdr.labels" -}}
{{ include "dgdr.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{/* What selects the operator's pods. The pods of searches carry another component and no instance. */}}
{{- define "dgdr.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: operator
{{- end -}}

{{/* An image by its values: (list $ .Values.sweeper.image). */}}
{{- define "dgdr.image" -}}
{{- $root := index . 0 -}}
{{- $image := index . 1 -}}
{{- with $image.registry | default $root.Values.global.imageRegistry }}{{ . }}/{{ end -}}
{{- $image.repository -}}
{{- if $image.digest }}@{{ $image.digest }}{{ else }}:{{ $image.tag | default $root.Chart.AppVersion }}{{ end -}}
{{- end -}}
