package validation

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	configv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/config/v1alpha1"
	networkingv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/networking/v1alpha1"
)

func TestValidateMultiClusterService(t *testing.T) {
	for _, tc := range []struct {
		name, service string
		want          []string
	}{
		{name: "the least", service: `{spec: {types: [CrossCluster]}}`},
		{
			name: "ports", service: `{spec: {types: [], ports: [{name: a, port: 0}, {name: a, port: 65536}, {name: A, port: 1}, {port: 2}, {port: 3}]}}`,
			want: []string{
				"Invalid spec.ports[0].port: must be between 1 and 65535, inclusive", "Duplicate spec.ports[1].name",
				"Invalid spec.ports[1].port: must be between 1 and 65535, inclusive",
				"Invalid spec.ports[2].name: a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')",
			},
		},
		{
			name: "types", service: `{spec: {types: [CrossCluster, NodePort, CrossCluster]}}`,
			want: []string{"Invalid spec.types[1]: ExposureType Error", "Invalid spec.types: MultiClusterService types should not contain more than one type"},
		},
		{
			name: "clusters", service: `{spec: {types: [], providerClusters: [{name: m1}, {name: ""}], consumerClusters: [{name: a.b}]}}`,
			want: []string{"Invalid spec.range.providerClusters[1]: must be not empty", "Invalid spec.range.consumerClusters[0]: must not contain dots"},
		},
		{
			name: "a name that starts with a digit", service: `{metadata: {name: 1a}, spec: {types: []}}`,
			want: []string{"Invalid metadata.name: a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')"},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := decode[networkingv1alpha1.MultiClusterService](t, tc.service)
			if s.Namespace = "ns"; s.Name == "" {
				s.Name = "s"
			}
			if diff := cmp.Diff(tc.want, brief(ValidateMultiClusterService(s))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestValidateMultiClusterServiceUpdate(t *testing.T) {
	old := decode[networkingv1alpha1.MultiClusterService](t, `{metadata: {name: 1a, namespace: ns, resourceVersion: "1"}, spec: {types: [CrossCluster, LoadBalancer]}}`)
	s := decode[networkingv1alpha1.MultiClusterService](t, `{metadata: {name: 1a, namespace: ns, resourceVersion: "1"}, spec: {types: [LoadBalancer]},
  status: {loadBalancer: {ingress: [{ip: 10.0.0.1, hostname: a.b}, {ip: x}, {hostname: 10.0.0.1}, {ip: "::1"}]}}}`)
	want := []string{
		"Invalid spec.types: MultiClusterService types are immutable",
		"Invalid status.loadBalancer.ingress[1].ip: must be a valid IP address",
		"Invalid status.loadBalancer.ingress[2].hostname: must be a DNS name, not an IP address",
	}
	if diff := cmp.Diff(want, brief(ValidateMultiClusterServiceUpdate(s, old))); diff != "" {
		t.Error(diff)
	}
}

func TestValidateMultiClusterIngress(t *testing.T) {
	const subdomain = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
	path := func(p string) string { return `{rules: [{http: {paths: [` + p + `]}}]}` }
	for _, tc := range []struct {
		name, spec string
		want       []string
	}{
		{name: "nothing", spec: `{}`, want: []string{"Invalid spec: either `defaultBackend` or `rules` must be specified"}},
		{name: "backends", spec: `{defaultBackend: {}}`, want: []string{"Invalid spec.defaultBackend: resource or service backend is required"}},
		{name: "two backends", spec: `{defaultBackend: {resource: {kind: a, name: b}, service: {name: a}}}`, want: []string{"Invalid spec.defaultBackend: cannot set both resource and service backends"}},
		{
			name: "a resource", spec: `{defaultBackend: {resource: {apiGroup: A, kind: "", name: a/b}}}`,
			want: []string{"Invalid spec.defaultBackend.resource.apiGroup: " + subdomain, "Required spec.defaultBackend.resource.kind", "Invalid spec.defaultBackend.resource.name: may not contain '/'"},
		},
		{name: "two ports", spec: `{defaultBackend: {service: {name: a, port: {name: b, number: 1}}}}`, want: []string{"Invalid spec.defaultBackend: cannot set both port name & port number"}},
		{
			name: "a port", spec: `{defaultBackend: {service: {name: "", port: {number: 65536}}}}`,
			want: []string{"Required spec.defaultBackend.service.name", "Invalid spec.defaultBackend.service.port.number: must be between 1 and 65535, inclusive"},
		},
		{name: "an address with leading zeros", spec: `{rules: [{host: 010.0.0.1}]}`, want: []string{"Invalid spec.rules[0].host: must be a DNS name, not an IP address"}},
		{name: "hosts", spec: `{rules: [{host: 10.0.0.1}, {host: "*.a"}, {host: "*"}]}`, want: []string{
			"Invalid spec.rules[0].host: must be a DNS name, not an IP address",
			"Invalid spec.rules[2].host: a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist of lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character (e.g. '*.example.com', regex used for validation is '\\*\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
		}},
		{name: "no paths", spec: path(""), want: []string{"Required spec.rules[0].http.paths"}},
		{name: "no path type", spec: path(`{path: x, backend: {}}`), want: []string{"Required spec.rules[0].http.paths[0].pathType: pathType must be specified"}},
		{
			name: "paths", spec: path(`{path: "a//b%2Fc/..", pathType: Exact, backend: {resource: {kind: a, name: b}}}, {path: x, pathType: ImplementationSpecific, backend: {resource: {kind: a, name: b}}}, {pathType: X, backend: {resource: {kind: a, name: b}}}`),
			want: []string{
				"Invalid spec.rules[0].http.paths[0].path: must be an absolute path", "Invalid spec.rules[0].http.paths[0].path: must not contain '//'",
				"Invalid spec.rules[0].http.paths[0].path: must not contain '%2F'", "Invalid spec.rules[0].http.paths[0].path: cannot end with '/..'",
				"Invalid spec.rules[0].http.paths[1].path: must be an absolute path",
				`NotSupported spec.rules[0].http.paths[2].pathType: supported values: "Exact", "ImplementationSpecific", "Prefix"`,
			},
		},
		{
			name: "tls and class", spec: `{defaultBackend: {resource: {kind: a, name: b}}, tls: [{secretName: ""}, {secretName: A}], ingressClassName: A}`,
			want: []string{"Invalid spec.tls[1].secretName: " + subdomain, "Invalid spec.ingressClassName: " + subdomain},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			i := decode[networkingv1alpha1.MultiClusterIngress](t, `{metadata: {name: i, namespace: ns, resourceVersion: "1"}, spec: `+tc.spec+`}`)
			if diff := cmp.Diff(tc.want, brief(ValidateMultiClusterIngress(i))); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(tc.want, brief(ValidateMultiClusterIngressUpdate(i, i))); diff != "" {
				t.Errorf("updated: %s", diff)
			}
		})
	}
}

func TestValidateInterpreterWebhookConfiguration(t *testing.T) {
	const contexts = `, interpreterContextVersions: [v1alpha1]`
	webhook := func(rest string) string { return `{webhooks: [{name: a.b, ` + rest + `}]}` }
	const client = `clientConfig: {url: "https://a"}`
	for _, tc := range []struct {
		name, configuration string
		want                []string
	}{
		{name: "good", configuration: webhook(`clientConfig: {service: {namespace: a, name: b, path: /c/d/}}, rules: [{operations: ["*"], apiGroups: [""], apiVersions: ["*"], kinds: [A]}]` + contexts)},
		{
			name: "names", configuration: `{webhooks: [{name: "", ` + client + contexts + `}, {name: a, ` + client + contexts + `}, {name: a.b., ` + client + contexts + `}, {name: a.b., ` + client + contexts + `}]}`,
			want: []string{"Required webhooks[0].name", "Invalid webhooks[1].name: should be a domain with at least two segments separated by dots", "Duplicate webhooks[3].name"},
		},
		{
			name: "rules", configuration: webhook(client + `, rules: [{operations: [], apiGroups: [], apiVersions: [], kinds: []}, {operations: ["*", X], apiGroups: ["*", a], apiVersions: ["*", ""], kinds: ["*", b]}]` + contexts),
			want: []string{
				"Required webhooks[0].rules[0].operations", "Required webhooks[0].rules[0].apiGroups", "Required webhooks[0].rules[0].apiVersions", "Required webhooks[0].rules[0].kinds",
				"Invalid webhooks[0].rules[1].operations: if '*' is present, must not specify other operations",
				`NotSupported webhooks[0].rules[1].operations[1]: supported values: "*", "AggregateStatus", "InterpretComponent", "InterpretDependency", "InterpretHealth", "InterpretReplica", "InterpretStatus", "Retain", "ReviseReplica"`,
				"Invalid webhooks[0].rules[1].apiGroups: if '*' is present, must not specify other API groups",
				"Invalid webhooks[0].rules[1].apiVersions: if '*' is present, must not specify other API versions", "Required webhooks[0].rules[1].apiVersions[1]",
				"Invalid webhooks[0].rules[1].kinds: if '*' is present, must not specify other kinds",
			},
		},
		{name: "timeout", configuration: webhook(client + `, timeoutSeconds: 31` + contexts), want: []string{"Invalid webhooks[0].timeoutSeconds: the timeout value must be between 1 and 30 seconds"}},
		{
			name: "url", configuration: webhook(`clientConfig: {url: "http://u:p@/x?q#f"}` + contexts),
			want: []string{
				"Invalid webhooks[0].clientConfig.url: 'https' is the only allowed URL scheme; desired format: https://host[/path]",
				"Invalid webhooks[0].clientConfig.url: host must be specified; desired format: https://host[/path]",
				"Invalid webhooks[0].clientConfig.url: user information is not permitted in the URL",
				"Invalid webhooks[0].clientConfig.url: fragments are not permitted in the URL", "Invalid webhooks[0].clientConfig.url: query parameters are not permitted in the URL",
			},
		},
		{
			name: "service", configuration: webhook(`clientConfig: {service: {namespace: "", name: "", port: 0, path: a//b}}` + contexts),
			want: []string{
				"Required webhooks[0].clientConfig.service.name", "Required webhooks[0].clientConfig.service.namespace",
				"Invalid webhooks[0].clientConfig.service.port: port is not valid: must be between 1 and 65535, inclusive",
				"Invalid webhooks[0].clientConfig.service.path: must start with a '/'", "Invalid webhooks[0].clientConfig.service.path: segment[0] may not be empty", "Invalid webhooks[0].clientConfig.service.path: segment[1] may not be empty",
			},
		},
		{name: "neither", configuration: webhook(`clientConfig: {}` + contexts), want: []string{"Required webhooks[0].clientConfig: exactly one of url or service is required"}},
		{name: "no versions", configuration: webhook(client + `, interpreterContextVersions: []`), want: []string{"Required webhooks[0].interpreterContextVersions: must specify one of v1alpha1"}},
		{
			name: "versions", configuration: webhook(client + `, interpreterContextVersions: [v2, v2]`),
			want: []string{"Invalid webhooks[0].interpreterContextVersions[1]: duplicate version", "Invalid webhooks[0].interpreterContextVersions: must include at least one of v1alpha1"},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := decode[configv1alpha1.ResourceInterpreterWebhookConfiguration](t, tc.configuration)
			if diff := cmp.Diff(tc.want, brief(ValidateInterpreterWebhookConfiguration(c))); diff != "" {
				t.Error(diff)
			}
		})
	}
}
