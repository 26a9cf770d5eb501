package search

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	searchv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/search/v1alpha1"
)

func TestRegistryStatus(t *testing.T) {
	start := time.Unix(1000, 0)
	pod := coreKind("Pod")
	members := func(names ...string) []*clusterv1alpha1.Cluster {
		var out []*clusterv1alpha1.Cluster
		for _, name := range names {
			out = append(out, &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}})
		}
		return out
	}
	r := &searchv1alpha1.ResourceRegistry{ObjectMeta: metav1.ObjectMeta{Name: "r", Generation: 3}}
	r.Spec.ResourceSelectors = []searchv1alpha1.ResourceSelector{{APIVersion: "v1", Kind: "Pod"}}
	seen := func(cluster string, objects int, failure string) map[Source]Observation {
		s := Source{Cluster: cluster, Kind: pod}
		return map[Source]Observation{s: {Source: s, Objects: objects, Since: start, Failure: failure}}
	}
	for _, tc := range []struct {
		name            string
		clusters        []*clusterv1alpha1.Cluster
		observed        map[Source]Observation
		ready, degraded string
	}{
		{"no cluster", nil, nil, "False NoCluster no cluster is selected, or no kind", "False NotDegraded"},
		{"not observed", members("m1"), nil, "False Caching Pod of cluster m1: its objects are not listed yet", "False NotDegraded"},
		{"complete", members("m1"), seen("m1", 7, ""), "True Cached all objects are cached", "False NotDegraded"},
		{"unknown kind", members("m1"), seen("m1", 0, FailureUnknownKind), "False Caching Pod of cluster m1: the cluster", "True UnknownKind Pod of cluster m1: the cluster"},
		{"a failure", members("m1"), seen("m1", 7, "refused"), "False Caching Pod of cluster m1: refused", "True ClusterFailed Pod of cluster m1: refused"},
		{"a kind that the control plane does not serve", members("m1", "m2"), seen("m1", 7, FailureNotInControlPlane), "False Caching Pod of cluster m1: the control plane", "True NotInControlPlane Pod of cluster m1: the control plane does not serve this kind"},
		{"a kind that another serves", members("m1", "m2"), seen("m1", 0, FailureUnknownKind), "False Caching", "False NotDegraded"},
	} {
		status := RegistryStatus(r, tc.clusters, tc.observed, "", start)
		for kind, want := range map[string]string{searchv1alpha1.RegistryReady: tc.ready, searchv1alpha1.RegistryDegraded: tc.degraded} {
			c := meta.FindStatusCondition(status.Conditions, kind)
			if got := fmt.Sprint(c.Status, " ", c.Reason, " ", c.Message); !strings.HasPrefix(got, want) || c.ObservedGeneration != 3 {
				t.Errorf("%s: %s is %q, want %q", tc.name, kind, got, want)
			}
		}
		if len(status.Clusters) != len(tc.clusters) {
			t.Errorf("%s: %v", tc.name, status.Clusters)
		}
		for _, c := range status.Clusters {
			if data, err := json.Marshal(c); err != nil || !strings.Contains(string(data), fmt.Sprintf(`"objects":%d`, c.Objects)) {
				t.Errorf("%s: the number of objects is missing: %s", tc.name, data)
			}
		}
	}
}

func TestRegistryStatus_ManyClusters(t *testing.T) {
	r := &searchv1alpha1.ResourceRegistry{}
	r.Spec.ResourceSelectors = []searchv1alpha1.ResourceSelector{{APIVersion: "v1", Kind: "Pod"}}
	var clusters []*clusterv1alpha1.Cluster
	observed := map[Source]Observation{}
	for i := range 150 {
		s := Source{Cluster: fmt.Sprintf("m%03d", i), Kind: coreKind("Pod")}
		clusters = append(clusters, &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: s.Cluster}})
		o := Observation{Source: s, Objects: 2, Since: time.Unix(int64(i), 0)}
		if i < 5 {
			o.Failure = "refused"
		}
		observed[s] = o
	}
	status := RegistryStatus(r, clusters, observed, "", time.Unix(1000, 0))
	want := searchv1alpha1.ClusterCache{Clusters: 145, APIVersion: "v1", Kind: "Pod", Objects: 290, Since: &metav1.Time{Time: time.Unix(149, 0)}}
	if len(status.Clusters) != 6 || !cmp.Equal(status.Clusters[0], want) || status.Clusters[5].Cluster != "m004" {
		t.Errorf("got %v", status.Clusters)
	}
	for s, o := range observed {
		o.Failure = strings.Repeat("x", 10_000)
		observed[s] = o
	}
	status = RegistryStatus(r, clusters, observed, "", time.Unix(1000, 0))
	if len(status.Clusters) != maxEntries || len(status.Clusters[0].Failure) > maxFailure || len(status.Conditions[0].Message) > 2000 {
		t.Errorf("%d entries, message of %d bytes", len(status.Clusters), len(status.Conditions[0].Message))
	}
}

func TestWriteStatus(t *testing.T) {
	r := &searchv1alpha1.ResourceRegistry{}
	r.Spec.ResourceSelectors = []searchv1alpha1.ResourceSelector{{APIVersion: "v1", Kind: "Pod"}}
	clusters := []*clusterv1alpha1.Cluster{{ObjectMeta: metav1.ObjectMeta{Name: "m1"}}}
	at := func(objects int, since int64, failure string) searchv1alpha1.ResourceRegistryStatus {
		s := Source{Cluster: "m1", Kind: coreKind("Pod")}
		return RegistryStatus(r, clusters, map[Source]Observation{s: {Source: s, Objects: objects, Since: time.Unix(since, 0), Failure: failure}}, "", time.Unix(since, 0))
	}
	r.Status = at(7, 1000, "")
	failing := at(7, 1000, "refused 1")
	again := at(7, 1000, "refused 2")
	if WriteStatus(&failing, &again, time.Second) || !WriteStatus(&failing, &again, time.Minute) {
		t.Error("a member decides by its texts how often a status is written")
	}
	for name, tc := range map[string]struct {
		after   searchv1alpha1.ResourceRegistryStatus
		written time.Duration
		want    bool
	}{
		"nothing changed":                 {at(7, 1000, ""), time.Hour, false},
		"a process started again":         {at(7, 2000, ""), time.Hour, false},
		"a count, soon":                   {at(8, 1000, ""), time.Second, false},
		"a count, later":                  {at(8, 1000, ""), time.Minute, true},
		"a failure":                       {at(7, 1000, "refused"), time.Second, true},
		"another generation was observed": {searchv1alpha1.ResourceRegistryStatus{}, time.Second, true},
	} {
		if got := WriteStatus(&r.Status, &tc.after, tc.written); got != tc.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
