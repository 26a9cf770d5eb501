package webhook

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karmada-toolkit/karmada/internal/kube"
)

// reviewer allows updates of some resources, of "*" to update all, and records what it was asked.
type reviewer struct {
	client.Writer
	allowed []string
	failure error

	mu      sync.Mutex
	reviews []authorizationv1.SubjectAccessReviewSpec
}

func (r *reviewer) Create(_ context.Context, obj client.Object, _ ...client.CreateOption) error {
	review := obj.(*authorizationv1.SubjectAccessReview)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.reviews = append(r.reviews, review.Spec)
	attributes := review.Spec.ResourceAttributes
	resource := schema.GroupResource{Group: attributes.Group, Resource: attributes.Resource}.String()
	namespace := "ns"
	if strings.HasPrefix(resource, "validatingwebhookconfigurations.") || strings.HasPrefix(resource, "customresourcedefinitions.") {
		namespace = ""
	}
	review.Status.Allowed = attributes.Verb == "update" && attributes.Namespace == namespace && slices.ContainsFunc(r.allowed, func(a string) bool {
		return a == "*" || a == resource || attributes.Name != "" && a == resource+"/"+attributes.Name
	})
	return r.failure
}

// reviewing returns dependencies with reviews.
func reviewing(r *reviewer) Deps {
	mapper := meta.NewDefaultRESTMapper(nil)
	for _, kind := range []schema.GroupVersionKind{
		appsv1.SchemeGroupVersion.WithKind("Deployment"), {Version: "v1", Kind: "ConfigMap"}, {Group: "discovery.k8s.io", Version: "v1", Kind: "EndpointSlice"},
	} {
		mapper.Add(kind, meta.RESTScopeNamespace)
	}
	d := deps()
	d.Access = newAccess(r, mapper)
	return d
}

func overrides(selectors, value string) string {
	return `{apiVersion: policy.karmada.io/v1alpha1, kind: OverridePolicy, metadata: {name: a, namespace: ns}, spec: {resourceSelectors: [` + selectors +
		`], overrideRules: [{overriders: {labelsOverrider: [{operator: add, value: {a: ` + value + `}}]}}]}}`
}

const (
	selectDeployments = `{apiVersion: apps/v1, kind: Deployment, namespace: ns}`
	selectSlices      = `{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, namespace: ns}`
	selectUnserved    = `{apiVersion: example.io/v1, kind: Policy, namespace: ns}`
)

func TestAccess_OverridesAreForWhoMayWriteTheKind(t *testing.T) {
	edit := []string{"configmaps", "deployments.apps"}
	for _, tc := range []struct {
		name, object, old string
		allowed           []string
		failure           error
		// want is part of the refusal; empty if admitted.
		want    string
		code    int32
		reviews int
	}{
		{name: "a kind that the author may write", object: overrides(selectDeployments, "b"), allowed: edit, reviews: 1},
		{name: "a kind twice is one review", object: overrides(selectDeployments+","+selectDeployments, "b"), allowed: edit, reviews: 1},
		{
			name: "a kind that the author may not write", object: overrides(selectDeployments+","+selectSlices, "b"), allowed: edit, reviews: 2, code: 403,
			want: `spec.resourceSelectors[1]: Forbidden: user "tenant" may not update endpointslices.discovery.k8s.io in namespace "ns"`,
		},
		{
			name: "a kind that is not served yet", object: overrides(selectUnserved, "b"), allowed: edit, reviews: 1, code: 403,
			want: `may not update policies.example.io in namespace "ns"`,
		},
		{name: "every kind, by an author of some", object: overrides("", "b"), allowed: edit, reviews: 1, code: 403, want: "select the kinds"},
		{name: "every kind, by an author of all", object: overrides("", "b"), allowed: []string{"*"}, reviews: 1},
		{
			name: "an update of what another user made", object: overrides(selectSlices, "b"), old: overrides(selectSlices, "a"), allowed: edit, reviews: 1, code: 403,
			want: "may not update endpointslices.discovery.k8s.io",
		},
		{name: "an update that leaves the spec alone", object: overrides(selectSlices, "b"), old: overrides(selectSlices, "b"), allowed: edit},
		{name: "an invalid policy is not reviewed", object: overrides(`{apiVersion: apps/v1, kind: Deployment, namespace: other}`, "b"), code: 403, want: "other"},
		{
			name: "reviews that fail", object: overrides(selectDeployments, "b"), failure: errors.New("no answer"), reviews: 1, code: 500,
			want: `reviewing whether user "tenant" may update deployments.apps in namespace "ns", which a policy for them needs; try it again: no answer`,
		},
	} {
		for _, dryRun := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, dry run %v", tc.name, dryRun), func(t *testing.T) {
				r := &reviewer{allowed: tc.allowed, failure: tc.failure}
				q := question{path: "/validate-overridepolicy", namespace: "ns", object: tc.object, old: tc.old, dryRun: dryRun}
				if tc.old != "" {
					q.operation = admissionv1.Update
				}
				q.user = authenticationv1.UserInfo{Username: "tenant", UID: "1", Groups: []string{"tenants"}, Extra: map[string]authenticationv1.ExtraValue{"scope": {"x"}}}
				resp := ask(t, reviewing(r), q)
				switch {
				case tc.want == "" && !resp.Allowed:
					t.Errorf("refused: %s", resp.Result.Message)
				case tc.want != "" && (resp.Allowed || resp.Result.Code != tc.code || !strings.Contains(resp.Result.Message, tc.want)):
					t.Errorf("%v, want %d %s", resp.Result, tc.code, tc.want)
				}
				if len(r.reviews) != tc.reviews {
					t.Errorf("%d reviews, want %d", len(r.reviews), tc.reviews)
				}
				for _, got := range r.reviews {
					got.ResourceAttributes = nil
					want := authorizationv1.SubjectAccessReviewSpec{User: "tenant", UID: "1", Groups: []string{"tenants"}, Extra: map[string]authorizationv1.ExtraValue{"scope": {"x"}}}
					if diff := cmp.Diff(want, got); diff != "" {
						t.Error(diff)
					}
				}
			})
		}
	}
}

// One request must not cause any number of reviews.
func TestAccess_LimitsTheReviews(t *testing.T) {
	var selectors []string
	for i := range reviewedKinds + 1 {
		selectors = append(selectors, fmt.Sprintf(`{apiVersion: example.io/v1, kind: Kind%d, namespace: ns}`, i))
	}
	r := &reviewer{allowed: []string{"*"}}
	q := question{path: "/validate-overridepolicy", namespace: "ns", object: overrides(strings.Join(selectors, ","), "b")}
	if resp := ask(t, reviewing(r), q); resp.Allowed || len(r.reviews) != 0 || !strings.Contains(resp.Result.Message, "must have at most 64 items") {
		t.Errorf("%d reviews, %v", len(r.reviews), resp.Result)
	}
	q.object = overrides(strings.Join(selectors[1:], ","), "b")
	if resp := ask(t, reviewing(r), q); !resp.Allowed || len(r.reviews) != reviewedKinds {
		t.Errorf("%d reviews, %v", len(r.reviews), resp.Result)
	}
}

// A policy takes what acts on the control plane out of effect there. Its author needs the right to do that by hand.
func TestAccess_DeactivatesWhatTheAuthorMayUpdate(t *testing.T) {
	const hooks, crds = "validatingwebhookconfigurations.admissionregistration.k8s.io", "customresourcedefinitions.apiextensions.k8s.io"
	selector := func(apiVersion, kind, rest string) string {
		return "{apiVersion: " + apiVersion + ", kind: " + kind + rest + "}"
	}
	hook := func(rest string) string {
		return selector("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", rest)
	}
	crd := func(name string) string {
		return selector("apiextensions.k8s.io/v1", "CustomResourceDefinition", ", name: "+name)
	}
	deployment := selector("apps/v1", "Deployment", "")
	var many []string
	for i := range 2 * reviewedKinds {
		many = append(many, crd(fmt.Sprintf("c%d.example.io", i)))
	}
	for _, tc := range []struct {
		name, now, before string // selectors
		namespaced        bool
		allowed           []string
		failure           error
		want              string // part of the refusal; empty if admitted
		reviews           int
	}{
		{name: "what does not act", now: deployment},
		{name: "a webhook by name, by who may update it", now: hook(", name: a"), allowed: []string{hooks + "/a"}, reviews: 2},
		{name: "a webhook by name, by who may update all", now: hook(", name: a"), allowed: []string{hooks}, reviews: 1},
		{
			name: "a webhook by name, by who may update another", now: deployment + ", " + hook(", name: a"), allowed: []string{hooks + "/b"}, reviews: 2,
			want: `spec.resourceSelectors[1]: Forbidden: user "tenant" may not update ` + hooks + ` "a"`,
		},
		{name: "all of a kind, by who may update one", now: hook(""), allowed: []string{hooks + "/a"}, reviews: 2, want: `user "tenant" may not update ` + hooks + ","},
		{name: "labels, by who may update one", now: hook(", labelSelector: {matchLabels: {a: b}}"), allowed: []string{hooks + "/a"}, reviews: 2, want: "may not update " + hooks + ","},
		{name: "labels, by who may update all", now: hook(", labelSelector: {matchLabels: {a: b}}"), allowed: []string{hooks}, reviews: 1},
		{name: "many, by who may update all", now: strings.Join(many, ", "), allowed: []string{crds}, reviews: 1},
		{name: "many, by who may not", now: strings.Join(many, ", "), reviews: 1, want: "must have at most 64 items"},
		{name: "an update that adds one", now: deployment + ", " + hook(", name: a"), before: deployment, reviews: 2, want: `may not update ` + hooks + ` "a"`},
		{name: "an update that leaves the spec alone", now: hook(""), before: hook("")},
		{name: "reviews that fail", now: hook(""), failure: errors.New("no answer"), reviews: 1, want: "try it again: no answer"},
		{name: "a PropagationPolicy, which selects nothing without a namespace", now: hook(", name: a, namespace: ns"), namespaced: true},
	} {
		for _, dryRun := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, dry run %v", tc.name, dryRun), func(t *testing.T) {
				kind, namespace := "ClusterPropagationPolicy", ""
				if tc.namespaced {
					kind, namespace = "PropagationPolicy", "ns"
				}
				object := func(selectors string) string {
					return fmt.Sprintf("{apiVersion: policy.karmada.io/v1alpha1, kind: %s, metadata: {name: a, namespace: %q, labels: {%s.karmada.io/permanent-id: x}}, spec: {resourceSelectors: [%s], placement: {}}}", kind, namespace, strings.ToLower(kind), selectors)
				}
				q := question{
					path: "/validate-" + strings.ToLower(kind), namespace: namespace, dryRun: dryRun, object: object(tc.now),
					user: authenticationv1.UserInfo{Username: "tenant"},
				}
				if tc.before != "" {
					q.operation, q.old = admissionv1.Update, object(tc.before)
				}
				r := &reviewer{allowed: tc.allowed, failure: tc.failure}
				resp := ask(t, reviewing(r), q)
				if resp.Allowed != (tc.want == "") || !resp.Allowed && !strings.Contains(resp.Result.Message, tc.want) {
					t.Errorf("admitted %v: %v", resp.Allowed, resp.Result)
				}
				if len(r.reviews) != tc.reviews {
					t.Errorf("%d reviews: %v", len(r.reviews), r.reviews)
				}
			})
		}
	}
}

func TestScheme_KnowsReviews(t *testing.T) {
	if !kube.NewScheme().Recognizes(authorizationv1.SchemeGroupVersion.WithKind("SubjectAccessReview")) {
		t.Error("reviews cannot be sent")
	}
}
