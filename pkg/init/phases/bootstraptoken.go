package phases

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	bootstrapapi "k8s.io/cluster-bootstrap/token/api"
	bootstraputil "k8s.io/cluster-bootstrap/token/util"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karmada-toolkit/karmada/pkg/apis/names"
	"github.com/karmada-toolkit/karmada/pkg/member/registration"
)

const (
	// tokenTTL is how long the token of the next commands is good.
	tokenTTL = 24 * time.Hour
	// tokenDescription marks it.
	tokenDescription = "The token that was shown at the end of init."
)

func registrationObjects(in *Inputs) ([]client.Object, error) {
	return registration.Bootstrap(in.Server, in.Certificates.CABundle())
}

// offerToken stores a token in the outcome, if one is wanted.
func offerToken(ctx context.Context, s *State, _ Phase) (string, error) {
	if !s.Config.OfferToken {
		return "", nil
	}
	cp, err := s.ControlPlane(ctx)
	if err != nil {
		return "", err
	}
	token, err := findToken(ctx, s, cp)
	if err == nil {
		s.Outcome.setToken(token)
	}
	return "", err
}

// findToken returns a token that was not used yet and is good for a while, or
// makes one.
func findToken(ctx context.Context, s *State, cp client.Client) (string, error) {
	secrets := &corev1.SecretList{}
	if err := cp.List(ctx, secrets, client.InNamespace(metav1.NamespaceSystem)); err != nil {
		return "", fmt.Errorf("looking for a token: %w", err)
	}
	for i := range secrets.Items {
		secret := &secrets.Items[i]
		t, err := registration.TokenOf(secret)
		if err != nil || t.Description != tokenDescription || secret.Annotations[registration.TokenClusterAnnotation] != "" {
			continue
		}
		if t.Expires.After(s.Now().Add(time.Hour)) {
			return t.String(), nil
		}
	}
	text, err := bootstraputil.GenerateBootstrapToken()
	if err != nil {
		return "", fmt.Errorf("making a token: %w", err)
	}
	id, secret, err := registration.ParseToken(text)
	if err != nil {
		return "", fmt.Errorf("making a token: %w", err)
	}
	object := registration.TokenSecret(registration.Token{
		ID: id, Secret: secret, Expires: s.Now().Add(tokenTTL), Description: tokenDescription,
		Usages: bootstrapapi.KnownTokenUsages, Groups: []string{names.BootstrapGroup},
	})
	if err := cp.Create(ctx, object); err != nil {
		return "", fmt.Errorf("making a token: %w", err)
	}
	return text, nil
}
