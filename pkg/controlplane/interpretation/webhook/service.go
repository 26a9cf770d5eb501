package webhook

import (
	"context"
	"fmt"
	"net"
	"strconv"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// finder finds a Service of the control plane.
type finder func(ctx context.Context, namespace, name string) (*corev1.Service, error)

// service is a Service as the target of a webhook.
type service struct {
	ref  admissionregistrationv1.ServiceReference
	find finder
	dial func(ctx context.Context, network, address string) (net.Conn, error)
}

func (s *service) host() string { return s.ref.Name + "." + s.ref.Namespace + ".svc" }

func (s *service) port() string {
	if s.ref.Port == nil {
		return "443"
	}
	return strconv.Itoa(int(*s.ref.Port))
}

func (s *service) path() string {
	if s.ref.Path == nil {
		return ""
	}
	return *s.ref.Path
}

// dialContext looks the Service up for every connection.
func (s *service) dialContext(ctx context.Context, network, _ string) (net.Conn, error) {
	address, err := s.resolve(ctx)
	if err != nil {
		return nil, err
	}
	return s.dial(ctx, network, address)
}

// resolve returns the address of the Service. One that the control plane does not
// have is resolved by its name in DNS: the control plane's processes usually
// run in a cluster whose Services it does not hold.
func (s *service) resolve(ctx context.Context) (string, error) {
	elsewhere := net.JoinHostPort(s.host(), s.port())
	if s.find == nil {
		return elsewhere, nil
	}
	svc, err := s.find(ctx, s.ref.Namespace, s.ref.Name)
	if apierrors.IsNotFound(err) {
		return elsewhere, nil
	}
	if err != nil {
		return "", fmt.Errorf("getting service %s/%s: %w", s.ref.Namespace, s.ref.Name, err)
	}
	switch svc.Spec.Type {
	case "", corev1.ServiceTypeClusterIP, corev1.ServiceTypeLoadBalancer, corev1.ServiceTypeNodePort:
	case corev1.ServiceTypeExternalName:
		return net.JoinHostPort(svc.Spec.ExternalName, s.port()), nil
	default:
		return "", fmt.Errorf("unsupported service type %q", svc.Spec.Type)
	}
	if svc.Spec.ClusterIP == corev1.ClusterIPNone {
		return "", fmt.Errorf("cannot route to service with ClusterIP %q", svc.Spec.ClusterIP)
	}
	for _, p := range svc.Spec.Ports {
		if fmt.Sprint(p.Port) == s.port() {
			return net.JoinHostPort(svc.Spec.ClusterIP, s.port()), nil
		}
	}
	return "", apierrors.NewServiceUnavailable(fmt.Sprintf("no service port %s found for service %q", s.port(), s.ref.Name))
}
