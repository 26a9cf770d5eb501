package conformance

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	multiclusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/multicluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/apis/names"
	networkingv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/networking/v1alpha1"
	workv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/domain/services"
)

// sameSliceName marks cases in which the reference overwrites the slice of another cluster.
const sameSliceName = "same-slice-name-in-two-providers"

// servicesCase is one line of multiclusterservice.jsonl. Times and deletion timestamps
// are decoded leniently.
type servicesCase struct {
	Name           string                                  `json:"name"`
	Tags           []string                                `json:"tags"`
	Operation      string                                  `json:"operation"`
	Now            metav1.Time                             `json:"now"`
	MCS            *networkingv1alpha1.MultiClusterService `json:"mcs"`
	Clusters       []*clusterv1alpha1.Cluster              `json:"clusters"`
	Service        *corev1.Service                         `json:"service"`
	Binding        *workv1alpha2.ResourceBinding           `json:"binding"`
	Works          []*workv1alpha1.Work                    `json:"works"`
	Cluster        string                                  `json:"cluster"`
	EndpointSlices []json.RawMessage                       `json:"endpointSlices"`
	Slice          string                                  `json:"slice"`
	Work           string                                  `json:"work"`
	Object         string                                  `json:"object"`
	ServiceExports []string                                `json:"serviceExports"`
	ServiceImport  *multiclusterv1alpha1.ServiceImport     `json:"serviceImport"`
	ImportGone     string                                  `json:"serviceImportGone"`
	Deleting       bool                                    `json:"deleting"`
	Services       []*corev1.Service                       `json:"services"`
	Expect         struct {
		Service        *corev1.Service               `json:"service"`
		Binding        *workv1alpha2.ResourceBinding `json:"binding"`
		Works          []*workv1alpha1.Work          `json:"works"`
		MCS            json.RawMessage               `json:"mcs"`
		Events         []string                      `json:"events"`
		Error          string                        `json:"error"`
		EndpointSlices []*discoveryv1.EndpointSlice  `json:"endpointSlices"`
		Services       []*corev1.Service             `json:"services"`
	} `json:"expect"`

	works []*workv1alpha1.Work
}

// deletionTime stands for a deletion timestamp that the API server sets.
const deletionTime = "2000-01-01T00:00:00Z"

func TestMultiClusterService(t *testing.T) {
	replayLines(t, "multiclusterservice", func(t *testing.T, line []byte) (string, error) {
		var c servicesCase
		if err := json.Unmarshal([]byte(strings.ReplaceAll(string(line), `"<set>"`, `"`+deletionTime+`"`)), &c); err != nil {
			t.Fatal(err)
		}
		c.works = c.Works
		run := map[string]func() error{
			"multiClusterService": c.multiClusterService, "collect": c.collect, "sliceEvent": c.sliceEvent, "dispatch": c.dispatch,
			"serviceExportEvent": c.serviceExportEvent, "exportedSliceEvent": c.exportedSliceEvent,
			"sliceToControlPlane": c.sliceToControlPlane, "serviceImport": c.serviceImport,
		}[c.Operation]
		if run == nil {
			return c.Name, fmt.Errorf("unknown operation %q", c.Operation)
		}
		return c.Name, run()
	})
}

func (c *servicesCase) clusters() services.Clusters {
	out := services.Clusters{}
	for _, cluster := range c.Clusters {
		out[cluster.Name] = cluster
	}
	return out
}

// put writes a Work as the API server would.
func (c *servicesCase) put(work *workv1alpha1.Work) {
	c.remove(work)
	if work.DeletionTimestamp == nil || len(work.Finalizers) > 0 {
		c.works = append(c.works, work)
	}
}

func (c *servicesCase) remove(work *workv1alpha1.Work) {
	c.works = slices.DeleteFunc(slices.Clone(c.works), func(w *workv1alpha1.Work) bool { return w.Namespace == work.Namespace && w.Name == work.Name })
}

// delete deletes a Work as the API server would.
func (c *servicesCase) delete(work *workv1alpha1.Work) {
	next := work.DeepCopy()
	if next.DeletionTimestamp == nil {
		now := metav1.Time{}
		_ = now.UnmarshalJSON([]byte(`"` + deletionTime + `"`))
		next.DeletionTimestamp = &now
	}
	c.put(next)
}

func (c *servicesCase) get(key types.NamespacedName) *workv1alpha1.Work {
	for _, w := range c.works {
		if w.Namespace == key.Namespace && w.Name == key.Name {
			return w
		}
	}
	return nil
}

func (c *servicesCase) slices() []*unstructured.Unstructured {
	var out []*unstructured.Unstructured
	for _, raw := range c.EndpointSlices {
		u := &unstructured.Unstructured{}
		if err := u.UnmarshalJSON(raw); err != nil {
			panic(err)
		}
		out = append(out, u)
	}
	return out
}

func (c *servicesCase) checkWorks() error {
	byName := func(a, b *workv1alpha1.Work) int {
		return strings.Compare(a.Namespace+"/"+a.Name, b.Namespace+"/"+b.Name)
	}
	got := make([]*workv1alpha1.Work, 0, len(c.works))
	for _, w := range c.works {
		w = w.DeepCopy()
		w.ResourceVersion = ""
		normalizeManaged(w)
		got = append(got, w)
	}
	for _, w := range c.Expect.Works {
		normalizeManaged(w)
	}
	slices.SortFunc(got, byName)
	slices.SortFunc(c.Expect.Works, byName)
	return differsServices(c.Expect.Works, got)
}

// normalizeManaged orders the parts of the label with the managers.
func normalizeManaged(w *workv1alpha1.Work) {
	if value, ok := w.Labels[services.ManagedByLabel]; ok {
		parts := strings.Split(value, ".")
		slices.Sort(parts)
		w.Labels[services.ManagedByLabel] = strings.Join(parts, ".")
	}
}

func differsServices(want, got any) error {
	raw := cmp.Transformer("decode", func(m workv1alpha1.Manifest) any {
		var out any
		if err := json.Unmarshal(m.Raw, &out); err != nil {
			panic(err)
		}
		return withoutNull(out)
	})
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty(), raw); diff != "" {
		return errors.New("-want +got " + diff)
	}
	return nil
}

// withoutNull removes nulls and empty status, metadata and resources maps, which are not
// recorded.
func withoutNull(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for key, value := range v {
			if value = withoutNull(value); value == nil {
				delete(v, key)
			}
		}
	case []any:
		for i := range v {
			v[i] = withoutNull(v[i])
		}
	}
	return v
}

func (c *servicesCase) multiClusterService() error {
	v, err := services.Decide(services.Facts{MCS: c.MCS, Clusters: c.clusters(), Service: c.Service, Binding: c.Binding, Works: c.Works})
	if err != nil {
		return err
	}
	for _, w := range v.Write {
		c.put(w)
	}
	for _, w := range v.Delete {
		c.delete(w)
	}
	if v.Service != nil {
		c.Service = v.Service
	}
	if v.Binding != nil {
		c.Binding = v.Binding
	}
	if (v.Err != nil) != (c.Expect.Error != "") {
		err = fmt.Errorf("error is %w, want %q", v.Err, c.Expect.Error)
	}
	finalizers := sets.New(c.MCS.Finalizers...).Delete(services.MCSFinalizer)
	if v.Finalizer {
		finalizers.Insert(services.MCSFinalizer)
	}
	c.MCS.Finalizers = sets.List(finalizers)
	if v.Condition != nil {
		c.setCondition(*v.Condition)
	}
	for _, binding := range []*workv1alpha2.ResourceBinding{c.Binding, c.Expect.Binding} {
		if binding != nil {
			binding.TypeMeta, binding.ResourceVersion = metav1.TypeMeta{}, ""
		}
	}
	return errors.Join(err, c.checkWorks(), differsServices(c.Expect.Service, c.Service), differsServices(c.Expect.Binding, c.Binding),
		c.checkMCS(), c.checkEvents(v.Events))
}

func (c *servicesCase) setCondition(condition metav1.Condition) {
	before := meta.FindStatusCondition(c.MCS.Status.Conditions, condition.Type)
	condition.LastTransitionTime = c.Now
	if before != nil && before.Status == condition.Status {
		condition.LastTransitionTime = before.LastTransitionTime
	}
	meta.SetStatusCondition(&c.MCS.Status.Conditions, condition)
}

func (c *servicesCase) checkMCS() error {
	if string(c.Expect.MCS) == `"<none>"` {
		if c.MCS != nil && (c.MCS.DeletionTimestamp == nil || len(c.MCS.Finalizers) > 0) {
			return errors.New("the MultiClusterService still exists")
		}
		return nil
	}
	if c.MCS == nil || len(c.Expect.MCS) == 0 {
		return nil
	}
	var want struct {
		Finalizers []string           `json:"finalizers"`
		Conditions []metav1.Condition `json:"conditions"`
		Deleting   bool               `json:"deleting"`
	}
	if err := json.Unmarshal(c.Expect.MCS, &want); err != nil {
		return err
	}
	got := want
	got.Finalizers, got.Conditions, got.Deleting = c.MCS.Finalizers, slices.Clone(c.MCS.Status.Conditions), c.MCS.DeletionTimestamp != nil
	for i := range want.Conditions {
		if want.Conditions[i].Status == metav1.ConditionFalse && i < len(got.Conditions) {
			got.Conditions[i].Message = want.Conditions[i].Message // texts of errors are to read
		}
	}
	return differs(want, got)
}

// checkEvents compares events. Texts of errors are to read.
func (c *servicesCase) checkEvents(events []services.Event) error {
	text := func(line string) string {
		if c.Expect.Error != "" && strings.Contains(line, c.Expect.Error) {
			return "error"
		}
		return line
	}
	want, got := sets.New[string](), sets.New[string]()
	for _, e := range c.Expect.Events {
		want.Insert(text(e))
	}
	for _, e := range events {
		got.Insert(e.Type + " " + e.Reason + " " + e.Message)
	}
	if c.Expect.Error != "" {
		return differs(want.Len(), got.Len())
	}
	return differs(sets.List(want), sets.List(got))
}

// report collects one slice.
func (c *servicesCase) report(slice *unstructured.Unstructured, m services.Manager, service types.NamespacedName) error {
	key := types.NamespacedName{Namespace: names.ExecutionNamespace(c.Cluster), Name: services.WorkNames(c.Cluster, types.NamespacedName{Namespace: slice.GetNamespace(), Name: slice.GetName()})[0]}
	next, err := services.Collect(key, slice, m, service, c.get(key))
	if err != nil {
		return err
	}
	c.put(next)
	return nil
}

func (c *servicesCase) clean(work *workv1alpha1.Work, m services.Manager) {
	if next := services.Release(work, m); next != nil {
		c.put(next)
	} else {
		c.delete(work)
	}
}

func serviceOf(slice *unstructured.Unstructured) types.NamespacedName {
	return types.NamespacedName{Namespace: slice.GetNamespace(), Name: slice.GetLabels()[discoveryv1.LabelServiceName]}
}

func parseKey(text string) types.NamespacedName {
	namespace, name, _ := strings.Cut(text, "/")
	return types.NamespacedName{Namespace: namespace, Name: name}
}

// marked reports whether the cluster has the marker Work of a MultiClusterService.
func (c *servicesCase) marked(service types.NamespacedName) bool {
	return slices.ContainsFunc(c.Works, func(w *workv1alpha1.Work) bool { return services.Marks(w) == service })
}

func (c *servicesCase) collect() error {
	var errs []error
	for _, slice := range c.slices() {
		if service := serviceOf(slice); services.Collectible(slice) && c.marked(service) {
			errs = append(errs, c.report(slice, services.MCS, service))
		}
	}
	return errors.Join(append(errs, c.checkWorks())...)
}

func (c *servicesCase) slice(key types.NamespacedName) *unstructured.Unstructured {
	for _, slice := range c.slices() {
		if slice.GetNamespace() == key.Namespace && slice.GetName() == key.Name {
			return slice
		}
	}
	return nil
}

func (c *servicesCase) sliceEvent() error {
	key := parseKey(c.Slice)
	slice := c.slice(key)
	var err error
	switch {
	case slice == nil:
		c.cleanSlice(key, services.MCS)
	case services.Collectible(slice) && c.marked(serviceOf(slice)):
		err = c.report(slice, services.MCS, serviceOf(slice))
	}
	return errors.Join(err, c.checkWorks())
}

// cleanSlice cleans the Work of a slice that does not exist.
func (c *servicesCase) cleanSlice(key types.NamespacedName, m services.Manager) {
	work := c.get(types.NamespacedName{Namespace: names.ExecutionNamespace(c.Cluster), Name: services.WorkNames(c.Cluster, key)[0]})
	if work != nil {
		c.clean(work, m)
	}
}

func (c *servicesCase) exportedSliceEvent() error {
	key := parseKey(c.Object)
	slice := c.slice(key)
	var err error
	switch {
	case slice == nil:
		c.cleanSlice(key, services.Export)
	case services.Collectible(slice) && slices.Contains(c.ServiceExports, serviceOf(slice).Name):
		err = c.report(slice, services.Export, serviceOf(slice))
	}
	return errors.Join(err, c.checkWorks())
}

func (c *servicesCase) serviceExportEvent() error {
	key := parseKey(c.Object)
	exported := slices.Contains(c.ServiceExports, key.Name)
	var errs []error
	for _, work := range c.Works {
		if services.Export.ServiceOf(work.Labels) != key {
			continue
		}
		name, err := services.SliceOf(work)
		if err != nil {
			return err
		}
		slice := c.slice(name)
		if !exported || services.Export.Manages(work) && (slice == nil || serviceOf(slice) != key) {
			c.clean(work, services.Export)
		}
	}
	for _, slice := range c.slices() {
		if exported && serviceOf(slice) == key && services.Collectible(slice) {
			errs = append(errs, c.report(slice, services.Export, key))
		}
	}
	return errors.Join(append(errs, c.checkWorks())...)
}

func (c *servicesCase) dispatch() error {
	work := c.get(parseKey(c.Work))
	source, err := names.ClusterOfExecutionNamespace(work.Namespace)
	if err != nil {
		return err
	}
	f := services.DispatchFacts{
		Work: work, Source: source, MCS: c.MCS, Clusters: c.clusters(),
		Get: func(cluster, name string) *workv1alpha1.Work {
			existing := c.get(types.NamespacedName{Namespace: names.ExecutionNamespace(cluster), Name: name})
			if existing != nil && slices.Contains(c.Tags, sameSliceName) {
				// The Work of another provider keeps its name here and was overwritten where the cases were recorded.
				existing = existing.DeepCopy()
				metav1.SetMetaDataAnnotation(&existing.ObjectMeta, services.ProvisionClusterAnnotation, source)
			}
			return existing
		},
	}
	for _, w := range c.works {
		if w.Annotations[services.ProvisionClusterAnnotation] == source && services.SourceWork(w).Name == work.Name {
			f.Dispatched = append(f.Dispatched, w)
		}
	}
	v, err := services.Dispatch(f)
	if err != nil {
		return err
	}
	for _, w := range v.Write {
		c.put(w)
	}
	for _, w := range v.Delete {
		c.delete(w)
	}
	if v.Release {
		next := work.DeepCopy()
		next.Finalizers = slices.DeleteFunc(next.Finalizers, func(f string) bool { return f == services.DispatchFinalizer })
		c.put(next)
	} else if c.MCS != nil {
		c.setCondition(services.DispatchCondition(nil))
	}
	return errors.Join(c.checkWorks(), c.checkMCS(), c.checkEvents(v.Events))
}

func (c *servicesCase) sliceToControlPlane() error {
	have := map[string]*discoveryv1.EndpointSlice{}
	for _, raw := range c.EndpointSlices {
		s := &discoveryv1.EndpointSlice{}
		if err := json.Unmarshal(raw, s); err != nil {
			return err
		}
		have[s.Namespace+"/"+s.Name] = s
	}
	for _, work := range c.Works {
		cluster, err := names.ClusterOfExecutionNamespace(work.Namespace)
		if err != nil {
			return err
		}
		if services.Imports(work) {
			next, err := services.Import(work, cluster, nil, func(namespace, name string) *discoveryv1.EndpointSlice { return have[namespace+"/"+name] })
			if err != nil {
				return err
			}
			have[next.Namespace+"/"+next.Name] = next
			continue
		}
		for key, s := range have {
			if s.Labels[workv1alpha2.WorkPermanentIDLabel] == work.Labels[workv1alpha2.WorkPermanentIDLabel] {
				delete(have, key)
			}
		}
		released := work.DeepCopy()
		released.Finalizers = slices.DeleteFunc(released.Finalizers, func(f string) bool { return f == services.ImportFinalizer })
		c.put(released)
	}
	var got []*discoveryv1.EndpointSlice
	for _, s := range have {
		got = append(got, s)
	}
	byName := func(a, b *discoveryv1.EndpointSlice) int { return strings.Compare(a.Name, b.Name) }
	slices.SortFunc(got, byName)
	slices.SortFunc(c.Expect.EndpointSlices, byName)
	return errors.Join(c.checkWorks(), differsServices(c.Expect.EndpointSlices, got))
}

func (c *servicesCase) serviceImport() error {
	var events []services.Event
	if c.ImportGone != "" {
		c.Services = slices.DeleteFunc(c.Services, func(s *corev1.Service) bool { return s.Name == services.DerivedService(parseKey(c.ImportGone).Name) })
		return errors.Join(differsServices(c.Expect.Services, c.Services))
	}
	var existing *corev1.Service
	i := slices.IndexFunc(c.Services, func(s *corev1.Service) bool { return s.Name == services.DerivedService(c.ServiceImport.Name) })
	if i >= 0 {
		existing = c.Services[i]
	}
	if next := services.Derive(c.ServiceImport, existing); !c.Deleting && next != nil {
		next.ResourceVersion = ""
		events = append(events, services.DerivedEvent(c.ServiceImport.Name, nil))
		if existing != nil {
			c.Services[i] = next
		} else {
			c.Services = append(c.Services, next)
		}
	}
	return errors.Join(differsServices(c.Expect.Services, c.Services), c.checkEvents(events))
}
