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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/karmada-toolkit/karmada/pkg/init/components"
	"github.com/karmada-toolkit/karmada/pkg/init/config"
	"github.com/karmada-toolkit/karmada/pkg/init/credentials"
	"github.com/karmada-toolkit/karmada/pkg/init/hostcluster"
)

// Deps are what the checks read.
type Deps struct {
	Config *config.Configuration
	Facts  *hostcluster.Facts
	Host   kubernetes.Interface
	Now    func() time.Time
}

// Check returns all findings together. Each names the next step.
func Check(ctx context.Context, d Deps) error {
	host, local, etcd := hostChecks{d}, localChecks{d}, etcdChecks{d}
	var mu sync.Mutex
	var findings []string
	g, ctx := errgroup.WithContext(ctx)
	for _, check := range []func(context.Context) ([]string, error){
		host.checkVersion, host.checkNodePort, host.checkOperator, host.checkNamespace, host.checkDNS, host.checkPullSecrets, host.checkPriorityClasses,
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

// localChecks are about the local directories.
type localChecks struct{ Deps }

// checkDirectory checks that local files can be written and are not those of a
// control plane that is in use.
func (c localChecks) checkDirectory(ctx context.Context) ([]string, error) {
	files, self := credentials.FilesOf(c.Config), credentials.OwnerOf(c.Facts, c.Config.APIServer.Namespace)
	if err := files.CheckWritable(); err != nil {
		return []string{err.Error()}, nil //nolint:nilerr // it is a finding
	}
	if files.OwnedBy(self, c.Facts.Certificates) {
		return nil, nil
	}
	if who, ok := files.Owner(); ok && who.HostID == c.Facts.ID {
		_, err := c.Host.CoreV1().Secrets(who.Namespace).Get(ctx, components.CertSecret, metav1.GetOptions{})
		if err == nil {
			return []string{fmt.Sprintf("the files in %s are of the control plane in namespace %s of this cluster: choose another directory with --karmada-data", files.Data, who.Namespace)}, nil
		}
		if err := hostcluster.ConnectionError(err); err != nil {
			return nil, err
		}
	}
	if server, ok := files.Alive(ctx); ok {
		return []string{fmt.Sprintf("the files in %s are of another control plane, at %s: choose another directory with --karmada-data", files.Data, server)}, nil
	}
	return nil, nil
}
