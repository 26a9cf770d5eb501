package registration

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	bootstrapapi "k8s.io/cluster-bootstrap/token/api"
)

// ReusableTokenAnnotation with the value "true" lets a bootstrap token register
// any number of clusters. Without it a token is valid for the first name that is
// requested with it.
const ReusableTokenAnnotation = "cluster.karmada.io/reusable-token"

// TokenClusterAnnotation is, on the Secret of a bootstrap token, the name of the
// cluster that was registered with it.
const TokenClusterAnnotation = "cluster.karmada.io/registered-cluster"

// TokenClusterUIDAnnotation is, on the Secret of a bootstrap token, the UID of the
// Cluster that was registered with it. The token is invalid once that is deleted.
const TokenClusterUIDAnnotation = "cluster.karmada.io/registered-cluster-uid"

// TokenRequestAnnotation is, on the Secret of a bootstrap token, the certificate
// request that it is reserved for while the Cluster does not exist yet.
const TokenRequestAnnotation = "cluster.karmada.io/registering-request"

// Token is a bootstrap token: what a cluster that registers shows once, to be given
// an identity.
type Token struct {
	// ID is public, Secret is not.
	ID, Secret string
	// Expires is when the token ends; zero is never.
	Expires time.Time
	// Usages are what the token is good for: signing and authentication.
	Usages []string
	// Groups its holder is in, beside system:bootstrappers.
	Groups []string
	// Description for people.
	Description string
	// Reusable tokens register any number of clusters.
	Reusable bool
}

// String returns the token as its holder shows it.
func (t Token) String() string { return t.ID + "." + t.Secret }

// TokenSecretName returns the Secret of a token, in namespace kube-system.
func TokenSecretName(id string) string { return bootstrapapi.BootstrapTokenSecretPrefix + id }

// ParseToken splits what a holder shows.
func ParseToken(token string) (id, secret string, err error) {
	if !regexp.MustCompile(bootstrapapi.BootstrapTokenPattern).MatchString(token) {
		return "", "", fmt.Errorf("the bootstrap token is not of the form %s", bootstrapapi.BootstrapTokenPattern)
	}
	id, secret, _ = strings.Cut(token, ".")
	return id, secret, nil
}

// TokenSecret returns the Secret of a token.
func TokenSecret(t Token) *corev1.Secret {
	data := map[string][]byte{
		bootstrapapi.BootstrapTokenIDKey:     []byte(t.ID),
		bootstrapapi.BootstrapTokenSecretKey: []byte(t.Secret),
	}
	if !t.Expires.IsZero() {
		data[bootstrapapi.BootstrapTokenExpirationKey] = []byte(t.Expires.UTC().Format(time.RFC3339))
	}
	for _, usage := range t.Usages {
		data[bootstrapapi.BootstrapTokenUsagePrefix+usage] = []byte("true")
	}
	if len(t.Groups) > 0 {
		data[bootstrapapi.BootstrapTokenExtraGroupsKey] = []byte(strings.Join(t.Groups, ","))
	}
	if t.Description != "" {
		data[bootstrapapi.BootstrapTokenDescriptionKey] = []byte(t.Description)
	}
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: TokenSecretName(t.ID)},
		Type:       bootstrapapi.SecretTypeBootstrapToken,
		Data:       data,
	}
	if t.Reusable {
		secret.Annotations = map[string]string{ReusableTokenAnnotation: strconv.FormatBool(true)}
	}
	return secret
}

// TokenOf reads the Secret of a token.
func TokenOf(secret *corev1.Secret) (Token, error) {
	t := Token{
		ID:          string(secret.Data[bootstrapapi.BootstrapTokenIDKey]),
		Secret:      string(secret.Data[bootstrapapi.BootstrapTokenSecretKey]),
		Description: string(secret.Data[bootstrapapi.BootstrapTokenDescriptionKey]),
		Reusable:    secret.Annotations[ReusableTokenAnnotation] == strconv.FormatBool(true),
	}
	fail := func(what string) (Token, error) {
		return t, fmt.Errorf("secret %s/%s is no bootstrap token: %s", secret.Namespace, secret.Name, what)
	}
	switch {
	case t.ID == "":
		return fail("it has no " + bootstrapapi.BootstrapTokenIDKey)
	case secret.Name != TokenSecretName(t.ID):
		return fail("its name is not " + TokenSecretName(t.ID))
	case t.Secret == "":
		return fail("it has no " + bootstrapapi.BootstrapTokenSecretKey)
	}
	if _, _, err := ParseToken(t.String()); err != nil {
		return fail("its id or secret is malformed")
	}
	if text := string(secret.Data[bootstrapapi.BootstrapTokenExpirationKey]); text != "" {
		at, err := time.Parse(time.RFC3339, text)
		if err != nil {
			return fail("its expiration " + strconv.Quote(text) + " is no time")
		}
		t.Expires = at
	}
	for key, value := range secret.Data {
		if usage, ok := strings.CutPrefix(key, bootstrapapi.BootstrapTokenUsagePrefix); ok && string(value) == "true" {
			t.Usages = append(t.Usages, usage)
		}
	}
	slices.Sort(t.Usages)
	if groups := string(secret.Data[bootstrapapi.BootstrapTokenExtraGroupsKey]); groups != "" {
		t.Groups = strings.Split(groups, ",")
	}
	return t, nil
}
