package clusterstatus

import (
	"context"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/karmada-toolkit/karmada/pkg/member/access"
	"github.com/karmada-toolkit/karmada/pkg/member/access/informer"
	"github.com/karmada-toolkit/karmada/pkg/member/views"
)

// definitions watches the CustomResourceDefinitions of a cluster, so that a new
// type is collected before the next probe is due.
type definitions struct {
	member     *access.Member
	projection *informer.Projection[string]
	cancel     context.CancelFunc
	done       sync.WaitGroup
}

// newDefinitions starts the watch. changed is called when a definition changes.
func newDefinitions(ctx context.Context, member *access.Member, changed func()) *definitions {
	ctx, cancel := context.WithCancel(ctx)
	d := &definitions{member: member, cancel: cancel}
	var m *informer.Projection[string]
	m = informer.New(informer.Config[string]{
		Name:    member.Name() + " definitions",
		Source:  views.Metadata(member, schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}),
		Project: informer.From(func(p *metav1.PartialObjectMetadata, _ *string) (string, error) { return p.ResourceVersion, nil }),
		Changed: func(_ types.NamespacedName, old, now *string) {
			if m.HasSynced() && (old == nil || now == nil || *old != *now) {
				changed()
			}
		},
	})
	d.projection = m
	d.done.Go(func() { m.Run(ctx) })
	return d
}

func (d *definitions) stop() {
	if d != nil {
		d.cancel()
		d.done.Wait()
	}
}
