package registry

import (
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/karmada-toolkit/karmada/internal/extension"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/aggregated/internalversion"
	"github.com/karmada-toolkit/karmada/pkg/domain/manifest"
)

const none = "<none>"

// newTable prints clusters in columns.
func newTable(now func() metav1.Time) extension.Table[*internalversion.Cluster] {
	return extension.Table[*internalversion.Cluster]{
		Kinds: "clusters", Columns: columns, Cells: func(c *internalversion.Cluster) []any { return cells(c, now()) },
	}
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

func cells(c *internalversion.Cluster, now metav1.Time) []any {
	ready := string(metav1.ConditionUnknown)
	if condition := meta.FindStatusCondition(c.Status.Conditions, clusterv1alpha1.ClusterConditionReady); condition != nil {
		ready = string(condition.Status)
	}
	endpoint := c.Spec.APIEndpoint
	if endpoint == "" && meta.IsStatusConditionFalse(c.Status.Conditions, clusterv1alpha1.ClusterConditionAPIEndpointAccepted) {
		endpoint = "<refused>"
	}
	return []any{
		c.Name, c.Status.KubernetesVersion, string(c.Spec.SyncMode), ready, extension.Age(now, c.CreationTimestamp),
		orNone(strings.Join(c.Spec.Zones, ",")), orNone(c.Spec.Region), orNone(c.Spec.Provider),
		endpoint, orNone(manifest.MaskUser(c.Spec.ProxyURL)),
	}
}

func orNone(s string) string {
	if s == "" {
		return none
	}
	return s
}
