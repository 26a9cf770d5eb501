package e2e

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// sample is a file of the directory samples, and how its text says that it is applied.
type sample struct {
	file string
	// context is the member that it is for; empty means the control plane.
	context string
	// fixed is set if its objects have namespaces, or none.
	fixed bool
	// replace are pairs of what a user replaces and by what.
	replace []string
}

// workflows is the kind of the sample that the interpreter is tried with.
const workflows = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: workflows.argoproj.io}
spec:
  group: argoproj.io
  names: {kind: Workflow, listKind: WorkflowList, plural: workflows, singular: workflow}
  scope: Namespaced
  versions:
  - name: v1alpha1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`

// TestSamples_AreAccepted applies every file of samples to a real API server, with the kinds, webhooks and defaults that
// it has.
func TestSamples_AreAccepted(t *testing.T) {
	ns := namespace(t)
	root := filepath.Join("..", "..", "samples")
	samples := []sample{
		{file: "nginx/deployment.yaml"},
		{file: "nginx/propagationpolicy.yaml"},
		{file: "autoscaling/nginx-hpa.yaml"},
		{file: "search/resourceregistry.yaml", fixed: true},
		{file: "quota/quota.yaml"},
		{file: "quota/deployment.yaml"},
		{file: "services/web.yaml"},
		{file: "services/multiclusterservice.yaml"},
		{file: "interpreter/workflow.yaml", fixed: true},
		{file: "interpreter/my-workflow.yaml", fixed: true},
		{file: "guestbook/guestbooks-crd.yaml", fixed: true},
		{file: "guestbook/guestbooks-clusterpropagationpolicy.yaml", fixed: true},
		{file: "guestbook/guestbook.yaml"},
		{file: "guestbook/guestbooks-propagationpolicy.yaml"},
		{file: "guestbook/guestbooks-overridepolicy.yaml"},
		{file: "estimator/service.yaml", fixed: true, replace: []string{"MEMBER", "sample", "ADDRESS", "estimator.example.com"}},
		{file: "estimator/estimator.yaml", context: "member1", fixed: true, replace: []string{"MEMBER", "member1"}},
		{file: "cluster-problem-detector/control-plane.yaml", fixed: true},
		{file: "cluster-problem-detector/member.yaml", context: "member1", fixed: true},
	}
	checkComplete(t, root, samples)
	// What the samples need beside a federation.
	under.serveSearch(t)
	mustWith(t, workflows, "apply", "-f", "-")
	t.Cleanup(func() { ctl("", "delete", "crd", "workflows.argoproj.io", "--ignore-not-found") })
	mustWith(t, "apiVersion: v1\nkind: Namespace\nmetadata: {name: karmada-system}\n", member("member1", "apply", "-f", "-")...)
	for _, s := range samples {
		data, err := os.ReadFile(filepath.Join(root, s.file))
		if err != nil {
			t.Fatal(err)
		}
		text := strings.NewReplacer(s.replace...).Replace(string(data))
		at := func(args ...string) []string {
			if !s.fixed {
				args = append(args, "-n", ns)
			}
			if s.context != "" {
				return member(s.context, args...)
			}
			return args
		}
		if s.fixed { // the others go with their namespace
			t.Cleanup(func() { ctl(text, at("delete", "-f", "-", "--ignore-not-found")...) })
		}
		t.Run(s.file, func(t *testing.T) {
			eventually(t, func() error { // until a kind that was defined just now is served
				if r := ctl(text, at("apply", "-f", "-")...); r.code != 0 {
					return fmt.Errorf("%s%s", r.out, r.err)
				}
				return nil
			})
		})
	}
}

// checkComplete fails if a manifest of the directory is not among the samples.
func checkComplete(t *testing.T, root string, samples []sample) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".yaml" {
			return err
		}
		name, err := filepath.Rel(root, path)
		if err == nil && !slices.ContainsFunc(samples, func(s sample) bool { return s.file == filepath.ToSlash(name) }) {
			t.Errorf("samples/%s is not applied by this test", name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
