package process

import (
	"context"
	"net"
	"time"

	"github.com/karmada-toolkit/karmada/internal/wait"
)

// awaitListening waits until a server listens at an address.
func awaitListening(ctx context.Context, address string) error {
	return wait.Until(ctx, wait.Options{Interval: pollInterval}, func(ctx context.Context) error {
		conn, err := (&net.Dialer{Timeout: time.Second}).DialContext(ctx, "tcp", address)
		if err != nil {
			return err
		}
		return conn.Close()
	})
}
