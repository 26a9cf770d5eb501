package interpreter

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
)

func aggregateService(obj *object, items []item) (*object, error) {
	if text(child(obj.Object, "spec"), "type") != string(corev1.ServiceTypeLoadBalancer) {
		return obj, nil
	}
	var status corev1.ServiceStatus
	var all []corev1.LoadBalancerIngress
	return replace(obj, items, &status, func(_ string, member *corev1.ServiceStatus) {
		if member != nil {
			all = append(all, member.LoadBalancer.Ingress...)
		}
	}, func() { status.LoadBalancer.Ingress = mergeIngress(all) })
}

func aggregateIngress(obj *object, items []item) (*object, error) {
	var status networkingv1.IngressStatus
	var all []corev1.LoadBalancerIngress
	return replace(obj, items, &status, func(_ string, member *networkingv1.IngressStatus) {
		if member == nil {
			return
		}
		for _, in := range member.LoadBalancer.Ingress {
			out := corev1.LoadBalancerIngress{Hostname: in.Hostname, IP: in.IP}
			for _, port := range in.Ports {
				out.Ports = append(out.Ports, corev1.PortStatus(port))
			}
			all = append(all, out)
		}
	}, func() {
		ingress := make([]networkingv1.IngressLoadBalancerIngress, 0, len(all))
		for _, in := range mergeIngress(all) {
			out := networkingv1.IngressLoadBalancerIngress{Hostname: in.Hostname, IP: in.IP}
			for _, port := range in.Ports {
				out.Ports = append(out.Ports, networkingv1.IngressPortStatus(port))
			}
			ingress = append(ingress, out)
		}
		status.LoadBalancer.Ingress = ingress
	})
}

// mergeIngress makes one entry of those with the same address and sorts. The
// result is never nil.
func mergeIngress(all []corev1.LoadBalancerIngress) []corev1.LoadBalancerIngress {
	merged := make([]corev1.LoadBalancerIngress, 0, len(all))
	for _, in := range all {
		i := slices.IndexFunc(merged, func(m corev1.LoadBalancerIngress) bool { return compareIngress(m, in) == 0 })
		if i < 0 {
			i = len(merged)
			merged = append(merged, corev1.LoadBalancerIngress{Hostname: in.Hostname, IP: in.IP, IPMode: in.IPMode})
		}
		for _, port := range in.Ports {
			if !slices.ContainsFunc(merged[i].Ports, func(p corev1.PortStatus) bool { return comparePorts(p, port) == 0 }) {
				merged[i].Ports = append(merged[i].Ports, port)
			}
		}
	}
	for i := range merged {
		slices.SortFunc(merged[i].Ports, comparePorts)
	}
	slices.SortFunc(merged, compareIngress)
	return merged
}

// compareIngress orders by hostname, IP and mode; an empty hostname and a missing
// mode come last.
func compareIngress(a, b corev1.LoadBalancerIngress) int {
	return cmp.Or(
		last(a.Hostname == "", b.Hostname == ""), cmp.Compare(a.Hostname, b.Hostname),
		cmp.Compare(a.IP, b.IP),
		last(a.IPMode == nil, b.IPMode == nil), cmp.Compare(value(a.IPMode), value(b.IPMode)),
	)
}

// comparePorts orders by port, protocol and error; a missing error comes first.
func comparePorts(a, b corev1.PortStatus) int {
	return cmp.Or(
		cmp.Compare(a.Port, b.Port), cmp.Compare(a.Protocol, b.Protocol),
		-last(a.Error == nil, b.Error == nil), cmp.Compare(value(a.Error), value(b.Error)),
	)
}

// last orders what holds after what does not.
func last(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

func value[T any](p *T) T {
	if p == nil {
		var zero T
		return zero
	}
	return *p
}
