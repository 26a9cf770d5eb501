package phases

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karmada-toolkit/karmada/internal/patch"
	"github.com/karmada-toolkit/karmada/pkg/init/components"
)

// Etcd is the phase that installs the store.
const Etcd = "etcd"

func etcd() Phase {
	return Phase{Name: Etcd, Doc: "Install etcd", Needs: []string{Namespace}, host: etcdObjects, run: runEtcd}
}

func etcdObjects(in *Inputs) ([]client.Object, error) {
	if in.Etcd.External() {
		return nil, nil
	}
	set, err := components.EtcdStatefulSet(in.Config)
	if err != nil {
		return nil, err
	}
	return []client.Object{components.EtcdService(in.Config), set}, nil
}

// runEtcd labels the node of etcd and installs it.
func runEtcd(ctx context.Context, s *State, p Phase) error {
	if s.Config.Etcd.External.Used() {
		s.Progress.Done(p.Name, "external")
		return nil
	}
	if s.Config.Etcd.OnNode() {
		if err := labelNode(ctx, s); err != nil {
			return err
		}
	}
	return deploy(components.Etcd)(ctx, s, p)
}

// labelNode labels the node whose disk etcd uses, unless there is one.
func labelNode(ctx context.Context, s *State) error {
	name, labelled, err := s.Facts.EtcdNode(&s.Config.Etcd)
	if err != nil || labelled {
		return err
	}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	change := map[string]any{"labels": map[string]string{components.EtcdNodeLabel: ""}}
	if err := s.Host.Patch(ctx, node, patch.Metadata(change, "", "")); err != nil {
		return fmt.Errorf("labelling node %s for etcd: %w", name, err)
	}
	s.Outcome.Note("etcd keeps its data on node %s, in %s", name, s.Config.Etcd.DataPath)
	return nil
}
