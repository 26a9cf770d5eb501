package local

import (
	"fmt"
	"net"
	"strconv"
)

// loopback is the only address that a local federation listens on.
const loopback = "127.0.0.1"

// The ports of the control plane's roles.
const (
	portAggregated = "aggregated-apiserver"
	portWebhook    = "webhook"
	portHealth     = "health"
	portMetrics    = "metrics"
)

// rolePorts are the ports of the control plane's roles.
func rolePorts() []string { return []string{portAggregated, portWebhook, portHealth, portMetrics} }

// choosePorts gives each name a port: the one it had if nobody took it meanwhile,
// else a free one.
func (f *Federation) choosePorts(names ...string) error {
	if f.Ports == nil {
		f.Ports = map[string]int{}
	}
	for _, name := range names {
		l, err := listen(f.Ports[name])
		if err != nil {
			return fmt.Errorf("finding a port for %s: %w", name, err)
		}
		// Held until all are chosen, so that no two are the same.
		defer l.Close() //nolint:errcheck // nothing was sent
		f.Ports[name] = l.Addr().(*net.TCPAddr).Port
	}
	return nil
}

// listen takes the wanted port if it is free, else another.
func listen(wanted int) (net.Listener, error) {
	l, err := net.Listen("tcp", net.JoinHostPort(loopback, strconv.Itoa(wanted))) //nolint:noctx // does not block
	if err != nil && wanted != 0 {
		l, err = net.Listen("tcp", net.JoinHostPort(loopback, "0")) //nolint:noctx // does not block
	}
	return l, err
}

func (f *Federation) address(port string) string {
	return net.JoinHostPort(loopback, strconv.Itoa(f.Ports[port]))
}
