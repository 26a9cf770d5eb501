package member

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karmada-toolkit/karmada/internal/patch"
	"github.com/karmada-toolkit/karmada/internal/wait"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
)

// Names of what is made in a member cluster, beside the account of the cluster
// itself.
const (
	// ImpersonatorName is the service account that acts for users who come through
	// the proxy.
	ImpersonatorName = "karmada-impersonator"
	// accountPrefix starts the name of the account of the controllers.
	accountPrefix = "karmada-"
	// rolePrefix starts the name of the role of that account and of its binding.
	rolePrefix = "karmada-controller-manager:"
)

const (
	// tokenControllerTimeout is how long to wait for the member's token controller before a
	// token is requested instead.
	tokenControllerTimeout = 10 * time.Second
	// requestedTokenLife is the expiration of a token request; the member may grant
	// less.
	requestedTokenLife = 10 * 365 * 24 * time.Hour
)

// AccountName returns the service account that the controllers use in a member.
func AccountName(cluster string) string { return accountPrefix + cluster }

// RoleName returns the cluster role, and binding, of that account.
func RoleName(cluster string) string { return rolePrefix + AccountName(cluster) }

// Accounts specifies the service accounts of a member.
type Accounts struct {
	// Cluster is the name of the member.
	Cluster string
	// Namespace of the accounts.
	Namespace string
	// Controllers enables the account of the controllers.
	Controllers bool
	// Impersonator enables the account that impersonates users.
	Impersonator bool

	// renew replaces tokens that the member does not accept.
	renew bool
}

// Credentials are what the control plane uses in a member.
type Credentials struct {
	// Token is of the account of the controllers.
	Token []byte
	// ImpersonatorToken is of the account that impersonates users.
	ImpersonatorToken []byte
	// CABundle verifies the member's certificate.
	CABundle []byte
}

// EnsureAccounts makes the accounts in the member, leaving alone what is there,
// and returns their credentials. It can be run again after any failure.
func EnsureAccounts(ctx context.Context, c client.Client, a Accounts, report Reporter) (*Credentials, error) {
	return ensureAccounts(ctx, &journal{client: c}, a, report)
}

func ensureAccounts(ctx context.Context, j *journal, a Accounts, report Reporter) (*Credentials, error) {
	if err := ensureNamespace(ctx, j, a.Namespace, report); err != nil {
		return nil, err
	}
	var accounts []string
	if a.Impersonator {
		accounts = append(accounts, ImpersonatorName)
	}
	if a.Controllers {
		accounts = append(accounts, AccountName(a.Cluster))
		if err := ensureRole(ctx, j, a); err != nil {
			return nil, err
		}
	}
	for _, name := range accounts {
		if err := ensureAccount(ctx, j, a.Namespace, name); err != nil {
			return nil, err
		}
	}
	secrets, err := tokens(ctx, j.client, a.Namespace, accounts, report)
	for _, name := range accounts {
		if err == nil && a.renew {
			err = replaceRefused(ctx, j, a.Namespace, name, secrets[name][corev1.ServiceAccountTokenKey])
		}
	}
	if err == nil && a.renew {
		secrets, err = tokens(ctx, j.client, a.Namespace, accounts, report)
	}
	if err != nil {
		return nil, err
	}
	creds := &Credentials{
		Token:             secrets[AccountName(a.Cluster)][corev1.ServiceAccountTokenKey],
		ImpersonatorToken: secrets[ImpersonatorName][corev1.ServiceAccountTokenKey],
	}
	for _, data := range secrets {
		if ca := data[corev1.ServiceAccountRootCAKey]; len(ca) > 0 {
			creds.CABundle = ca
		}
	}
	return creds, nil
}

// ensureNamespace makes a namespace. One that is on its way out is waited for: what
// was made in it would go with it.
func ensureNamespace(ctx context.Context, j *journal, name string, report Reporter) error {
	what := func() string { return fmt.Sprintf("namespace %q to finish terminating", name) }
	return await(ctx, 30*time.Second, report, what, func(ctx context.Context) (bool, error) {
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: systemLabels()}}
		created, err := j.create(ctx, ns)
		if err != nil || created {
			return created, err
		}
		if err := j.client.Get(ctx, client.ObjectKeyFromObject(ns), ns); err != nil {
			return false, client.IgnoreNotFound(err)
		}
		return ns.DeletionTimestamp == nil, nil
	})
}

func ensureRole(ctx context.Context, j *journal, a Accounts) error {
	meta := metav1.ObjectMeta{Name: RoleName(a.Cluster), Labels: systemLabels()}
	role := &rbacv1.ClusterRole{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"*"}},
		{NonResourceURLs: []string{"*"}, Verbs: []string{"get"}},
	}}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: meta,
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: meta.Name},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: a.Namespace, Name: AccountName(a.Cluster)}},
	}
	for _, obj := range []client.Object{role, binding} {
		if _, err := j.create(ctx, obj); err != nil {
			return err
		}
	}
	return nil
}

// ensureAccount makes a service account and the Secret that its token is to be
// written to. A Secret of an account of the same name that is gone is made again.
func ensureAccount(ctx context.Context, j *journal, namespace, name string) error {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: systemLabels()}}
	if _, err := j.create(ctx, account); err != nil {
		return err
	}
	secret := tokenSecret(namespace, name)
	created, err := j.create(ctx, secret)
	if err != nil || created {
		return err
	}
	if err := j.client.Get(ctx, client.ObjectKeyFromObject(account), account); err != nil {
		return fmt.Errorf("reading service account %s/%s: %w", namespace, name, err)
	}
	if err := j.client.Get(ctx, client.ObjectKeyFromObject(secret), secret); err != nil {
		return fmt.Errorf("reading secret %s/%s: %w", namespace, name, err)
	}
	uid := secret.Annotations[corev1.ServiceAccountUIDKey]
	if uid == "" || uid == string(account.UID) {
		return nil
	}
	if err := j.client.Delete(ctx, secret); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("removing stale secret %s/%s: %w", namespace, name, err)
	}
	_, err = j.create(ctx, tokenSecret(namespace, name))
	return err
}

// replaceRefused makes the Secret of an account anew if the member does not accept its token: the key that signed it is not in use
// any more.
func replaceRefused(ctx context.Context, j *journal, namespace, name string, token []byte) error {
	review := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: string(token)}}
	if err := j.client.Create(ctx, review); err != nil {
		return fmt.Errorf("reviewing the token of service account %s/%s in the member: %w", namespace, name, err)
	}
	if review.Status.Authenticated {
		return nil
	}
	secret := tokenSecret(namespace, name)
	if err := j.client.Delete(ctx, secret); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("removing stale secret %s/%s: %w", namespace, name, err)
	}
	_, err := j.create(ctx, secret)
	return err
}

func tokenSecret(namespace, name string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Annotations: map[string]string{corev1.ServiceAccountNameKey: name}},
		Type:       corev1.SecretTypeServiceAccountToken,
	}
}

// tokens waits, for all accounts at once, until the member has filled their
// Secrets. Where it does not, it requests tokens.
func tokens(ctx context.Context, c client.Client, namespace string, accounts []string, report Reporter) (map[string]map[string][]byte, error) {
	found := map[string]map[string][]byte{}
	what := func() string {
		return fmt.Sprintf("the member's token controller to fill %d secrets in namespace %q", len(accounts)-len(found), namespace)
	}
	err := await(ctx, tokenControllerTimeout, report, what, func(ctx context.Context) (bool, error) {
		for _, name := range accounts {
			if found[name] != nil {
				continue
			}
			secret := &corev1.Secret{}
			err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, secret)
			if client.IgnoreNotFound(err) != nil {
				return false, fmt.Errorf("reading secret %s/%s: %w", namespace, name, err)
			}
			if len(secret.Data[corev1.ServiceAccountTokenKey]) > 0 {
				found[name] = secret.Data
			}
		}
		return len(found) == len(accounts), nil
	})
	if err != nil && !errors.Is(err, wait.ErrTimeout) {
		return nil, err
	}
	for _, name := range accounts {
		if found[name] != nil {
			continue
		}
		token, err := requestToken(ctx, c, namespace, name, report)
		if err != nil {
			return nil, err
		}
		found[name] = map[string][]byte{corev1.ServiceAccountTokenKey: token}
	}
	return found, nil
}

func requestToken(ctx context.Context, c client.Client, namespace, name string, report Reporter) ([]byte, error) {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		ExpirationSeconds: ptr.To(int64(requestedTokenLife / time.Second)),
	}}
	if err := c.SubResource("token").Create(ctx, account, request); err != nil {
		return nil, fmt.Errorf("the member filled no token into secret %s/%s within %s, and requesting one failed: %w", namespace, name, tokenControllerTimeout, err)
	}
	report.say("secret %s/%s of the member was not filled; using a requested token that expires %s",
		namespace, name, request.Status.ExpirationTimestamp.UTC().Format(time.RFC3339))
	return []byte(request.Status.Token), nil
}

// storeCredentials writes the Secrets of a cluster into the control plane. What is
// there and differs, from an earlier run, is brought up to date.
func storeCredentials(ctx context.Context, j *journal, namespace, cluster string, creds *Credentials, report Reporter) ([]*corev1.Secret, error) {
	if err := ensureNamespace(ctx, j, namespace, report); err != nil {
		return nil, err
	}
	secrets := []*corev1.Secret{
		opaque(namespace, ImpersonatorSecretName(cluster), map[string][]byte{clusterv1alpha1.SecretTokenKey: creds.ImpersonatorToken}),
		opaque(namespace, cluster, map[string][]byte{
			clusterv1alpha1.SecretTokenKey: creds.Token, clusterv1alpha1.SecretCADataKey: creds.CABundle,
		}),
	}
	for _, secret := range secrets {
		want := secret.Data
		created, err := j.create(ctx, secret)
		if err != nil {
			return nil, err
		}
		if created {
			continue
		}
		if err := j.client.Get(ctx, client.ObjectKeyFromObject(secret), secret); err != nil {
			return nil, fmt.Errorf("reading secret %s/%s: %w", namespace, secret.Name, err)
		}
		if owner := clusterv1alpha1.OtherOwner(secret, cluster); owner != "" {
			return nil, fmt.Errorf("secret %s/%s belongs to cluster %q; choose another name for cluster %q", namespace, secret.Name, owner, cluster)
		}
		if upToDate(secret.Data, want) {
			continue
		}
		if err := patch.Change(ctx, j.client, secret, func() { secret.Data = want }); err != nil {
			return nil, fmt.Errorf("updating secret %s/%s: %w", namespace, secret.Name, err)
		}
		report.say("secret %s/%s has new credentials", namespace, secret.Name)
	}
	return secrets, nil
}

// ImpersonatorSecretName returns the Secret, in the control plane, with the token
// that acts for users.
func ImpersonatorSecretName(cluster string) string { return cluster + "-impersonator" }

func opaque(namespace, name string, data map[string][]byte) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: systemLabels()},
		Type:       corev1.SecretTypeOpaque,
		Data:       data,
	}
}

func upToDate(have, want map[string][]byte) bool {
	for key, value := range want {
		if !bytes.Equal(have[key], value) {
			return false
		}
	}
	return true
}

func systemLabels() map[string]string {
	return map[string]string{workv1alpha2.SystemLabel: workv1alpha2.SystemLabelValue}
}

// journal creates objects and remembers which ones it made, to take them back.
type journal struct {
	client  client.Client
	created []client.Object
}

// create makes obj unless it is there already.
func (j *journal) create(ctx context.Context, obj client.Object) (bool, error) {
	err := j.client.Create(ctx, obj)
	if apierrors.IsAlreadyExists(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("creating %T %s: %w", obj, key(obj), err)
	}
	j.created = append(j.created, obj)
	return true, nil
}

// undo deletes what was made, last first.
func (j *journal) undo(ctx context.Context) error {
	var errs []error
	for _, obj := range slices.Backward(j.created) {
		if err := j.client.Delete(ctx, obj); client.IgnoreNotFound(err) != nil {
			errs = append(errs, fmt.Errorf("removing %T %s: %w", obj, key(obj), err))
		}
	}
	return errors.Join(errs...)
}

func key(obj client.Object) string {
	if obj.GetNamespace() == "" {
		return obj.GetName()
	}
	return obj.GetNamespace() + "/" + obj.GetName()
}
