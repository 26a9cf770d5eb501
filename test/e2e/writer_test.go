package e2e

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

// controlPlaneWriter writes to the control plane ten times a second, and watches what it writes.
type controlPlaneWriter struct {
	cancel context.CancelFunc
	done   sync.WaitGroup
	failed []error
	gap    time.Duration
}

func startWriter(t *testing.T, kubeconfig, ns string) *controlPlaneWriter {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	w := &controlPlaneWriter{cancel: cancel}
	w.done.Go(func() {
		last := time.Now()
		for n := 0; ctx.Err() == nil; n++ {
			if err := write(ctx, kubeconfig, ns, n); err == nil {
				w.gap, last = max(w.gap, time.Since(last)), time.Now()
			} else if ctx.Err() == nil {
				w.failed = append(w.failed, err)
			}
			select {
			case <-ctx.Done():
			case <-time.After(100 * time.Millisecond):
			}
		}
	})
	t.Cleanup(func() { w.stop() })
	return w
}

// write writes once, as a user who reads the kubeconfig each time.
func write(ctx context.Context, kubeconfig, ns string, n int) error {
	cfg, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	c, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	_, err = c.CoreV1().ConfigMaps(ns).Patch(ctx, "written", types.MergePatchType, fmt.Appendf(nil, `{"data":{"n":"%d"}}`, n), metav1.PatchOptions{})
	return err
}

func (w *controlPlaneWriter) stop() (failed []error, gap time.Duration) {
	w.cancel()
	w.done.Wait()
	return w.failed, w.gap
}
