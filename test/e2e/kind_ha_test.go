//go:build kind

package e2e

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"
)

// testAvailability ends every pod of a control plane with several of each, one after
// the other and without a grace period, while a client writes.
func (s *session) testAvailability(t *testing.T) {
	var volumes strings.Builder
	volumes.WriteString(`
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: by-hand}
provisioner: kubernetes.io/no-provisioner
volumeBindingMode: WaitForFirstConsumer
`)
	for i := range 3 {
		fmt.Fprintf(&volumes, `
---
apiVersion: v1
kind: PersistentVolume
metadata: {name: available-%[1]d}
spec:
  storageClassName: by-hand
  capacity: {storage: 2Gi}
  accessModes: [ReadWriteOnce]
  hostPath: {path: /var/lib/available-%[1]d, type: DirectoryOrCreate}
`, i)
	}
	s.file(t, "volumes.yaml", volumes.String())
	s.does(t, "kubectl --context kind-cluster01 apply -f volumes.yaml")
	s.does(t, s.init("--etcd-storage-mode PVC --storage-classes-name by-hand --etcd-pvc-size 2Gi --etcd-replicas 3 --karmada-apiserver-replicas 3 "+
		"--karmada-aggregated-apiserver-replicas 2 --karmada-controller-manager-replicas 2 --karmada-scheduler-replicas 2 "+
		"--karmada-kube-controller-manager-replicas 2 --karmada-webhook-replicas 2"), "Karmada is installed successfully.")
	s.does(t, "kubectl karmada join kind-cluster02 "+s.at()+" --cluster-kubeconfig=$HOME/.kube/config --cluster-context=kind-cluster02")
	s.policy(t, "clusterNames:\n  - kind-cluster02")

	const pods = "kubectl --context kind-cluster01 -n karmada-system get pods "
	names := strings.Fields(s.does(t, pods+"-o jsonpath='{.items[*].metadata.name}'"))
	if len(names) != 16 {
		t.Errorf("there are %d pods, not 16: %v", len(names), names)
	}
	w := s.write()
	for _, name := range names {
		s.does(t, "kubectl --context kind-cluster01 -n karmada-system delete pod "+name+" --force --grace-period=0")
		s.allReady(t, pods, len(names))
	}
	accepted, silence := w.stop()
	t.Logf("%d writes were accepted; the longest time without one was %s", len(accepted), silence.Round(100*time.Millisecond))
	if len(accepted) < len(names) {
		t.Errorf("only %d writes were accepted", len(accepted))
	}
	have := " " + s.does(t, "kubectl "+s.at()+" get configmaps -o jsonpath='{.items[*].metadata.name}'") + " "
	for _, name := range accepted {
		if !strings.Contains(have, " "+name+" ") {
			t.Errorf("%s was accepted and is lost", name)
		}
	}
	s.does(t, "kubectl "+s.at()+" create deployment nginx --image "+image)
	s.runs(t, "1/1", "kind-cluster02")
	s.does(t, "kubectl "+s.at()+" delete deployment nginx")
	s.does(t, "kubectl karmada unjoin kind-cluster02 "+s.at()+" --cluster-kubeconfig=$HOME/.kube/config --cluster-context=kind-cluster02")
	s.purge(t)
}

// allReady waits until there are so many pods, all of them ready.
func (s *session) allReady(t *testing.T, pods string, want int) {
	t.Helper()
	eventually(t, func() error {
		r := s.run(pods)
		ready := 0
		for _, got := range table(r.out) {
			if got["READY"] == "1/1" && got["STATUS"] == "Running" {
				ready++
			}
		}
		if ready != want {
			return fmt.Errorf("%d of %d pods are ready:\n%s%s", ready, want, r.out, r.err)
		}
		return nil
	})
}

// writer makes ConfigMaps, one after the other.
type writer struct {
	end      chan struct{}
	done     sync.WaitGroup
	accepted []string
	silence  time.Duration
}

func (s *session) write() *writer {
	w := &writer{end: make(chan struct{})}
	w.done.Go(func() {
		last := time.Now()
		begun := last.Unix()
		for i := 0; ; i++ {
			select {
			case <-w.end:
				return
			default:
			}
			name := fmt.Sprintf("written-%d-%d", begun, i)
			if s.run("kubectl "+s.at()+" --request-timeout=5s create configmap "+name).code != 0 {
				continue
			}
			w.accepted = append(w.accepted, name)
			w.silence = max(w.silence, time.Since(last))
			last = time.Now()
		}
	})
	return w
}

// stop returns what was accepted, and the longest time between two of them.
func (w *writer) stop() (accepted []string, silence time.Duration) {
	close(w.end)
	w.done.Wait()
	return w.accepted, w.silence
}
