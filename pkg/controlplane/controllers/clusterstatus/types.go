package clusterstatus

import (
	"context"
	"fmt"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/karmada-toolkit/karmada/pkg/member/access"
	"github.com/karmada-toolkit/karmada/pkg/member/access/informer"
)

// serving is how long a cluster may take to serve a type after its definition
// changed.
const serving = 3 * time.Second

// definitions watches the definitions of a cluster's own types, so that a new
// type is known without waiting for the next look.
type definitions struct {
	member *access.Member
	mirror *informer.Projection[string]
	cancel context.CancelFunc
	done   sync.WaitGroup
}

// newDefinitions starts to watch. changed is called when a definition changes.
func newDefinitions(ctx context.Context, member *access.Member, changed func()) *definitions {
	ctx, cancel := context.WithCancel(ctx)
	d := &definitions{member: member, cancel: cancel}
	resource := member.Metadata().Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
	var m *informer.Projection[string]
	m = informer.New(informer.Config[string]{
		Name: member.Name() + " definitions",
		List: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return resource.List(ctx, o)
		},
		Watch:   resource.Watch,
		Example: &metav1.PartialObjectMetadata{},
		Project: func(obj runtime.Object, _ *string) (string, error) {
			p, ok := obj.(*metav1.PartialObjectMetadata)
			if !ok {
				return "", fmt.Errorf("unexpected %T", obj)
			}
			return p.ResourceVersion, nil
		},
		Changed: func(_ types.NamespacedName, old, now *string) {
			if m.HasSynced() && (old == nil || now == nil || *old != *now) {
				changed()
			}
		},
	})
	d.mirror = m
	d.done.Go(func() { m.Run(ctx) })
	return d
}

func (d *definitions) stop() {
	if d != nil {
		d.cancel()
		d.done.Wait()
	}
}
