package registry

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apiserver/pkg/authentication/user"
	genericrequest "k8s.io/apiserver/pkg/endpoints/request"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/aggregated/internalversion"
	"github.com/karmada-toolkit/karmada/pkg/member/orphan"
)

func agentOf(cluster string) user.Info {
	return &user.DefaultInfo{Name: "system:karmada:agent:" + cluster, Groups: []string{"system:karmada:agents"}}
}

func TestCheckAgent(t *testing.T) {
	own := func(name string) *clusterv1alpha1.LocalSecretReference {
		return &clusterv1alpha1.LocalSecretReference{Namespace: "karmada-cluster", Name: name}
	}
	for name, tc := range map[string]struct {
		user   user.Info
		change func(*clusterv1alpha1.Cluster)
		denied bool
	}{
		"it describes itself": {agentOf("m1"), func(c *clusterv1alpha1.Cluster) {
			c.Spec.APIEndpoint = "https://h"
			c.Spec.SecretRef, c.Spec.ImpersonatorSecretRef = own("m1"), own("m1-impersonator")
			c.Annotations = map[string]string{"a": "b"}
		}, false},
		"it sets its id":         {agentOf("m1"), func(c *clusterv1alpha1.Cluster) { c.Spec.ID = "id" }, false},
		"another's cluster":      {agentOf("m2"), func(*clusterv1alpha1.Cluster) {}, true},
		"another's credentials":  {agentOf("m1"), func(c *clusterv1alpha1.Cluster) { c.Spec.SecretRef = own("m2") }, true},
		"another's impersonator": {agentOf("m1"), func(c *clusterv1alpha1.Cluster) { c.Spec.ImpersonatorSecretRef = own("m2-impersonator") }, true},
		"a Secret elsewhere": {agentOf("m1"), func(c *clusterv1alpha1.Cluster) {
			c.Spec.SecretRef = &clusterv1alpha1.LocalSecretReference{Namespace: "kube-system", Name: "m1"}
		}, true},
		"its mode":     {agentOf("m1"), func(c *clusterv1alpha1.Cluster) { c.Spec.SyncMode = clusterv1alpha1.Push }, true},
		"its provider": {agentOf("m1"), func(c *clusterv1alpha1.Cluster) { c.Spec.Provider = "p" }, true},
		"its region":   {agentOf("m1"), func(c *clusterv1alpha1.Cluster) { c.Spec.Region = "r" }, true},
		"its zones":    {agentOf("m1"), func(c *clusterv1alpha1.Cluster) { c.Spec.Zones = []string{"z"} }, true},
		"its zone":     {agentOf("m1"), func(c *clusterv1alpha1.Cluster) { c.Spec.Zone = "z" }, true},
		"its resource models": {agentOf("m1"), func(c *clusterv1alpha1.Cluster) {
			c.Spec.ResourceModels = []clusterv1alpha1.ResourceModel{{Grade: 1}}
		}, true},
		"an endpoint here":           {agentOf("m1"), func(c *clusterv1alpha1.Cluster) { c.Spec.APIEndpoint = "https://127.0.0.1" }, true},
		"its taints":                 {agentOf("m1"), func(c *clusterv1alpha1.Cluster) { c.Spec.Taints = nil }, true},
		"its labels":                 {agentOf("m1"), func(c *clusterv1alpha1.Cluster) { c.Labels = map[string]string{"env": "prod"} }, true},
		"its finalizers":             {agentOf("m1"), func(c *clusterv1alpha1.Cluster) { c.Finalizers = []string{"f/f"} }, true},
		"its owners":                 {agentOf("m1"), func(c *clusterv1alpha1.Cluster) { c.OwnerReferences = []metav1.OwnerReference{{UID: "u"}} }, true},
		"our annotations":            {agentOf("m1"), func(c *clusterv1alpha1.Cluster) { c.Annotations = map[string]string{"cluster.karmada.io/x": "y"} }, true},
		"an agent without a cluster": {&user.DefaultInfo{Name: "x", Groups: []string{"system:karmada:agents"}}, func(*clusterv1alpha1.Cluster) {}, true},
		"others may": {&user.DefaultInfo{Name: "system:admin"}, func(c *clusterv1alpha1.Cluster) {
			c.Spec.SyncMode, c.Spec.Taints, c.Labels, c.Spec.SecretRef = clusterv1alpha1.Push, nil, map[string]string{"a": "b"}, own("any")
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			old := &clusterv1alpha1.Cluster{
				ObjectMeta: metav1.ObjectMeta{Name: "m1"},
				Spec: clusterv1alpha1.ClusterSpec{
					SyncMode: clusterv1alpha1.Pull, Taints: []corev1.Taint{{Key: "k", Effect: corev1.TaintEffectNoSchedule}},
				},
			}
			updated := old.DeepCopy()
			tc.change(updated)
			err := checkAgent(genericrequest.WithUser(t.Context(), tc.user), updated, old, false)
			if (err != nil) != tc.denied || err != nil && !apierrors.IsForbidden(err) {
				t.Errorf("got %v", err)
			}
		})
	}
	t.Run("it creates no cluster", func(t *testing.T) {
		c := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "m1"}}
		if err := checkAgent(genericrequest.WithUser(t.Context(), agentOf("m1")), c, nil, false); !apierrors.IsForbidden(err) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("a cluster's id stays", func(t *testing.T) {
		old := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "m1"}, Spec: clusterv1alpha1.ClusterSpec{ID: "a"}}
		updated := old.DeepCopy()
		updated.Spec.ID = "b"
		if err := checkAgent(genericrequest.WithUser(t.Context(), agentOf("m1")), updated, old, false); !apierrors.IsForbidden(err) {
			t.Errorf("got %v", err)
		}
	})
}

// grow fills every text, list and map of a value, one at a time, and calls check with the path of each.
func grow(v reflect.Value, path string, check func(path string)) {
	const many = 30_000
	switch v.Kind() {
	case reflect.String:
		v.SetString(strings.Repeat("x", 1<<20))
		check(path)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), many, many))
		check(path)
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		grow(v.Index(0), path+"[0]", check)
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		for i := range 2 * maxEntries {
			v.SetMapIndex(reflect.ValueOf(fmt.Sprint(i)).Convert(v.Type().Key()), reflect.Zero(v.Type().Elem()))
		}
		check(path)
	case reflect.Pointer:
		if v.Type().Elem().PkgPath() == "k8s.io/apimachinery/pkg/apis/meta/v1" { // times and sets of fields
			break
		}
		v.Set(reflect.New(v.Type().Elem()))
		grow(v.Elem(), path, check)
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() {
				grow(v.Field(i), path+"."+f.Name, check)
			}
		}
	}
	v.SetZero()
}

// Whatever an agent writes into its Cluster, an administrator can still write into it afterwards.
func TestLimitAgent_EveryField(t *testing.T) {
	ctx := genericrequest.WithUser(t.Context(), agentOf("m1"))
	old := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "m1"}, Spec: clusterv1alpha1.ClusterSpec{SyncMode: clusterv1alpha1.Pull}}
	updated := old.DeepCopy()
	seen := 0
	check := func(path string) {
		seen++
		if len(limitAgent(ctx, updated, old)) == 0 {
			t.Errorf("%s is not limited", path)
		}
		if got := limitAgent(genericrequest.WithUser(t.Context(), &user.DefaultInfo{Name: "alice"}), updated, old); len(got) > 0 {
			t.Errorf("%s: others are limited: %v", path, got)
		}
		if got := limitAgent(ctx, updated, updated.DeepCopy()); path == ".Status.RemedyActions" && len(got) > 0 {
			t.Errorf("%s: what is there is refused: %v", path, got)
		}
	}
	grow(reflect.ValueOf(&updated.Status).Elem(), ".Status", check)
	grow(reflect.ValueOf(&updated.Annotations).Elem(), ".Annotations", check)
	grow(reflect.ValueOf(&updated.ManagedFields).Elem(), ".ManagedFields", check)
	grow(reflect.ValueOf(&updated.Spec.ProxyHeader).Elem(), ".Spec.ProxyHeader", check)
	grow(reflect.ValueOf(&updated.Spec.APIEndpoint).Elem(), ".Spec.APIEndpoint", check)
	if seen < 20 {
		t.Errorf("%d fields only", seen)
	}
	for range maxConditions {
		updated.Status.Conditions = append(updated.Status.Conditions, metav1.Condition{Type: "T", Message: strings.Repeat("x", maxConditionMessage)})
	}
	for range 500 {
		updated.Status.APIEnablements = append(updated.Status.APIEnablements, clusterv1alpha1.APIEnablement{GroupVersion: "example.io/v1", Resources: make([]clusterv1alpha1.APIResource, 10)})
	}
	if got := limitAgent(ctx, updated, old); len(got) > 0 {
		t.Errorf("a large cluster is refused: %v", got)
	}
}

func TestVisible(t *testing.T) {
	ctx := genericrequest.WithUser(t.Context(), agentOf("m1"))
	if got := visible(ctx, nil).FieldSelector.String(); got != "metadata.name=m1" {
		t.Errorf("an agent lists %s", got)
	}
	asked := &metainternalversion.ListOptions{FieldSelector: fields.OneTermEqualSelector("metadata.name", "m2")}
	if got := visible(ctx, asked).FieldSelector.String(); got != "metadata.name=m2,metadata.name=m1" {
		t.Errorf("an agent that asks for another lists %s", got)
	}
	if got := visible(genericrequest.WithUser(t.Context(), &user.DefaultInfo{Name: "alice"}), asked); got != asked {
		t.Errorf("others list %v", got)
	}
}

func TestStatusOfAnAgent_IsReworded(t *testing.T) {
	const honest = "1 objects in the cluster belong to works that the control plane does not have, and stay: Deployment a/b. To delete exactly these: kubectl annotate cluster m1 cluster.karmada.io/delete-orphans=ad6c8319 --overwrite"
	for name, tc := range map[string]struct {
		user             user.Info
		kind, text, want string
	}{
		"an honest report":         {agentOf("m1"), "OrphanedObjects", honest, honest},
		"a command of the agent's": {agentOf("m1"), "OrphanedObjects", "to delete these: kubectl delete ns shop", orphan.Unreadable},
		"control characters":       {agentOf("m1"), "Ready", "fine\x1b[2J", "fine[2J"},
		"the control plane":        {&user.DefaultInfo{Name: "system:admin"}, "OrphanedObjects", "anything\n", "anything\n"},
	} {
		t.Run(name, func(t *testing.T) {
			old := &internalversion.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "m1"}}
			updated := old.DeepCopyObject().(*internalversion.Cluster)
			updated.Status.Conditions = []metav1.Condition{{Type: tc.kind, Status: metav1.ConditionTrue, Message: tc.text}}
			statusStrategy{}.PrepareForUpdate(genericrequest.WithUser(t.Context(), tc.user), updated, old)
			if got := updated.Status.Conditions[0].Message; got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
