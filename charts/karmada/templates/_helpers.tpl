{{/*
Puts the default in the place of every value that is null or missing; all templates call it first. Helm removes what is null
from the values and from their defaults, therefore the defaults come from a file, a copy of values.yaml.
*/}}
{{- define "karmada.setDefaults" -}}
{{- if not .DefaultsSet -}}
{{- $values := deepCopy .Values -}}
{{- include "karmada.fill" (list $values (.Files.Get "defaults.json" | fromJson)) -}}
{{- $_ := set . "Values" $values -}}{{- $_ = set . "DefaultsSet" true -}}
{{- $_ = set . "Renewed" (include "karmada.renewed" .) -}}
{{- include "karmada.live" . -}}
{{- /* Before, the ports below 1024 that servers have are not permitted to them. */ -}}
{{- if and (ne .Values.installMode "agent") (semverCompare "<1.22.0-0" .Capabilities.KubeVersion.Version) -}}
{{- fail (printf "installMode %s needs Kubernetes 1.22, and this cluster has %s" .Values.installMode .Capabilities.KubeVersion.Version) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Puts the workloads that the release has in the cluster into Live, by their names. */}}
{{- define "karmada.live" -}}
{{- $root := . -}}{{- $live := dict -}}
{{- range $kind := list "Deployment" "StatefulSet" -}}
{{- range (lookup "apps/v1" $kind $root.Release.Namespace "").items -}}
{{- if eq (dig "annotations" "meta.helm.sh/release-name" "" .metadata) $root.Release.Name -}}{{- $_ := set $live .metadata.name . -}}{{- end -}}
{{- end -}}
{{- end -}}
{{- $_ := set . "Live" $live -}}
{{- end -}}

{{/*
The labels by which a workload selects its pods: keys and values, that of app is its name. One that is there keeps its own, which cannot
be changed: Karmada's chart made it.
*/}}
{{- define "karmada.selector" -}}
{{- $labels := dict -}}{{- $all := rest . -}}
{{- range $i, $key := $all -}}{{- if eq (mod $i 2) 0 -}}{{- $_ := set $labels $key (index $all (add1 $i)) -}}{{- end -}}{{- end -}}
{{- dig $labels.app "spec" "selector" "matchLabels" $labels (first .).Live | toYaml -}}
{{- end -}}

{{/* The label by which pods of a workload avoid each other: that of its name, or all labels of one that is there and has no such label. */}}
{{- define "karmada.apart" -}}
{{- $own := dig (index . 2) "spec" "selector" "matchLabels" dict (first .).Live -}}
{{- pick $own "app" | default $own | default (dict "app" (index . 2)) | toYaml -}}
{{- end -}}

{{/* The etcd of Karmada's chart stays as it is: the specification of its StatefulSet. Empty for one of this chart. */}}
{{- define "karmada.formerEtcd" -}}
{{- $etcd := get .Live (printf "%setcd" (include "karmada.fixed" .)) -}}
{{- if and $etcd (not (contains (printf "%s-etcd-cert" .Release.Name | quote) (toJson $etcd))) -}}
{{- toYaml $etcd.spec -}}
{{- end -}}
{{- end -}}

{{/* Fills a map with the keys of another one that it lacks, at all levels; null is a lack. */}}
{{- define "karmada.fill" -}}
{{- $values := index . 0 -}}{{- $defaults := index . 1 -}}
{{- range $key, $value := $values -}}
{{- if kindIs "invalid" $value -}}{{- $_ := unset $values $key -}}
{{- else if kindIs "map" $value -}}{{- include "karmada.fill" (list $value (index $defaults $key | default dict)) -}}{{- end -}}
{{- end -}}
{{- range $key, $default := $defaults -}}
{{- if not (hasKey $values $key) -}}{{- $_ := set $values $key $default -}}{{- end -}}
{{- end -}}
{{- end -}}

{{/*
When the certificates were renewed last, in seconds since 1970; now, if they are due. The Jobs of hooks, which renew them, may
not replace pods: whoever may change a Deployment may mount any Secret. So pods have it as an annotation.
*/}}
{{- define "karmada.renewed" -}}
{{- $secret := lookup "v1" "Secret" .Release.Namespace (printf "%s-cert" .Release.Name) | default dict -}}
{{- $annotations := dig "metadata" "annotations" dict $secret -}}
{{- if lt (get $annotations "karmada.io/renew-after" | default "9999999999" | int64) (now | unixEpoch | int64) -}}
{{- now | unixEpoch -}}
{{- else -}}
{{- get $annotations "karmada.io/renewed" -}}
{{- end -}}
{{- end -}}

{{/* The settings of a component, as JSON. */}}
{{- define "karmada.component" -}}
{{- $root := index . 0 -}}{{- $key := index . 1 -}}
{{- if eq $key "etcd" -}}{{- $root.Values.etcd.internal | toJson -}}
{{- else -}}{{- index $root.Values $key | toJson -}}{{- end -}}
{{- end -}}

{{/* What begins the names that the release "karmada" has without its name, and any release of Karmada's chart. */}}
{{- define "karmada.fixed" -}}
{{- if and (ne (include "karmada.controlPlane" .) "karmada") (not (hasKey .Live "etcd")) -}}{{- .Release.Name -}}-{{- end -}}
{{- end -}}

{{/* The release of the control plane, which looks for its estimators under this name. */}}
{{- define "karmada.controlPlane" -}}
{{- eq .Values.installMode "component" | ternary "karmada" .Release.Name -}}
{{- end -}}

{{/*
A volume with access to a control plane that another chart installed: its kubeconfig, or its certificate, which is one for
servers and clients.
*/}}
{{- define "karmada.existingVolume" -}}
{{- $root := index . 0 -}}{{- $key := index . 1 -}}{{- $volume := index . 2 -}}
{{- $c := include "karmada.component" . | fromJson -}}
{{- $secret := $c.certs -}}{{- $ca := "server-ca.crt" -}}{{- $crt := "karmada.crt" -}}{{- $tlsKey := "karmada.key" -}}
{{- $files := list "ca.crt" "tls.crt" "tls.key" -}}
{{- if eq $volume "karmada-cert" -}}
{{- if eq $key "descheduler" -}}
{{- $files = list "ca.crt" "scheduler-estimator-client.crt" "scheduler-estimator-client.key" -}}
{{- else -}}
{{- $files = list "etcd-ca.crt" "etcd-client.crt" "etcd-client.key" -}}
{{- if eq $root.Values.etcd.mode "external" -}}
{{- $secret = printf "%s-external-etcd-cert" $root.Release.Name -}}{{- $ca = "ca.crt" -}}{{- $crt = "tls.crt" -}}{{- $tlsKey = "tls.key" -}}
{{- end -}}
{{- end -}}
{{- end -}}
- name: {{ $volume }}
  secret:
    defaultMode: 288
    {{- if eq $volume "karmada-config" }}
    items:
    - key: kubeconfig
      path: karmada.config
    secretName: {{ $c.kubeconfig }}
    {{- else }}
    items:
    - key: {{ $ca }}
      path: {{ index $files 0 }}
    - key: {{ $crt }}
      path: {{ index $files 1 }}
    - key: {{ $tlsKey }}
      path: {{ index $files 2 }}
    secretName: {{ $secret }}
    {{- end }}
{{- end -}}

{{/* The version of the images. A chart that was packaged from a commit has none: no registry has its images. */}}
{{- define "karmada.version" -}}
{{- if .Values.karmadaImageVersion -}}
{{- .Values.karmadaImageVersion -}}
{{- else -}}
{{- fail (printf "this chart was packaged from the commit %s, and no registry has its images: build them with \"make image\", load them into the nodes or push them to the registry of global.imageRegistry, see docs/helm.md, and set karmadaImageVersion=%s" .Chart.AppVersion .Chart.AppVersion) -}}
{{- end -}}
{{- end -}}

{{- define "karmada.labels" -}}
{{- $root := index . 0 -}}
app.kubernetes.io/instance: {{ $root.Release.Name | quote }}
app.kubernetes.io/managed-by: {{ $root.Release.Service | quote }}
helm.sh/chart: {{ printf "%s-%s" $root.Chart.Name $root.Chart.Version | replace "+" "_" | trunc 63 | quote }}
{{- with $root.Values.global.commonLabels }}
{{ omit . "app" "apiserver" "cluster" "app.kubernetes.io/instance" "app.kubernetes.io/managed-by" "helm.sh/chart" | toYaml }}
{{- end -}}
{{- end -}}

{{/* Labels of a user; those of selectors stay. */}}
{{- define "karmada.workloadLabels" -}}
{{- $root := index . 0 -}}
{{- $labels := omit (include "karmada.component" . | fromJson).labels "app" "apiserver" "cluster" "app.kubernetes.io/instance" "app.kubernetes.io/managed-by" "helm.sh/chart" -}}
{{- range $key, $_ := $root.Values.global.commonLabels }}{{ $labels = omit $labels $key }}{{ end -}}
{{- with $labels -}}{{- toYaml . -}}{{- end -}}
{{- end -}}

{{- define "karmada.podLabels" -}}
{{- with omit (include "karmada.component" . | fromJson).podLabels "app" "apiserver" "cluster" -}}{{- toYaml . -}}{{- end -}}
{{- end -}}

{{- define "karmada.podAnnotations" -}}
{{- $root := index . 0 -}}
{{- $annotations := (include "karmada.component" . | fromJson).podAnnotations | default dict -}}
{{- /* etcd reads its certificates again for each connection. */ -}}
{{- if and (eq $root.Values.installMode "host") (ne (index . 1) "etcd") -}}
{{- $_ := set $annotations "karmada.io/certificates" (list $root.Renewed $root.Values.certs.mode $root.Values.certs.custom $root.Values.certs.auto.hosts $root.Values.certs.auto.expiry | toJson | sha256sum | trunc 16) -}}
{{- end -}}
{{- with $annotations -}}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end -}}
{{- end -}}

{{- define "karmada.serviceAnnotations" -}}
{{- with (include "karmada.component" . | fromJson).serviceAnnotations -}}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end -}}
{{- end -}}

{{- define "karmada.nodeSelector" -}}
{{- with (include "karmada.component" . | fromJson).nodeSelector -}}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end -}}
{{- end -}}

{{- define "karmada.tolerations" -}}
{{- with (include "karmada.component" . | fromJson).tolerations -}}{{- toYaml . -}}{{- end -}}
{{- end -}}

{{- define "karmada.affinity" -}}
{{- with (include "karmada.component" . | fromJson).affinity -}}{{- toYaml . -}}{{- end -}}
{{- end -}}

{{/*
The default strategy of the API server may stop one pod before another one answers. A single one goes on until then, unless both
need the same port of a node, or may need two nodes.
*/}}
{{- define "karmada.strategy" -}}
{{- $root := index . 0 -}}{{- $c := include "karmada.component" . | fromJson -}}
{{- $default := index ($root.Files.Get "defaults.json" | fromJson) (index . 1) -}}
{{- $apart := printf "%s%s" (toJson $c.affinity) (get $root.Live (printf "%s-apiserver" $root.Release.Name) | toJson) | contains "\"podAntiAffinity\":{\"requiredDuring" -}}
{{- if and (eq (index . 1) "apiServer") (lt (int $c.replicaCount) 2) (not $c.hostNetwork) (not $apart) (eq (toJson $c.strategy) (toJson $default.strategy)) -}}
{{- $_ := set $c.strategy.rollingUpdate "maxUnavailable" 0 -}}
{{- end -}}
{{- with $c.strategy -}}
strategy:
  {{- if eq .type "Recreate" }}{{ omit . "rollingUpdate" | toYaml | nindent 2 }}{{ else }}{{ toYaml . | nindent 2 }}{{ end }}
{{- end -}}
{{- end -}}

{{- define "karmada.resources" -}}
{{- $c := include "karmada.component" . | fromJson -}}
{{- if $c.resources -}}
resources:
  {{- toYaml $c.resources | nindent 2 }}
{{- else if index . 2 -}}
resources:
  requests:
    cpu: {{ index . 2 }}
    memory: {{ index . 3 }}
{{- else -}}
resources: {}
{{- end -}}
{{- end -}}

{{- define "karmada.priorityClass" -}}
{{- (include "karmada.component" . | fromJson).priorityClassName -}}
{{- end -}}

{{- define "karmada.replicas" -}}
{{- (include "karmada.component" . | fromJson).replicaCount | int -}}
{{- end -}}

{{- define "karmada.image" -}}
{{- $root := index . 0 -}}
{{- $i := (include "karmada.component" . | fromJson).image -}}
{{- $registry := $root.Values.global.imageRegistry | default $i.registry -}}
{{- $image := printf "%s%s:%s" (ternary (printf "%s/" $registry) "" (not (empty $registry))) $i.repository ($i.tag | default (include "karmada.version" $root)) -}}
{{- if and $i.tag (eq $root.Values.installMode "host") (ne $i.tag $root.Values.karmadaImageVersion) (not (has (index . 1) (list "apiServer" "kubeControllerManager" "etcd"))) -}}
{{- range $name, $live := $root.Live -}}
{{- if and (eq $image (first $live.spec.template.spec.containers).image) (not (dig "annotations" "karmada.io/certificates" "" $live.spec.template.metadata)) -}}
{{- fail (printf "%s.image: %s is what %s of Karmada's chart has: take its image out of the values" (index $ 1) $image $name) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- $image -}}
{{- end -}}

{{- define "karmada.pullPolicy" -}}
{{- (include "karmada.component" . | fromJson).image.pullPolicy | default (index . 0).Values.karmadaImagePullPolicy -}}
{{- end -}}

{{- define "karmada.pullSecrets" -}}
{{- $root := index . 0 -}}
{{- $own := (include "karmada.component" . | fromJson).image.pullSecrets -}}
{{- with concat $root.Values.global.imagePullSecrets $own -}}
imagePullSecrets:
{{- range . }}
- name: {{ if kindIs "map" . }}{{ .name }}{{ else }}{{ . }}{{ end }}
{{- end }}
{{- end -}}
{{- end -}}

{{/* Arguments that values set, one a line. */}}
{{- define "karmada.args" -}}
{{- $root := index . 0 -}}{{- $key := index . 1 -}}
{{- $c := include "karmada.component" . | fromJson -}}
{{- if eq $key "etcd" }}
{{- with $c.logLevel }}
- {{ printf "--log-level=%v" . | quote }}
{{- end }}
{{- else }}
- {{ printf "--v=%d" (int $c.logVerbosity) | quote }}
{{- end }}
{{- with $c.featureGates }}
- {{ printf "--feature-gates=%s" (include "karmada.gates" .) | quote }}
{{- end }}
{{- if eq $key "apiServer" }}
{{- /* It answers until no Service leads to it any more. */}}
- "--shutdown-delay-duration=5s"
{{- with $c.serviceClusterIPRange }}
- {{ printf "--service-cluster-ip-range=%s" . | quote }}
{{- end }}
{{- with $c.maxRequestsInflight }}
- {{ printf "--max-requests-inflight=%d" (int .) | quote }}
{{- end }}
{{- with $c.maxMutatingRequestsInflight }}
- {{ printf "--max-mutating-requests-inflight=%d" (int .) | quote }}
{{- end }}
{{- range $flag, $name := dict "ca-file" "caFile" "client-id" "clientId" "groups-claim" "groupsClaim" "groups-prefix" "groupsPrefix" "issuer-url" "issuerUrl" "username-claim" "usernameClaim" "username-prefix" "usernamePrefix" }}
{{- with index $c.oidc $name }}
- {{ printf "--oidc-%s=%v" $flag . | quote }}
{{- end }}
{{- end }}
{{- else if eq $key "kubeControllerManager" }}
{{- with $c.controllers }}
- {{ printf "--controllers=%s" . | quote }}
{{- end }}
{{- with $c.clusterCIDR }}
- {{ printf "--cluster-cidr=%s" . | quote }}
{{- end }}
{{- with $c.serviceClusterIPRange | default $root.Values.apiServer.serviceClusterIPRange }}
- {{ printf "--service-cluster-ip-range=%s" . | quote }}
{{- end }}
{{- else if eq $key "controllerManager" }}
{{- with $c.controllers }}
- {{ printf "--controllers=%s" . | quote }}
{{- end }}
{{- else if eq $key "scheduler" }}
- {{ printf "--enable-scheduler-estimator=%v" $c.enableSchedulerEstimator | quote }}
{{- if $c.enableEmptyWorkloadPropagation }}
- "--enable-empty-workload-propagation=true"
{{- end }}
{{- end }}
{{- end -}}

{{/* The roles that the pods of compact run, by the keys of their values. */}}
{{- define "karmada.roles" -}}
{aggregatedApiServer: aggregated-apiserver, controllerManager: controller-manager, scheduler: scheduler, webhook: webhook}
{{- end -}}

{{/* Arguments that values set for roles, with the name of the role in front, as a YAML array. */}}
{{- define "karmada.roleArgs" -}}
{{- $root := index . 0 -}}{{- $out := list -}}{{- $shared := splitList "," (include "karmada.sharedFlags" $root) -}}
{{- range $key, $role := include "karmada.roles" $root | fromYaml -}}
{{- $extra := (include "karmada.component" (list $root $key) | fromJson).extraCommandArgs | default dict -}}
{{- range $name, $value := $extra -}}
{{- if has (trimPrefix "--" $name) $shared -}}
{{- fail (printf "%s.extraCommandArgs.%s: with compact it is of all roles: set it in allInOne.extraCommandArgs" $key $name) -}}
{{- end -}}
{{- $out = append $out (printf "--%s.%s=%v" $role (trimPrefix "--" $name) $value) -}}
{{- end -}}
{{- range fromYamlArray (include "karmada.args" (list $root $key) | trim) -}}
{{- $name := splitList "=" . | first | trimPrefix "--" -}}
{{- if not (or (has $name $shared) (hasKey $extra $name) (hasKey $extra (printf "--%s" $name))) -}}
{{- $out = append $out (printf "--%s.%s" $role (trimPrefix "--" .)) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- toYaml $out -}}
{{- end -}}

{{- define "karmada.gates" -}}
{{- $gates := list -}}
{{- range $name, $on := . }}{{ $gates = append $gates (printf "%s=%v" $name $on) }}{{ end -}}
{{- sortAlpha $gates | join "," -}}
{{- end -}}

{{/* The command of a component: its default, in which arguments of the same name are replaced. */}}
{{- define "karmada.command" -}}
{{- $args := include "karmada.args" . | trim -}}
{{- $extra := list -}}{{- $names := dict -}}
{{- range $name, $value := (include "karmada.component" . | fromJson).extraCommandArgs -}}
{{- $name = printf "--%s" (trimPrefix "--" $name) -}}
{{- $extra = append $extra (printf "%s=%v" $name $value) }}{{ $_ := set $names $name true -}}
{{- end -}}
{{- if eq (index . 1) "allInOne" -}}
{{- $args = printf "%s\n%s" $args (include "karmada.roleArgs" .) -}}
{{- end -}}
{{- if $args -}}
{{- range fromYamlArray $args }}{{ if not (hasKey $names (splitList "=" . | first)) }}{{ $extra = append $extra . }}{{ end }}{{ end -}}
{{- end -}}
{{- $extra = sortAlpha $extra -}}
{{- range $extra }}{{ $_ := set $names (splitList "=" . | first) true }}{{ end -}}
{{- $out := list -}}
{{- range fromYamlArray (index . 2) }}{{ if not (hasKey $names (splitList "=" . | first)) }}{{ $out = append $out . }}{{ end }}{{ end -}}
{{- concat $out $extra | toYaml -}}
{{- end -}}

{{- define "karmada.etcdServers" -}}
{{- if eq .Values.etcd.mode "external" -}}
{{- .Values.etcd.external.servers -}}
{{- else if or (eq .Values.installMode "component") (include "karmada.formerEtcd" .) -}}
https://etcd-client.{{ .Release.Namespace }}.svc.{{ .Values.clusterDomain }}:2379
{{- else -}}
{{- $root := . -}}{{- $out := list -}}
{{- range $i := until (include "karmada.replicas" (list . "etcd") | int) -}}
{{- $out = append $out (printf "https://%setcd-%d.%setcd.%s.svc.%s:2379" (include "karmada.fixed" $root) $i (include "karmada.fixed" $root) $root.Release.Namespace $root.Values.clusterDomain) -}}
{{- end -}}
{{- join "," $out -}}
{{- end -}}
{{- end -}}

{{- define "karmada.etcdCluster" -}}
{{- $root := . -}}{{- $out := list -}}
{{- range $i := until (include "karmada.replicas" (list . "etcd") | int) -}}
{{- $name := printf "%setcd-%d" (include "karmada.fixed" $root) $i -}}
{{- $out = append $out (printf "%s=https://%s.%setcd.%s.svc.%s:2380" $name $name (include "karmada.fixed" $root) $root.Release.Namespace $root.Values.clusterDomain) -}}
{{- end -}}
{{- join "," $out -}}
{{- end -}}

{{/* The members that have an estimator. */}}
{{- define "karmada.estimators" -}}
{{- $out := list -}}
{{- if has "schedulerEstimator" .Values.components -}}
{{- range .Values.schedulerEstimator.memberClusters }}
{{- if has .clusterName $out }}{{ fail (printf "schedulerEstimator.memberClusters: %s is there twice" .clusterName) }}{{ end -}}
{{- $out = append $out .clusterName }}
{{- end -}}
{{- end -}}
{{- join "," $out -}}
{{- end -}}

{{/* Servers of APIs beside the aggregated one. */}}
{{- define "karmada.addons" -}}
{{- $out := list -}}
{{- if has "metricsAdapter" .Values.components }}{{ $out = append $out "karmada-metrics-adapter" }}{{ end -}}
{{- if has "search" .Values.components }}{{ $out = append $out "karmada-search" }}{{ end -}}
{{- join "," $out -}}
{{- end -}}

{{/* Arguments with which the static resources are written. */}}
{{- define "karmada.resourceArgs" -}}
- --name={{ .Release.Name }}
- --fixed-prefix={{ include "karmada.fixed" . }}
- --namespace={{ .Release.Namespace }}
- --cluster-domain={{ .Values.clusterDomain }}
- --system-namespace={{ .Values.systemNamespace }}
- --server={{ .Values.apiServer.externalURL }}
- --apiservers={{ include "karmada.replicas" (list . "apiServer") }}
- {{ printf "--feature-gates=%s" (include "karmada.gates" .Values.controllerManager.featureGates) | quote }}
- --addons={{ include "karmada.addons" . }}
- --estimators={{ include "karmada.estimators" . }}
{{- if .Values.compact }}
- --compact
{{- end }}
{{- end -}}

{{/* The controllers wait for the static resources with this hash. */}}
{{- define "karmada.settings" -}}
{{- printf "%s %s" .Chart.Version (include "karmada.resourceArgs" .) | sha256sum | trunc 16 -}}
{{- end -}}

{{/* Values of secured pods, with the image of a component, a restart policy, and the key of the values of a Job, if it is one. */}}
{{- define "karmada.jobPod" -}}
restartPolicy: {{ index . 2 }}
enableServiceLinks: false
securityContext:
  fsGroup: 65532
  runAsGroup: 65532
  runAsNonRoot: true
  runAsUser: 65532
  seccompProfile:
    type: RuntimeDefault
{{- with include "karmada.pullSecrets" . }}
{{ . }}
{{- end }}
{{- with index . 3 }}
{{- $job := list (index $ 0) . }}
{{- with include "karmada.nodeSelector" $job }}
{{ . }}
{{- end }}
{{- with include "karmada.tolerations" $job }}
tolerations:
{{ . }}
{{- end }}
{{- end }}
{{- end -}}

{{- define "karmada.jobContainer" -}}
image: {{ include "karmada.image" . | quote }}
imagePullPolicy: {{ include "karmada.pullPolicy" . }}
{{ include "karmada.resources" (list (index . 0) (index . 2) "10m" "64Mi") }}
terminationMessagePolicy: FallbackToLogsOnError
securityContext:
  allowPrivilegeEscalation: false
  capabilities:
    add: ["NET_BIND_SERVICE"]
    drop: ["ALL"]
  readOnlyRootFilesystem: true
{{- end -}}
