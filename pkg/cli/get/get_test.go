package get

import (
	"encoding/json"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/karmada-toolkit/karmada/internal/build"
)

// nginx is a federation in which a Deployment runs in two of three members.
func nginx(t *testing.T) *federation {
	return newFederation(t,
		&fakeCluster{objects: []object{
			{resource: "deployments", namespace: "default", name: "nginx", ready: "3/2"},
			{resource: "deployments", namespace: "other", name: "web", ready: "0/1"},
			{resource: "propagationpolicies", namespace: "default", name: "p", ready: "-"},
		}},
		map[string]*fakeCluster{
			"member2": {without: []string{"clusters", "propagationpolicies"}, objects: []object{
				{resource: "deployments", namespace: "default", name: "nginx", managed: true, ready: "1/1", size: 2},
				{resource: "deployments", namespace: "default", name: "local", ready: "1/1", size: 9},
				{resource: "pods", namespace: "default", name: "nginx-b", managed: true, ready: "1/1", size: 1},
			}},
			"member1": {without: []string{"clusters", "propagationpolicies"}, objects: []object{
				{resource: "deployments", namespace: "default", name: "nginx", managed: true, ready: "2/2", size: 3},
				{resource: "pods", namespace: "default", name: "nginx-c", managed: true, ready: "1/1", size: 0},
				{resource: "pods", namespace: "default", name: "nginx-a", managed: true, ready: "0/1", size: 5},
			}},
			"member3": {without: []string{"clusters", "propagationpolicies", "deployments"}, objects: []object{
				{resource: "widgets", namespace: "default", name: "only-here"},
			}},
		})
}

func (o outcome) String() string {
	text := o.stdout
	for _, s := range []struct{ name, text string }{{"stderr", o.stderr}, {"error", o.err}} {
		if s.text != "" {
			text += "--- " + s.name + "\n" + strings.TrimSuffix(s.text, "\n") + "\n"
		}
	}
	return text
}

func TestGet_Tables(t *testing.T) {
	for name, line := range map[string]string{
		"all-by-default":       "deploy",
		"scope-karmada":        "deploy -s karmada",
		"scope-members":        "deploy -s members",
		"some-members":         "deploy -s members -C member2",
		"pods-hide-adoption":   "pods",
		"pods-wide":            "pods -o wide",
		"several-kinds":        "deployments,pods",
		"category":             "all -s members",
		"all-namespaces":       "deploy -A",
		"one-name":             "deploy nginx",
		"type-slash-name":      "deploy/nginx pod/nginx-a",
		"name-found-somewhere": "deploy local",
		"one-name-missing":     "deploy nginx gone",
		"name-nowhere":         "deploy gone",
		"missing-in-named":     "deploy local -C member1,member2",
		"name-no-namespace":    "deploy gone gone2 -n nowhere",
		"named-no-namespace":   "deploy gone -n nowhere -C member1",
		"ignore-not-found":     "deploy gone --ignore-not-found",
		"nothing":              "services",
		"nothing-in-cluster":   "namespaces",
		"own-types":            "propagationpolicies",
		"clusters":             "clusters",
		"own-types-of-member":  "propagationpolicies -C member1",
		"own-types-in-members": "propagationpolicies -s members",
		"unknown-type":         "foos",
		"sort-by":              "pods --sort-by .spec.size",
		"sort-by-nothing":      "pods --sort-by .spec.nope",
		"label-columns":        "deploy -L app --show-labels -C member1",
		"no-headers":           "deploy --no-headers",
		"unknown-cluster":      "deploy -C member1,nope,foo",
		"bad-scope":            "deploy -s moon",
		"bad-timeout":          "deploy --member-timeout -1s",
		"bad-output":           "deploy -o moon",
		"show-labels-json":     "deploy -o json --show-labels",
		"events-without-watch": "deploy --output-watch-events",
		"name-and-selector":    "deploy nginx -l a=b",
		"two-types-one-name":   "deploy,pods nginx",
		"selector":             "deploy --selector app=nginx",
		"selector-twice":       "deploy --selector app=nginx -l a=b",
		"field-selector":       "deploy --field-selector metadata.name=local",
		"name-and-fields":      "deploy nginx --field-selector metadata.name=local",
		"context-unknown":      "deploy --context moon",
		"name-all-namespaces":  "deploy nginx -A",
		"watch-two-kinds":      "deploy,pods -w",
		"clusters-imply-scope": "deploy -C member2",
		"clusters-of-karmada":  "deploy -s karmada -C member2",
	} {
		t.Run(name, func(t *testing.T) {
			o := nginx(t).run(t, strings.Fields(line)...)
			build.AssertGolden(t, name, "$ get "+line+"\n"+o.String())
		})
	}
}

func TestGet_NameInNamespaceOfOneCluster(t *testing.T) {
	f := nginx(t)
	f.clusters["member2"].objects = append(f.clusters["member2"].objects, object{resource: "namespaces", name: "there"})
	build.AssertGolden(t, "name-in-namespace", "$ get deploy gone -n there\n"+f.run(t, "deploy", "gone", "-n", "there").String())
}

func TestGet_MembersThatDoNotAnswer(t *testing.T) {
	f := nginx(t)
	for name, c := range map[string]*fakeCluster{
		"member1":      {status: 504, reason: "Timeout", text: "the server was unable to return a response in the time allotted"},
		"refused":      {status: 503, reason: "ServiceUnavailable", text: "error trying to reach service: dial tcp 127.0.0.1:1: connect: connection refused"},
		"unauthorized": {status: 401, reason: "Unauthorized", text: "Unauthorized"},
		"forbidden":    {status: 403, reason: "Forbidden", text: `deployments.apps is forbidden: User "joe" cannot list resource`},
		"broken":       {status: 500, reason: "InternalError", text: "the impersonatorSecretRef of cluster broken is nil"},
	} {
		if f.clusters[name] == nil {
			f.clusters[""].objects = append(f.clusters[""].objects, object{resource: "clusters", name: name})
		}
		f.clusters[name] = c
	}
	for name, line := range map[string]string{
		"failures":      "deploy --member-timeout 5m",
		"failures-name": "deploy nginx --member-timeout 5m",
	} {
		o := f.run(t, strings.Fields(line)...)
		build.AssertGolden(t, name, "$ get "+line+"\n"+o.String())
	}
	o := f.run(t, "deploy", "-s", "all", "-o", "json", "--member-timeout", "5m")
	var list struct{ Items []any }
	if err := json.Unmarshal([]byte(o.stdout), &list); err != nil || len(list.Items) != 3 {
		t.Errorf("JSON of what came: %v, %d items", err, len(list.Items))
	}
	if !strings.Contains(o.err, "cluster(member1): timeout: no answer within 5m0s") {
		t.Errorf("error: %s", o.err)
	}
}

func TestGet_MemberThatHangs(t *testing.T) {
	f := newFederation(t, &fakeCluster{objects: []object{deployment("nginx", "1/1")}}, map[string]*fakeCluster{"member1": {hangs: true}})
	build.AssertGolden(t, "hangs", f.run(t, "deploy", "--member-timeout", "50ms").String())
}

func TestGet_ObjectsAreOneDocument(t *testing.T) {
	for _, tt := range []struct {
		line string
		kind string
		n    int
	}{
		{"deploy -o json", "List", 1},
		{"deploy -o yaml", "List", 1},
		{"deploy nginx -o json", "Deployment", 1},
		{"deploy -o json -s members", "List", 3},
		{"deploy -o yaml -s all", "List", 4},
		{"deploy nginx -o yaml -s all", "List", 3},
		{"deploy nginx -o json -s members -C member1", "Deployment", 1},
		{"services -o json -s all", "List", 0},
		{"deploy,pods -o yaml -s members", "List", 6},
	} {
		o := nginx(t).run(t, strings.Fields(tt.line)...)
		if o.err != "" {
			t.Errorf("%s: %s", tt.line, o.err)
		}
		body, err := yaml.YAMLToJSON([]byte(o.stdout))
		if err != nil {
			t.Fatalf("%s: %v\n%s", tt.line, err, o.stdout)
		}
		var doc struct {
			Kind  string
			Items *[]struct {
				Metadata struct{ Annotations map[string]string }
			}
		}
		if err := json.Unmarshal(body, &doc); err != nil {
			t.Fatalf("%s: %v", tt.line, err)
		}
		if doc.Kind != tt.kind {
			t.Errorf("%s: kind %s, want %s", tt.line, doc.Kind, tt.kind)
		}
		if doc.Kind == "List" && (doc.Items == nil || len(*doc.Items) != tt.n) {
			t.Errorf("%s: want %d items\n%s", tt.line, tt.n, o.stdout)
		}
	}
}

func TestGet_OtherOutputs(t *testing.T) {
	for name, line := range map[string]string{
		"output-name":           "deploy -o name -s all",
		"output-jsonpath":       "deploy -s members -o jsonpath={.items[*].metadata.name}",
		"output-custom-columns": "pods -s members --sort-by .spec.size -o custom-columns=NAME:.metadata.name,SIZE:.spec.size",
		"output-yaml-member":    "deploy nginx -s members -C member1 -o yaml",
		"output-yaml-clusters":  "deploy nginx -C member1 -o yaml",
		"output-missing":        "deploy gone -o yaml",
		"output-empty":          "pods -o name",
		"output-empty-json":     "pods -o json",
		"output-empty-members":  "services -o name -s all",
		"output-empty-own":      "clusters gone -o name",
		"output-ignore-missing": "pods gone -o name --ignore-not-found",
	} {
		t.Run(name, func(t *testing.T) {
			o := nginx(t).run(t, strings.Fields(line)...)
			build.AssertGolden(t, name, "$ get "+line+"\n"+o.String())
		})
	}
}

func TestGet_ClusterThatHasNotReported(t *testing.T) {
	f := nginx(t)
	f.clusters["member1"] = &fakeCluster{
		status: 503, reason: "ServiceUnavailable", cause: "ClusterNotReported",
		text: "cluster member1 has not reported yet: API endpoint of cluster member1 should not be empty",
	}
	build.AssertGolden(t, "not-reported", f.run(t, "deploy").String())
	build.AssertGolden(t, "not-reported-named", f.run(t, "deploy", "-C", "member1").String())
}

func TestGet_TextOfMembersIsEscaped(t *testing.T) {
	f := nginx(t)
	f.clusters["member1"].objects = []object{{resource: "deployments", namespace: "default", name: "a\x1b[2Jb", ready: "\u009b1m\u202eok\rX"}}
	build.AssertGolden(t, "control-characters", f.run(t, "deploy").String())
}

func TestGet_ScopeFromEnvironment(t *testing.T) {
	t.Setenv("KARMADACTL_OPERATION_SCOPE", "karmada")
	if got, want := nginx(t).run(t, "deploy"), nginx(t).run(t, "deploy", "-s", "karmada"); got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
	if o := nginx(t).run(t, "deploy", "-s", "members"); !strings.Contains(o.stdout, "member1") || strings.Contains(o.stdout, "Karmada") {
		t.Errorf("the flag does not override the variable: %s", o)
	}
	t.Setenv("KARMADACTL_OPERATION_SCOPE", "members")
	if o := nginx(t).run(t, "pods", "-o", "name"); !strings.Contains(o.stdout, "pod/nginx-a") {
		t.Errorf("members: %s", o)
	}
	t.Setenv("KARMADACTL_OPERATION_SCOPE", "moon")
	if o := nginx(t).run(t, "deploy"); o.err != "error: environment variable KARMADACTL_OPERATION_SCOPE: not support OperationScope: moon" {
		t.Errorf("got %s", o)
	}
}

func TestGet_OneRequestPerMember(t *testing.T) {
	f := nginx(t)
	f.run(t, "deploy")
	for _, member := range []string{"member1", "member2"} {
		if n := f.count("clusters/" + member + "/proxy"); n != 1 {
			t.Errorf("%s was requested %d times, want once", member, n)
		}
	}
	f = nginx(t)
	f.clusters["member1"].hangs = true
	if o := f.run(t, "clusters"); o.err != "" || f.count("proxy") != 0 {
		t.Errorf("members requested for the control plane's own types: %s", o)
	}
}

func TestGet_MemberOfAnotherVersion(t *testing.T) {
	f := nginx(t)
	f.clusters["member2"].extraColumn = "Extra"
	f.clusters["member1"].plain = true
	build.AssertGolden(t, "other-versions", f.run(t, "deploy").String())
}

func TestGet_TypeOfMembersOnly(t *testing.T) {
	f := nginx(t)
	f.clusters[""].without = []string{"widgets"}
	f.clusters["member1"].without = append(f.clusters["member1"].without, "widgets")
	build.AssertGolden(t, "type-of-members-only", f.run(t, "widgets").String())
}

func TestGet_NoFederation(t *testing.T) {
	f := newFederation(t, &fakeCluster{without: []string{"clusters"}}, nil)
	build.AssertGolden(t, "no-federation", f.run(t, "pods").String())
	f = newFederation(t, &fakeCluster{}, nil)
	build.AssertGolden(t, "no-members", f.run(t, "pods", "-s", "members").String())
	f.Close()
	if o := f.run(t, "pods"); !strings.Contains(o.err, "was refused - did you specify the right host or port?") {
		t.Errorf("got %s", o)
	}
}
