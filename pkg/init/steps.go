package installer

import (
	"context"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	bootstrapapi "k8s.io/cluster-bootstrap/token/api"
	bootstraputil "k8s.io/cluster-bootstrap/token/util"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karmada-toolkit/karmada/internal/wait"
	"github.com/karmada-toolkit/karmada/pkg/apis/names"
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/init/components"
	"github.com/karmada-toolkit/karmada/pkg/init/rollout"
	"github.com/karmada-toolkit/karmada/pkg/member/registration"
)

const (
	// reachLimit is how long the API server may take to answer here once its pods
	// are ready.
	reachLimit = 30 * time.Second
	// probeTimeout is how long one request to the API server may take.
	probeTimeout = 3 * time.Second
	// checkLimit is how long the control plane may take to accept a policy once all
	// its parts are ready.
	checkLimit = 30 * time.Second
	// tokenTTL is how long the token of the next commands is good.
	tokenTTL = 24 * time.Hour
	// tokenDescription marks it.
	tokenDescription = "The token that was shown at the end of init."
)

// certificates makes what is missing and keeps it in local files.
func (s *state) certificates(context.Context) error {
	d := s.options.directory()
	if !d.ours(s.owner(), s.facts.certificates) {
		moved, err := d.setAside(s.Now())
		if err != nil {
			return err
		}
		s.note("the files of another control plane, which does not answer any more, were moved to %s", moved)
	}
	creds, _, err := s.credentials()
	if err != nil {
		return err
	}
	changed, err := d.writeCertificates(s.owner(), creds)
	if err != nil {
		return err
	}
	s.wroteFiles(changed)
	what := "kept"
	if n := len(creds.made); n > 0 {
		what = fmt.Sprintf("%d files made, in %s", n, d.pki)
	}
	s.Progress.Done(phaseCertificates, what)
	return nil
}

func (s *state) wroteFiles(changed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.filesChanged = s.filesChanged || changed
}

// namespace writes the namespace, then what is in it.
func (s *state) namespace(ctx context.Context) error {
	_, cfg, err := s.credentials()
	if err != nil {
		return err
	}
	objects, err := hostObjects(phaseNamespace, cfg)
	if err != nil {
		return err
	}
	if _, err := s.apply(ctx, s.host, objects[:1]); err != nil {
		return fmt.Errorf("create namespace %s failed: %w", cfg.Namespace, err)
	}
	result, err := s.apply(ctx, s.host, objects[1:])
	if err != nil {
		return err
	}
	s.Progress.Done(phaseNamespace, "Secrets "+result)
	return nil
}

// etcd labels its node and installs it.
func (s *state) etcd(ctx context.Context) error {
	if s.options.external() {
		s.Progress.Done(phaseEtcd, "external")
		return nil
	}
	if s.options.Etcd.StorageMode == components.StorageHostPath {
		if err := s.labelNode(ctx); err != nil {
			return err
		}
	}
	return s.deploy(ctx, phaseEtcd, components.Etcd)
}

func (s *state) labelNode(ctx context.Context) error {
	name, labelled, err := s.facts.etcdNode(s.options)
	if err != nil || labelled {
		return err
	}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	patch := fmt.Sprintf(`{"metadata":{"labels":{%q:""}}}`, components.EtcdNodeLabel)
	if err := s.host.Patch(ctx, node, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
		return fmt.Errorf("labelling node %s for etcd: %w", name, err)
	}
	s.note("etcd keeps its data on node %s, in %s", name, s.options.Etcd.DataPath)
	return nil
}

// deploy writes the objects of a phase in the host cluster and waits until the
// workload is ready.
func (s *state) deploy(ctx context.Context, phase, workload string) error {
	_, cfg, err := s.credentials()
	if err != nil {
		return err
	}
	objects, err := hostObjects(phase, cfg)
	if err != nil {
		return err
	}
	result, err := s.apply(ctx, s.host, objects)
	if err != nil {
		return err
	}
	if err := s.ready(ctx, phase, workload); err != nil {
		return err
	}
	s.Progress.Done(phase, "ready, "+result)
	return nil
}

// webhookServer installs the webhook server. It answers only API servers that
// identify themselves; where one of an earlier version runs, that is replaced first.
func (s *state) webhookServer(ctx context.Context) error {
	if len(s.facts.certificates) > 0 && len(s.facts.certificates[components.WebhookClient+".crt"]) == 0 {
		if !s.options.runs(phaseAPIServer) {
			return fmt.Errorf("the API server does not identify itself to the webhook server yet; run the phase %s as well", phaseAPIServer)
		}
		key := client.ObjectKey{Namespace: s.options.Namespace, Name: components.APIServer}
		err := s.poll(ctx, s.limit(), phaseWebhook, "the API server to be replaced", func(ctx context.Context) error {
			d := &appsv1.Deployment{}
			if err := s.host.Get(ctx, key, d); err != nil {
				return err
			}
			return replacedAPIServer(d)
		})
		if err != nil {
			return err
		}
	}
	return s.deploy(ctx, phaseWebhook, components.Webhook)
}

// replacedAPIServer returns nil when all pods of the API server identify themselves
// to webhooks.
func replacedAPIServer(d *appsv1.Deployment) error {
	configured := slices.ContainsFunc(d.Spec.Template.Spec.Containers, func(c corev1.Container) bool {
		return slices.ContainsFunc(c.Command, func(arg string) bool { return strings.HasPrefix(arg, components.AdmissionConfigFlag+"=") })
	})
	status := &d.Status
	switch {
	case !configured || status.ObservedGeneration < d.Generation:
		return errors.New("it is not configured yet")
	case status.UpdatedReplicas < ptr.Deref(d.Spec.Replicas, 1) || status.AvailableReplicas < status.UpdatedReplicas || status.Replicas > status.UpdatedReplicas:
		return fmt.Errorf("%d of %d pods are replaced", min(status.UpdatedReplicas, status.AvailableReplicas), ptr.Deref(d.Spec.Replicas, 1))
	}
	return nil
}

// ready waits for a workload.
func (s *state) ready(ctx context.Context, phase, workload string) error {
	err := s.tracker.Wait(ctx, workload, s.limit(), func(what string) { s.Progress.Waiting(phase, what) })
	if !errors.Is(err, wait.ErrTimeout) {
		return err
	}
	text := s.tracker.Report(ctx)
	if text == "" {
		text = "\n  " + workload + " became ready just now; run the command again"
	}
	return fmt.Errorf("not ready after %d seconds (--wait-component-ready-timeout):%s", s.options.WaitSeconds, text)
}

// apiServer installs the API server and waits until it answers here.
func (s *state) apiServer(ctx context.Context) error {
	creds, cfg, err := s.credentials()
	if err != nil {
		return err
	}
	objects, err := hostObjects(phaseAPIServer, cfg)
	if err != nil {
		return err
	}
	result, err := s.apply(ctx, s.host, objects)
	if apierrors.IsInvalid(err) {
		return fmt.Errorf("%w; the port is chosen with --port", err)
	}
	if err != nil {
		return err
	}
	// An API server whose etcd was lost a moment ago still counts as ready.
	needed := []string{components.Etcd, components.APIServer}
	if s.options.external() || !s.options.runs(phaseEtcd) {
		needed = needed[1:]
	}
	for _, workload := range needed {
		if err := s.ready(ctx, phaseAPIServer, workload); err != nil {
			return err
		}
	}
	rc, err := creds.restConfig()
	if err != nil {
		return err
	}
	if err := s.answers(ctx, rc.Host, func() string { return s.tracker.Unready(needed) }, func(ctx context.Context) error { return readyz(ctx, rc) }); err != nil {
		return fmt.Errorf("the API server runs in the host cluster, but %s does not answer here: %w; name an address that leads to it with --karmada-apiserver-advertise-address", rc.Host, err)
	}
	s.Progress.Done(phaseAPIServer, rc.Host+", "+result)
	return nil
}

// answers waits until the API server answers here, for reachLimit from when all that it needs was last seen not
// ready: after a restart of its node the host cluster takes it for ready, and only later finds out.
func (s *state) answers(ctx context.Context, server string, unready func() string, probe func(context.Context) error) error {
	last := s.Now()
	return s.poll(ctx, s.limit(), phaseAPIServer, "an answer of "+server, func(ctx context.Context) error {
		ctx, stop := context.WithTimeout(ctx, probeTimeout)
		defer stop()
		err := probe(ctx)
		if err == nil {
			return nil
		}
		if left := unready(); left != "" {
			last = s.Now()
			return fmt.Errorf("%s: %w", left, err)
		}
		if s.Now().Sub(last) < reachLimit {
			return err
		}
		return wait.Terminal(fmt.Errorf("after %s: %w", reachLimit, err))
	})
}

// writeControlPlane writes the objects of a phase in the control plane.
func (s *state) writeControlPlane(ctx context.Context, phase string) error {
	result, err := s.applyControlPlane(ctx, phase)
	if err != nil {
		return err
	}
	s.Progress.Done(phase, result)
	return nil
}

func (s *state) applyControlPlane(ctx context.Context, phase string) (string, error) {
	_, cfg, err := s.credentials()
	if err != nil {
		return "", err
	}
	cp, err := s.controlPlane()
	if err != nil {
		return "", err
	}
	objects, err := s.controlPlaneObjects(phase, cfg)
	if err != nil {
		return "", err
	}
	// Namespaces come first: what is in them follows.
	n := 0
	for n < len(objects) {
		if _, ok := objects[n].(*corev1.Namespace); !ok {
			break
		}
		n++
	}
	if _, err := s.apply(ctx, cp, objects[:n]); err != nil {
		return "", err
	}
	return s.apply(ctx, cp, objects[n:])
}

// aggregatedAPI registers the aggregated API and waits until it is served.
func (s *state) aggregatedAPI(ctx context.Context) error {
	result, err := s.applyControlPlane(ctx, phaseAggregatedAPI)
	if err != nil {
		return err
	}
	cp, err := s.controlPlane()
	if err != nil {
		return err
	}
	err = s.poll(ctx, s.limit(), phaseAggregatedAPI, "the aggregated API to be available", func(ctx context.Context) error {
		service := &apiregistrationv1.APIService{}
		if err := cp.Get(ctx, client.ObjectKey{Name: "v1alpha1.cluster.karmada.io"}, service); err != nil {
			return err
		}
		for _, c := range service.Status.Conditions {
			if c.Type == apiregistrationv1.Available {
				if c.Status == apiregistrationv1.ConditionTrue {
					return nil
				}
				return fmt.Errorf("%s: %s", c.Reason, c.Message)
			}
		}
		return errors.New("the API server has not looked at it yet")
	})
	if err != nil {
		return fmt.Errorf("APIService v1alpha1.cluster.karmada.io is not available: %w", err)
	}
	s.Progress.Done(phaseAggregatedAPI, "available, "+result)
	return nil
}

// limit is how long a part may take; for ever is a day.
func (s *state) limit() time.Duration {
	if s.options.WaitSeconds == 0 {
		return 24 * time.Hour
	}
	return time.Duration(s.options.WaitSeconds) * time.Second
}

// bootstrap writes what registration needs, and a token if one is wanted.
func (s *state) bootstrap(ctx context.Context) error {
	result, err := s.applyControlPlane(ctx, phaseBootstrap)
	if err != nil {
		return err
	}
	if s.options.OfferToken {
		token, err := s.offerToken(ctx)
		if err != nil {
			return err
		}
		s.mu.Lock()
		s.token = token
		s.mu.Unlock()
	}
	s.Progress.Done(phaseBootstrap, result)
	return nil
}

// offerToken returns a token that was not used yet and is good for a while, or
// makes one.
func (s *state) offerToken(ctx context.Context) (string, error) {
	cp, err := s.controlPlane()
	if err != nil {
		return "", err
	}
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

// kubeconfig writes the administrator's kubeconfig and the examples.
func (s *state) kubeconfig(context.Context) error {
	creds, _, err := s.credentials()
	if err != nil {
		return err
	}
	changed, err := s.options.directory().writeKubeconfig(creds)
	if err != nil {
		return err
	}
	s.wroteFiles(changed)
	if err := s.options.writeExamples(); err != nil {
		return err
	}
	s.Progress.Done(phaseKubeconfig, s.options.directory().kubeconfig())
	return nil
}

// check sees that the API server reaches the webhooks and accepts a policy.
func (s *state) check(ctx context.Context) error {
	cp, err := s.controlPlane()
	if err != nil {
		return err
	}
	err = s.poll(ctx, checkLimit, phaseCheck, "the control plane to accept a policy", func(ctx context.Context) error {
		policy := &policyv1alpha1.PropagationPolicy{
			ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "karmada-init-check"},
			Spec: policyv1alpha1.PropagationSpec{
				ResourceSelectors: []policyv1alpha1.ResourceSelector{{APIVersion: "apps/v1", Kind: "Deployment", Name: "karmada-init-check"}},
			},
		}
		err := cp.Create(ctx, policy, client.DryRunAll)
		if meta.IsNoMatchError(err) {
			return fmt.Errorf("the APIs of the federation are not served yet: %w", err)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("the control plane does not accept a policy: %w", err)
	}
	s.Progress.Done(phaseCheck, "a policy is accepted")
	return nil
}

// poll calls check until it succeeds, for limit at most, and publishes what is waited for. The error is the last one.
func (s *state) poll(ctx context.Context, limit time.Duration, phase, what string, check func(context.Context) error) error {
	return wait.Until(ctx, wait.Options{Timeout: limit, Publish: func(reason error) {
		text := what
		if reason != nil {
			text += ": " + rollout.FirstLine(reason.Error())
		}
		s.Progress.Waiting(phase, text)
	}}, check)
}

// publicKeyHash is how a cluster that registers recognises the authority.
func publicKeyHash(cert *x509.Certificate) string {
	sum := sha256.Sum256(cert.RawSubjectPublicKeyInfo)
	return "sha256:" + hex.EncodeToString(sum[:])
}
