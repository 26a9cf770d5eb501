package phases

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/karmada-toolkit/karmada/internal/patch"
	"github.com/karmada-toolkit/karmada/pkg/init/components"
)

// labelNode labels the node whose disk etcd uses, unless there is one.
func labelNode(ctx context.Context, s *State, _ Phase) error {
	if !s.Config.Etcd.OnNode() {
		return nil
	}
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
