package describe

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/cli-runtime/pkg/printers"
	"k8s.io/kubectl/pkg/describe"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	networkingv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/networking/v1alpha1"
	workv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/cli/env"
	"github.com/karmada-toolkit/karmada/pkg/domain/services"
)

// serviceDescriber puts what providers and consumers have before the description of a
// MultiClusterService.
type serviceDescriber struct {
	ctx    context.Context //nolint:containedctx // the interface of describers has none
	access *env.Access
	next   describe.ResourceDescriber
}

// Describe implements describe.ResourceDescriber.
func (d serviceDescriber) Describe(namespace, name string, settings describe.DescriberSettings) (string, error) {
	rest, err := d.next.Describe(namespace, name, settings)
	if err != nil {
		return "", err
	}
	c, err := d.access.ControlPlane.Client()
	if err != nil {
		return "", err
	}
	head, err := sides(d.ctx, c, client.ObjectKey{Namespace: namespace, Name: name})
	if apierrors.IsForbidden(err) {
		head, err = fmt.Sprintf("Clusters of %s: not known: %v\n", name, err), nil
	}
	return head + "\n" + rest, err
}

// sides returns the tables of the providers and the consumers.
func sides(ctx context.Context, c client.Client, key client.ObjectKey) (string, error) {
	mcs := &networkingv1alpha1.MultiClusterService{}
	if err := c.Get(ctx, key, mcs); err != nil {
		return "", fmt.Errorf("getting multiclusterservice %s: %w", key, err)
	}
	clusters, works := &clusterv1alpha1.ClusterList{}, &workv1alpha1.WorkList{}
	if err := c.List(ctx, clusters); err != nil {
		return "", fmt.Errorf("listing clusters: %w", err)
	}
	if err := c.List(ctx, works, client.MatchingLabels{services.MCSNamespaceLabel: key.Namespace, services.MCSNameLabel: key.Name}); err != nil {
		return "", fmt.Errorf("listing works: %w", err)
	}
	all := make([]*workv1alpha1.Work, len(works.Items))
	for i := range works.Items {
		all[i] = &works.Items[i]
	}
	service := &corev1.Service{}
	if err := c.Get(ctx, key, service); apierrors.IsNotFound(err) {
		service = nil
	} else if err != nil {
		return "", fmt.Errorf("getting service %s: %w", key, err)
	}
	providers, consumers := services.Account(mcs, service, services.ClustersOf(clusters), all)
	var out bytes.Buffer
	err := sideTable(&out, "PROVIDER", providers, false)
	if err == nil {
		out.WriteString("\n")
		err = sideTable(&out, "CONSUMER", consumers, true)
	}
	return out.String(), err
}

func sideTable(out io.Writer, head string, rows []services.Side, from bool) error {
	w := printers.GetNewTabWriter(out)
	line := func(cells ...string) { _, _ = fmt.Fprintln(w, strings.Join(cells, "\t")) } // Flush returns errors
	columns := []string{head, "SLICES", "ENDPOINTS", "READY", "PROBLEM"}
	if from {
		columns = append(columns[:1], append([]string{"FROM"}, columns[1:]...)...)
	}
	line(columns...)
	for _, s := range rows {
		cells := []string{s.Cluster}
		if from {
			cells = append(cells, orNone(strings.Join(s.From, ",")))
		}
		line(append(cells, strconv.Itoa(s.Slices), strconv.Itoa(s.Endpoints), strconv.Itoa(s.Ready), orNone(s.Problem))...)
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("printing the table of clusters: %w", err)
	}
	return nil
}
