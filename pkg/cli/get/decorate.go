package get

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/karmada-toolkit/karmada/internal/kube"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/domain/clustercondition"
	"github.com/karmada-toolkit/karmada/pkg/member"
	"github.com/karmada-toolkit/karmada/pkg/operate/capacity"
	"github.com/karmada-toolkit/karmada/pkg/operate/failover"
)

// decoration adds to a table of the control plane what its server does not show. The
// tables of servers have the columns of the contract.
type decoration struct {
	// wideOnly reports whether only wide tables are changed.
	wideOnly bool
	// apply changes the table. Its rows have whole objects.
	apply func(ctx context.Context, s *server, p *part) error
}

// decorationOf returns the decoration of a resource.
func decorationOf(resource schema.GroupResource) (decoration, bool) {
	switch resource {
	case clusterv1alpha1.Resource("clusters"):
		return decoration{apply: decorateClusters}, true
	case workv1alpha2.Resource("resourcebindings"), workv1alpha2.Resource("clusterresourcebindings"):
		return decoration{wideOnly: true, apply: decorateBindings}, true
	case policyv1alpha1.Resource("propagationpolicies"):
		return decoration{wideOnly: true, apply: claims(policyv1alpha1.PropagationPolicyPermanentIDLabel)}, true
	case policyv1alpha1.Resource("clusterpropagationpolicies"):
		return decoration{wideOnly: true, apply: claims(policyv1alpha1.ClusterPropagationPolicyPermanentIDLabel)}, true
	}
	return decoration{}, false
}

// decorated reports whether the tables of a resource are changed, for which whole
// objects are needed.
func (s *server) decorated(resource schema.GroupResource) (decoration, bool) {
	d, ok := decorationOf(resource)
	return d, ok && s.tables && (s.wide || !d.wideOnly)
}

// decorate changes what the server has of a type.
func (s *server) decorate(ctx context.Context, p *part) error {
	d, ok := s.decorated(p.mapping.Resource.GroupResource())
	if !ok || p.table == nil || len(p.table.Rows) == 0 {
		return nil
	}
	return d.apply(ctx, s, p)
}

// decorateClusters shows which clusters are cordoned or being removed, and in wide tables all taints, how many workloads leave and what is
// free.
func decorateClusters(ctx context.Context, s *server, p *part) error {
	evictions := func(*clusterv1alpha1.Cluster) string { return "" }
	if s.wide {
		evictions = s.formatEvictions(ctx)
	}
	return eachRow(p.table, func(row *metav1.TableRow, cluster *clusterv1alpha1.Cluster) {
		if i := column(p.table, "Ready"); i < len(row.Cells) {
			row.Cells[i] = fmt.Sprint(row.Cells[i]) + marks(cluster)
		}
		if s.wide {
			set(p.table, row, "Taints", orNone(member.FormatTaints(cluster.Spec.Taints)))
			set(p.table, row, "Evictions", evictions(cluster))
			free := capacity.FreeOf(cluster)
			set(p.table, row, "Free-CPU", free.CPU)
			set(p.table, row, "Free-Memory", free.Memory)
			set(p.table, row, "Free-Pods", free.Pods)
		}
	})
}

// marks returns what is added to the readiness of a cluster that takes no new workloads.
func marks(cluster *clusterv1alpha1.Cluster) string {
	text := ""
	if slices.ContainsFunc(cluster.Spec.Taints, clustercondition.Cordons) {
		text = ",SchedulingDisabled"
	}
	if !cluster.DeletionTimestamp.IsZero() {
		text += ",Terminating"
	}
	return text
}

// decorateBindings shows the target clusters of bindings, with their replicas.
func decorateBindings(_ context.Context, _ *server, p *part) error {
	return eachRow(p.table, func(row *metav1.TableRow, binding *workv1alpha2.ResourceBinding) {
		targets := make([]string, 0, len(binding.Spec.Clusters))
		for _, target := range binding.Spec.Clusters {
			text := target.Name
			if target.Replicas > 0 {
				text += fmt.Sprintf("(%d)", target.Replicas)
			}
			targets = append(targets, text)
		}
		set(p.table, row, "Target-Clusters", orNone(strings.Join(targets, ",")))
	})
}

// claims shows how many objects each policy claims: the bindings that carry its id.
func claims(label string) func(context.Context, *server, *part) error {
	return func(ctx context.Context, s *server, p *part) error {
		counts, err := s.counts.read(label, func() (map[string]map[string]int, error) { return s.claims(ctx, label) })
		return eachRow(p.table, func(row *metav1.TableRow, policy *metav1.PartialObjectMetadata) {
			claimed := "<unknown>"
			if err == nil {
				claimed = strconv.Itoa(counts[policy.Labels[label]][""])
			}
			set(p.table, row, "Claimed", claimed)
		})
	}
}

// claims returns how many bindings carry each value of a label.
func (s *server) claims(ctx context.Context, label string) (map[string]map[string]int, error) {
	counts := map[string]map[string]int{}
	err := eachBinding(ctx, s, func(r *rest.Request) {
		r.SetHeader("Accept", "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json").Param("labelSelector", label)
	}, func(b *metav1.PartialObjectMetadata) {
		if id := b.Labels[label]; id != "" {
			count(counts, id, "")
		}
	})
	return counts, err
}

// evictions returns how many workloads leave each cluster, by reason.
func (s *server) evictions(ctx context.Context) (map[string]map[string]int, error) {
	counts := map[string]map[string]int{}
	err := eachBinding(ctx, s, func(*rest.Request) {}, func(b *workv1alpha2.ResourceBinding) {
		for _, e := range failover.Tasks(b) {
			count(counts, e.Cluster, e.Reason)
		}
	})
	return counts, err
}

func count(counts map[string]map[string]int, of, kind string) {
	if counts[of] == nil {
		counts[of] = map[string]int{}
	}
	counts[of][kind]++
}

// formatEvictions returns a function that returns how many workloads leave a cluster, with the reasons.
func (s *server) formatEvictions(ctx context.Context) func(*clusterv1alpha1.Cluster) string {
	reasons, err := s.counts.read("evictions", func() (map[string]map[string]int, error) { return s.evictions(ctx) })
	return func(cluster *clusterv1alpha1.Cluster) string {
		if err != nil {
			return "<unknown>"
		}
		var parts []string
		if meta.IsStatusConditionTrue(cluster.Status.Conditions, clusterv1alpha1.ClusterConditionEvictionsStopped) {
			parts = append(parts, "stopped")
		}
		counts := reasons[cluster.Name]
		for _, reason := range slices.Sorted(maps.Keys(counts)) {
			parts = append(parts, fmt.Sprintf("%d %s", counts[reason], reason))
		}
		return orNone(strings.Join(parts, ","))
	}
}

// eachBinding calls fn for each binding of both kinds.
func eachBinding[T any](ctx context.Context, s *server, prepare func(*rest.Request), fn func(*T)) error {
	for _, resource := range []string{"resourcebindings", "clusterresourcebindings"} {
		next := ""
		for {
			r := s.rest.Get().AbsPath("/apis", workv1alpha2.GroupVersion.Group, workv1alpha2.GroupVersion.Version, resource).Param("limit", chunk)
			prepare(r)
			if next != "" {
				r.Param("continue", next)
			}
			body, err := kube.Body(ctx, r)
			if err != nil {
				return err
			}
			var list struct {
				metav1.ListMeta `json:"metadata"`
				Items           []T `json:"items"`
			}
			if err := json.Unmarshal(body, &list); err != nil {
				return fmt.Errorf("reading the list of %s: %w", resource, err)
			}
			for i := range list.Items {
				fn(&list.Items[i])
			}
			if next = list.Continue; next == "" {
				break
			}
		}
	}
	return nil
}

// eachRow calls fn with each row of a table and its object.
func eachRow[T any](table *metav1.Table, fn func(row *metav1.TableRow, object *T)) error {
	for i := range table.Rows {
		row := &table.Rows[i]
		raw := row.Object.Raw
		if u, ok := row.Object.Object.(*unstructured.Unstructured); ok && len(raw) == 0 {
			var err error
			if raw, err = u.MarshalJSON(); err != nil {
				return fmt.Errorf("reading an object of a table: %w", err)
			}
		}
		object := new(T)
		if err := json.Unmarshal(raw, object); err != nil {
			return fmt.Errorf("reading an object of a table: %w", err)
		}
		fn(row, object)
	}
	return nil
}

// column returns the index of a column, or the number of columns.
func column(table *metav1.Table, name string) int {
	i := slices.IndexFunc(table.ColumnDefinitions, func(c metav1.TableColumnDefinition) bool { return c.Name == name })
	if i < 0 {
		return len(table.ColumnDefinitions)
	}
	return i
}

// set sets the cell of a row in a column of wide tables, which is added if the table
// does not have it.
func set(table *metav1.Table, row *metav1.TableRow, name, value string) {
	i := column(table, name)
	if i == len(table.ColumnDefinitions) {
		table.ColumnDefinitions = append(slices.Clone(table.ColumnDefinitions), metav1.TableColumnDefinition{Name: name, Type: "string", Priority: 1})
	}
	for len(row.Cells) <= i {
		row.Cells = append(row.Cells, nil)
	}
	row.Cells[i] = value
}

func orNone(s string) string {
	if s == "" {
		return "<none>"
	}
	return s
}

// recountInterval is how long counts of bindings are shown before all bindings are listed again. It bounds the load of a
// watch, in which each change of an object shows the counts.
const recountInterval = 10 * time.Second

// bindingCounts are counts of bindings by two keys. They are safe for concurrent use.
type bindingCounts struct {
	now  func() time.Time
	mu   sync.Mutex
	last map[string]countsAt
}

type countsAt struct {
	at     time.Time
	counts map[string]map[string]int
	err    error
}

// read returns the counts of a name from the last interval, or those that list returns.
func (b *bindingCounts) read(name string, list func() (map[string]map[string]int, error)) (map[string]map[string]int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	c, ok := b.last[name]
	if !ok || b.now().Sub(c.at) >= recountInterval {
		c.counts, c.err = list()
		c.at = b.now()
		if b.last == nil {
			b.last = map[string]countsAt{}
		}
		b.last[name] = c
	}
	return c.counts, c.err
}
