//go:build !kind

package e2e

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"

	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/insight/plan"
)

const (
	// truthChanges is the number of changes of TestPlanTruth; PLAN_TRUTH is another one.
	truthChanges = 25
	// truthSeed is its seed; PLAN_TRUTH_SEED is another one.
	truthSeed = 1
	// truthQuiet is how long nothing changes before a state counts as the one that follows a change.
	truthQuiet = 800 * time.Millisecond
	// truthLimit is how long it may take until the state is the one that was planned.
	truthLimit = 90 * time.Second
	// truthReset is the number of changes after which clusters are as they were at first.
	truthReset = 8
	// truthLosses is how many changes there are, on average, for each loss of a cluster.
	truthLosses = 50
	// truthTrail is the number of changes before a difference that are printed.
	truthTrail = 6
	// maxUnknown is the share of objects, in percent, of which something may be unknown. How many new templates leave replicas over, which go
	// where their UIDs decide, and how many objects clusters refuse to change depends on the random changes alone: maxInherent is their share.
	maxUnknown, maxInherent = 2, 5
)

// truthKinds are the kinds of templates.
var truthKinds = map[string]schema.GroupVersionResource{
	"Deployment":  {Group: "apps", Version: "v1", Resource: "deployments"},
	"StatefulSet": {Group: "apps", Version: "v1", Resource: "statefulsets"},
	"Job":         {Group: "batch", Version: "v1", Resource: "jobs"},
	"ConfigMap":   {Version: "v1", Resource: "configmaps"},
}

// truthNamespaces are Namespaces.
var truthNamespaces = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}

// truth makes random changes, and compares what was planned with what happens.
type truth struct {
	*rand.Rand
	ns       string
	control  dynamic.Interface
	members  map[string]dynamic.Interface
	clusters []string
	lost     map[string]bool
	// existing are the objects that were in a cluster before they were delivered there, by the beginning of lines about them.
	existing map[string]string
	// trail are the changes that were made.
	trail []string
	// state is that after the last change; nil if it is not known.
	state map[string]*unstructured.Unstructured
	// planned, unknown and inherent are the objects of all plans: all, those with something unknown, and those with replicas left over, or that
	// a cluster refuses.
	planned, unknown, inherent int
	// evicted are namespaces in clusters from which they are being evicted, by the beginning of lines about them: a plan shows what follows when
	// evictions have ended.
	evicted map[string]bool
	// deleted reports whether the namespace was deleted.
	deleted bool
	// user is a kubeconfig of a user who may edit the namespace, and has the ClusterRole karmada-insight.
	user string
}

// TestPlanTruth makes one random change after the other: what plan printed is what then happens, object by object and cluster by cluster.
func TestPlanTruth(t *testing.T) {
	p := &truth{ns: namespace(t), members: map[string]dynamic.Interface{}, lost: map[string]bool{}, existing: map[string]string{}}
	n, seed := numberOf(t, "PLAN_TRUTH", truthChanges), numberOf(t, "PLAN_TRUTH_SEED", truthSeed)
	p.Rand = rand.New(rand.NewPCG(uint64(seed), 0))
	p.control = contextClient(t, "karmada-apiserver")
	p.clusters = strings.Fields(must(t, "get", "clusters", "-o", "jsonpath={.items[*].metadata.name}"))
	for _, name := range p.clusters {
		p.members[name] = contextClient(t, name)
	}
	t.Cleanup(func() {
		ctl("", "delete", "clusterpropagationpolicy,clusteroverridepolicy", "-l", "truth="+p.ns)
		ctl("", "delete", "configmap,propagationpolicy", "-n", "kube-system", "-l", "truth="+p.ns)
		ctl("", "delete", "namespace", p.ns+"-b")
		ctl("", "delete", "clusterrolebinding", p.ns)
		ctl("", "delete", "serviceaccount", p.ns, "-n", "default")
		p.reset(t)
	})
	p.user = userOf(t, "default", p.ns)
	must(t, "create", "clusterrolebinding", p.ns, "--clusterrole=karmada-insight", "--serviceaccount=default:"+p.ns)
	p.admit(t)
	evictFromDeadClusters(t)
	differences := 0
	for i := range n {
		if i%truthReset == truthReset-1 {
			p.reset(t)
			p.state = p.quiet(t)
		}
		change := p.change()
		p.trail = append(p.trail, change.String())
		if difference := p.compare(t, change); difference != "" {
			differences++
			t.Errorf("change %d of seed %d: %s\n%s\nthe changes before:\n%s\nexplained:\n%s", i, seed, change, difference,
				strings.Join(p.trail[max(0, len(p.trail)-1-truthTrail):len(p.trail)-1], "\n"), ctl("", "why", "deployment", "d0", "-n", p.ns).out+ctl("", "why", "deployment", "d1", "-n", p.ns).out+ctl("", "why", "deployment", "d2", "-n", p.ns).out)
		}
	}
	t.Logf("%d changes, %d differences; %d objects planned, %d with something unknown, %d with replicas left over or refused", n, differences, p.planned, p.unknown, p.inherent)
	if p.unknown*100 > maxUnknown*p.planned || p.inherent > 1 && p.inherent*100 > maxInherent*p.planned {
		t.Errorf("of %d objects %d have something unknown, and %d replicas left over or a refusal", p.planned, p.unknown, p.inherent)
	}
}

func numberOf(t *testing.T, variable string, otherwise int) int {
	t.Helper()
	n, err := strconv.Atoi(cmp.Or(os.Getenv(variable), strconv.Itoa(otherwise)))
	if err != nil {
		t.Fatalf("%s: %v", variable, err)
	}
	return n
}

// contextClient returns a client for a context of the kubeconfig.
func contextClient(t *testing.T, of string) dynamic.Interface {
	t.Helper()
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(&clientcmd.ClientConfigLoadingRules{ExplicitPath: kubeconfig},
		&clientcmd.ConfigOverrides{CurrentContext: of}).ClientConfig()
	if err != nil {
		t.Fatal(err)
	}
	config.QPS = -1
	c, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// truthChange is a change: the flags of plan, standard input, and the command that makes it.
type truthChange struct {
	flags, command []string
	input          string
}

// String returns the change as a user would make it.
func (c truthChange) String() string {
	return strings.Join(c.command, " ") + "\n" + c.input
}

// change returns a random change.
func (p *truth) change() truthChange {
	apply := func(text string) truthChange {
		return truthChange{[]string{"-f", "-"}, []string{"apply", "-f", "-"}, text}
	}
	if p.deleted {
		p.deleted = false
		return apply("apiVersion: v1\nkind: Namespace\nmetadata: {name: " + p.ns + "}\n")
	}
	object := []string{"deployment/d0", "deployment/d1", "deployment/d2", "statefulset/s0"}[p.IntN(4)]
	cluster := p.clusters[p.IntN(len(p.clusters))]
	if p.IntN(truthLosses) == 0 {
		return truthChange{[]string{"--lose", cluster}, []string{"local", "stop", cluster}, ""}
	}
	if p.IntN(truthLosses) == 0 {
		p.deleted = true
		return truthChange{[]string{"--delete", "namespace/" + p.ns}, []string{"delete", "namespace", p.ns}, ""}
	}
	switch p.IntN(27) {
	case 20:
		return apply(fmt.Sprintf("apiVersion: batch/v1\nkind: Job\nmetadata: {name: j0, labels: {app: a%d}}\n", p.IntN(2)) +
			fmt.Sprintf("spec: {parallelism: %d, completions: 8, template: {spec: {restartPolicy: Never, containers: [{name: c, image: nginx, resources: {limits: {cpu: 0.5}}}]}}}\n", 1+p.IntN(4)))
	case 21, 22:
		return apply(fmt.Sprintf("apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: s0, labels: {app: a%d}}\nspec: {serviceName: s0, replicas: %d, selector: {matchLabels: {app: s}}, ", p.IntN(2), p.IntN(4)) +
			fmt.Sprintf("template: {metadata: {labels: {app: s}}, spec: {containers: [{name: c, image: \"nginx:1.%d\"}]}}, ", p.IntN(2)) +
			"volumeClaimTemplates: [{metadata: {name: data}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}]}\n")
	case 23:
		return apply(fmt.Sprintf("apiVersion: v1\nkind: Namespace\nmetadata: {name: %s, labels: {truth: t%d}}\n", p.ns, p.IntN(3)))
	case 24:
		if p.IntN(2) == 0 {
			return truthChange{[]string{"--delete", "namespace/" + p.ns + "-b"}, []string{"delete", "namespace", p.ns + "-b"}, ""}
		}
		return apply(fmt.Sprintf("apiVersion: v1\nkind: Namespace\nmetadata: {name: %s-b, labels: {truth: t%d}}\n", p.ns, p.IntN(3)))
	case 25: // nothing of a skipped namespace is propagated
		return apply(fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {namespace: kube-system, name: %[1]s, labels: {truth: %[1]s}}\n---\n"+
			"apiVersion: policy.karmada.io/v1alpha1\nkind: PropagationPolicy\nmetadata: {namespace: kube-system, name: %[1]s, labels: {truth: %[1]s}}\n"+
			"spec: {resourceSelectors: [{apiVersion: v1, kind: ConfigMap, name: %[1]s}], placement: {clusterAffinity: {clusterNames: [%[2]s]}}}\n", p.ns, p.some()))
	case 26:
		return apply(fmt.Sprintf("apiVersion: policy.karmada.io/v1alpha1\nkind: ClusterPropagationPolicy\nmetadata: {name: %[1]s-1, labels: {truth: %[1]s}}\n"+
			"spec: {resourceSelectors: [{apiVersion: v1, kind: Namespace, name: %[1]s-b}], placement: {clusterAffinity: {clusterNames: [%[2]s]}}}\n", p.ns, p.some()))
	case 0, 1, 2:
		return apply(p.deployment())
	case 3:
		return apply(fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c%d, labels: {app: a%d}}\ndata: {a: %q}\n", p.IntN(2), p.IntN(2), fmt.Sprint(p.IntN(3))))
	case 4, 5, 6, 7, 8:
		return apply(p.policy())
	case 9, 10, 11:
		return apply(p.override())
	case 12, 13:
		n := p.IntN(8)
		return truthChange{[]string{"--scale", fmt.Sprintf("%s=%d", object, n)}, []string{"scale", object, fmt.Sprintf("--replicas=%d", n)}, ""}
	case 14:
		what := []string{object, "job/j0", "configmap/c0", "pp/p0", "pp/p1", "cpp/" + p.ns + "-0", "cpp/" + p.ns + "-1", "op/o0", "cop/" + p.ns + "-0"}[p.IntN(9)]
		return truthChange{[]string{"--delete", what}, []string{"delete", what}, ""}
	case 15, 16:
		taint := []string{"a:NoExecute", "a:NoSchedule", "b:NoExecute"}[p.IntN(3)]
		return truthChange{[]string{"--taint", cluster + "=" + taint}, []string{"taint", "clusters", cluster, taint}, ""}
	case 17:
		return truthChange{[]string{"--cordon", cluster}, []string{"cordon", cluster}, ""}
	default:
		label := fmt.Sprintf("zone=z%d", p.IntN(2))
		return truthChange{[]string{"--label", cluster, label}, []string{"label", "cluster", cluster, label, "--overwrite"}, ""}
	}
}

func (p *truth) deployment() string {
	refer := []string{"", "\n        envFrom: [{configMapRef: {name: c0}}]", "\n        envFrom: [{configMapRef: {name: c1}}]"}[p.IntN(3)]
	return fmt.Sprintf(`
apiVersion: apps/v1
kind: Deployment
metadata: {name: d%d, labels: {app: a%d}}
spec:
  replicas: %d
  selector: {matchLabels: {app: x}}
  template:
    metadata: {labels: {app: x}}
    spec:
      containers:
      - name: c
        image: nginx:1.%d%s
`, p.IntN(3), p.IntN(2), p.IntN(7), p.IntN(3), refer)
}

// some returns some of the clusters.
func (p *truth) some() string {
	var out []string
	for _, name := range p.clusters {
		if p.IntN(3) > 0 {
			out = append(out, name)
		}
	}
	return strings.Join(out, ", ")
}

func (p *truth) policy() string {
	selector := []string{
		fmt.Sprintf("{apiVersion: apps/v1, kind: Deployment, namespace: %s, name: d%d}", p.ns, p.IntN(3)),
		fmt.Sprintf("{apiVersion: apps/v1, kind: Deployment, namespace: %s, labelSelector: {matchLabels: {app: a%d}}}", p.ns, p.IntN(2)),
		fmt.Sprintf("{apiVersion: apps/v1, kind: Deployment, namespace: %s}", p.ns),
		fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, namespace: %s, name: c%d}", p.ns, p.IntN(2)),
		fmt.Sprintf("{apiVersion: batch/v1, kind: Job, namespace: %[1]s}, {apiVersion: apps/v1, kind: StatefulSet, namespace: %[1]s}", p.ns),
	}[p.IntN(5)]
	affinity := []string{
		"{clusterNames: [" + p.some() + "]}", "{clusterNames: [" + p.some() + "]}",
		"{labelSelector: {matchLabels: {zone: z0}}}", "{exclude: [" + p.clusters[0] + "]}",
	}[p.IntN(4)]
	replicas := []string{
		"{replicaSchedulingType: Duplicated}", "{replicaSchedulingType: Divided, replicaDivisionPreference: Weighted}",
		fmt.Sprintf("{replicaSchedulingType: Divided, replicaDivisionPreference: Weighted, weightPreference: {staticWeightList: [{targetCluster: {clusterNames: [%s]}, weight: 2}, {targetCluster: {clusterNames: [%s]}, weight: 1}]}}", p.clusters[0], strings.Join(p.clusters[1:], ", ")),
	}[p.IntN(3)]
	more := []string{"", "", "", ", clusterTolerations: [{key: a, operator: Exists}]", ", clusterTolerations: [{key: b, operator: Exists, effect: NoExecute}]",
		", spreadConstraints: [{spreadByField: cluster, minGroups: 1, maxGroups: 2}]"}[p.IntN(6)]
	spec := []string{"", "propagateDeps: true, ", "preserveResourcesOnDeletion: true, ", "preemption: Always, ", "conflictResolution: Overwrite, ",
		"propagateDeps: true, preserveResourcesOnDeletion: true, "}[p.IntN(6)]
	kind, name := "PropagationPolicy", fmt.Sprintf("p%d", p.IntN(3))
	if p.IntN(5) == 0 {
		kind, name = "ClusterPropagationPolicy", p.ns+"-0"
	}
	return fmt.Sprintf(`
apiVersion: policy.karmada.io/v1alpha1
kind: %s
metadata: {name: %s, labels: {truth: %s}}
spec: {priority: %d, %sresourceSelectors: [%s], placement: {clusterAffinity: %s, replicaScheduling: %s%s}}
`, kind, name, p.ns, p.IntN(3), spec, selector, affinity, replicas, more)
}

func (p *truth) override() string {
	target := []string{"", "targetCluster: {clusterNames: [" + p.clusters[0] + "]}, ", "targetCluster: {labelSelector: {matchLabels: {zone: z1}}}, "}[p.IntN(3)]
	overriders := []string{
		fmt.Sprintf("{imageOverrider: [{component: Tag, operator: replace, value: 1.9.%d}]}", p.IntN(2)),
		fmt.Sprintf("{labelsOverrider: [{operator: add, value: {over: l%d}}]}", p.IntN(2)),
		"{plaintext: [{path: /metadata/annotations/over, operator: add, value: x}]}",
		fmt.Sprintf("{plaintext: [{path: /spec/replicas, operator: replace, value: %d}]}", p.IntN(5)),
	}[p.IntN(4)]
	kind, name := "OverridePolicy", fmt.Sprintf("o%d", p.IntN(2))
	if p.IntN(4) == 0 {
		kind, name = "ClusterOverridePolicy", p.ns+"-0"
	}
	return fmt.Sprintf(`
apiVersion: policy.karmada.io/v1alpha1
kind: %s
metadata: {name: %s, labels: {truth: %s}}
spec: {resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, namespace: %s}], overrideRules: [{%soverriders: %s}]}
`, kind, name, p.ns, p.ns, target, overriders)
}

// admit lets the user view the namespace.
func (p *truth) admit(t *testing.T) {
	t.Helper()
	must(t, "create", "rolebinding", "user", "-n", p.ns, "--clusterrole=view", "--serviceaccount=default:"+p.ns)
}

// asUser returns the difference between a plan and that of a user of one namespace, for the objects in it for which neither has something
// unknown.
func (p *truth) asUser(t *testing.T, c truthChange, flags []string, effects *plan.Effects) string {
	t.Helper()
	r := ctl(c.input, slices.Concat(flags, c.flags, []string{"--kubeconfig", p.user})...)
	if r.code == 1 && strings.Contains(r.err, "cannot be read: ask for the right") {
		return ""
	}
	limited := &plan.Effects{}
	if err := json.Unmarshal([]byte(r.out), limited); err != nil || len(limited.NotRead) == 0 {
		return fmt.Sprintf("the plan of a user of the namespace: exit code %d, %v\n%s%s", r.code, err, r.out, r.err)
	}
	unknown := map[string]bool{}
	for _, o := range slices.Concat(effects.Objects, limited.Objects) {
		unknown[o.Kind+"/"+o.Name] = unknown[o.Kind+"/"+o.Name] || len(o.Unknown) > 0 || o.Namespace != p.ns
	}
	known := func(e *plan.Effects) []string {
		return slices.DeleteFunc(predicted(e), func(line string) bool { name, _, _ := strings.Cut(line, " "); return unknown[name] })
	}
	if want, got := known(effects), known(limited); !slices.Equal(want, got) {
		return fmt.Sprintf("planned:\n  %s\nplanned by a user of the namespace:\n  %s", strings.Join(want, "\n  "), strings.Join(got, "\n  "))
	}
	return ""
}

// reset makes the clusters as they were.
func (p *truth) reset(t *testing.T) {
	t.Helper()
	for _, name := range p.clusters {
		for _, key := range []string{"a-", "b-"} { // each by itself: one that is not there is an error
			ctl("", "taint", "clusters", name, key)
		}
		ctl("", "uncordon", name)
		ctl("", "label", "cluster", name, "zone-")
	}
}

// compare plans a change, makes it, and returns the difference between what was planned and what happened.
func (p *truth) compare(t *testing.T, c truthChange) string {
	t.Helper()
	before := p.state
	if before == nil {
		before = p.quiet(t)
	}
	p.state = nil
	flags := []string{"plan", "-n", p.ns, "-o", "json", "--enable-no-execute-taint-eviction", "-v=6"}
	planned := ctl(c.input, slices.Concat(flags, c.flags)...)
	for _, verb := range regexp.MustCompile(`verb="([A-Z]+)"`).FindAllStringSubmatch(planned.err, -1) {
		if verb[1] != http.MethodGet {
			return "plan writes:\n" + planned.err
		}
	}
	command := c.command
	if command[0] == "local" {
		command = append(slices.Clone(command), "--name", federationName, "--dir", stateDir)
		p.lost[command[2]] = true
		defer p.restart(t, command[2])
	} else if !slices.Contains([]string{"taint", "cordon"}, command[0]) {
		command = append(slices.Clone(command), "-n", p.ns)
	}
	asUser := ""
	if effects := (&plan.Effects{}); p.IntN(4) == 0 && planned.code != 1 && json.Unmarshal([]byte(planned.out), effects) == nil && before[" Namespace/"+p.ns] != nil {
		asUser = p.asUser(t, c, flags, effects)
	}
	made := ctl(c.input, command...)
	if made.code == 0 && before[" Namespace/"+p.ns] == nil {
		p.admit(t)
	}
	if asUser != "" {
		return asUser
	}
	if planned.code == 1 || made.code != 0 {
		if planned.code == 1 && made.code != 0 || made.code != 0 && strings.Contains(made.err, "already") {
			return ""
		}
		return fmt.Sprintf("plan: exit code %d\n%s\nthe change: exit code %d\n%s%s", planned.code, planned.err, made.code, made.out, made.err)
	}
	effects := &plan.Effects{}
	if err := json.Unmarshal([]byte(planned.out), effects); err != nil {
		t.Fatalf("%v in\n%s%s", err, planned.out, planned.err)
	}
	for _, o := range effects.Objects {
		switch {
		case len(o.Unknown) == 0:
		case slices.ContainsFunc(o.Unknown, func(text string) bool {
			return !strings.HasSuffix(text, "its UID decides") && !strings.Contains(text, ", which it does not ")
		}):
			p.unknown++
		default:
			p.inherent++
		}
		for _, text := range o.Unknown {
			t.Logf("unknown after %s: %s/%s: %s", strings.Join(c.command, " "), o.Kind, o.Name, text)
		}
	}
	p.planned += len(effects.Objects)
	isUnknown := func(line string) bool {
		return slices.ContainsFunc(effects.Objects, func(o plan.Object) bool {
			return len(o.Unknown) > 0 && strings.HasPrefix(line, o.Kind+"/"+o.Name+" ")
		})
	}
	// What a cluster has that nothing in the control plane refers to, such as what a policy left there, is not known.
	maps.DeleteFunc(p.existing, func(_, at string) bool { return before[at] == nil })
	known := len(p.existing)
	for _, o := range effects.Objects {
		for _, c := range o.Clusters {
			at := o.Kind + "/" + o.Name
			if c.Action == plan.ActionCreate && before[c.Name+" "+at] != nil {
				p.existing[at+" in "+c.Name+":"] = c.Name + " " + at
			}
		}
	}
	p.unknown += len(p.existing) - known
	left := func(line string) bool {
		for start := range p.existing {
			if strings.HasPrefix(line, start) {
				return true
			}
		}
		for start, ends := range p.evicted {
			if ends && strings.HasPrefix(line, start) {
				return true
			}
		}
		return isUnknown(line) || slices.ContainsFunc(slices.Collect(maps.Keys(p.lost)), func(c string) bool { return strings.Contains(line, " in "+c+":") })
	}
	want := slices.DeleteFunc(predicted(effects), left)
	var got []string
	var working string
	quiet, last := time.Now(), ""
	for deadline := time.Now().Add(truthLimit); time.Now().Before(deadline); time.Sleep(150 * time.Millisecond) {
		var state map[string]*unstructured.Unstructured
		state, working = p.observe(t)
		got = slices.DeleteFunc(happened(before, state), left)
		want := slices.DeleteFunc(slices.Clone(want), left)
		if text := strings.Join(got, "\n"); working != "" || text != last {
			quiet, last = time.Now(), text
		}
		if slices.Equal(got, want) && time.Since(quiet) > truthQuiet {
			if len(p.lost) == 0 && !p.clean(t) {
				p.state = state
			}
			return ""
		}
	}
	works := ""
	for _, name := range p.clusters {
		works += ctl("", "get", "works", "-n", "karmada-es-"+name, "-o", "yaml").out + ctl("", "get", "all,configmaps", "-n", p.ns, "-C", name, "-o", "yaml").out
	}
	return fmt.Sprintf("planned:\n  %s\nhappened:\n  %s\nunder way: %s\nbindings:\n%s\nworks, and objects of clusters:\n%s", strings.Join(want, "\n  "), strings.Join(got, "\n  "), working,
		must(t, "get", "resourcebindings", "-n", p.ns, "-o", "yaml"), works)
}

// clean deletes what policies left in clusters, as an administrator would, and reports whether there was anything: plan does not know it.
func (p *truth) clean(t *testing.T) (deleted bool) {
	t.Helper()
	for _, member := range p.members {
		for _, name := range []string{p.ns, p.ns + "-b"} {
			_, here := p.control.Resource(truthNamespaces).Get(t.Context(), name, metav1.GetOptions{})
			u, there := member.Resource(truthNamespaces).Get(t.Context(), name, metav1.GetOptions{})
			if apierrors.IsNotFound(here) && there == nil && u.GetLabels()[workv1alpha2.ManagedByKarmadaLabel] == "" {
				deleted = true
				if err := member.Resource(truthNamespaces).Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
					t.Fatal(err)
				}
			}
		}
		for _, resource := range truthKinds {
			objects := member.Resource(resource).Namespace(p.ns)
			list, err := objects.List(t.Context(), metav1.ListOptions{LabelSelector: workv1alpha2.ManagedByKarmadaLabel + "!=" + workv1alpha2.ManagedByKarmadaLabelValue})
			if err != nil {
				t.Fatal(err)
			}
			for i := range list.Items {
				if name := list.Items[i].GetName(); name != "kube-root-ca.crt" {
					deleted = true
					if err := objects.Delete(t.Context(), name, metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationBackground)}); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
	}
	return deleted
}

// restart starts a cluster again.
func (p *truth) restart(t *testing.T, cluster string) {
	t.Helper()
	must(t, "local", "start", cluster, "--name", federationName, "--dir", stateDir)
	must(t, "wait", "cluster/"+cluster, "--for=condition=Ready", "--timeout=2m")
	delete(p.lost, cluster)
}
