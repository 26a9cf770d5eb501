package clusterstatus

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/domain/clustercondition"
	"github.com/karmada-toolkit/karmada/pkg/member/access"
)

// Reasons and messages of the Ready condition.
const (
	reasonReady            = "ClusterReady"
	messageReady           = "cluster is healthy and ready to accept workloads"
	reasonNotReady         = "ClusterNotReady"
	messageNotReady        = "cluster is reachable but health endpoint responded without ok"
	reasonNotReachable     = "ClusterNotReachable"
	messageNotReachable    = "cluster is not reachable"
	reasonCollectionFailed = "StatusCollectionFailed"
)

// probe returns the Ready condition by the health endpoints of a cluster, and reports whether the cluster did not answer in
// time. renew is the command by which the credentials are renewed that the cluster refuses.
func probe(ctx context.Context, member *access.Member, timeout time.Duration, renew string) (ready metav1.Condition, timedOut bool) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	code, err := statusCode(ctx, member, "/readyz")
	if err == nil && code == http.StatusNotFound {
		code, err = statusCode(ctx, member, "/healthz")
	}
	refused := fmt.Sprintf("%s: %s: renew them with %q", messageNotReachable, clustercondition.CredentialsRefused, renew)
	switch {
	case renew != "" && (code == http.StatusUnauthorized || errors.As(err, new(*tls.CertificateVerificationError))):
		return condition(metav1.ConditionFalse, reasonNotReachable, refused), false
	case err == nil && code == http.StatusOK:
		return condition(metav1.ConditionTrue, reasonReady, messageReady), false
	case err == nil && code > http.StatusOK && code < http.StatusMultipleChoices:
		return condition(metav1.ConditionFalse, reasonNotReady, messageNotReady), false
	case err == nil:
		return condition(metav1.ConditionFalse, reasonNotReachable, fmt.Sprintf("%s: its health endpoint answered %d", messageNotReachable, code)), false
	}
	return condition(metav1.ConditionFalse, reasonNotReachable, messageNotReachable), ctx.Err() != nil
}

func statusCode(ctx context.Context, member *access.Member, path string) (int, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, member.URL(path), nil)
	if err != nil {
		return 0, fmt.Errorf("getting %s: %w", path, err)
	}
	resp, err := member.HTTP().Do(req)
	if err != nil {
		return 0, fmt.Errorf("getting %s: %w", path, err)
	}
	defer func() { _ = resp.Body.Close() }()
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 1<<16))
	return resp.StatusCode, nil
}

func condition(status metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{Type: clusterv1alpha1.ClusterConditionReady, Status: status, Reason: reason, Message: message}
}

// threshold delays changes of the Ready condition until the other state has lasted.
type threshold struct {
	success, failure time.Duration

	known   bool
	status  metav1.ConditionStatus
	changed time.Time
}

// adjust returns the condition to report at now, given the stored one and the one that
// a probe observed which began earlier: a probe that times out is part of a failure.
// One probe alone does not change the condition.
//
// The first observation after a start is reported without delay, unless a cluster
// that was Ready is not: requests that fail during a start are more likely than a
// cluster that fails at that moment.
func (t *threshold) adjust(stored *metav1.Condition, observed metav1.Condition, began, now time.Time) metav1.Condition {
	switch {
	case !t.known:
		t.known, t.status = true, observed.Status
		if stored != nil && stored.Status == metav1.ConditionTrue && observed.Status != metav1.ConditionTrue {
			t.changed = began
		}
	case t.status != observed.Status:
		t.status, t.changed = observed.Status, began
	}
	if stored == nil {
		return observed
	}
	wait := time.Duration(0)
	switch storedTrue, observedTrue := stored.Status == metav1.ConditionTrue, observed.Status == metav1.ConditionTrue; {
	case observedTrue && !storedTrue:
		wait = t.success
	case storedTrue && !observedTrue:
		wait = t.failure
	default:
		return observed
	}
	if !t.changed.IsZero() && (began.Equal(t.changed) || now.Before(t.changed.Add(wait))) {
		return *stored
	}
	return observed
}
