package rollout

import (
	"context"
	"errors"
	"fmt"

	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ErrUnavailable is in the error about an API that the API server does not reach.
var ErrUnavailable = errors.New("not available")

// CheckAPI returns why an API server does not serve the API of an APIService, or nil.
func CheckAPI(ctx context.Context, in client.Reader, name string) error {
	service := &apiregistrationv1.APIService{}
	if err := in.Get(ctx, client.ObjectKey{Name: name}, service); err != nil {
		return err
	}
	for _, c := range service.Status.Conditions {
		if c.Type == apiregistrationv1.Available {
			if c.Status == apiregistrationv1.ConditionTrue {
				return nil
			}
			return fmt.Errorf("%w: %s: %s", ErrUnavailable, c.Reason, c.Message)
		}
	}
	return fmt.Errorf("%w: the API server has not checked it yet", ErrUnavailable)
}
