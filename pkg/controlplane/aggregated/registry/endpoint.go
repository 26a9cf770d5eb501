package registry

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"net/url"
	"strings"

	"golang.org/x/net/http/httpguts"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
)

// checkAccess returns an error if an agent must not publish that its cluster is reached
// so: the control plane sends requests of users there. What is set once stays. With
// loopback, addresses of the control plane's own machine are possible.
func checkAccess(updated, old *clusterv1alpha1.ClusterSpec, loopback bool) error {
	if updated.APIEndpoint == old.APIEndpoint && updated.ProxyURL == old.ProxyURL && maps.Equal(updated.ProxyHeader, old.ProxyHeader) {
		return nil
	}
	if old.APIEndpoint != "" || old.ProxyURL != "" || len(old.ProxyHeader) > 0 {
		return errors.New("an agent may not change spec.apiEndpoint, spec.proxyURL and spec.proxyHeader once they are set; an administrator of the control plane may")
	}
	if err := checkAddress("spec.apiEndpoint", updated.APIEndpoint, loopback, "https"); err != nil {
		return err
	}
	if err := checkAddress("spec.proxyURL", updated.ProxyURL, loopback, "http", "https", "socks5"); err != nil {
		return err
	}
	for name, value := range updated.ProxyHeader {
		if !httpguts.ValidHeaderFieldName(name) || !httpguts.ValidHeaderFieldValue(value) {
			return fmt.Errorf("an agent may set only valid HTTP headers in spec.proxyHeader, not %q", name)
		}
	}
	return nil
}

// checkAddress returns an error for a URL with another scheme, or of a host that is
// the control plane's own machine or link.
func checkAddress(field, address string, loopback bool, schemes ...string) error {
	if address == "" {
		return nil
	}
	u, err := url.Parse(address)
	if err != nil || u.Hostname() == "" {
		return fmt.Errorf("an agent may set %s to a URL only", field)
	}
	known := false
	for _, scheme := range schemes {
		known = known || u.Scheme == scheme
	}
	if !known {
		return fmt.Errorf("an agent may set %s only to a URL that begins with %s://", field, strings.Join(schemes, "://, "))
	}
	if !loopback && ownMachine(u.Hostname()) {
		return fmt.Errorf("an agent may not set %s to %s, which is a loopback or link-local address: the control plane would connect to its own machine; start the aggregated API server with --allow-loopback-endpoints if that is intended", field, u.Hostname())
	}
	return nil
}

// ownMachine reports whether a host is, for whoever connects to it, the same machine
// or only on the same link. Names that resolvers take for addresses in other
// notations than usual, such as 127.1, count as well.
func ownMachine(host string) bool {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	switch host {
	case "", "localhost", "ip6-localhost", "ip6-loopback":
		return true
	}
	if strings.HasSuffix(host, ".localhost") || strings.HasSuffix(host, ".localdomain") {
		return true
	}
	if ip, err := netip.ParseAddr(host); err == nil {
		return ownAddress(ip.Unmap())
	}
	if strings.ContainsRune(host, ':') {
		return true // no address, and no name either
	}
	last := host[strings.LastIndexByte(host, '.')+1:]
	return last == "" || strings.Trim(last, "0123456789") == "" || strings.HasPrefix(last, "0x")
}

// ownAddress reports the same of an address.
func ownAddress(ip netip.Addr) bool {
	return ip.IsLoopback() || ip.IsUnspecified() || ip.IsLinkLocalUnicast() || ip.IsLinkLocalMulticast() ||
		ip.IsInterfaceLocalMulticast() || ip.Zone() != "" || embedsOwn(ip)
}

// embedsOwn reports whether an IPv6 address stands for such an IPv4 address:
// IPv4-compatible, NAT64 and 6to4.
func embedsOwn(ip netip.Addr) bool {
	if !ip.Is6() {
		return ip.As4()[0] == 0 // this network
	}
	b := ip.As16()
	var v4 [4]byte
	switch {
	case netip.MustParsePrefix("::/96").Contains(ip), netip.MustParsePrefix("64:ff9b::/96").Contains(ip):
		copy(v4[:], b[12:])
	case netip.MustParsePrefix("2002::/16").Contains(ip):
		copy(v4[:], b[2:6])
	default:
		return false
	}
	inner := netip.AddrFrom4(v4)
	return inner.IsLoopback() || inner.IsLinkLocalUnicast() || v4[0] == 0
}
