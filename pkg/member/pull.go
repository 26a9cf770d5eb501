package member

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karmada-toolkit/karmada/internal/patch"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/apis/names"
)

// ErrTaken is returned for the name of a cluster that another cluster has.
var ErrTaken = errors.New("the name is taken")

// PresentRequest describes a cluster in Pull mode.
type PresentRequest struct {
	// Name of the cluster, ID its identity as ID returns it.
	Name, ID string
	// Namespace of the credentials, in the member and in the control plane.
	Namespace string
	// APIEndpoint and ProxyURL are how others reach the member; both may be empty.
	APIEndpoint, ProxyURL string
	// Provider, Region and Zones describe the cluster; empty fields remain unchanged.
	Provider, Region string
	Zones            []string
	// Config is how the agent reaches the member.
	Config *rest.Config
	// Credentials and Impersonator select the credentials of the member that the
	// control plane gets: for its controllers, and for users of the proxy.
	Credentials, Impersonator bool
	// Refused is called with the reason of the control plane if it does not accept
	// APIEndpoint or ProxyURL; everything else is written then. Optional.
	Refused func(reason error)
}

// Present creates or updates the Cluster and its Secrets in the control plane and the
// service accounts in the member. It does not write objects that are up to date. It
// needs only the permissions of the agent. The name of another cluster is ErrTaken;
// other errors can be retried.
func Present(ctx context.Context, d Deps, r PresentRequest) (*clusterv1alpha1.Cluster, error) {
	cluster, err := existing(ctx, d, r)
	if err != nil {
		return nil, err
	}
	creds := &Credentials{}
	if r.Credentials || r.Impersonator {
		a := Accounts{Cluster: r.Name, Namespace: r.Namespace, Controllers: r.Credentials, Impersonator: r.Impersonator}
		if creds, err = EnsureAccounts(ctx, d.Member, a, d.Report); err != nil {
			return nil, fmt.Errorf("making the accounts in the member: %w", err)
		}
	}
	if r.Credentials && len(creds.CABundle) == 0 && !r.Config.Insecure {
		if creds.CABundle, err = caOf(r.Config); err != nil {
			return nil, err
		}
	}
	secrets, err := giveSecrets(ctx, d.ControlPlane, r, creds)
	if err != nil {
		return nil, err
	}
	if cluster, err = presentCluster(ctx, d, r, cluster); err != nil {
		return nil, err
	}
	for _, secret := range secrets {
		if metav1.IsControlledBy(secret, cluster) {
			continue
		}
		if err := own(ctx, d.ControlPlane, cluster, secret); err != nil {
			return nil, err
		}
	}
	return cluster, nil
}

// existing returns the Cluster if there is one and it is this one, or nil.
func existing(ctx context.Context, d Deps, r PresentRequest) (*clusterv1alpha1.Cluster, error) {
	cluster := &clusterv1alpha1.Cluster{}
	err := d.ControlPlane.Get(ctx, client.ObjectKey{Name: r.Name}, cluster)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("reading cluster %q: %w", r.Name, err)
	case cluster.DeletionTimestamp != nil:
		return cluster, nil // it takes part in its own removal
	case cluster.Spec.ID != "" && cluster.Spec.ID != r.ID:
		return nil, fmt.Errorf("the control plane has another cluster called %q (its id is %s, this one's %s): %w; register under another name, or unregister the other one first",
			r.Name, cluster.Spec.ID, r.ID, ErrTaken)
	}
	return cluster, nil
}

// presentCluster creates the Cluster, or changes what differs of it.
func presentCluster(ctx context.Context, d Deps, r PresentRequest, have *clusterv1alpha1.Cluster) (*clusterv1alpha1.Cluster, error) {
	if have == nil {
		cluster := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: r.Name}}
		r.describe(&cluster.Spec)
		if err := d.ControlPlane.Create(ctx, cluster); err != nil {
			return nil, fmt.Errorf("creating cluster %q: %w", r.Name, taken(err))
		}
		return cluster, nil
	}
	if have.DeletionTimestamp != nil {
		return have, nil
	}
	cluster := have.DeepCopy()
	r.describe(&cluster.Spec)
	if equality.Semantic.DeepEqual(have.Spec, cluster.Spec) {
		return have, nil
	}
	err := d.ControlPlane.Update(ctx, cluster)
	if apierrors.IsForbidden(err) && have.Spec.ID == r.ID && have.Spec.SyncMode == clusterv1alpha1.Pull {
		return presentRest(ctx, d, r, cluster, have, err)
	}
	if err != nil {
		return nil, fmt.Errorf("updating cluster %q: %w", r.Name, taken(err))
	}
	return cluster, nil
}

// Offer sets the address of a registered cluster that has none, and nothing else. A refusal is reported to the requester and
// is no error; ErrTaken is permanent, other errors can be retried.
func Offer(ctx context.Context, d Deps, r PresentRequest) error {
	have, err := existing(ctx, d, r)
	if err != nil || have == nil || have.DeletionTimestamp != nil || have.Spec.APIEndpoint != "" {
		return err
	}
	cluster := have.DeepCopy()
	cluster.Spec.APIEndpoint, cluster.Spec.ProxyURL = r.APIEndpoint, cmp.Or(have.Spec.ProxyURL, r.ProxyURL)
	err = d.ControlPlane.Update(ctx, cluster)
	if apierrors.IsForbidden(err) {
		err = presentWithoutAddress(ctx, d, r, cluster, have, err)
	}
	if err != nil {
		return fmt.Errorf("updating cluster %q: %w", r.Name, err)
	}
	return nil
}

// presentRest updates what an agent may change of a cluster that is registered, and
// reports what remains unchanged in the control plane: an agent that was started with
// other flags goes on. cause is the refusal of the whole.
func presentRest(ctx context.Context, d Deps, r PresentRequest, cluster, have *clusterv1alpha1.Cluster, cause error) (*clusterv1alpha1.Cluster, error) {
	ignored := keepFixed(&cluster.Spec, &have.Spec)
	if len(ignored) > 0 {
		d.Report.say("ignored, for cluster %q is registered otherwise and only an administrator of the control plane changes it: %s", cluster.Name, strings.Join(ignored, ", "))
		cause = nil
		if !equality.Semantic.DeepEqual(have.Spec, cluster.Spec) {
			cause = d.ControlPlane.Update(ctx, cluster)
		}
	}
	if apierrors.IsForbidden(cause) && (cluster.Spec.APIEndpoint != have.Spec.APIEndpoint || cluster.Spec.ProxyURL != have.Spec.ProxyURL) {
		cause = presentWithoutAddress(ctx, d, r, cluster, have, cause)
	}
	if apierrors.IsForbidden(cause) {
		d.Report.say("this agent may not change cluster %q in the control plane, which keeps what it has: %v", cluster.Name, cause)
		return have, nil
	}
	if cause != nil {
		return nil, fmt.Errorf("updating cluster %q: %w", cluster.Name, taken(cause))
	}
	return cluster, nil
}

// presentWithoutAddress updates a cluster whose address the control plane may have
// refused with the rest of the update. It returns the error of this update, and reports
// the cause to the requester if the address was the reason.
func presentWithoutAddress(ctx context.Context, d Deps, r PresentRequest, cluster, have *clusterv1alpha1.Cluster, cause error) error {
	refused := cluster.Spec.APIEndpoint
	cluster.Spec.APIEndpoint, cluster.Spec.ProxyURL = have.Spec.APIEndpoint, have.Spec.ProxyURL
	if !equality.Semantic.DeepEqual(have.Spec, cluster.Spec) {
		if err := d.ControlPlane.Update(ctx, cluster); err != nil {
			return err // the caller names the cluster
		}
	}
	d.Report.say("the control plane does not accept the address %q of cluster %q, so that users do not reach the cluster through it: %v", refused, cluster.Name, cause)
	if r.Refused != nil {
		r.Refused(cause)
	}
	return nil
}

// keepFixed sets the fields that are fixed once a cluster is registered to what they
// are, and returns those that were to be changed.
func keepFixed(spec, have *clusterv1alpha1.ClusterSpec) []string {
	var out []string
	keep := func(field string, differs bool, values ...any) {
		if differs {
			out = append(out, fmt.Sprintf("%s %v instead of %v", append([]any{field}, values...)...))
		}
	}
	keep("spec.provider", spec.Provider != have.Provider, quoted(spec.Provider), quoted(have.Provider))
	keep("spec.region", spec.Region != have.Region, quoted(spec.Region), quoted(have.Region))
	keep("spec.zones", !slices.Equal(spec.Zones, have.Zones), spec.Zones, have.Zones)
	spec.Provider, spec.Region, spec.Zone, spec.Zones = have.Provider, have.Region, have.Zone, slices.Clone(have.Zones)
	if have.APIEndpoint == "" && have.ProxyURL == "" && len(have.ProxyHeader) == 0 {
		return out
	}
	keep("spec.apiEndpoint", spec.APIEndpoint != have.APIEndpoint, quoted(spec.APIEndpoint), quoted(have.APIEndpoint))
	keep("spec.proxyURL", spec.ProxyURL != have.ProxyURL, "another", "what it is") // it may hold a password
	spec.APIEndpoint, spec.ProxyURL = have.APIEndpoint, have.ProxyURL
	return out
}

func quoted(s string) string { return strconv.Quote(s) }

// taken marks the refusal of a cluster that is there under another name.
func taken(err error) error {
	if apierrors.IsInvalid(err) {
		return fmt.Errorf("%w: %w", ErrTaken, err)
	}
	return err
}

// describe sets what the agent decides; taints and resource models are others'.
func (r PresentRequest) describe(spec *clusterv1alpha1.ClusterSpec) {
	spec.ID, spec.SyncMode = r.ID, clusterv1alpha1.Pull
	spec.APIEndpoint, spec.ProxyURL = r.APIEndpoint, r.ProxyURL
	spec.InsecureSkipTLSVerification = r.Config.Insecure
	if r.Provider != "" {
		spec.Provider = r.Provider
	}
	if r.Region != "" {
		spec.Region = r.Region
	}
	if len(r.Zones) > 0 {
		spec.Zones = slices.Clone(r.Zones)
	}
	spec.SecretRef, spec.ImpersonatorSecretRef = nil, nil
	if r.Credentials {
		spec.SecretRef = &clusterv1alpha1.LocalSecretReference{Namespace: r.Namespace, Name: names.CredentialsSecret(r.Name)}
	}
	if r.Impersonator {
		spec.ImpersonatorSecretRef = &clusterv1alpha1.LocalSecretReference{Namespace: r.Namespace, Name: names.ImpersonatorSecret(r.Name)}
	}
}

// giveSecrets writes the Secrets that the control plane is given, where they
// differ.
func giveSecrets(ctx context.Context, c client.Client, r PresentRequest, creds *Credentials) ([]*corev1.Secret, error) {
	var secrets []*corev1.Secret
	if r.Credentials {
		secrets = append(secrets, opaque(r.Namespace, names.CredentialsSecret(r.Name), map[string][]byte{
			clusterv1alpha1.SecretTokenKey: creds.Token, clusterv1alpha1.SecretCADataKey: creds.CABundle,
		}))
	}
	if r.Impersonator {
		secrets = append(secrets, opaque(r.Namespace, names.ImpersonatorSecret(r.Name), map[string][]byte{
			clusterv1alpha1.SecretTokenKey: creds.ImpersonatorToken,
		}))
	}
	for _, secret := range secrets {
		want := secret.Data
		err := c.Get(ctx, client.ObjectKeyFromObject(secret), secret)
		switch {
		case apierrors.IsNotFound(err):
			err = c.Create(ctx, secret)
		case err == nil && !upToDate(secret.Data, want):
			err = patch.Change(ctx, c, secret, func() { secret.Data = want })
		}
		if err != nil {
			return nil, fmt.Errorf("writing secret %s of the control plane: %w", key(secret), err)
		}
	}
	return secrets, nil
}
