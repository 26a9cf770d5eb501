package capacity

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/karmada-toolkit/karmada/internal/forward"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	estimator "github.com/karmada-toolkit/karmada/pkg/controlplane/estimator/client"
	"github.com/karmada-toolkit/karmada/pkg/domain/schedule/core"
	"github.com/karmada-toolkit/karmada/pkg/domain/schedule/framework"
)

// EstimatorOptions configure the connections to estimators.
type EstimatorOptions = estimator.Options

// NewEstimatorOptions returns the defaults.
func NewEstimatorOptions() EstimatorOptions { return estimator.NewOptions() }

// clientCertificate is the name of the files of the client certificate for estimators, as init, addons and local up
// write them.
const clientCertificate = "scheduler-estimator-client"

// WithCertificates returns options with the certificates that an installation keeps beside its kubeconfig: init in the
// directory pki, local up in karmada/pki. Options that name a file, or that do not check estimators, stay as they are, and
// so do those where the files do not exist.
func WithCertificates(o EstimatorOptions, kubeconfig string) EstimatorOptions {
	if o.CAFile != "" || o.CertFile != "" || o.KeyFile != "" || o.InsecureSkipVerify || kubeconfig == "" {
		return o
	}
	for _, dir := range []string{"pki", filepath.Join("karmada", "pki")} {
		base := filepath.Join(filepath.Dir(kubeconfig), dir)
		ca, cert, key := filepath.Join(base, "ca.crt"), filepath.Join(base, clientCertificate+".crt"), filepath.Join(base, clientCertificate+".key")
		if !slices.ContainsFunc([]string{ca, cert, key}, missing) {
			o.CAFile, o.CertFile, o.KeyFile = ca, cert, key
			return o
		}
	}
	return o
}

func missing(path string) bool {
	info, err := os.Stat(path)
	return err != nil || info.IsDir()
}

// checkFiles returns an error for each file with a certificate or key that does not exist.
func checkFiles(o EstimatorOptions) error {
	var errs []error
	for _, f := range []struct{ flag, path string }{
		{"ca", o.CAFile}, {"cert", o.CertFile}, {"key", o.KeyFile},
	} {
		if f.path != "" && missing(f.path) {
			errs = append(errs, fmt.Errorf("--scheduler-estimator-%s-file: there is no file %s", f.flag, f.path))
		}
	}
	return errors.Join(errs...)
}

// Estimates are the answers of estimators by cluster.
type Estimates map[string]core.Estimate

// Problems returns a line for each cluster whose estimator does not answer or is not found, in the order of the clusters.
// Connections were made as o has it.
func (e Estimates) Problems(clusters []clusterv1alpha1.Cluster, o EstimatorOptions) []string {
	var out []string
	failed, absent := false, false
	where := "from this machine"
	if o.Dial != nil {
		where = "in the host cluster"
	}
	for i := range clusters {
		name := clusters[i].Name
		switch answer, found := e[name]; {
		case !found:
			absent = true
			out = append(out, fmt.Sprintf("no estimator of cluster %q is found %s, the status of the cluster counts", name, where))
		case answer.Err != "":
			failed = true
			out = append(out, fmt.Sprintf("the estimator of cluster %q does not answer, its status counts: %s", name, answer.Err))
		}
	}
	if absent && o.Dial == nil {
		out = append(out, "estimators that \"addons enable\" installed run in the host cluster: name its kubeconfig with --host-kubeconfig, or its context with --host-context; "+
			"a local federation gets them with \"local up --estimators\"")
	}
	if failed && o.CAFile == "" && !o.InsecureSkipVerify {
		out = append(out, "no certificates are beside the kubeconfig: if the estimators require them, give --scheduler-estimator-ca-file, "+
			"--scheduler-estimator-cert-file and --scheduler-estimator-key-file")
	}
	return out
}

// CallEstimators calls the estimators of clusters, which the Services of the control plane name, and returns their answers.
func CallEstimators(ctx context.Context, o EstimatorOptions, w *Workload, clusters []clusterv1alpha1.Cluster, services func(ctx context.Context, namespace, name string) (*corev1.Service, error)) (Estimates, error) {
	if err := errors.Join(o.Validate(), checkFiles(o)); err != nil {
		return nil, err
	}
	o.Services = services
	pool, err := estimator.NewPool(o)
	if err != nil {
		return nil, err
	}
	defer pool.Close()
	// Sets are counted for workloads that are to be in one cluster.
	one := policyv1alpha1.SpreadConstraint{SpreadByField: policyv1alpha1.SpreadByFieldCluster, MinGroups: 1, MaxGroups: 1}
	request := &core.Request{MultiplePodTemplates: len(w.Components) > 0, Binding: framework.Binding{
		Namespace: w.Namespace, Name: w.Name, Spec: &workv1alpha2.ResourceBindingSpec{
			Resource: workv1alpha2.ObjectReference{Kind: w.Kind, Namespace: w.Namespace, Name: w.Name},
			Replicas: max(w.Replicas, 1), ReplicaRequirements: w.Requirements, Components: w.Components,
			Placement: &policyv1alpha1.Placement{SpreadConstraints: []policyv1alpha1.SpreadConstraint{one}},
		},
	}}
	targets := make([]*framework.Cluster, len(clusters))
	for i := range clusters {
		targets[i] = &framework.Cluster{Object: &clusters[i]}
	}
	return pool.Estimates(ctx, request, targets, false), nil
}

// NewHost returns the host cluster with an API server, by whose Services estimators are reached.
func NewHost(config *rest.Config) (*forward.Host, error) {
	return forward.NewHost(config, estimator.DialNetwork)
}
