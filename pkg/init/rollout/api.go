package rollout

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karmada-toolkit/karmada/internal/kube"
)

// requestsPerReplica is how many requests are sent for each of several API servers behind one address. With five, the
// chance that one of two gets none is below 0.1 %.
const requestsPerReplica = 5

// requestTimeout is how long one of these requests may take: after a restart of its node an aggregated API server may
// have another address than the API server believes.
const requestTimeout = 10 * time.Second

// ErrUnavailable is in the error about an API that the API server does not reach.
var ErrUnavailable = errors.New("not available")

// CheckAPI returns why an API server does not serve the API of an APIService, or nil. It reads the status of the
// APIService, which is that of before a restart until the API server has checked the API again: see CheckServed.
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

// CheckServed returns why one of the API servers behind an address does not serve a version of an API, or nil. Every
// request has a connection of its own, so that all of several API servers get some.
func CheckServed(ctx context.Context, cfg *rest.Config, gv schema.GroupVersion, replicas int32) error {
	tls, err := rest.TLSConfigFor(cfg)
	if err != nil {
		return fmt.Errorf("reading the certificates for %s: %w", cfg.Host, err)
	}
	cfg = rest.CopyConfig(cfg)
	cfg.Transport = &http.Transport{TLSClientConfig: tls, Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true}
	cfg.TLSClientConfig = rest.TLSClientConfig{} // the transport has it
	cfg.Timeout = requestTimeout
	requests := int32(1)
	if replicas > 1 {
		requests = requestsPerReplica * replicas
	}
	for range requests {
		if err := kube.CheckServed(ctx, cfg, gv); err != nil {
			return err
		}
		if err := kube.CheckDiscovered(ctx, cfg, gv); err != nil {
			return err
		}
	}
	return nil
}
