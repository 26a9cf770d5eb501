package registry

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/karmada-toolkit/karmada/internal/extension"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/aggregated/internalversion"
	"github.com/karmada-toolkit/karmada/pkg/domain/manifest"
)

const none = "<none>"

// table prints clusters in columns.
type table struct{ now func() metav1.Time }

// ConvertToTable implements rest.TableConvertor.
func (t table) ConvertToTable(_ context.Context, object, options runtime.Object) (*metav1.Table, error) {
	out := &metav1.Table{}
	switch o := object.(type) {
	case *internalversion.ClusterList:
		out.ResourceVersion, out.Continue, out.RemainingItemCount = o.ResourceVersion, o.Continue, o.RemainingItemCount
		for i := range o.Items {
			out.Rows = append(out.Rows, t.row(&o.Items[i]))
		}
	case *internalversion.Cluster:
		out.ResourceVersion = o.ResourceVersion
		out.Rows = append(out.Rows, t.row(o))
	default:
		return nil, fmt.Errorf("printing %T as a table of clusters is not possible", object)
	}
	if o, ok := options.(*metav1.TableOptions); !ok || !o.NoHeaders {
		out.ColumnDefinitions = columns()
	}
	return out, nil
}

func columns() []metav1.TableColumnDefinition {
	text := func(name, description string, priority int32) metav1.TableColumnDefinition {
		return metav1.TableColumnDefinition{Name: name, Type: "string", Description: description, Priority: priority}
	}
	name := text("Name", metav1.ObjectMeta{}.SwaggerDoc()["name"], 0)
	name.Format = "name"
	return []metav1.TableColumnDefinition{
		name,
		text("Version", "Kubernetes version of the cluster.", 0),
		text("Mode", "How objects reach the cluster: Push or Pull.", 0),
		text("Ready", "Whether the cluster answers and is healthy.", 0),
		text("Age", metav1.ObjectMeta{}.SwaggerDoc()["creationTimestamp"], 0),
		text("Zones", "Failure zones of the cluster.", 1),
		text("Region", "Region of the cluster.", 1),
		text("Provider", "Cloud provider of the cluster.", 1),
		text("API-Endpoint", "URL of the cluster's API server.", 1),
		text("Proxy-URL", "Proxy on the way to the cluster.", 1),
	}
}

func (t table) row(c *internalversion.Cluster) metav1.TableRow {
	ready := string(metav1.ConditionUnknown)
	if condition := meta.FindStatusCondition(c.Status.Conditions, clusterv1alpha1.ClusterConditionReady); condition != nil {
		ready = string(condition.Status)
	}
	endpoint := c.Spec.APIEndpoint
	if endpoint == "" && meta.IsStatusConditionFalse(c.Status.Conditions, clusterv1alpha1.ClusterConditionAPIEndpointAccepted) {
		endpoint = "<refused>"
	}
	return metav1.TableRow{
		Object: runtime.RawExtension{Object: c},
		Cells: []any{
			c.Name, c.Status.KubernetesVersion, string(c.Spec.SyncMode), ready, extension.Age(t.now(), c.CreationTimestamp),
			orNone(strings.Join(c.Spec.Zones, ",")), orNone(c.Spec.Region), orNone(c.Spec.Provider),
			endpoint, orNone(manifest.MaskUser(c.Spec.ProxyURL)),
		},
	}
}

func orNone(s string) string {
	if s == "" {
		return none
	}
	return s
}
