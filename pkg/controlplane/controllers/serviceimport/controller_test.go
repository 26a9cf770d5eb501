package serviceimport

import (
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestForeign(t *testing.T) {
	service := func(annotation string, selector map[string]string) *corev1.Service {
		return &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "derived-web", Annotations: map[string]string{derivedFrom: annotation}},
			Spec:       corev1.ServiceSpec{Selector: selector},
		}
	}
	selector := map[string]string{"app": "web"}
	for name, tc := range map[string]struct {
		existing *corev1.Service
		want     bool
	}{
		"no Service":                        {nil, false},
		"a derived Service":                 {service("web", nil), false},
		"a derived Service with a selector": {service("web", selector), false},
		"one of another implementation":     {service("", nil), false},
		"a Service of a user":               {service("", selector), true},
		"derived from another import":       {service("api", selector), true},
	} {
		if err := foreign("web", tc.existing); errors.Is(err, errForeign) != tc.want {
			t.Errorf("%s: %v", name, err)
		}
	}
}
