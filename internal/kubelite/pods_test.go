package kubelite_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/karmada-toolkit/karmada/internal/testenv"
)

// available waits until a deployment has n available pods, and returns them.
func available(t *testing.T, client kubernetes.Interface, namespace, name string, n int32) []corev1.Pod {
	t.Helper()
	testenv.Eventually(t, limit, func(ctx context.Context) error {
		d, err := client.AppsV1().Deployments(namespace).Get(ctx, name, metav1.GetOptions{})
		if err == nil && d.Status.AvailableReplicas != n {
			err = fmt.Errorf("deployment has status %+v, want %d available", d.Status, n)
		}
		return err
	})
	pods, err := client.CoreV1().Pods(namespace).List(t.Context(), metav1.ListOptions{LabelSelector: "app=" + name})
	if err != nil {
		t.Fatal(err)
	}
	return pods.Items
}

func TestPods_KeepTheirAddressesForThemselves(t *testing.T) {
	t.Parallel()
	c := testenv.Start(t, testenv.Member("m1", 2))
	client := clientOf(t, c)
	if _, err := client.AppsV1().Deployments("default").Create(t.Context(), deployment("before", 5), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	available(t, client, "default", "before", 5)
	c.Kill(t)
	c.Restart(t)
	if _, err := client.AppsV1().Deployments("default").Create(t.Context(), deployment("after", 5), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	seen := map[string]string{}
	for _, pod := range append(available(t, client, "default", "after", 5), available(t, client, "default", "before", 5)...) {
		if other, ok := seen[pod.Status.PodIP]; ok || pod.Status.PodIP == "" {
			t.Errorf("pods %s and %s have address %q", pod.Name, other, pod.Status.PodIP)
		}
		seen[pod.Status.PodIP] = pod.Name
	}
}

func TestPods_AreReadyAgain(t *testing.T) {
	t.Parallel()
	client := clientOf(t, testenv.Start(t, testenv.Member("m1", 1)))
	if _, err := client.AppsV1().Deployments("default").Create(t.Context(), deployment("web", 2), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	pods := available(t, client, "default", "web", 2)
	mark := func(pod corev1.Pod, reason string) string { // without a reason: as the node lifecycle controller does
		for i := range pod.Status.Conditions {
			if c := &pod.Status.Conditions[i]; c.Type == corev1.PodReady {
				c.Status, c.Reason = corev1.ConditionFalse, reason
			}
		}
		if _, err := client.CoreV1().Pods("default").UpdateStatus(t.Context(), &pod, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		return pod.Name
	}
	failed, silent := mark(pods[1], "Simulated"), mark(pods[0], "")
	testenv.Eventually(t, limit, func(ctx context.Context) error {
		pod, err := client.CoreV1().Pods("default").Get(ctx, silent, metav1.GetOptions{})
		if err == nil && !podReady(pod) {
			err = fmt.Errorf("conditions are %+v", pod.Status.Conditions)
		}
		return err
	})
	pod, err := client.CoreV1().Pods("default").Get(t.Context(), failed, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if podReady(pod) {
		t.Error("a failure that a user simulates did not last")
	}
}

func podReady(pod *corev1.Pod) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

func TestPods_HaveNoContainers(t *testing.T) {
	t.Parallel()
	c := testenv.Start(t, testenv.Member("m1", 1))
	client := clientOf(t, c)
	if _, err := client.AppsV1().Deployments("default").Create(t.Context(), deployment("web", 1), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	pod := available(t, client, "default", "web", 1)[0].Name
	core := client.CoreV1().RESTClient()
	for subresource, want := range map[string]string{
		"log": "simulated pods have no logs; use --runtime kind", "exec": "simulated pods have no processes; use --runtime kind",
		"attach": "simulated pods have no processes; use --runtime kind", "portforward": "simulated pods have no ports; use --runtime kind",
	} {
		request := core.Get().Namespace("default").Resource("pods").Name(pod).SubResource(subresource)
		err := request.Do(t.Context()).Error()
		var status apierrors.APIStatus
		if err == nil || !errors.As(err, &status) || status.Status().Message != want || status.Status().Code != http.StatusNotImplemented {
			t.Errorf("%s: got %v, want %q", subresource, err, want)
		}
	}
	if err := core.Get().Namespace("default").Resource("pods").Name("missing").SubResource("log").Do(t.Context()).Error(); !apierrors.IsNotFound(err) {
		t.Errorf("a pod that does not exist: got %v", err)
	}
	anonymous, err := kubernetes.NewForConfig(rest.AnonymousClientConfig(c.Config))
	if err != nil {
		t.Fatal(err)
	}
	err = anonymous.CoreV1().RESTClient().Get().Namespace("default").Resource("pods").Name(pod).SubResource("log").Do(t.Context()).Error()
	if !apierrors.IsForbidden(err) || strings.Contains(err.Error(), "simulated") {
		t.Errorf("without rights: got %v, want forbidden", err)
	}
}
