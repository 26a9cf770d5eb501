package main

import (
	"slices"
	"strings"

	"github.com/karmada-toolkit/karmada/internal/gates"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/controllermanager"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/estimator"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/scheduler"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/webhook"
)

// types are the definitions for the keys of values.yaml, by the end of their paths; the longest one applies.
func types() map[string]string {
	out := map[string]string{}
	for name, keys := range map[string]string{
		"global":           "global",
		"flag":             "enableSchedulerEstimator enableEmptyWorkloadPropagation hostNetwork enabled compact",
		"count":            "replicaCount logVerbosity ttlSecondsAfterFinished maxRequestsInflight maxMutatingRequestsInflight",
		"positive":         "rootCAExpiryDays etcd.internal.replicaCount",
		"keySize":          "rsaSize",
		"port":             "nodePort",
		"text":             "clientId groupsClaim groupsPrefix usernameClaim usernamePrefix configFile",
		"file":             "caFile",
		"name":             "priorityClassName storageClass existingSecret.name etcd.internal.name schedulerEstimator.certs search.certs search.kubeconfig descheduler.certs descheduler.kubeconfig metricsAdapter.certs metricsAdapter.kubeconfig",
		"namespace":        "systemNamespace",
		"domain":           "clusterDomain",
		"clusterName":      "clusterName",
		"secretKey":        "existingSecret.key",
		"url":              "externalURL clusterEndpoint kubeconfig.server",
		"secureURL":        "issuerUrl",
		"urls":             "servers",
		"keyPrefix":        "registryPrefix",
		"ranges":           "serviceClusterIPRange clusterCIDR",
		"hosts":            "hosts",
		"duration":         "expiry",
		"certificate":      "caCrt crt frontProxyCaCrt frontProxyCrt",
		"key":              "custom.key external.certs.key kubeconfig.key caKey frontProxyKey",
		"tag":              "tag karmadaImageVersion",
		"pullPolicy":       "pullPolicy karmadaImagePullPolicy",
		"registry":         "registry",
		"repository":       "repository",
		"pullSecrets":      "pullSecrets",
		"quantity":         "size",
		"labels":           "labels podLabels nodeSelector",
		"annotations":      "podAnnotations serviceAnnotations",
		"resources":        "resources",
		"affinity":         "affinity",
		"tolerations":      "tolerations",
		"strategy":         "strategy",
		"disruptionBudget": "podDisruptionBudget",
		"arguments":        "extraCommandArgs",
		"unused":           "cfssl kubectl",
		"hookDeletePolicy": "hookDeletePolicy",
		"installMode":      "installMode",
		"components":       "components",
		"certsMode":        "certs.mode",
		"etcdMode":         "etcd.mode",
		"storageType":      "storageType",
		"serviceType":      "serviceType",
		"logLevel":         "logLevel",
		"peers":            "metricsFrom",
		"memberClusters":   "memberClusters",
		"kubeControllers":  "kubeControllerManager.controllers",
		"controllers":      "controllerManager.controllers",
		"schedulerGates":   "scheduler.featureGates",
		"webhookGates":     "webhook.featureGates",
		"controllerGates":  "controllerManager.featureGates",
		"estimatorGates":   "schedulerEstimator.featureGates",
	} {
		for key := range strings.FieldsSeq(keys) {
			out[key] = name
		}
	}
	return out
}

// Parts of patterns.
const (
	label     = `[a-z0-9]([-a-z0-9]*[a-z0-9])?`
	subdomain = label + `(\.` + label + `)*`
	qualified = `(` + subdomain + `/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?`
	cidr      = `[0-9a-fA-F.:]+/[0-9]{1,3}`
)

// definitions are the schemas of the types. null means the default; numbers may be strings, and some strings numbers.
func definitions() object {
	names := object{"type": []string{"array", "null"}, "items": object{
		"type": []string{"string", "object"}, "pattern": "^" + subdomain + "$", "properties": object{"name": text("^" + subdomain + "$")},
		"required": []string{"name"}, "additionalProperties": false,
	}}
	quantity := object{"type": []string{"string", "number", "null"}, "minimum": 0, "pattern": `^([0-9]+(\.[0-9]*)?|\.[0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][-+]?[0-9]+)?$`}
	bound := object{"type": []string{"integer", "string", "null"}, "minimum": 0, "pattern": `^[0-9]+%$`}
	cluster := properties(object{"clusterName": ref("clusterName"), "replicaCount": ref("count"), "kubeconfig": properties(object{
		"caCrt": ref("certificate"), "crt": ref("certificate"), "key": ref("key"), "server": ref("url"),
	})})
	cluster["required"] = []string{"clusterName"}
	duration := text(`^([0-9]+(\.[0-9]*)?(ns|us|µs|ms|s|m|h))+$`)
	duration["allOf"] = []object{{"pattern": "[1-9]"}}
	strategy := properties(object{"type": choice("RollingUpdate", "Recreate"), "rollingUpdate": properties(object{"maxSurge": bound, "maxUnavailable": bound})})
	// Kubernetes refuses a strategy that can neither add nor remove a pod.
	strategy["properties"].(object)["rollingUpdate"].(object)["allOf"] = []object{when(
		object{"required": []string{"maxUnavailable"}, "properties": object{"maxUnavailable": object{"enum": []any{0, "0%"}}}},
		object{"properties": object{"maxSurge": object{"minimum": 1, "pattern": "[1-9]"}}},
	)}
	budget := properties(object{"minAvailable": bound, "maxUnavailable": bound, "unhealthyPodEvictionPolicy": choice("IfHealthyBudget", "AlwaysAllow"), "selector": object{}})
	budget["dependencies"] = object{"minAvailable": object{"properties": object{"maxUnavailable": object{"type": "null"}}}}
	return object{
		"global": object{"type": []string{"object", "null"}, "properties": object{
			"imageRegistry": ref("registry"), "imagePullSecrets": names, "commonLabels": ref("labels"),
		}},
		"flag":        object{"type": []string{"boolean", "null"}},
		"count":       number(0, `^[0-9]+$`),
		"positive":    number(1, `^0*[1-9][0-9]*$`),
		"keySize":     with(number(2048, `^[0-9]+$`), "maximum", 8192),
		"port":        with(number(0, `^([0-9]{1,4}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5])$`), "maximum", 65535),
		"text":        object{"type": []string{"string", "number", "null"}},
		"file":        text(`^(/\S+)?$`),
		"name":        with(text(`^(`+subdomain+`)?$`), "maxLength", 253),
		"namespace":   with(text(`^`+label+`$`), "maxLength", 63),
		"domain":      with(text(`^`+subdomain+`$`), "maxLength", 253),
		"clusterName": with(text(`^(`+label+`)?$`), "maxLength", 48),
		"secretKey":   with(text(`^[-._A-Za-z0-9]+$`), "maxLength", 253),
		"url":         text(`^(https?://[^\s/?#,]+\S*)?$`),
		"secureURL":   text(`^(https://[^\s/?#,]+\S*)?$`),
		"urls":        text(`^(https?://[^\s/?#,]+(,https?://[^\s/?#,]+)*)?$`),
		"keyPrefix":   text(`^/\S*$`),
		"ranges":      text(`^(` + list(cidr) + `)?$`),
		// A host, or a template of one.
		"hosts":       object{"type": []string{"array", "null"}, "items": object{"type": "string", "pattern": `\{\{|^[A-Za-z0-9*:][-A-Za-z0-9_.*:]*$`}},
		"duration":    duration,
		"certificate": text(`^$|-----BEGIN CERTIFICATE-----`),
		"key":         text(`^$|-----BEGIN ([A-Z]+ )?PRIVATE KEY-----`),
		"tag":         object{"type": []string{"string", "number", "null"}, "pattern": `^(\w[\w.-]{0,127}(@sha256:[0-9a-f]{64})?)?$`},
		"pullPolicy":  choice("", "Always", "IfNotPresent", "Never"),
		"registry":    text(`^((\[[0-9a-fA-F:]+\]|[A-Za-z0-9][A-Za-z0-9.-]*)(:[0-9]+)?(/[a-z0-9._/-]+)?)?$`),
		"repository":  text(`^[a-z0-9]+([._/-]+[a-z0-9]+)*$`),
		"pullSecrets": names,
		"quantity":    quantity,
		"labels":      entries(qualified, with(text(`^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$`), "maxLength", 63)),
		"annotations": entries(qualified, object{"type": []string{"string", "null"}}),
		"resources": properties(object{
			"limits": entries(qualified, ref("quantity")), "requests": entries(qualified, ref("quantity")),
			"claims": object{"type": []string{"array", "null"}, "items": object{"type": "object", "required": []string{"name"}}},
		}),
		"affinity": properties(object{"nodeAffinity": ref("unused"), "podAffinity": ref("unused"), "podAntiAffinity": ref("unused")}),
		"tolerations": object{"type": []string{"array", "null"}, "items": with(properties(object{
			"key": text(`^(` + qualified + `)?$`), "operator": choice("", "Exists", "Equal", "Lt", "Gt"), "value": text(""),
			"effect": choice("", "NoSchedule", "PreferNoSchedule", "NoExecute"), "tolerationSeconds": object{"type": []string{"integer", "null"}},
		}), "type", "object")},
		"strategy":         strategy,
		"disruptionBudget": budget,
		"arguments":        entries(`(--)?[A-Za-z][-A-Za-z0-9_.]*`, object{"type": []string{"string", "number", "boolean", "null"}}),
		// Any object.
		"unused":           object{"type": []string{"object", "null"}},
		"hookDeletePolicy": text(`^(` + list(`(before-hook-creation|hook-succeeded|hook-failed)`) + `)?$`),
		"installMode":      choice("host", "agent", "component"),
		"components":       object{"type": []string{"array", "null"}, "items": object{"enum": []any{"schedulerEstimator", "descheduler", "search", "metricsAdapter"}}},
		"certsMode":        choice("auto", "custom"),
		"etcdMode":         choice("internal", "external"),
		"storageType":      choice("hostPath", "pvc"),
		"serviceType":      choice("ClusterIP", "NodePort", "LoadBalancer"),
		"logLevel":         choice("", "debug", "info", "warn", "error", "panic", "fatal"),
		"peers": object{"type": []string{"array", "null"}, "items": with(properties(object{
			"namespaceSelector": ref("unused"), "podSelector": ref("unused"), "ipBlock": ref("unused"),
		}), "type", "object")},
		"memberClusters":  object{"type": []string{"array", "null"}, "items": with(cluster, "type", "object")},
		"kubeControllers": text(`^(` + list(`(\*|-?[a-z][-a-z0-9]*)`) + `)?$`),
		"controllers":     text(`^(` + list(`(\*|-?(`+strings.Join(controllermanager.ControllerNames(), "|")+`))`) + `)?$`),
		"schedulerGates":  featureGates(scheduler.NewOptions().Gates),
		"webhookGates":    featureGates(webhook.NewOptions().Gates),
		"controllerGates": featureGates(controllermanager.NewOptions().Gates),
		"estimatorGates":  featureGates(estimator.NewOptions().Gates),
	}
}

// combinations are the rules for values that need others, by the path of the map around them.
func combinations() map[string][]object {
	kubeconfig := []string{"kubeconfig.caCrt", "kubeconfig.crt", "kubeconfig.key", "kubeconfig.server"}
	estimators := needs(kubeconfig...)
	agent := []string{"agent.clusterName"}
	for _, path := range kubeconfig {
		agent = append(agent, "agent."+path)
	}
	return map[string][]object{
		"": {
			when(is("installMode", "agent"), needs(agent...)),
			when(is("installMode", "component"), object{"required": []string{"components"}, "properties": object{"components": object{"minItems": 1}}}),
			// Connections from the network of a node have no pod that a policy could name.
			when(object{"required": []string{"networkPolicy"}, "properties": object{"networkPolicy": is("enabled", true)}},
				object{"properties": object{"apiServer": object{"properties": object{"hostNetwork": object{"enum": []any{false, nil}}}}}}),
			when(object{"required": []string{"components"}, "properties": object{"components": object{"contains": object{"const": "schedulerEstimator"}}}},
				object{"properties": object{"schedulerEstimator": object{"properties": object{"memberClusters": object{"items": estimators}}}}}),
		},
		"certs": {when(is("mode", "custom"), object{
			"required": []string{"custom"},
			"properties": object{"custom": object{"allOf": []object{
				needs("caCrt", "caKey"),
				when(some("crt", "key"), needs("crt", "key")),
				when(some("frontProxyCaCrt", "frontProxyCrt", "frontProxyKey"), needs("frontProxyCaCrt", "frontProxyCrt", "frontProxyKey")),
			}}},
		})},
		"etcd":                       {when(is("mode", "external"), needs("external.servers", "external.certs.caCrt", "external.certs.crt", "external.certs.key"))},
		"apiServer.encryptionAtRest": {when(is("enabled", true), needs("existingSecret.name"))},
		"apiServer.oidc":             {when(some("caFile", "clientId", "groupsClaim", "groupsPrefix", "issuerUrl", "usernameClaim", "usernamePrefix"), needs("clientId", "issuerUrl"))},
	}
}

// Parts of schemas.

func ref(name string) object { return object{"$ref": "#/$defs/" + name} }

func with(in object, key string, value any) object {
	in[key] = value
	return in
}

// text is a string that a pattern matches; an empty pattern matches any.
func text(pattern string) object {
	out := object{"type": []string{"string", "null"}}
	if pattern != "" {
		out["pattern"] = pattern
	}
	return out
}

// number is an integer, or a string of digits that a pattern matches.
func number(minimum int, pattern string) object {
	return object{"type": []string{"integer", "string", "null"}, "minimum": minimum, "pattern": pattern}
}

func choice(choices ...any) object { return object{"enum": append(choices, nil)} }

func properties(properties object) object {
	return object{"type": []string{"object", "null"}, "properties": properties, "additionalProperties": false}
}

// entries is a map whose keys a pattern matches.
func entries(keys string, values object) object {
	return object{"type": []string{"object", "null"}, "patternProperties": object{"^" + keys + "$": values}, "additionalProperties": false}
}

// list is the pattern of items that are separated by commas.
func list(item string) string { return item + "(," + item + ")*" }

// featureGates is a map of the gates that a role has.
func featureGates(g *gates.Gates) object {
	names, _ := g.Names()
	out := object{}
	for _, name := range names {
		out[name] = object{"type": []string{"boolean", "string", "null"}, "pattern": "^(true|false)$"}
	}
	return properties(out)
}

func when(condition, then object) object { return object{"if": condition, "then": then} }

func is(key string, value any) object {
	return object{"required": []string{key}, "properties": object{key: object{"const": value}}}
}

// some holds if one of the values is not empty.
func some(keys ...string) object {
	var out []object
	for _, key := range keys {
		out = append(out, object{"required": []string{key}, "properties": object{key: object{"type": []string{"string", "number"}, "minLength": 1}}})
	}
	return object{"anyOf": out}
}

// needs holds if the values at all paths are not empty.
func needs(paths ...string) object {
	properties, required := object{}, []string{}
	inner := map[string][]string{}
	for _, path := range paths {
		key, rest, branch := strings.Cut(path, ".")
		if branch {
			inner[key] = append(inner[key], rest)
		} else {
			properties[key] = object{"minLength": 1}
		}
		if !slices.Contains(required, key) {
			required = append(required, key)
		}
	}
	for key, paths := range inner {
		properties[key] = needs(paths...)
	}
	return object{"required": required, "properties": properties}
}
