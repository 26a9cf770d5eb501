package member

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karmada-toolkit/karmada/internal/limit"
	"github.com/karmada-toolkit/karmada/internal/patch"
	"github.com/karmada-toolkit/karmada/internal/wait"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/apis/names"
)

const (
	// nameLimit is how long the name of a cluster may be: namespaces are named after
	// it.
	nameLimit = 48
	// firstAnswer is how long a cluster may take to answer at all.
	firstAnswer = 10 * time.Second
	// undoLimit is how long taking back a failed join may take.
	undoLimit = 20 * time.Second
)

// Deps are the dependencies of Join, Unjoin, Register and Unregister.
type Deps struct {
	// Program is what the user types, for the next steps that errors name.
	Program string
	// ControlPlane is a client of the control plane.
	ControlPlane client.Client
	// Member is a client of the member; nil if the user gave no access to it.
	Member client.Client
	// Report receives what is being waited for.
	Report Reporter
}

// JoinRequest specifies the cluster to join.
type JoinRequest struct {
	// Name of the cluster.
	Name string
	// Namespace of the credentials, in the member and in the control plane.
	Namespace string
	// Provider, Region and Zones describe the cluster.
	Provider, Region string
	Zones            []string
	// Config is how the member is reached.
	Config *rest.Config
	// Endpoint is the URL at which the control plane reaches the member; empty means
	// that of Config.
	Endpoint string
	// DryRun checks and writes nothing.
	DryRun bool

	// renew is set for a member.
	renew bool
}

// ValidateName returns an error if a name is not valid for a cluster.
func ValidateName(name string) error {
	var msgs []string
	switch {
	case name == "":
		msgs = append(msgs, "must be not empty")
	case len(name) > nameLimit:
		msgs = append(msgs, fmt.Sprintf("must be no more than %d characters", nameLimit))
	}
	if name != "" {
		msgs = append(msgs, validation.IsDNS1123Label(name)...)
	}
	if len(msgs) > 0 {
		return fmt.Errorf("invalid cluster name(%s): %s", name, strings.Join(msgs, ";"))
	}
	return nil
}

// Join makes a cluster a member that the control plane pushes to. It waits for
// nothing but the credentials. After a failure nothing of what it made is left, and
// what an earlier run left behind is used again. A cluster that is a member of that name
// already gets new credentials, where the member does not accept those that it has, and
// the endpoint of the request; nothing else of it changes.
func Join(ctx context.Context, d Deps, r JoinRequest) (*clusterv1alpha1.Cluster, error) {
	if err := ValidateName(r.Name); err != nil {
		return nil, err
	}
	if why := names.SharesSecret(r.Name); why != "" {
		return nil, fmt.Errorf("invalid cluster name(%s): %s", r.Name, why)
	}
	id, err := identify(ctx, d, r)
	if err != nil {
		return nil, err
	}
	if cluster := memberOf(ctx, d, r.Name, id); cluster != nil {
		return cluster, renew(ctx, d, r, cluster)
	}
	if err := checkUnregistered(ctx, d, r.Name, id); err != nil {
		return nil, err
	}
	cluster, err := desiredCluster(r, id)
	if err != nil || r.DryRun {
		return cluster, err
	}
	err = undone(ctx, d, r, func(inMember, inControlPlane *journal) error {
		return connect(ctx, d, r, inMember, inControlPlane, func() (*clusterv1alpha1.Cluster, error) {
			created, err := inControlPlane.create(ctx, cluster)
			if err == nil && !created {
				err = fmt.Errorf("failed to create cluster(%s) object. error: cluster(%s) already exist", r.Name, r.Name)
			}
			return cluster, err
		})
	})
	if err != nil {
		return nil, err
	}
	return cluster, nil
}

// renew gives a member new credentials, and the endpoint of the request.
func renew(ctx context.Context, d Deps, r JoinRequest, cluster *clusterv1alpha1.Cluster) error {
	d.Report.say("cluster %q is a member already: its credentials and its endpoint are renewed, and nothing else changes", r.Name)
	wanted, err := desiredCluster(r, cluster.Spec.ID)
	if err != nil || r.DryRun {
		return err
	}
	r.Namespace, r.renew = cluster.Spec.SecretRef.Namespace, true
	return undone(ctx, d, r, func(inMember, inControlPlane *journal) error {
		return connect(ctx, d, r, inMember, inControlPlane, func() (*clusterv1alpha1.Cluster, error) {
			s, w := &cluster.Spec, &wanted.Spec
			w.ProxyURL = cmp.Or(w.ProxyURL, s.ProxyURL)
			if s.APIEndpoint == w.APIEndpoint && s.InsecureSkipTLSVerification == w.InsecureSkipTLSVerification && s.ProxyURL == w.ProxyURL {
				return cluster, nil
			}
			if s.APIEndpoint != w.APIEndpoint {
				d.Report.say("endpoint of cluster %q: %s, was %s", r.Name, w.APIEndpoint, s.APIEndpoint)
			}
			err := patch.Change(ctx, d.ControlPlane, cluster, func() {
				s.APIEndpoint, s.InsecureSkipTLSVerification, s.ProxyURL = w.APIEndpoint, w.InsecureSkipTLSVerification, w.ProxyURL
			})
			return cluster, err
		})
	})
}

// undone takes back what do made if it fails.
func undone(ctx context.Context, d Deps, r JoinRequest, do func(inMember, inControlPlane *journal) error) error {
	inMember, inControlPlane := &journal{client: d.Member}, &journal{client: d.ControlPlane}
	err := do(inMember, inControlPlane)
	if err == nil {
		return nil
	}
	undo, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoLimit)
	defer cancel()
	return errors.Join(fmt.Errorf("joining cluster %q: %w", r.Name, err), inControlPlane.undo(undo), inMember.undo(undo))
}

// LacksCredentials reports whether one of the Secrets that Join made for a member does not exist any more. Join writes them again.
func LacksCredentials(ctx context.Context, d Deps, name string) bool {
	id, err := ID(ctx, d.Member)
	if err != nil {
		return false
	}
	cluster := memberOf(ctx, d, name, id)
	if cluster == nil {
		return false
	}
	for _, ref := range []*clusterv1alpha1.LocalSecretReference{cluster.Spec.SecretRef, cluster.Spec.ImpersonatorSecretRef} {
		if absent(d.ControlPlane.Get(ctx, client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}, &corev1.Secret{})) {
			return true
		}
	}
	return false
}

// memberOf returns the Cluster of a member that Join made, by its name and identity, or nil.
func memberOf(ctx context.Context, d Deps, name, id string) *clusterv1alpha1.Cluster {
	cluster := &clusterv1alpha1.Cluster{}
	if err := d.ControlPlane.Get(ctx, client.ObjectKey{Name: name}, cluster); err != nil {
		return nil
	}
	s := cluster.Spec
	if cluster.DeletionTimestamp != nil || s.ID != id || s.SyncMode != clusterv1alpha1.Push || s.SecretRef == nil || s.ImpersonatorSecretRef == nil ||
		s.SecretRef.Name != name || s.ImpersonatorSecretRef.Name != ImpersonatorSecretName(name) || s.ImpersonatorSecretRef.Namespace != s.SecretRef.Namespace {
		return nil
	}
	return cluster
}

// connect makes the accounts in the member and stores their credentials for the Cluster that register returns.
func connect(ctx context.Context, d Deps, r JoinRequest, inMember, inControlPlane *journal, register func() (*clusterv1alpha1.Cluster, error)) error {
	accounts := Accounts{Cluster: r.Name, Namespace: r.Namespace, Controllers: true, Impersonator: true, renew: r.renew}
	creds, err := ensureAccounts(ctx, inMember, accounts, d.Report)
	if err != nil {
		return err
	}
	if (len(creds.CABundle) == 0 || r.renew) && !r.Config.Insecure {
		ca, err := caOf(r.Config)
		if err != nil {
			return err
		}
		if len(creds.CABundle) == 0 {
			creds.CABundle = ca
		} else if !bytes.Contains(creds.CABundle, bytes.TrimSpace(ca)) { // the member may not have published a new authority yet
			creds.CABundle = slices.Concat(bytes.TrimSpace(creds.CABundle), []byte("\n"), ca)
		}
	}
	secrets, err := storeCredentials(ctx, inControlPlane, r.Namespace, r.Name, creds, d.Report)
	if err != nil {
		return err
	}
	cluster, err := register()
	if err != nil {
		return err
	}
	for _, secret := range secrets {
		if err := own(ctx, d.ControlPlane, cluster, secret); err != nil {
			return err
		}
	}
	return removeRecord(ctx, d, r.Name, cluster.Spec.ID)
}

// own makes a Secret go when its cluster goes.
func own(ctx context.Context, c client.Client, cluster *clusterv1alpha1.Cluster, secret *corev1.Secret) error {
	owner := []metav1.OwnerReference{*metav1.NewControllerRef(cluster, clusterv1alpha1.GroupVersion.WithKind("Cluster"))}
	if equality.Semantic.DeepEqual(secret.OwnerReferences, owner) {
		return nil
	}
	if err := patch.Change(ctx, c, secret, func() { secret.OwnerReferences = owner }); err != nil {
		return fmt.Errorf("tying secret %s to the cluster: %w", key(secret), err)
	}
	return nil
}

// ID returns the identity of a cluster: the UID of its namespace kube-system.
func ID(ctx context.Context, c client.Client) (string, error) {
	ns := &corev1.Namespace{}
	if err := c.Get(ctx, client.ObjectKey{Name: metav1.NamespaceSystem}, ns); err != nil {
		return "", err
	}
	return string(ns.UID), nil
}

func identify(ctx context.Context, d Deps, r JoinRequest) (string, error) {
	var id string
	what := func() string { return fmt.Sprintf("cluster %q at %s to answer", r.Name, r.Config.Host) }
	type answer struct {
		id  string
		err error
	}
	answers := make(chan answer, 1)
	go func() {
		id, err := ID(ctx, d.Member)
		answers <- answer{id, err}
	}()
	err := await(ctx, firstAnswer, d.Report, what, func(context.Context) (bool, error) {
		select {
		case a := <-answers:
			id = a.id
			return a.err == nil, a.err
		default:
			return false, nil
		}
	})
	if err != nil {
		return "", fmt.Errorf("reading the identity of cluster %q at %s (namespace kube-system): %w; check --cluster-kubeconfig and --cluster-context", r.Name, r.Config.Host, err)
	}
	return id, nil
}

// checkUnregistered refuses a name or a cluster that the control plane has already.
func checkUnregistered(ctx context.Context, d Deps, name, id string) error {
	if own, err := ID(ctx, d.ControlPlane); err == nil && own == id {
		return fmt.Errorf("cluster %q is the control plane itself; name the kubeconfig and context of the member with --cluster-kubeconfig and --cluster-context", name)
	}
	list := &clusterv1alpha1.ClusterList{}
	if err := d.ControlPlane.List(ctx, list); err != nil {
		return fmt.Errorf("listing the member clusters: %w", notFederation(err))
	}
	for i := range list.Items {
		c := &list.Items[i]
		if c.Name != name && (id == "" || c.Spec.ID != id) {
			continue
		}
		text := fmt.Sprintf("the cluster ID %s or the cluster name %s has been registered: ", id, name)
		leave := fmt.Sprintf("%s unjoin %s", d.Program, c.Name)
		switch {
		case c.DeletionTimestamp != nil:
			return fmt.Errorf("%scluster %q is being removed; wait until it is gone, or run %q", text, c.Name, leave+" --force")
		case c.Name != name:
			return fmt.Errorf("%sit is a member as %q; run %q first", text, c.Name, leave)
		case c.Spec.ID != id:
			return fmt.Errorf("%sanother cluster is joined as %q; choose another name", text, c.Name)
		default:
			return fmt.Errorf("%scluster %q is already joined; run %q first", text, c.Name, leave)
		}
	}
	return nil
}

func desiredCluster(r JoinRequest, id string) (*clusterv1alpha1.Cluster, error) {
	endpoint, _, err := rest.DefaultServerUrlFor(r.Config)
	if err != nil {
		return nil, fmt.Errorf("reading the address of cluster %q: %w", r.Name, err)
	}
	proxy, err := proxyOf(r.Config, endpoint)
	if err != nil {
		return nil, fmt.Errorf("reading the proxy of cluster %q: %w", r.Name, err)
	}
	return &clusterv1alpha1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Name: r.Name},
		Spec: clusterv1alpha1.ClusterSpec{
			ID:                          id,
			SyncMode:                    clusterv1alpha1.Push,
			APIEndpoint:                 strings.TrimSuffix(cmp.Or(r.Endpoint, endpoint.String()), "/"),
			SecretRef:                   &clusterv1alpha1.LocalSecretReference{Namespace: r.Namespace, Name: r.Name},
			ImpersonatorSecretRef:       &clusterv1alpha1.LocalSecretReference{Namespace: r.Namespace, Name: ImpersonatorSecretName(r.Name)},
			InsecureSkipTLSVerification: r.Config.Insecure,
			ProxyURL:                    proxy,
			Provider:                    r.Provider,
			Region:                      r.Region,
			Zones:                       r.Zones,
		},
	}, nil
}

func proxyOf(config *rest.Config, endpoint *url.URL) (string, error) {
	if config.Proxy == nil {
		return "", nil
	}
	proxy, err := config.Proxy(&http.Request{URL: endpoint})
	if err != nil || proxy == nil {
		return "", err
	}
	return proxy.String(), nil
}

func caOf(config *rest.Config) ([]byte, error) {
	if len(config.CAData) > 0 || config.CAFile == "" {
		return config.CAData, nil
	}
	data, err := limit.Read(config.CAFile, nil, limit.MaxFile)
	if err != nil {
		return nil, fmt.Errorf("reading the certificate authority of the kubeconfig: %w", err)
	}
	return data, nil
}

// WaitReady waits until a cluster is Ready, for limit at most. Otherwise it returns the
// reason and message of the condition, and an error only if it cannot read the cluster.
func WaitReady(ctx context.Context, d Deps, name string, limit time.Duration) (string, error) {
	state := "it has no Ready condition yet"
	what := func() string { return fmt.Sprintf("cluster %q to be Ready (%s)", name, state) }
	err := await(ctx, limit, d.Report, what, func(ctx context.Context) (bool, error) {
		cluster := &clusterv1alpha1.Cluster{}
		if err := d.ControlPlane.Get(ctx, client.ObjectKey{Name: name}, cluster); err != nil {
			if Unserved(err) {
				state = err.Error()
				return false, nil
			}
			return false, fmt.Errorf("reading cluster %q: %w", name, err)
		}
		ready := cluster.ReadyCondition()
		if ready == nil {
			return false, nil
		}
		state = strings.Trim(ready.Reason+": "+ready.Message, ": ")
		return ready.Status == metav1.ConditionTrue, nil
	})
	switch {
	case err == nil:
		return "", nil
	case errors.Is(err, wait.ErrTimeout):
		return state, nil
	default:
		return state, err
	}
}
