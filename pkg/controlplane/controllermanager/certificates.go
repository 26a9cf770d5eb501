package controllermanager

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/karmada-toolkit/karmada/internal/plaintext"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/apis/names"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/env"
	"github.com/karmada-toolkit/karmada/pkg/member/registration/agentcert"
)

// maxCertificates is the number of certificates that have an event in a day.
const maxCertificates = 50

// certificate is one that the leader knows of. Its key is its serial number, or the agent that reports it, and is not trusted more.
type certificate struct {
	key, subject, issuer string
	notAfter             time.Time
	// place is where it is, and what follows.
	place string
}

// certificateEvents returns the events to write about certificates that end within 30 days, one a day for each. Existing ones are
// written again, so that they are kept.
func certificateEvents(now time.Time, known []certificate, existing []corev1.Event) (out []*corev1.Event) {
	before, day, at := map[string]corev1.Event{}, now.UTC().Format(".20060102"), metav1.NewTime(now)
	for _, e := range existing {
		if strings.HasSuffix(e.Name, day) {
			before[e.Name] = e
		}
	}
	add := func(name, reason, message string, annotations map[string]string) {
		e := &corev1.Event{
			ObjectMeta:     metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: name, Annotations: annotations},
			InvolvedObject: corev1.ObjectReference{APIVersion: "v1", Kind: "Namespace", Name: clusterv1alpha1.NamespaceKarmadaSystem},
			Reason:         reason, Message: message, Type: corev1.EventTypeWarning, Source: corev1.EventSource{Component: "certificates"},
			FirstTimestamp: at, LastTimestamp: at, Count: 1,
		}
		old, written := before[name]
		if written {
			e.ResourceVersion, e.FirstTimestamp, e.Count = old.ResourceVersion, old.FirstTimestamp, old.Count+1
		}
		if !written || now.Sub(old.LastTimestamp.Time) > 10*time.Minute {
			out = append(out, e)
		}
	}
	named, more := len(before), 0
	for _, c := range known {
		name := "certificate-" + c.key + day
		_, written := before[name]
		switch {
		case c.notAfter.IsZero() || c.notAfter.After(now.Add(30*24*time.Hour)):
			continue
		case !written && named >= maxCertificates:
			more++
			continue
		case !written:
			named++
		}
		reason, message, annotations := c.describe(now)
		add(name, reason, message, annotations)
	}
	if more > 0 {
		add("certificates"+day, names.CertificateEnding, fmt.Sprintf(`%d more certificates end within 30 days or have ended; run "karmadactl certs check"`, more), nil)
	}
	return out
}

// describe returns what an event has about the certificate.
func (c *certificate) describe(now time.Time) (reason, message string, annotations map[string]string) {
	reason, ends := names.CertificateEnding, "ends"
	if !c.notAfter.After(now) {
		reason, ends = names.CertificateEnded, "ended"
	}
	subject, end := plaintext.Line(c.subject, 128), c.notAfter.UTC().Format(time.RFC3339)
	return reason, fmt.Sprintf("certificate %s of issuer %s %s at %s: %s", subject, plaintext.Line(c.issuer, 128), ends, end, c.place),
		map[string]string{names.CertificateSubject: subject, names.CertificateNotAfter: end}
}

func setupCertificateEvents(_ context.Context, e *env.Env) error {
	return e.Manager.Add(manager.RunnableFunc(func(ctx context.Context) error {
		for ctx.Err() == nil {
			if err := recordCertificates(ctx, e, e.Manager.GetConfig().Host, e.Manager.GetHTTPClient().Transport); err != nil && ctx.Err() == nil {
				log.FromContext(ctx).Error(err, "Recording events about certificates that end soon")
			}
			select {
			case <-ctx.Done():
			case <-e.Clock.After(50 * time.Minute): // API servers drop an event an hour after its last write, by default
			}
		}
		return nil
	}))
}

// recordCertificates writes events about the certificates that it can read.
func recordCertificates(ctx context.Context, e *env.Env, server string, transport http.RoundTripper) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	existing, about := &corev1.EventList{}, client.MatchingFields{"involvedObject.kind": "Namespace", "involvedObject.name": clusterv1alpha1.NamespaceKarmadaSystem}
	if err := e.Live.List(ctx, existing, client.InNamespace(metav1.NamespaceDefault), about); err != nil {
		return fmt.Errorf("listing the events about certificates: %w", err)
	}
	known, unconnected := connectionCertificates(ctx, server, transport)
	agents, unread := agentCertificates(ctx, e)
	errs := []error{unconnected, unread}
	for _, event := range certificateEvents(e.Clock.Now(), append(known, agents...), existing.Items) {
		if event.ResourceVersion == "" {
			errs = append(errs, client.IgnoreAlreadyExists(e.Client.Create(ctx, event)))
		} else {
			errs = append(errs, client.IgnoreNotFound(e.Client.Update(ctx, event)))
		}
	}
	return errors.Join(errs...)
}

// connectionCertificates returns those of a new connection to the API server; open connections have the ones of their start.
func connectionCertificates(ctx context.Context, server string, transport http.RoundTripper) (out []certificate, err error) {
	config, err := utilnet.TLSClientConfig(transport)
	if err != nil || config == nil || !strings.HasPrefix(server, "https:") {
		return nil, err
	}
	add := func(place string, x *x509.Certificate) {
		key := x.SerialNumber.Text(16)
		if !slices.ContainsFunc(out, func(c certificate) bool { return c.key == key }) {
			out = append(out, certificate{key, x.Subject.CommonName, x.Issuer.CommonName, x.NotAfter, place + `; run "karmadactl certs renew"`})
		}
	}
	if config.GetClientCertificate != nil {
		if own, err := config.GetClientCertificate(&tls.CertificateRequestInfo{}); err == nil && own.Leaf != nil {
			add("the client certificate of the controller manager", own.Leaf)
		}
	}
	once := &http.Transport{TLSClientConfig: config.Clone(), Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true}
	once.TLSClientConfig.NextProtos = nil
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, server+"/version", http.NoBody)
	if err != nil {
		return out, fmt.Errorf("connecting to %s: %w", server, err)
	}
	resp, err := once.RoundTrip(req)
	if err != nil {
		return out, fmt.Errorf("connecting to %s: %w", server, err)
	}
	for _, chain := range resp.TLS.VerifiedChains {
		for i, x := range chain {
			add([]string{"the certificate of the API server", "an authority in the kubeconfig of the controller manager"}[min(i, 1)], x)
		}
	}
	return out, resp.Body.Close()
}

// agentCertificates returns those that agents report in the Leases of clusters in Pull mode.
func agentCertificates(ctx context.Context, e *env.Env) (out []certificate, err error) {
	clusters, leases := &clusterv1alpha1.ClusterList{}, &coordinationv1.LeaseList{}
	if err := errors.Join(e.Client.List(ctx, clusters), e.Live.List(ctx, leases, client.InNamespace(clusterv1alpha1.NamespaceKarmadaCluster))); err != nil {
		return nil, fmt.Errorf("listing the clusters and their Leases: %w", err)
	}
	for i := range leases.Items {
		name := leases.Items[i].Name
		status, err := agentcert.StatusIn(&leases.Items[i])
		if err == nil && slices.ContainsFunc(clusters.Items, func(c clusterv1alpha1.Cluster) bool { return c.Name == name && c.Spec.SyncMode == clusterv1alpha1.Pull }) {
			out = append(out, certificate{"of-agent-" + name, names.AgentUser(name), status.Issuer, status.NotAfter, "that of an agent; it renews it by itself while it reaches the control plane"})
		}
	}
	return out, nil
}
