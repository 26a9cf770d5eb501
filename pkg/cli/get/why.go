package get

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/karmada-toolkit/karmada/pkg/cli/fanout"
)

// controlPlaneName stands for the control plane where clusters are named.
const controlPlaneName = "Karmada"

// clusterError says which cluster gave no, or not the whole, answer and why.
func clusterError(cluster string, err error, deadline time.Duration) error {
	return fmt.Errorf("cluster(%s): %w", cluster, why(err, deadline))
}

// why puts the reason first: refused, timeout, unauthorized or forbidden. Errors of
// members come through the control plane, some of them only as text.
func why(err error, deadline time.Duration) error {
	switch text := err.Error(); {
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
	return errors.Is(err, fanout.ErrDeadline) || errors.Is(err, context.DeadlineExceeded) ||
		(errors.As(err, &timeout) && timeout.Timeout()) ||
		apierrors.IsTimeout(err) || apierrors.IsServerTimeout(err) ||
		strings.Contains(text, "i/o timeout") || strings.Contains(text, "context deadline exceeded")
}
