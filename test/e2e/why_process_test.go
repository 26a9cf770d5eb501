//go:build !kind

package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// question is a case of TestWhy.
type question struct {
	name string
	// setup makes the state in a namespace.
	setup func(t *testing.T, ns string)
	// object is the object that is asked about; default deployment/web.
	object string
	// more are arguments.
	more []string
	// cause is what the account has.
	cause string
}

// lazily is a policy that waits for the next change of its objects.
func lazily(policy string) string {
	return strings.Replace(policy, "spec:\n", "spec:\n  activationPreference: Lazy\n", 1)
}

// with adds a line to the spec of a policy.
func with(policy, line string) string {
	return strings.Replace(policy, "spec:\n", "spec:\n  "+line+"\n", 1)
}

func questions() []question {
	web := func(manifests ...string) func(*testing.T, string) {
		return func(t *testing.T, ns string) { apply(t, ns, append(manifests, deployment("web", 2))...) }
	}
	both := "replicaScheduling: {replicaSchedulingType: Divided, replicaDivisionPreference: Weighted}\n" + to("member1", "member2")
	return []question{
		{name: "no policy", cause: "NoPolicy", setup: web()},
		{name: "a policy of another namespace", cause: "PolicyInOtherNamespace", setup: func(t *testing.T, ns string) {
			must(t, "create", "namespace", ns+"-b")
			t.Cleanup(func() { ctl("", "delete", "namespace", ns+"-b", "--wait=false") })
			apply(t, ns+"-b", policy("web", to("member1")))
			apply(t, ns, deployment("web", 2))
		}},
		{name: "two policies", cause: "Working", setup: func(t *testing.T, ns string) {
			apply(t, ns, policyFor("all", "{apiVersion: apps/v1, kind: Deployment}", to("member2")), policy("web", both))
			apply(t, ns, deployment("web", 2))
		}},
		{name: "lazy activation", cause: "LazyActivation", setup: func(t *testing.T, ns string) {
			apply(t, ns, deployment("web", 2))
			apply(t, ns, lazily(policy("web", to("member1"))))
		}},
		{name: "no cluster is selected", cause: "NoClusterFit", setup: web(policy("web", to("nowhere")))},
		{name: "not enough room", cause: "Unschedulable", setup: func(t *testing.T, ns string) {
			apply(t, ns, policy("web", byRoom), strings.Replace(deployment("web", 2000), "cpu: 10m", "cpu: 900m", 1))
		}},
		{name: "quota", cause: "QuotaExceeded", setup: func(t *testing.T, ns string) {
			apply(t, ns, federatedQuota(""))
			eventually(t, is("", ns, "federatedresourcequota/budget", "{.status.overall.cpu}", "50m"))
			apply(t, ns, policy("web", both), deployment("web", 8))
		}},
		{name: "dispatching is suspended", cause: "DispatchingSuspended", setup: web(with(policy("web", to("member1")), "suspension: {dispatching: true}"))},
		{name: "an unknown scheduler", cause: "UnknownScheduler", setup: web(with(policy("web", to("member1")), "schedulerName: mine"))},
		{name: "a type that members do not have", cause: "NoClusterFit", object: "firewall/web", setup: func(t *testing.T, ns string) {
			mustWith(t, firewallDefinition, "apply", "-f", "-")
			t.Cleanup(func() { ctl("", "delete", "crd", "firewalls.example.com", "--wait=false") })
			eventually(t, func() error {
				if r := ctl("", "get", "firewalls", "-n", ns); r.code != 0 {
					return fmt.Errorf("%s", r.err)
				}
				return nil
			})
			apply(t, ns, policyFor("web", "{apiVersion: example.com/v1, kind: Firewall}", to("member1", "member2")),
				"apiVersion: example.com/v1\nkind: Firewall\nmetadata: {name: web}\nspec: {}")
		}},
		{name: "an object that exists already", cause: "ApplyFailed", setup: func(t *testing.T, ns string) {
			ctl("", member("member1", "create", "namespace", ns)...) // unless it is there
			mustWith(t, deployment("web", 1), member("member1", "create", "-n", ns, "-f", "-")...)
			apply(t, ns, policy("web", to("member1")), deployment("web", 2))
		}},
		{name: "an override that fails", cause: "OverrideFailed", setup: web(policy("web", to("member1")), override("web", "plaintext: [{path: /spec/none/of/these, operator: replace, value: x}]"))},
		{name: "an override", cause: "Working", setup: web(policy("web", both), override("web", `imageOverrider: [{component: Tag, operator: replace, value: "1.20"}]`))},
		{name: "pods without a node", cause: "Unhealthy", setup: func(t *testing.T, ns string) {
			apply(t, ns, policy("web", to("member1")), strings.Replace(deployment("web", 2), "cpu: 10m", "cpu: 5000", 1))
		}},
		{name: "a taint", cause: "NoClusterFit", setup: func(t *testing.T, ns string) {
			taint(t, "member1", "maintenance:NoSchedule")
			apply(t, ns, policy("web", to("member1")), deployment("web", 2))
		}},
		{name: "too few clusters", cause: "SchedulerError", setup: web(policy("web", to("member1")+"\nspreadConstraints: [{spreadByField: cluster, minGroups: 2, maxGroups: 2}]"))},
		{name: "an immutable field", cause: "ApplyFailed", object: "configmap/web", setup: func(t *testing.T, ns string) {
			apply(t, ns, policyFor("web", "{apiVersion: v1, kind: ConfigMap}", to("member1")), configMapNamed("web"))
			eventually(t, is("member1", ns, "cm/web", "{.metadata.name}", "web"))
			must(t, member("member1", "patch", "cm", "web", "-n", ns, "-p", `{"immutable":true}`)...)
		}},
		{name: "an eviction", cause: "Unhealthy", setup: func(t *testing.T, ns string) {
			one := "\nspreadConstraints: [{spreadByField: cluster, minGroups: 1, maxGroups: 1}]"
			apply(t, ns, policy("web", to("member1")+one), strings.Replace(deployment("web", 2), "cpu: 10m", "cpu: 5000", 1))
			eventually(t, targets(ns, "web-deployment", "member1"))
			apply(t, ns, policy("web", to("member1", "member2")+one))
			taint(t, "member1", "maintenance:NoExecute")
		}},
		{name: "an interpreter rule that fails", cause: "InterpreterFailed", object: "podtemplate/web", setup: func(t *testing.T, ns string) {
			mustWith(t, brokenRule, "apply", "-f", "-")
			t.Cleanup(func() { ctl("", "delete", "resourceinterpretercustomization", "broken", "--wait=false") })
			apply(t, ns, policyFor("web", "{apiVersion: v1, kind: PodTemplate}", to("member1")),
				"apiVersion: v1\nkind: PodTemplate\nmetadata: {name: web}\ntemplate: {spec: {containers: [{name: nginx, image: 'nginx:1.19.0'}]}}")
			eventually(t, is("", ns, "rb/web-podtemplate", "{.status.aggregatedStatus[*].applied}", "true"))
		}},
		{name: "a dependency", cause: "Working", object: "configmap/settings", setup: func(t *testing.T, ns string) {
			uses := strings.Replace(deployment("web", 1), "      - name: nginx", "      - name: nginx\n        envFrom: [{configMapRef: {name: settings}}]", 1)
			apply(t, ns, configMapNamed("settings"), with(policy("web", to("member1")), "propagateDeps: true"), uses)
		}},
		{name: "a policy", cause: "Working", object: "propagationpolicy/web", setup: web(policy("web", both))},
		{name: "a policy that selects nothing", cause: "SelectsNothing", object: "propagationpolicy/web", setup: func(t *testing.T, ns string) { apply(t, ns, policy("web", both)) }},
		{name: "an object of a member", cause: "Working", more: []string{"-C", "member1"}, setup: func(t *testing.T, ns string) {
			apply(t, ns, policy("web", both), deployment("web", 2))
			eventually(t, is("member1", ns, "deploy/web", "{.status.readyReplicas}", "1"))
		}},
		{name: "a label that its policy does not select any more", cause: "NotSelectedAnyMore", setup: func(t *testing.T, ns string) {
			apply(t, ns, policyFor("web", "{apiVersion: apps/v1, kind: Deployment, labelSelector: {matchLabels: {tier: a}}}", to("member1")), strings.Replace(deployment("web", 1), "labels: {app: web}", "labels: {app: web, tier: a}", 1))
			eventually(t, is("member1", ns, "deploy/web", "{.metadata.name}", "web"))
			must(t, "label", "deploy", "web", "-n", ns, "tier=b", "--overwrite")
		}},
		{name: "a policy that was deleted", cause: "PolicyDeleted", setup: func(t *testing.T, ns string) {
			apply(t, ns, policy("web", to("member1")), deployment("web", 1))
			eventually(t, is("member1", ns, "deploy/web", "{.status.readyReplicas}", "1"))
			must(t, "delete", "pp", "web", "-n", ns)
		}},
		{name: "a mistyped name", cause: "NoPolicy", setup: web(policy("wbe", to("member1")))},
		{name: "a missing Secret", cause: "MissingDependency", setup: func(t *testing.T, ns string) {
			uses := strings.Replace(deployment("web", 1), "      - name: nginx", "      - name: nginx\n        envFrom: [{secretRef: {name: none, optional: true}}]", 1)
			apply(t, ns, with(policy("web", to("member1")), "propagateDeps: true"), uses)
		}},
		{name: "a removal that a member refuses", cause: "NotRemoved", object: "configmap/web", setup: func(t *testing.T, ns string) {
			apply(t, ns, policyFor("web", "{apiVersion: v1, kind: ConfigMap}", to("member1")), configMapNamed("web"))
			eventually(t, is("member1", ns, "cm/web", "{.metadata.name}", "web"))
			mustWith(t, fmt.Sprintf(noDeletion, ns), member("member1", "create", "-f", "-")...)
			remove := func() {
				ctl("", member("member1", "delete", "validatingadmissionpolicies,validatingadmissionpolicybindings", ns)...)
			}
			t.Cleanup(remove)
			eventually(t, func() error { // admission follows
				if r := ctl("", member("member1", "delete", "cm", "web", "-n", ns, "--dry-run=server")...); r.code == 0 {
					return fmt.Errorf("the member deletes it")
				}
				return nil
			})
			must(t, "delete", "cm", "web", "-n", ns)
			eventually(t, func() error {
				if r := ctl("", "why", "cm", "web", "-n", ns); !strings.Contains(words(r.out), "team X keeps it") {
					return fmt.Errorf("%s%s", r.out, r.err)
				}
				return nil
			})
		}},
		{name: "an override policy", cause: "Working", object: "overridepolicy/web", setup: web(override("web", `imageOverrider: [{component: Tag, operator: replace, value: "1.20"}]`))},
		{name: "a ConfigMap of a member", cause: "Working", object: "configmap/web", more: []string{"-C", "member1"}, setup: func(t *testing.T, ns string) {
			apply(t, ns, policyFor("web", "{apiVersion: v1, kind: ConfigMap}", to("member1")), configMapNamed("web"))
			eventually(t, is("member1", ns, "cm/web", "{.metadata.name}", "web"))
		}},
		{name: "healthy", cause: "Working", setup: web(policy("web", both))},
	}
}

// override is an OverridePolicy for a Deployment of the same name in member1.
func override(name, overriders string) string {
	return fmt.Sprintf(`
apiVersion: policy.karmada.io/v1alpha1
kind: OverridePolicy
metadata: {name: %[1]s}
spec:
  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, name: %[1]s}]
  overrideRules:
  - targetCluster: {clusterNames: [member1]}
    overriders: {%[2]s}
`, name, overriders)
}

// noDeletion has a member refuse the deletion of ConfigMap web in a namespace.
const noDeletion = `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: %[1]s}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [DELETE], resources: [configmaps]}]}
  validations: [{expression: "oldObject.metadata.namespace != '%[1]s' || oldObject.metadata.name != 'web'", message: "team X keeps it"}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: %[1]s}
spec: {policyName: %[1]s, validationActions: [Deny]}
`

const brokenRule = `
apiVersion: config.karmada.io/v1alpha1
kind: ResourceInterpreterCustomization
metadata: {name: broken}
spec:
  target: {apiVersion: v1, kind: PodTemplate}
  customizations:
    statusReflection:
      luaScript: |
        function ReflectStatus(observed)
          error("no status of " .. observed.metadata.name)
        end
`

const firewallDefinition = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: firewalls.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: firewalls, singular: firewall, kind: Firewall}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`

var (
	ages   = regexp.MustCompile(`\b[0-9]+[smh]([0-9]+s)? ago`)
	since  = regexp.MustCompile(`since [0-9]+[smh]([0-9]+s)?`)
	room   = regexp.MustCompile(`(available replicas|member[12]) [0-9]+( \(cpu\)| are)`)
	nodes  = regexp.MustCompile(`[0-9]+/[0-9]+ nodes are available: .*?(scheduling|incoming pod)\.`)
	hashes = regexp.MustCompile(`web-[0-9a-f]+-[0-9a-z]{5}`)
)

// words returns a text without its line ends, which numbers move, and without the words of a scheduler about its nodes.
func words(text string) string {
	return nodes.ReplaceAllString(strings.Join(strings.Fields(text), " "), "NODES")
}

// TestWhy compares the text about each state with a golden file. Ages and the names of pods are left out. With UPDATE_GOLDEN it
// writes the texts that are there twice.
func TestWhy(t *testing.T) {
	for _, q := range questions() {
		t.Run(q.name, func(t *testing.T) {
			ns := namespace(t)
			q.setup(t, ns)
			object, before := or(q.object, "deployment/web"), ""
			path := filepath.Join("testdata", "why", strings.ReplaceAll(q.name, " ", "-")+".txt")
			golden, err := os.ReadFile(path)
			if err != nil && os.Getenv("UPDATE_GOLDEN") == "" {
				t.Fatal(err)
			}
			eventually(t, func() error {
				if out := must(t, append([]string{"why", object, "-n", ns, "-o", "json"}, q.more...)...); !strings.Contains(out, fmt.Sprintf("\"cause\": %q", q.cause)) {
					return fmt.Errorf("the cause is not %s:\n%s", q.cause, out)
				}
				text := room.ReplaceAllString(hashes.ReplaceAllString(ages.ReplaceAllString(since.ReplaceAllString(must(t, append([]string{"why", object, "-n", ns}, q.more...)...), "since AGE"), "AGE ago"), "POD"), "$1 N$2")
				stable := text == before
				before = text
				switch {
				case os.Getenv("UPDATE_GOLDEN") == "" && words(text) != words(string(golden)):
					return fmt.Errorf("%s has\n%s\ngot\n%s", path, golden, text)
				case os.Getenv("UPDATE_GOLDEN") != "" && !stable:
					return fmt.Errorf("it changes:\n%s", text)
				case os.Getenv("UPDATE_GOLDEN") != "":
					return os.WriteFile(path, []byte(text), 0o600)
				}
				return nil
			})
			runNext(t, append([]string{"why", object, "-n", ns}, q.more...))
		})
	}
}

// nextCommands finds the commands in a next step; those with placeholders, which a user fills in, are left out.
var nextCommands = regexp.MustCompile(`karmadactl( [^ ,;]+)+`)

// runNext runs the commands that an account has as its next step: each ends with exit code 0.
func runNext(t *testing.T, args []string) {
	t.Helper()
	t.Setenv("KUBE_EDITOR", "true") // changes nothing
	var a struct{ Next string }
	if err := json.Unmarshal([]byte(must(t, append(args, "-o", "json")...)), &a); err != nil {
		t.Fatal(err)
	}
	for _, command := range nextCommands.FindAllString(a.Next, -1) {
		words := strings.Fields(command)[1:]
		if slices.ContainsFunc(words, func(w string) bool { return strings.ToUpper(w) == w && strings.ToLower(w) != w }) {
			continue
		}
		if r := ctl("", words...); r.code != 0 {
			t.Errorf("the next step %q: exit code %d\n%s%s", command, r.code, r.out, r.err)
		}
	}
}

// userOf returns a kubeconfig of a new ServiceAccount.
func userOf(t *testing.T, ns, name string) string {
	t.Helper()
	token := newAttackers(t).serviceAccount(ns, name).BearerToken
	config, err := clientcmd.LoadFromFile(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	config.AuthInfos = map[string]*clientcmdapi.AuthInfo{"viewer": {Token: token}}
	for _, c := range config.Contexts {
		c.AuthInfo = "viewer"
	}
	path := filepath.Join(t.TempDir(), "viewer.kubeconfig")
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestWhy_ViewerOfOneNamespace asks as a user who may read one namespace: what is not known is named, and the ClusterRole for it helps.
func TestWhy_ViewerOfOneNamespace(t *testing.T) {
	ns := namespace(t)
	path := userOf(t, ns, "viewer")
	must(t, "create", "rolebinding", "viewer", "-n", ns, "--clusterrole=view", "--serviceaccount="+ns+":viewer")
	apply(t, ns, policy("web", to("member1")), deployment("web", 1))
	answers := func(present, absent string) func() error {
		return func() error {
			r := ctl("", "why", "deployment/web", "-n", ns, "--kubeconfig", path)
			text := words(r.out)
			if r.code != 0 || !strings.Contains(text, "1 of 1 replicas ready in 1 of 1 clusters") || !strings.Contains(text, "member1 applied") ||
				!strings.Contains(text, present) || absent != "" && strings.Contains(text, absent) {
				return fmt.Errorf("exit code %d\n%s%s", r.code, r.out, r.err)
			}
			return nil
		}
	}
	eventually(t, all(answers("not read Clusters: ", ""), answers("not read the Work in cluster member1: ", "")))
	must(t, "create", "clusterrolebinding", ns+"-insight", "--clusterrole=karmada-insight", "--serviceaccount="+ns+":viewer")
	t.Cleanup(func() { ctl("", "delete", "clusterrolebinding", ns+"-insight") })
	eventually(t, answers("not read the Work in cluster member1: ", "not read Cluster"))
}

// TestWhy_BadInput has errors that name what is wrong, and the nearest of what exists.
func TestWhy_BadInput(t *testing.T) {
	ns := namespace(t)
	apply(t, ns, policy("web", to("member1")), deployment("web", 1))
	for line, want := range map[string]string{
		"deploymnt web":             `the server doesn't have a resource type "deploymnt"; did you mean deployment, deployments?`,
		"deployment wbe":            `did you mean web?`,
		"propagationpolicy wev":     `did you mean web?`,
		"deployment":                "name one object as TYPE NAME or TYPE/NAME",
		"deployment web -C nowhere": `clusters.cluster.karmada.io "nowhere" not found`,
		"deployment wbe -C member1": `cluster member1: `,
	} {
		r := ctl("", append(append([]string{"why"}, strings.Fields(line)...), "-n", ns)...)
		if r.code != 1 || r.out != "" || !strings.Contains(r.err, want) || strings.Count(r.err, "\n") != 1 {
			t.Errorf("why %s: exit code %d\n%s%s; want %s", line, r.code, r.out, r.err, want)
		}
	}
}

// TestWhy_ObjectOfOneMember finds a pod that only a member has.
func TestWhy_ObjectOfOneMember(t *testing.T) {
	ns := namespace(t)
	apply(t, ns, policy("web", to("member2")), strings.Replace(deployment("web", 1), "cpu: 10m", "cpu: 5000", 1))
	pod := ""
	eventually(t, func() (err error) {
		if pod, err = value("member2", ns, "pods", "{.items[*].metadata.name}"); err == nil && pod == "" {
			err = fmt.Errorf("there is no pod")
		}
		return err
	})
	eventually(t, func() error {
		r := ctl("", "why", "pod", pod, "-n", ns, "--times")
		text := words(r.out)
		if r.code != 0 || !strings.Contains(r.err, "using cluster(member2)") || !strings.Contains(text, "Pod "+ns+"/"+pod+" of cluster member2: Unschedulable: NODES") ||
			!strings.Contains(text, "Deployment "+ns+"/web") || !strings.Contains(text, "s applied in member2") {
			return fmt.Errorf("exit code %d\n%s%s", r.code, r.out, r.err)
		}
		return nil
	})
}

// TestMCP asks as an assistant does.
func TestMCP(t *testing.T) {
	ns := namespace(t)
	apply(t, ns, policy("web", to("nowhere")), deployment("web", 1), "apiVersion: v1\nkind: Secret\nmetadata: {name: password}\nstringData: {password: hunter2}")
	session, err := mcp.NewClient(&mcp.Implementation{Name: "e2e"}, nil).Connect(t.Context(), &mcp.CommandTransport{
		Command: exec.Command(filepath.Join(bin, "karmadactl"), "mcp", "--kubeconfig", kubeconfig),
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := session.Close(); err != nil {
			t.Errorf("closing stdin does not end it: %v", err)
		}
	})
	call := func(tool string, arguments map[string]any) (string, bool) {
		t.Helper()
		result, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: tool, Arguments: arguments})
		if err != nil {
			t.Fatal(err)
		}
		text := ""
		for _, c := range result.Content {
			text += c.(*mcp.TextContent).Text + "\n"
		}
		return text, result.IsError
	}
	eventually(t, func() error {
		if text, failed := call("why", map[string]any{"type": "deployment", "name": "web", "namespace": ns}); failed || !strings.Contains(text, "no cluster fits") {
			return fmt.Errorf("why: %s", text)
		}
		if text, failed := call("status", map[string]any{}); failed || !strings.Contains(text, "control plane") {
			return fmt.Errorf("status: %s", text)
		}
		return nil
	})
	if text, failed := call("get", map[string]any{"type": "secrets", "name": "password", "namespace": ns}); failed || !strings.Contains(text, "password") || strings.Contains(text, "hunter2") || strings.Contains(text, "aHVudGVyMg") {
		t.Errorf("get: %s", text)
	}
	if text, failed := call("plan", map[string]any{"manifest": policy("web", to("member1")), "namespace": ns}); failed || !strings.Contains(text, "  member1  0 -> 1   created\n") {
		t.Errorf("plan: %s", text)
	}
	for _, name := range []string{"--output=yaml", "-oyaml"} {
		if text, failed := call("get", map[string]any{"type": "secrets", "name": name, "namespace": ns}); !failed || strings.Contains(text, "aHVudGVyMg") {
			t.Errorf("get secrets %s: %s", name, text)
		}
	}
}

// TestStatus_ListsProblems has a binding that cannot be scheduled, and a Deployment that no policy selects, which is no problem.
// The many replicas put it before the problems of other tests.
func TestStatus_ListsProblems(t *testing.T) {
	ns := namespace(t)
	apply(t, ns, policy("web", to("nowhere")), deployment("web", 100000), deployment("alone", 1))
	eventually(t, func() error {
		r := ctl("", "status", "-o", "json")
		if want := fmt.Sprintf("\"next\": \"karmadactl why deployment web -n %s\"", ns); r.code != 1 || !strings.Contains(r.out, want) {
			return fmt.Errorf("exit code %d, and not %s:\n%s%s", r.code, want, r.out, r.err)
		}
		if strings.Contains(r.out, "deployment alone -n "+ns) {
			return fmt.Errorf("a Deployment without a policy is a problem:\n%s", r.out)
		}
		return nil
	})
}
