package preflight

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/karmada-toolkit/karmada/pkg/init/components"
	"github.com/karmada-toolkit/karmada/pkg/init/credentials"
	"github.com/karmada-toolkit/karmada/pkg/init/hostcluster"
)

// localChecks are about the local directories.
type localChecks struct{ Deps }

// checkDirectory checks that local files can be written and are not those of a
// control plane that is in use.
func (c localChecks) checkDirectory(ctx context.Context) ([]string, error) {
	files, self := credentials.Files(c.Request.Directory), credentials.OwnerOf(c.Facts, c.Request.Namespace)
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
