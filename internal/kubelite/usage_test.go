package kubelite_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	metricsclient "k8s.io/metrics/pkg/client/clientset/versioned"

	"github.com/karmada-toolkit/karmada/internal/testenv"
)

// sumOf returns the CPU usage of pods together, in thousandths of a core.
func sumOf(ctx context.Context, client metricsclient.Interface, selector string) (pods int, cpu int64, err error) {
	list, err := client.MetricsV1beta1().PodMetricses("default").List(ctx, metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		return 0, 0, err
	}
	for _, pod := range list.Items {
		for _, c := range pod.Containers {
			cpu += c.Usage.Cpu().MilliValue()
		}
	}
	return len(list.Items), cpu, nil
}

func TestUsage_IsSetByAnnotations(t *testing.T) {
	t.Parallel()
	c := testenv.Start(t, testenv.Member("m1", 1))
	client := clientOf(t, c)
	usage, err := metricsclient.NewForConfig(c.Config)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.AppsV1().Deployments("default").Create(t.Context(), deployment("web", 3), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	pods := available(t, client, "default", "web", 3)
	expect := func(want int64) {
		t.Helper()
		testenv.Eventually(t, limit, func(ctx context.Context) error {
			n, cpu, err := sumOf(ctx, usage, "app=web")
			if err == nil && (n != 3 || cpu != want) {
				err = fmt.Errorf("%d pods use %dm, want %dm", n, cpu, want)
			}
			return err
		})
	}
	expect(3)
	annotate := func(object, cpu string) {
		t.Helper()
		patch := fmt.Appendf(nil, `{"metadata":{"annotations":{"kwok.x-k8s.io/usage-cpu":%q}}}`, cpu)
		var err error
		switch object {
		case "deployment":
			_, err = client.AppsV1().Deployments("default").Patch(t.Context(), "web", types.MergePatchType, patch, metav1.PatchOptions{})
		case "pod":
			_, err = client.CoreV1().Pods("default").Patch(t.Context(), pods[0].Name, types.MergePatchType, patch, metav1.PatchOptions{})
		case "node":
			_, err = client.CoreV1().Nodes().Patch(t.Context(), "m1-node-0", types.MergePatchType, patch, metav1.PatchOptions{})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	annotate("deployment", "100m")
	expect(300)
	annotate("pod", "1")
	expect(1200)
	annotate("pod", "NaN")
	expect(300)

	node, err := usage.MetricsV1beta1().NodeMetricses().Get(t.Context(), "m1-node-0", metav1.GetOptions{})
	if err != nil || node.Usage.Cpu().MilliValue() < 300 {
		t.Errorf("got %v, %v", node, err)
	}
	annotate("node", "7")
	testenv.Eventually(t, limit, func(ctx context.Context) error {
		list, err := usage.MetricsV1beta1().NodeMetricses().List(ctx, metav1.ListOptions{})
		if err == nil && (len(list.Items) != 1 || list.Items[0].Usage.Cpu().String() != "7") {
			err = fmt.Errorf("got %v", list.Items)
		}
		return err
	})
	if _, err := usage.MetricsV1beta1().PodMetricses("default").Get(t.Context(), "none", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("got %v", err)
	}
	testenv.Eventually(t, limit, func(context.Context) error {
		resources, err := client.Discovery().ServerResourcesForGroupVersion("metrics.k8s.io/v1beta1")
		if err != nil || len(resources.APIResources) != 2 {
			return fmt.Errorf("got %v, %w", resources, err)
		}
		groups, err := client.Discovery().ServerGroups()
		if err != nil || !strings.Contains(fmt.Sprint(groups), "metrics.k8s.io") {
			return fmt.Errorf("the group is not discovered: %w", err)
		}
		return nil
	})
}
