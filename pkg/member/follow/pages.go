package follow

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

	"github.com/karmada-toolkit/karmada/pkg/member/access"
)

const (
	// maxObjects is the limit of objects that a projection keeps, and maxListed of those in a list, of which projections keep a part.
	maxObjects = 200_000
	maxListed  = 5 * maxObjects
	// maxSize is the default of Config.MaxSize: that is enough for some 200,000 pods.
	maxSize = 64 << 20
	// pageSize is the number of objects in a page. It is divided by pageFactor when a page exceeds the size limit of a response.
	pageSize   = 500
	pageFactor = 8
	// maxShortPages is the number of pages, beside the last, that may have fewer objects than requested.
	maxShortPages = 20
	// listTimeout bounds a list with all its pages.
	listTimeout = 5 * time.Minute
)

var errTooMany = errors.New("the cluster has more objects than can be kept")

// pager lists objects page by page.
type pager struct {
	// limit is the page size, 0 for pageSize. It remains reduced until a list succeeds, for one request per attempt.
	limit atomic.Int64
}

// lists returns a page of a list.
type lists func(context.Context, metav1.ListOptions) (runtime.Object, error)

// pages is what a list is passed to.
type pages interface {
	// restart drops what was passed, add takes an object, and settle ends a page.
	restart()
	add(obj object) error
	settle()
}

// read lists all objects and returns their resource version.
func (p *pager) read(ctx context.Context, list lists, to pages) (string, error) {
	options := metav1.ListOptions{Limit: p.limit.Load()}
	if options.Limit == 0 {
		options.Limit = pageSize
	}
	for expired, short, all := false, 0, 0; ; {
		page, err := p.page(ctx, list, &options)
		if apierrors.IsResourceExpired(err) && options.Continue != "" && !expired {
			// The list took longer than its continue token is valid: restart it.
			expired, options.Continue, all = true, "", 0
			to.restart()
			continue
		}
		if err != nil {
			return "", err
		}
		n, err := pass(page, to)
		if err != nil {
			return "", err
		}
		head, err := meta.ListAccessor(page)
		if err != nil {
			return "", fmt.Errorf("reading a list: %w", err)
		}
		all += n
		if options.Continue = head.GetContinue(); options.Continue == "" {
			p.limit.Store(pageSize)
			return head.GetResourceVersion(), nil
		}
		if int64(n) < options.Limit {
			short++
		}
		if n == 0 || short > maxShortPages {
			return "", errors.New("the pages of a list are shorter than requested and have no end")
		}
		if all > maxListed {
			return "", fmt.Errorf("%w: %d", errTooMany, all)
		}
	}
}

// page lists a page, and a smaller one if it is too large.
func (p *pager) page(ctx context.Context, list lists, options *metav1.ListOptions) (runtime.Object, error) {
	for {
		page, err := list(ctx, *options)
		if !access.IsLimit(err) || options.Limit == 1 {
			return page, err
		}
		options.Limit = max(1, options.Limit/pageFactor)
		p.limit.Store(options.Limit)
	}
}

// pass passes the objects of a page on and returns their number.
func pass(page runtime.Object, to pages) (n int, err error) {
	err = meta.EachListItem(page, func(obj runtime.Object) error {
		n++
		o, ok := obj.(object)
		if !ok {
			return fmt.Errorf("unexpected %T in a list", obj)
		}
		return to.add(o)
	})
	to.settle()
	return n, err
}
