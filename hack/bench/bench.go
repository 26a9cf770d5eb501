// Package bench has what the programs share that measure a federation.
package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karmada-toolkit/karmada/internal/kube"
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
)

// Exit ends a program with its error, if there is one.
func Exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

// Connect returns the configuration and a client of a context of a kubeconfig, without a rate limit.
func Connect(kubeconfig, name string) (*rest.Config, client.WithWatch, error) {
	cfg, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(&clientcmd.ClientConfigLoadingRules{ExplicitPath: kubeconfig},
		&clientcmd.ConfigOverrides{CurrentContext: name}).ClientConfig()
	if err != nil {
		return nil, nil, fmt.Errorf("reading context %s: %w", name, err)
	}
	cfg.QPS, cfg.WarningHandler = -1, rest.NoWarnings{}
	c, err := client.NewWithWatch(cfg, client.Options{Scheme: kube.NewScheme()})
	return cfg, c, err
}

// Watch calls seen for the objects of a namespace that are added or changed, until ctx ends.
func Watch(ctx context.Context, c client.WithWatch, list client.ObjectList, seen func(client.Object), o ...client.ListOption) {
	for ctx.Err() == nil {
		w, err := c.Watch(ctx, list, o...)
		if err != nil {
			time.Sleep(100 * time.Millisecond)
			continue
		}
		for event := range w.ResultChan() {
			if obj, ok := event.Object.(client.Object); ok && event.Type != "DELETED" {
				seen(obj)
			}
		}
	}
}

// Poll calls check every interval until it returns nil or ctx ends, and returns its last error.
func Poll(ctx context.Context, interval time.Duration, check func() error) error {
	for {
		err := check()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return errors.Join(ctx.Err(), err)
		case <-time.After(interval):
		}
	}
}

// Percentile returns the duration that a part of all, between 0 and 1, do not exceed; 0 if there are none.
func Percentile(all []time.Duration, part float64) time.Duration {
	if len(all) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(all))
	return sorted[min(len(sorted)-1, int(part*float64(len(sorted))))]
}

// Prepare makes a namespace, a policy for its ConfigMaps with the label bench=LABEL, and further objects in it.
func Prepare(ctx context.Context, plane client.Client, namespace, member, label string, more ...client.Object) error {
	policy := &policyv1alpha1.PropagationPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "all"}}
	policy.Spec.ResourceSelectors = []policyv1alpha1.ResourceSelector{{APIVersion: "v1", Kind: "ConfigMap", LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"bench": label}}}}
	policy.Spec.Placement.ClusterAffinity = &policyv1alpha1.ClusterAffinity{ClusterNames: []string{member}}
	for _, obj := range append([]client.Object{&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, policy}, more...) {
		if err := plane.Create(ctx, obj); err != nil {
			return fmt.Errorf("preparing namespace %s: %w", namespace, err)
		}
	}
	return nil
}

// Clean deletes namespaces.
func Clean(ctx context.Context, plane client.Client, namespaces ...string) {
	for _, name := range namespaces {
		_ = plane.Delete(context.WithoutCancel(ctx), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
}
