// Package preflight checks everything about a host cluster, the permissions and the local directories that can be
// checked before anything is written.
package preflight

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/kubernetes"

	"github.com/karmada-toolkit/karmada/pkg/init/config"
	"github.com/karmada-toolkit/karmada/pkg/init/hostcluster"
)

// Deps are what the checks read.
type Deps struct {
	Request *config.Request
	Facts   *hostcluster.Facts
	Host    kubernetes.Interface
	Now     func() time.Time
}

// Check returns all findings together. Each names the next step.
func Check(ctx context.Context, d Deps) error {
	host, local, etcd := hostChecks{d}, localChecks{d}, etcdChecks{d}
	var mu sync.Mutex
	var findings []string
	g, ctx := errgroup.WithContext(ctx)
	for _, check := range []func(context.Context) ([]string, error){
		host.checkVersion, host.checkNodePort, host.checkNamespace, host.checkDNS, host.checkPullSecrets, host.checkPriorityClasses,
		permissions{d}.check, etcd.checkStorage, etcd.checkChange, local.checkDirectory,
	} {
		g.Go(func() error {
			found, err := check(ctx)
			mu.Lock()
			findings = append(findings, found...)
			mu.Unlock()
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	slices.Sort(findings)
	findings = slices.Compact(findings)
	switch len(findings) {
	case 0:
		return nil
	case 1:
		return errors.New(findings[0])
	}
	return fmt.Errorf("nothing was changed; first:\n  - %s", strings.Join(findings, "\n  - "))
}
