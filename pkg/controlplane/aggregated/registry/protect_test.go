package registry

import (
	"context"
	"errors"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/karmada-toolkit/karmada/internal/extension"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
)

func TestUnlessProtected(t *testing.T) {
	const label = "resourcetemplate.karmada.io/deletion-protected"
	refuse := func(context.Context, runtime.Object) error { return errors.New("no") }
	cases := []struct {
		name, value string
		next        func(context.Context, runtime.Object) error
		forbidden   bool
		fails       bool
	}{
		{name: "a protected cluster stays", value: "Always", forbidden: true, fails: true},
		{name: "another value protects nothing", value: "always"},
		{name: "no label protects nothing"},
		{name: "other checks count too", next: refuse, fails: true},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			c := valid()
			c.Labels = map[string]string{label: tc.value}
			err := extension.UnlessProtected(clusterv1alpha1.Resource("clusters"), tc.next)(t.Context(), c)
			if (err != nil) != tc.fails || apierrors.IsForbidden(err) != tc.forbidden {
				t.Errorf("got %v", err)
			}
		})
	}
}
