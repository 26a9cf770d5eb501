{{- define "operator.labels" -}}
app.kubernetes.io/name: karmada-operator
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version | replace "+" "_" }}
{{- end -}}

{{- define "operator.selector" -}}
app.kubernetes.io/name: karmada-operator
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "operator.image" -}}
{{- $i := .Values.operator.image -}}
{{- with .Values.global.imageRegistry | default $i.registry }}{{ . }}/{{ end }}{{ $i.repository }}:{{ $i.tag | default .Values.karmadaOperatorImageVersion | default .Chart.AppVersion }}
{{- end -}}
