package conformance

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/karmada-toolkit/karmada/pkg/apis/names"
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	workv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/domain/manifest"
	"github.com/karmada-toolkit/karmada/pkg/domain/quota"
)

// quotaCase is one line of quota.jsonl.
type quotaCase struct {
	Name          string                         `json:"name"`
	Operation     string                         `json:"operation"`
	FeatureGates  map[string]bool                `json:"featureGates"`
	Clusters      []string                       `json:"clusters"`
	Quota         json.RawMessage                `json:"quota"`
	QuotaDeleted  bool                           `json:"quotaDeleted"`
	ExistingWorks []workv1alpha1.Work            `json:"existingWorks"`
	Works         []workv1alpha1.Work            `json:"works"`
	Bindings      []workv1alpha2.ResourceBinding `json:"bindings"`
	Expect        struct {
		Works  []quotaWork                                 `json:"works"`
		Status policyv1alpha1.FederatedResourceQuotaStatus `json:"status"`
		Error  string                                      `json:"error"`
	} `json:"expect"`
}

// quotaWork is a Work whose deletion timestamp may be "<set>".
type quotaWork struct {
	Metadata struct {
		Namespace, Name   string
		DeletionTimestamp string            `json:"deletionTimestamp"`
		Finalizers        []string          `json:"finalizers"`
		Labels            map[string]string `json:"labels"`
	} `json:"metadata"`
	Spec struct {
		Workload struct {
			Manifests []map[string]any `json:"manifests"`
		} `json:"workload"`
	} `json:"spec"`
}

func TestQuota(t *testing.T) {
	replayLines(t, "quota", func(t *testing.T, line []byte) (string, error) {
		var c quotaCase
		if err := json.Unmarshal(line, &c); err != nil {
			t.Fatal(err)
		}
		var q policyv1alpha1.FederatedResourceQuota
		target := any(&q)
		if c.QuotaDeleted {
			target = &q.ObjectMeta
		}
		if err := json.Unmarshal(c.Quota, target); err != nil {
			t.Fatal(err)
		}
		switch c.Operation {
		case "sync":
			return c.Name, c.sync(&q)
		case "status":
			return c.Name, c.status(&q)
		case "enforcement":
			stored := map[string]quota.Stored{}
			for i := range c.Bindings {
				if b := &c.Bindings[i]; b.Namespace == q.Namespace {
					stored[b.Name] = quota.Stored{UID: b.UID, Version: b.ResourceVersion, Usage: quota.Usage(&b.Spec)}
				}
			}
			var ledger quota.Ledger
			ledger.Recount(stored, func(string) bool { return true }, time.Time{})
			quota.Count(&q, ledger.Total())
			return c.Name, sameStatus(&c.Expect.Status, &q.Status)
		}
		return c.Name, fmt.Errorf("unknown operation %q", c.Operation)
	})
}

// sameStatus compares quantities by value.
func sameStatus(want, got *policyv1alpha1.FederatedResourceQuotaStatus) error {
	quantities := cmp.Comparer(func(a, b resource.Quantity) bool { return a.Cmp(b) == 0 })
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty(), quantities); diff != "" {
		return errors.New("-want +got " + diff)
	}
	return nil
}

func (c *quotaCase) status(q *policyv1alpha1.FederatedResourceQuota) error {
	var own []workv1alpha1.Work
	labels := quota.Labels(q.Namespace, q.Name)
	for i := range c.Works {
		if l := c.Works[i].Labels; l[quota.NamespaceLabel] == labels[quota.NamespaceLabel] && l[quota.NameLabel] == labels[quota.NameLabel] {
			own = append(own, c.Works[i])
		}
	}
	items, err := quota.Aggregate(own)
	if err == nil {
		quota.SetAggregated(q, items, c.FeatureGates["FederatedQuotaEnforcement"])
	}
	return errors.Join(differs(c.Expect.Error != "", err != nil), sameStatus(&c.Expect.Status, &q.Status))
}

// sync makes a pass as the controller does.
func (c *quotaCase) sync(q *policyv1alpha1.FederatedResourceQuota) error {
	got := map[string]quotaWork{}
	for i := range c.ExistingWorks {
		w := &c.ExistingWorks[i]
		var content quotaWork
		raw, err := json.Marshal(w)
		if err != nil {
			return err
		}
		if err := json.Unmarshal(raw, &content); err != nil {
			return err
		}
		got[w.Namespace+"/"+w.Name] = content
	}
	wanted := q
	if c.QuotaDeleted {
		wanted = nil
	}
	for _, w := range quota.Unassigned(wanted, c.ExistingWorks) {
		content := got[w.Namespace+"/"+w.Name]
		content.Metadata.DeletionTimestamp = "<set>"
		got[w.Namespace+"/"+w.Name] = content
	}
	assignments, err := quota.Assignments(q, func(cluster string) bool { return slices.Contains(c.Clusters, cluster) })
	if err != nil {
		return err
	}
	for _, a := range assignments {
		w, err := written(q, a.Cluster, a.Object)
		if err != nil {
			return err
		}
		got[w.Metadata.Namespace+"/"+w.Metadata.Name] = *w
	}
	want := map[string]quotaWork{}
	for _, w := range c.Expect.Works {
		want[w.Metadata.Namespace+"/"+w.Metadata.Name] = w
	}
	return sameWorks(want, got)
}

func written(q *policyv1alpha1.FederatedResourceQuota, cluster string, object *unstructured.Unstructured) (*quotaWork, error) {
	w := &quotaWork{}
	w.Metadata.Namespace, w.Metadata.Name = names.ExecutionNamespace(cluster), quota.WorkName(q.Namespace, q.Name)
	w.Metadata.Labels = quota.Labels(q.Namespace, q.Name)
	w.Metadata.Finalizers = []string{workv1alpha2.ExecutionControllerFinalizer}
	err := manifest.Prepare(object, manifest.Origin{WorkNamespace: w.Metadata.Namespace, WorkName: w.Metadata.Name})
	if labels, _, _ := unstructured.NestedStringMap(object.Object, "metadata", "labels"); err == nil && labels[workv1alpha2.WorkPermanentIDLabel] != "" {
		err = errors.New("the manifest has an ID")
	}
	w.Spec.Workload.Manifests = []map[string]any{object.Object}
	return w, err
}

// sameWorks compares Works, apart from their IDs, which the reference's admission sets.
func sameWorks(want, got map[string]quotaWork) error {
	for _, set := range []map[string]quotaWork{want, got} {
		for _, w := range set {
			delete(w.Metadata.Labels, workv1alpha2.WorkPermanentIDLabel)
		}
	}
	limits := cmp.Transformer("hard", func(m map[string]any) map[string]any {
		out := map[string]any{}
		raw, err := json.Marshal(m)
		if err != nil || json.Unmarshal(raw, &out) != nil {
			return nil
		}
		return out
	})
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty(), cmp.FilterPath(func(p cmp.Path) bool { return len(p) > 0 && p.Last().String() == "[0]" }, limits)); diff != "" {
		return errors.New("-want +got " + diff)
	}
	return nil
}
