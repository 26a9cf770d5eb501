package metricsadapter

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/warning"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/karmada-toolkit/karmada/pkg/member/access"
)

// maxParallel limits the requests to members for one request of a client.
const maxParallel = 64

// requester sends requests to members.
type requester struct {
	members *members
	timeout time.Duration
}

// each calls fn for clusters at the same time and returns the values of those that answered, in their order, and the
// reasons for the others.
func each[T any](ctx context.Context, r *requester, clusters []*cluster, fn func(ctx context.Context, c *cluster) (T, error)) ([]T, []absence) {
	values, errs := make([]T, len(clusters)), make([]error, len(clusters))
	free := make(chan struct{}, maxParallel)
	var wg sync.WaitGroup
	for i, c := range clusters {
		free <- struct{}{}
		wg.Go(func() {
			defer func() { <-free }()
			ctx, cancel := context.WithTimeout(ctx, r.timeout)
			defer cancel()
			values[i], errs[i] = fn(ctx, c)
		})
	}
	wg.Wait()
	var answered []T
	var missing []absence
	for i, c := range clusters {
		if errs[i] == nil {
			answered = append(answered, values[i])
			continue
		}
		logFailure(ctx, c, errs[i])
		missing = append(missing, absence{c.member.Name(), r.reason(errs[i])})
	}
	return answered, missing
}

// reason returns why a member did not answer. It is for clients that may know nothing else about the member, so it
// contains no text of the member or of its network.
func (r *requester) reason(err error) string {
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Sprintf("it did not answer within %s", r.timeout)
	case apierrors.IsNotFound(err):
		return "it does not serve these metrics"
	case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err):
		return "it refused the control plane"
	case access.IsLimit(err):
		return "its answer is too large"
	}
	return "the request to it failed"
}

// warn names the clusters that are missing in a response.
func warn(ctx context.Context, missing []absence) {
	slices.SortFunc(missing, func(a, b absence) int { return cmp.Compare(a.cluster, b.cluster) })
	for _, a := range missing {
		warning.AddWarning(ctx, "", fmt.Sprintf("cluster(%s): its metrics are missing: %s", a.cluster, a.reason))
	}
}

func logFailure(ctx context.Context, c *cluster, err error) {
	log.FromContext(ctx).V(2).Info("A member did not answer", "Cluster", c.member.Name(), "error", err.Error())
}
