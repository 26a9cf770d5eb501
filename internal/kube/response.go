package kube

import (
	"context"

	"k8s.io/client-go/rest"
)

// Body sends a request and returns the body of the response. The error of a server is its Status with the message and
// the causes; Result.Raw returns a general text for the code instead.
func Body(ctx context.Context, r *rest.Request) ([]byte, error) {
	result := r.Do(ctx)
	if err := result.Error(); err != nil {
		return nil, err
	}
	return result.Raw()
}
