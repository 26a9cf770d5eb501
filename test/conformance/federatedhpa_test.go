package conformance

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
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
	"github.com/karmada-toolkit/karmada/pkg/domain/autoscaling"
)

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
	Expect hpaExpect `json:"expect"`
}

type hpaExpect struct {
	NewReplicas  int32                                       `json:"newReplicas"`
	RequeueAfter string                                      `json:"requeueAfter"`
	Error        string                                      `json:"error"`
	Status       autoscalingv2.HorizontalPodAutoscalerStatus `json:"status"`
	Events       []string                                    `json:"events"`
	History      hpaHistory                                  `json:"history"`
}

// differs compares all but the error.
func (e *hpaExpect) differs(got *hpaExpect) error {
	return errors.Join(differs(e.NewReplicas, got.NewReplicas), differs(e.RequeueAfter, got.RequeueAfter), sameHPAStatus(e.Status, got.Status),
		differs(sorted(e.Events), sorted(got.Events)), differs(e.History, got.History))
}

// withoutSamples returns the expectation without what follows from the values of pods: the recommendation, its limits
// and the rescale.
func (e *hpaExpect) withoutSamples() *hpaExpect {
	out := &hpaExpect{RequeueAfter: e.RequeueAfter, Status: *e.Status.DeepCopy()}
	out.Status.DesiredReplicas, out.Status.CurrentMetrics, out.Status.LastScaleTime = 0, nil, nil
	out.Status.Conditions = slices.DeleteFunc(out.Status.Conditions, func(c autoscalingv2.HorizontalPodAutoscalerCondition) bool {
		return c.Type != autoscalingv2.ScalingActive
	})
	for _, event := range e.Events {
		if !strings.HasPrefix(event, "Normal SuccessfulRescale ") {
			out.Events = append(out.Events, event)
		}
	}
	return out
}

// podNamesCollide reports whether members have pods of the same name. They are different pods here and were one where
// the cases were recorded.
func (s *hpaStep) podNamesCollide() bool {
	names := map[string]bool{}
	for _, m := range s.Members {
		for _, pod := range m.Pods {
			if names[pod.Name] {
				return true
			}
			names[pod.Name] = true
		}
	}
	return false
}

func TestFederatedHPA(t *testing.T) {
	replayLines(t, "federatedhpa", func(t *testing.T, line []byte) (string, error) {
		var c hpaCase
		if err := json.Unmarshal(line, &c); err != nil {
			t.Fatal(err)
		}
		return c.Name, c.run()
	})
}

// withoutTolerances removes the tolerances of the behavior, which are used here and were accepted and ignored where the
// cases were recorded.
func (c *hpaCase) withoutTolerances() {
	if b := c.HPA.Spec.Behavior; b != nil {
		for _, rules := range []*autoscalingv2.HPAScalingRules{b.ScaleUp, b.ScaleDown} {
			if rules != nil {
				rules.Tolerance = nil
			}
		}
	}
}

func (c *hpaCase) run() error {
	c.withoutTolerances()
	history := c.History.decode()
	for i := range c.Steps {
		s := &c.Steps[i]
		replicas := int32(0)
		v := c.pass(s, history)
		if v.Rescale {
			if s.ScaleUpdateError != "" {
				v.Rescaled(errors.New(s.ScaleUpdateError))
			} else {
				// A template with 0 replicas is written here and was not where the cases were recorded.
				if s.TemplateReplicas != 0 {
					replicas = v.Replicas
				}
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
		got := want
		got.NewReplicas, got.RequeueAfter, got.Status, got.Events, got.History = replicas, requeue, v.Report.Status, events, encodeHistory(history)
		err := want.differs(&got)
		if err != nil && s.podNamesCollide() {
			err = want.withoutSamples().differs(got.withoutSamples())
		}
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
