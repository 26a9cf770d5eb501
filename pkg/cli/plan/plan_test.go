package plan

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/cli-runtime/pkg/genericiooptions"
	utilexec "k8s.io/utils/exec"

	"github.com/karmada-toolkit/karmada/internal/build"
	"github.com/karmada-toolkit/karmada/pkg/cli/env"
	"github.com/karmada-toolkit/karmada/pkg/cli/planning"
	"github.com/karmada-toolkit/karmada/pkg/insight/plan"
	"github.com/karmada-toolkit/karmada/pkg/insight/why"
)

// runs runs plan with the flags of each line, and returns what it printed.
func runs(t *testing.T, lines ...string) string {
	t.Helper()
	t.Setenv("KUBECONFIG", "/nowhere/config")
	var out bytes.Buffer
	for _, line := range lines {
		fmt.Fprintf(&out, "$ plan %s\n", line)
		e := &env.Env{
			IOStreams: genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &out},
			Now:       func() time.Time { return time.Unix(0, 0) }, Interruptible: context.WithCancel,
		}
		cmd := NewCommand(e)
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		cmd.SetArgs(strings.Fields(line))
		err := cmd.ExecuteContext(t.Context())
		code := utilexec.CodeExitError{}
		switch {
		case errors.As(err, &code):
			fmt.Fprintf(&out, "exit code %d\n", code.Code)
		case err != nil:
			fmt.Fprintf(&out, "error: %v\n", err)
		}
		out.WriteString("\n")
	}
	return out.String()
}

func TestPlan_FromAFile(t *testing.T) {
	const from = "--from testdata/federation.json "
	build.AssertGolden(t, "from", runs(t,
		from+"--cordon member1",
		from+"-f testdata/changed.yaml",
		from+"-f testdata/changed.yaml -n other",
		from+"-f testdata/changed.yaml --scale deployment/new=3 --unjoin member2 -o yaml",
		from+"--scale deployments.apps/nginx=3",
		from+"--delete deployment/nginx",
		from+"--unjoin member2",
		from+"--lose member1 --taint member1=down:NoExecute --enable-no-execute-taint-eviction",
		from+"--label member1 region=eu --label member2=region=us",
	))
}

func TestPlan_Errors(t *testing.T) {
	const from = "--from testdata/federation.json "
	build.AssertGolden(t, "errors", runs(t,
		"",
		"nginx",
		"--cordon member1 nginx",
		"--cordon=",
		"--label member1",
		from+"--cordon member1 --diff",
		"--from testdata/missing.json --cordon member1",
		"--from testdata/changed.yaml --cordon member1",
		from+"--cordon member1 --feature-gates NoSuchGate=true",
		from+"--cordon member1 --feature-gates Failover=true,AllAlpha=true --skipped-propagating-namespaces (",
		from+"--delete nginx",
		from+"--delete deployment/",
		from+"--delete widget/nginx",
		from+"--delete deployment/missing",
		from+"--delete deployment/nginx -n other",
		from+"--scale deployment/nginx",
		from+"--scale deployment/nginx=-1",
		from+"--scale deployment/nginx=many",
		from+"--taint member1",
		from+"--taint member1=key:Never",
		from+"--taint member1=no/good/key:NoExecute",
		from+"--label member1=key",
		from+"--label member1=key=no:value",
		from+"--lose missing",
		from+"--unjoin missing",
		from+"-f testdata/missing.yaml",
		from+"-f testdata/empty.yaml",
		from+"-f testdata/refused.yaml",
		from+"-f testdata/refused.yaml -n other",
	))
}

func TestPrint(t *testing.T) {
	object := func(kind, name string) why.Object { return why.Object{Kind: kind, Namespace: "ns", Name: name} }
	for name, effects := range map[string]*plan.Effects{
		"nothing": {},
		"note":    {Notes: []string{"a note"}, NotRead: []string{"ConfigMap: forbidden", "Job: forbidden", "Secret of other namespaces: forbidden", "Service: forbidden"}},
		"actions": {
			Objects: []plan.Object{{
				Object: object("Deployment", "web"), PolicyBefore: "PropagationPolicy ns/web", PolicyAfter: "PropagationPolicy ns/web", ReplicasBefore: 2, ReplicasAfter: 6, After: 300,
				Clusters: []plan.Cluster{
					{Name: "m1", Action: plan.ActionUpdate, Before: 1, After: 4, Fields: []string{"spec.replicas", "spec.paused"}},
					{Name: "member2", Action: plan.ActionDelete, Before: 1, Reason: "the cluster is removed"},
					{Name: "m3", Action: plan.ActionCreate, After: 2},
					{Name: "m4", Action: plan.ActionKeep, Before: 1, Reason: "its policy preserves it"},
					{Name: "m5", Action: plan.ActionRefuse, Before: 1, After: 1, Reason: "spec.selector cannot be changed"},
				},
			}},
			Summary: plan.Summary{Objects: 1, Clusters: 3, Create: 1, Update: 1, Delete: 1},
		},
		"policies": {
			Objects: []plan.Object{
				{Object: object("ConfigMap", "taken"), PolicyAfter: "PropagationPolicy ns/new"},
				{Object: object("ConfigMap", "released"), PolicyBefore: "PropagationPolicy ns/old"},
				{Object: object("ConfigMap", "moved"), PolicyBefore: "PropagationPolicy ns/old", PolicyAfter: "ClusterPropagationPolicy new"},
				{Object: object("ConfigMap", "follows"), Follows: []string{"Deployment ns/a", "Deployment ns/b"}, Clusters: []plan.Cluster{{Name: "m1", Action: plan.ActionCreate}}},
			},
			Summary: plan.Summary{Objects: 1, Clusters: 1, Create: 1},
		},
		"unfit": {
			Objects: []plan.Object{
				{Object: object("Deployment", "large"), ReplicasAfter: 9, Unfit: "0/2 clusters are available"},
				{Object: object("Deployment", "lazy"), Unknown: []string{"the policy is lazy", "\x1b[31mred"}},
			},
			Summary: plan.Summary{Unfit: 1, Unknown: 1},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			if err := planning.Print(&env.Env{IOStreams: genericiooptions.IOStreams{Out: &out}}, effects, nil); err != nil {
				t.Fatal(err)
			}
			build.AssertGolden(t, "print-"+name, out.String())
		})
	}
}
