package fanout

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
)

// ClusterError names the cluster that gave no, or an incomplete, answer, and the
// reason. deadline is how long the cluster was given; 0 if there was no limit.
func ClusterError(cluster string, err error, deadline time.Duration) error {
	return fmt.Errorf("cluster(%s): %w", cluster, reason(err, deadline))
}

// NotReported reports whether err is that of a cluster in Pull mode whose agent has
// not reported its endpoint and credentials yet.
func NotReported(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) && apierrors.HasStatusCause(err, metav1.CauseType(clusterv1alpha1.CauseClusterNotReported))
}

// reason puts a word before an error: refused, timeout, unauthorized, forbidden,
// unreachable or unavailable. Errors of members come through the control plane, some
// of them only as text.
func reason(err error, deadline time.Duration) error {
	switch text := err.Error(); {
	case NotReported(err):
		return errors.New("not reported yet: its agent has not written the cluster's endpoint and credentials")
	case isTimeout(err, text):
		if deadline > 0 {
			return fmt.Errorf("timeout: no answer within %s; --member-timeout allows more", deadline)
		}
		return fmt.Errorf("timeout: %w", err)
	case strings.Contains(text, "connection refused"):
		return fmt.Errorf("refused: %w", err)
	case apierrors.IsUnauthorized(err):
		return fmt.Errorf("unauthorized: %w", err)
	case apierrors.IsForbidden(err):
		return fmt.Errorf("forbidden: %w", err)
	case strings.Contains(text, "no such host"), strings.Contains(text, "no route to host"), strings.Contains(text, "network is unreachable"):
		return fmt.Errorf("unreachable: %w", err)
	case apierrors.IsServiceUnavailable(err):
		return fmt.Errorf("unavailable: %w", err)
	default:
		return err
	}
}

func isTimeout(err error, text string) bool {
	var timeout net.Error
	return errors.Is(err, ErrDeadline) || errors.Is(err, context.DeadlineExceeded) ||
		(errors.As(err, &timeout) && timeout.Timeout()) ||
		apierrors.IsTimeout(err) || apierrors.IsServerTimeout(err) ||
		strings.Contains(text, "i/o timeout") || strings.Contains(text, "context deadline exceeded")
}
