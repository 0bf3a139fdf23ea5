{{/* What an installation decides, as dgdr_operator.settings reads it. Numbers go through int64: helm holds them as floats. */}}
{{- define "dgdr.environment" -}}
- name: DGDR_SWEEPER_IMAGE
  value: {{ include "dgdr.image" (list $ .Values.sweeper.image) | quote }}
- name: DGDR_PUBLISHER_IMAGE
  value: {{ include "dgdr.image" (list $ .Values.publisher.image) | quote }}
- name: DGDR_PUBLISHER_CLUSTER_ROLE
  value: {{ include "dgdr.publisher" . | quote }}
- name: DGDR_IMAGE_PULL_POLICY
  value: {{ .Values.imagePullPolicy }}
- name: DGDR_IMAGE_PULL_SECRETS
  value: {{ $names := list }}{{ range .Values.imagePullSecrets }}{{ $names = append $names .name }}{{ end }}{{ join " " $names | quote }}
- name: DGDR_SWEEPER_RESOURCES
  value: {{ .Values.sweeper.resources | toJson | quote }}
- name: DGDR_PUBLISHER_RESOURCES
  value: {{ .Values.publisher.resources | toJson | quote }}
- name: DGDR_WORKSPACE_MEDIUM
  value: {{ .Values.job.workspace.medium }}
- name: DGDR_WORKSPACE_SIZE
  value: {{ .Values.job.workspace.size | quote }}
- name: DGDR_ACTIVE_DEADLINE_S
  value: {{ int64 .Values.job.activeDeadlineSeconds | quote }}
- name: DGDR_TTL_S
  value: {{ int64 .Values.job.ttlSecondsAfterFinished | quote }}
- name: DGDR_GRACE_PERIOD_S
  value: {{ int64 .Values.job.gracePeriodSeconds | quote }}
- name: DGDR_NAMESPACES
  value: {{ join " " .Values.namespaces | quote }}
- name: DGDR_SEARCHES_PER_NAMESPACE
  value: {{ int64 .Values.limits.searchesPerNamespace | quote }}
- name: DGDR_SEARCHES_IN_CLUSTER
  value: {{ int64 .Values.limits.searchesInCluster | quote }}
- name: DGDR_WORKERS
  value: {{ int64 .Values.operator.workers | quote }}
- name: DGDR_RELIST_S
  value: {{ int64 .Values.operator.relistSeconds | quote }}
- name: DGDR_HTTP_PORT
  value: "8080"
- name: DGDR_LEADER_ELECTION
  value: "true"
- name: DGDR_LEASE_NAMESPACE
  value: {{ .Release.Namespace | quote }}
- name: DGDR_LEASE_NAME
  value: {{ include "dgdr.operator" . | quote }}
- name: DGDR_LEASE_S
  value: {{ int64 .Values.operator.leaseSeconds | quote }}
- name: DGDR_IDENTITY
  valueFrom:
    fieldRef:
      fieldPath: metadata.name
- name: DGDR_LOG_LEVEL
  value: {{ .Values.operator.logLevel }}
{{- end -}}
