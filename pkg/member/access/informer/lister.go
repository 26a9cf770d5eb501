package informer

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/karmada-toolkit/karmada/pkg/member/access"
)

const (
	// maxObjects is the limit of objects of one type in a cluster.
	maxObjects = 200_000
	// pageSize is the number of objects in a page. It is divided by pageFactor when a
	// page exceeds the size limit of a response.
	pageSize   = 500
	pageFactor = 8
	// maxShortPages is the number of pages, beside the last, that may have fewer
	// objects than requested.
	maxShortPages = 20
	// listTimeout bounds a list with all its pages.
	listTimeout = 5 * time.Minute
)

var errTooMany = errors.New("the cluster has more objects than can be kept")

// lister lists objects page by page, and projects each page before it reads the next.
type lister[T any] struct {
	cfg   Config[T]
	store *store[T]
	// limit is the page size. It remains reduced until a list succeeds, so that a
	// cluster whose responses are all too large gets one request per attempt.
	limit atomic.Int64
}

func newLister[T any](cfg Config[T], s *store[T]) *lister[T] {
	l := &lister[T]{cfg: cfg, store: s}
	l.limit.Store(pageSize)
	return l
}

// projectedList is a list of projected objects.
type projectedList struct {
	metav1.TypeMeta
	metav1.ListMeta
	Items []runtime.Object

	size int
}

// DeepCopyObject implements runtime.Object. Lists are never copied.
func (l *projectedList) DeepCopyObject() runtime.Object { return l }

// projected is an object that has been projected.
type projected[T any] struct {
	metav1.TypeMeta
	metav1.ObjectMeta
	value *T
}

func (p *projected[T]) key() types.NamespacedName {
	return types.NamespacedName{Namespace: p.Namespace, Name: p.Name}
}

// DeepCopyObject implements runtime.Object. Objects are never copied.
func (p *projected[T]) DeepCopyObject() runtime.Object { return p }

func (l *lister[T]) list(ctx context.Context) (*projectedList, error) {
	out := &projectedList{}
	options := metav1.ListOptions{Limit: l.limit.Load()}
	for expired, short := 0, 0; ; {
		page, err := l.cfg.List(ctx, options)
		switch {
		case access.IsLimit(err) && options.Limit > 1:
			options.Limit = max(1, options.Limit/pageFactor)
			l.limit.Store(options.Limit)
			continue
		case apierrors.IsResourceExpired(err) && options.Continue != "" && expired < 1:
			// The list took longer than its continue token is valid: restart it.
			expired++
			out, options.Continue = &projectedList{}, ""
			continue
		case err != nil:
			return nil, err
		}
		head, err := meta.ListAccessor(page)
		if err != nil {
			return nil, fmt.Errorf("listing %s: %w", l.cfg.Name, err)
		}
		before := len(out.Items)
		if err := meta.EachListItem(page, func(obj runtime.Object) error { return l.collect(out, obj) }); err != nil {
			return nil, err
		}
		l.settle(out.Items[before:])
		out.ResourceVersion = head.GetResourceVersion()
		if options.Continue = head.GetContinue(); options.Continue == "" {
			l.limit.Store(pageSize)
			return out, nil
		}
		if int64(len(out.Items)-before) < options.Limit {
			short++
		}
		if len(out.Items) == before || short > maxShortPages {
			return nil, fmt.Errorf("listing %s: the pages are shorter than requested and have no end", l.cfg.Name)
		}
	}
}

// collect projects an object and adds it to a list.
func (l *lister[T]) collect(list *projectedList, obj runtime.Object) error {
	key, value, err := l.store.project(obj)
	if err != nil {
		return err
	}
	list.size += l.cfg.sizeOf(key, value)
	if most := l.cfg.MaxSize(); len(list.Items) >= maxObjects || list.size > most {
		return fmt.Errorf("listing %s: %w: %d, %d KiB of %d", l.cfg.Name, errTooMany, len(list.Items), list.size>>10, most>>10)
	}
	list.Items = append(list.Items, &projected[T]{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}, value: value})
	return nil
}

// settle copies the objects of a page.
func (l *lister[T]) settle(items []runtime.Object) {
	if l.cfg.Settle == nil {
		return
	}
	for _, item := range items {
		if p, ok := item.(*projected[T]); ok {
			key, value := l.cfg.Settle(p.key(), *p.value)
			p.Namespace, p.Name, p.value = key.Namespace, key.Name, &value
		}
	}
}
