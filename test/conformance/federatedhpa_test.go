package conformance

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/metrics/pkg/apis/custom_metrics/v1beta2"
	metricsv1beta1 "k8s.io/metrics/pkg/apis/metrics/v1beta1"

	autoscalingv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/autoscaling/v1alpha1"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/autoscaling"
)

// declaredHPATags are the tags of cases that differ on purpose, see docs/differences.md.
func declaredHPATags() []string {
	return []string{"pod-name-collision", "behavior-tolerance", "template-zero"}
}

// hpaCase is one line of federatedhpa.jsonl.
type hpaCase struct {
	Name            string                                       `json:"name"`
	Tags            []string                                     `json:"tags"`
	HPA             autoscalingv1alpha1.FederatedHPA             `json:"fhpa"`
	TemplateLabels  map[string]string                            `json:"templateLabels"`
	TemplateMissing bool                                         `json:"templateMissing"`
	NoMapping       bool                                         `json:"noRESTMapping"`
	Bindings        []*workv1alpha2.ResourceBinding              `json:"bindings"`
	OtherHPAs       []struct{ Name, Namespace, Selector string } `json:"otherHPAs"`
	History         hpaHistory                                   `json:"history"`
	Steps           []hpaStep                                    `json:"steps"`
}

type hpaHistory struct {
	Recommendations []struct {
		Replicas  int32       `json:"replicas"`
		Timestamp metav1.Time `json:"timestamp"`
	} `json:"recommendations"`
	ScaleUpEvents   []hpaScaleEvent `json:"scaleUpEvents"`
	ScaleDownEvents []hpaScaleEvent `json:"scaleDownEvents"`
}

type hpaScaleEvent struct {
	ReplicaChange int32       `json:"replicaChange"`
	Timestamp     metav1.Time `json:"timestamp"`
}

type hpaStep struct {
	Now              metav1.Time `json:"now"`
	TemplateReplicas int32       `json:"templateReplicas"`
	ScaleUpdateError string      `json:"scaleUpdateError"`
	Members          []struct {
		Name                        string
		Ready, Missing, Unreachable bool
		Scale                       *struct {
			Spec   struct{ Replicas int32 }
			Status struct {
				Replicas int32
				Selector string
			}
		}
		Pods []*corev1.Pod
	} `json:"members"`
	Metrics struct {
		PodMetrics      []metricsv1beta1.PodMetrics      `json:"podMetrics"`
		PodMetricsError string                           `json:"podMetricsError"`
		Pods            map[string][]v1beta2.MetricValue `json:"pods"`
		PodsError       string                           `json:"podsError"`
		Objects         map[string]struct {
			Scope string               `json:"scope"`
			Value *v1beta2.MetricValue `json:"value"`
			Error string               `json:"error"`
		} `json:"objects"`
	} `json:"metrics"`
	Expect struct {
		NewReplicas  int32                                       `json:"newReplicas"`
		RequeueAfter string                                      `json:"requeueAfter"`
		Error        string                                      `json:"error"`
		Status       autoscalingv2.HorizontalPodAutoscalerStatus `json:"status"`
		Events       []string                                    `json:"events"`
		History      hpaHistory                                  `json:"history"`
	} `json:"expect"`
}

func TestFederatedHPA(t *testing.T) {
	declared := map[string]int{}
	replayLines(t, "federatedhpa", func(t *testing.T, line []byte) (string, error) {
		var c hpaCase
		if err := json.Unmarshal(line, &c); err != nil {
			t.Fatal(err)
		}
		err := c.run()
		for _, tag := range declaredHPATags() {
			if err != nil && slices.Contains(c.Tags, tag) {
				declared[tag]++
				return c.Name, nil
			}
		}
		return c.Name, err
	})
	for _, tag := range slices.Sorted(maps.Keys(declared)) {
		fmt.Fprintf(os.Stdout, "federatedhpa: %d differ as declared: %s\n", declared[tag], tag)
	}
}

func (c *hpaCase) run() error {
	history := c.History.decode()
	for i := range c.Steps {
		s := &c.Steps[i]
		replicas := int32(0)
		v := c.pass(s, history)
		if v.Rescale {
			if s.ScaleUpdateError != "" {
				v.Rescaled(errors.New(s.ScaleUpdateError))
			} else {
				replicas = v.Replicas
				v.Rescaled(nil)
			}
		}
		requeue := ""
		if v.Err == nil {
			requeue = "15s"
		}
		if len(v.History.Recommendations)+len(v.History.ScaleUps)+len(v.History.ScaleDowns) > 0 {
			history = v.History
		}
		events := make([]string, 0, len(v.Report.Events))
		list := regexp.MustCompile(`multiple HPAs: \[.*\]`)
		for _, e := range v.Report.Events {
			events = append(events, list.ReplaceAllString(e.Type+" "+e.Reason+" "+e.Message, "multiple HPAs: [<list>]"))
		}
		for j := range v.Report.Status.Conditions {
			condition := &v.Report.Status.Conditions[j]
			condition.Message = list.ReplaceAllString(condition.Message, "multiple HPAs: [<list>]")
		}
		want := s.Expect
		err := errors.Join(differs(want.NewReplicas, replicas), differs(want.RequeueAfter, requeue), sameHPAStatus(want.Status, v.Report.Status),
			differs(sorted(want.Events), sorted(events)), differs(want.History, encodeHistory(history)))
		if (v.Err != nil) != (want.Error != "") {
			err = errors.Join(err, fmt.Errorf("error is %w, want %q", v.Err, want.Error))
		}
		if err != nil {
			return fmt.Errorf("step %d: %w", i, err)
		}
		c.HPA.Status = v.Report.Status
	}
	return nil
}

// pass does what the controller does.
func (c *hpaCase) pass(s *hpaStep, history autoscaling.History) *autoscaling.Verdict {
	fail := func(stage autoscaling.Stage, err error) *autoscaling.Verdict {
		return autoscaling.Fail(&c.HPA, s.Now.Time, stage, err)
	}
	ref := c.HPA.Spec.ScaleTargetRef
	gv, err := schema.ParseGroupVersion(ref.APIVersion)
	if err != nil {
		return fail(autoscaling.Version, err)
	}
	if c.TemplateMissing {
		return fail(autoscaling.Template, apierrors.NewNotFound(schema.GroupResource{Group: gv.Group, Resource: "deployments"}, ref.Name))
	}
	binding, err := autoscaling.Binding(c.HPA.Namespace, ref, c.TemplateLabels, c.Bindings)
	if err != nil {
		return fail(autoscaling.FindBinding, err)
	}
	if _, _, err := autoscaling.Clusters(binding, s.cluster); err != nil {
		return fail(autoscaling.FindClusters, err)
	}
	if c.NoMapping {
		return fail(autoscaling.Mapping, &meta.NoKindMatchError{GroupKind: schema.GroupKind{Group: gv.Group, Kind: ref.Kind}, SearchedVersions: []string{gv.Version}})
	}
	f := autoscaling.Facts{
		Now: s.Now.Time, HPA: &c.HPA, History: history, Current: s.TemplateReplicas,
		Settings: autoscaling.Settings{DownscaleStabilization: 5 * time.Minute, Tolerance: 0.1, CPUInitialization: 5 * time.Minute, InitialReadiness: 30 * time.Second},
	}
	for _, m := range s.Members {
		if m.Ready && !m.Unreachable && m.Scale != nil {
			f.Members = append(f.Members, autoscaling.Member{
				Cluster: m.Name, Spec: m.Scale.Spec.Replicas, Status: m.Scale.Status.Replicas, Selector: m.Scale.Status.Selector, Pods: m.Pods,
			})
		}
	}
	for _, o := range c.OtherHPAs {
		selector, err := labels.Parse(o.Selector)
		if err != nil {
			return &autoscaling.Verdict{Err: err}
		}
		f.Others = append(f.Others, autoscaling.Other{Key: types.NamespacedName{Namespace: o.Namespace, Name: o.Name}, Selector: selector})
	}
	f.Metrics = s.metrics(c.HPA.Spec.Metrics)
	return autoscaling.Evaluate(f)
}

func (s *hpaStep) cluster(name string) (*clusterv1alpha1.Cluster, error) {
	for _, m := range s.Members {
		if m.Name == name && !m.Missing {
			cluster := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
			if m.Ready {
				cluster.Status.Conditions = []metav1.Condition{{Type: clusterv1alpha1.ClusterConditionReady, Status: metav1.ConditionTrue}}
			}
			return cluster, nil
		}
	}
	return nil, apierrors.NewNotFound(schema.GroupResource{Group: clusterv1alpha1.SchemeGroupVersion.Group, Resource: "clusters"}, name)
}

func (s *hpaStep) metrics(specs []autoscalingv2.MetricSpec) autoscaling.Metrics {
	out := autoscaling.Metrics{Pods: s.Metrics.PodMetrics, Custom: map[int]autoscaling.Custom{}}
	if s.Metrics.PodMetricsError != "" {
		out.PodsErr = errors.New(s.Metrics.PodMetricsError)
	}
	for i, spec := range specs {
		switch {
		case spec.Pods != nil:
			answer := autoscaling.Custom{Values: s.Metrics.Pods[spec.Pods.Metric.Name]}
			if s.Metrics.PodsError != "" {
				answer.Err = errors.New(s.Metrics.PodsError)
			}
			out.Custom[i] = answer
		case spec.Object != nil:
			answer := autoscaling.Custom{Err: fmt.Errorf("%s.custom.metrics.k8s.io %q not found", spec.Object.DescribedObject.Kind, spec.Object.DescribedObject.Name)}
			if o, ok := s.Metrics.Objects[spec.Object.Metric.Name]; ok && (o.Scope == "root") == autoscaling.OfNamespace(spec.Object) {
				answer = autoscaling.Custom{Err: errors.New(o.Error)}
				if o.Error == "" {
					answer = autoscaling.Custom{Values: []v1beta2.MetricValue{*o.Value}}
				}
			}
			out.Custom[i] = answer
		}
	}
	return out
}

func sameHPAStatus(want, got autoscalingv2.HorizontalPodAutoscalerStatus) error {
	times := cmp.Comparer(func(a, b metav1.Time) bool { return a.Equal(&b) })
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty(), times); diff != "" {
		return errors.New("status: -want +got " + diff)
	}
	return nil
}

func sorted(list []string) []string { return slices.Sorted(slices.Values(list)) }

func (h hpaHistory) decode() (out autoscaling.History) {
	for _, r := range h.Recommendations {
		out.Recommendations = append(out.Recommendations, autoscaling.Recommendation{Replicas: r.Replicas, At: r.Timestamp.Time})
	}
	for _, e := range h.ScaleUpEvents {
		out.ScaleUps = append(out.ScaleUps, autoscaling.ScaleEvent{Change: e.ReplicaChange, At: e.Timestamp.Time})
	}
	for _, e := range h.ScaleDownEvents {
		out.ScaleDowns = append(out.ScaleDowns, autoscaling.ScaleEvent{Change: e.ReplicaChange, At: e.Timestamp.Time})
	}
	return out
}

func encodeHistory(h autoscaling.History) (out hpaHistory) {
	for _, r := range h.Recommendations {
		out.Recommendations = append(out.Recommendations, struct {
			Replicas  int32       `json:"replicas"`
			Timestamp metav1.Time `json:"timestamp"`
		}{r.Replicas, metav1.NewTime(r.At)})
	}
	events := func(list []autoscaling.ScaleEvent) (out []hpaScaleEvent) {
		for _, e := range list {
			out = append(out, hpaScaleEvent{e.Change, metav1.NewTime(e.At)})
		}
		return out
	}
	out.ScaleUpEvents, out.ScaleDownEvents = events(h.ScaleUps), events(h.ScaleDowns)
	return out
}
