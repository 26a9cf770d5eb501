package orphans

import (
	"context"
	"errors"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clienttesting "k8s.io/client-go/testing"
)

// whole returns a member that serves namespaces, and more kinds of objects in them.
func whole(t *testing.T, objects ...runtime.Object) *member {
	t.Helper()
	m := newMember(t, objects...)
	core := m.discovery.Resources[0]
	for name, kind := range map[string]string{"serviceaccounts": "ServiceAccount", "persistentvolumeclaims": "PersistentVolumeClaim", "events": "Event", "secrets": "Secret", "namespaces": "Namespace"} {
		core.APIResources = append(core.APIResources, metav1.APIResource{Name: name, Kind: kind, Namespaced: name != "namespaces", Verbs: core.APIResources[0].Verbs})
	}
	return m
}

func in(namespace, apiVersion, kind, name string, owners ...metav1.OwnerReference) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{
		TypeMeta: metav1.TypeMeta{APIVersion: apiVersion, Kind: kind}, ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, OwnerReferences: owners},
	}
}

func TestOccupant(t *testing.T) {
	now := metav1.Now()
	token := in("ns", "v1", "Secret", "default-token-abcde")
	token.Annotations = map[string]string{"kubernetes.io/service-account.name": "default"}
	leaving := in("ns", "v1", "ConfigMap", "leaving")
	leaving.DeletionTimestamp, leaving.Finalizers = &now, []string{"f"}
	for name, tc := range map[string]struct {
		objects []runtime.Object
		want    string
	}{
		"empty": {nil, ""},
		"what every namespace has": {[]runtime.Object{
			in("ns", "v1", "ConfigMap", "kube-root-ca.crt"), in("ns", "v1", "ServiceAccount", "default"), in("ns", "v1", "Event", "e"), token,
		}, ""},
		"another namespace":          {[]runtime.Object{in("other", "v1", "ConfigMap", "mine")}, ""},
		"a ConfigMap":                {[]runtime.Object{in("ns", "v1", "ConfigMap", "mine")}, "configmaps mine"},
		"a Deployment":               {[]runtime.Object{in("ns", "apps/v1", "Deployment", "web")}, "deployments.apps web"},
		"what a StatefulSet left":    {[]runtime.Object{in("ns", "v1", "PersistentVolumeClaim", "data-db-0")}, "persistentvolumeclaims data-db-0"},
		"a ServiceAccount of a user": {[]runtime.Object{in("ns", "v1", "ServiceAccount", "builder")}, "serviceaccounts builder"},
		"what is being deleted":      {[]runtime.Object{leaving}, ""},
		"what a Deployment controls": {[]runtime.Object{
			in("ns", "v1", "ConfigMap", "derived", metav1.OwnerReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "gone", Controller: new(true)}),
		}, ""},
		"what an object outside of the namespace controls": {[]runtime.Object{
			in("ns", "v1", "ConfigMap", "theirs", metav1.OwnerReference{APIVersion: "example.io/v1", Kind: "Tenant", Name: "t", Controller: new(true)}),
		}, "configmaps theirs"},
		"what is owned, and not controlled": {[]runtime.Object{
			in("ns", "v1", "ConfigMap", "shared", metav1.OwnerReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"}),
		}, "configmaps shared"},
		"a name that is none": {[]runtime.Object{in("ns", "v1", "ConfigMap", "a\x1b[31m\n")}, "configmaps a[31m "},
		"what is left out":    {[]runtime.Object{in("ns", "v1", "ConfigMap", "ours")}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Occupant(t.Context(), whole(t, tc.objects...), "ns", func(o *metav1.PartialObjectMetadata) bool { return o.Name == "ours" })
			if got != tc.want || err != nil {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
}

// A namespace whose objects cannot be listed is taken for one that is in use, unless another attempt may succeed.
func TestOccupant_Unknown(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "", errors.New("no"))
	for name, tc := range map[string]struct {
		err   error
		want  string
		fails bool
	}{
		"forbidden":   {forbidden, "cannot be listed", false},
		"unavailable": {apierrors.NewServiceUnavailable("down"), "cannot be listed", false},
		"too slow":    {context.DeadlineExceeded, "", true},
		"not there":   {apierrors.NewNotFound(schema.GroupResource{Resource: "configmaps"}, ""), "", false},
	} {
		m := newMember(t)
		m.PrependReactor("list", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, tc.err })
		got, err := Occupant(t.Context(), m, "ns", func(*metav1.PartialObjectMetadata) bool { return false })
		if !strings.Contains(got, tc.want) || (got == "") != (tc.want == "") || (err != nil) != tc.fails {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	endless := newMember(t)
	endless.PrependReactor("list", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, &metav1.List{ListMeta: metav1.ListMeta{Continue: "more"}}, nil
	})
	if got, err := Occupant(t.Context(), endless, "ns", func(*metav1.PartialObjectMetadata) bool { return false }); err != nil || !strings.Contains(got, "more than") {
		t.Errorf("a member whose list has no end: %q, %v", got, err)
	}
}

// Confirming the deletion of a namespace deletes what it has of the control plane first, and the namespace only if nothing else is in it.
func TestDelete_NamespacesThatAreInUseStay(t *testing.T) {
	for _, foreign := range []bool{false, true} {
		objects := []runtime.Object{object("v1", "ConfigMap", "ours", "karmada-es-m1", "a"), object("v1", "Namespace", "default", "karmada-es-m1", "b")}
		objects[1].(*metav1.PartialObjectMetadata).Namespace = ""
		if foreign {
			objects = append(objects, in("default", "v1", "ConfigMap", "theirs"))
		}
		m := whole(t, objects...)
		found, err := Find(t.Context(), m, "karmada-es-m1", map[string]bool{}, nil)
		if err != nil || len(found) != 2 {
			t.Fatalf("found %v, %v", found, err)
		}
		if err := Delete(t.Context(), m, found); err != nil {
			t.Fatal(err)
		}
		ns, err := m.Resource(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}).Get(t.Context(), "default", metav1.GetOptions{})
		if foreign && (err != nil || len(ns.Labels)+len(ns.Annotations) != 0) || !foreign && !apierrors.IsNotFound(err) {
			t.Errorf("with an object of somebody else %t: %v, %v", foreign, ns, err)
		}
	}
}
