package interpreter

import (
	"math"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"

	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
)

// podRules are the rules about replicas.
type podRules struct{ priorityClass bool }

// podSpec is the part of a pod spec that has its requirements.
type podSpec struct {
	Containers        []container         `json:"containers"`
	InitContainers    []container         `json:"initContainers"`
	Overhead          corev1.ResourceList `json:"overhead"`
	NodeSelector      map[string]string   `json:"nodeSelector"`
	Tolerations       []corev1.Toleration `json:"tolerations"`
	Affinity          *affinity           `json:"affinity"`
	PriorityClassName string              `json:"priorityClassName"`
}

type container struct {
	Resources resources `json:"resources"`
}

type resources struct {
	Requests corev1.ResourceList `json:"requests"`
	Limits   corev1.ResourceList `json:"limits"`
}

type affinity struct {
	NodeAffinity *struct {
		Required *corev1.NodeSelector `json:"requiredDuringSchedulingIgnoredDuringExecution"`
	} `json:"nodeAffinity"`
}

// replicas is the rule for workloads with spec.replicas and spec.template.
func (p podRules) replicas(obj *unstructured.Unstructured) (int32, *workv1alpha2.ReplicaRequirements, error) {
	var spec struct {
		Replicas *int32 `json:"replicas"`
		Template struct {
			Spec podSpec `json:"spec"`
		} `json:"template"`
	}
	if err := decode(child(obj.Object, "spec"), &spec); err != nil {
		return 0, nil, err
	}
	requirements := p.requirements(&spec.Template.Spec)
	if spec.Replicas == nil {
		return 0, requirements, nil
	}
	return *spec.Replicas, requirements, nil
}

func (p podRules) job(obj *unstructured.Unstructured) (int32, *workv1alpha2.ReplicaRequirements, error) {
	var spec struct {
		Parallelism *int32 `json:"parallelism"`
		Completions *int32 `json:"completions"`
		Template    struct {
			Spec podSpec `json:"spec"`
		} `json:"template"`
	}
	if err := decode(child(obj.Object, "spec"), &spec); err != nil {
		return 0, nil, err
	}
	var replicas int32
	if spec.Parallelism != nil {
		replicas = *spec.Parallelism
	}
	if spec.Completions != nil {
		replicas = min(replicas, *spec.Completions)
	}
	return replicas, p.requirements(&spec.Template.Spec), nil
}

func (p podRules) pod(obj *unstructured.Unstructured) (int32, *workv1alpha2.ReplicaRequirements, error) {
	var spec podSpec
	if err := decode(child(obj.Object, "spec"), &spec); err != nil {
		return 0, nil, err
	}
	return 1, p.requirements(&spec), nil
}

// requirements returns what a pod needs, or nil.
func (p podRules) requirements(spec *podSpec) *workv1alpha2.ReplicaRequirements {
	claim, request := nodeClaim(spec), resourceRequest(spec)
	if claim == nil && request == nil {
		return nil
	}
	r := &workv1alpha2.ReplicaRequirements{NodeClaim: claim, ResourceRequest: request}
	if p.priorityClass {
		r.PriorityClassName = spec.PriorityClassName
	}
	return r
}

func nodeClaim(spec *podSpec) *workv1alpha2.NodeClaim {
	claim := &workv1alpha2.NodeClaim{NodeSelector: spec.NodeSelector, Tolerations: spec.Tolerations}
	if spec.Affinity != nil && spec.Affinity.NodeAffinity != nil {
		claim.HardNodeAffinity = spec.Affinity.NodeAffinity.Required
	}
	if claim.NodeSelector == nil && claim.HardNodeAffinity == nil && len(claim.Tolerations) == 0 {
		return nil
	}
	return claim
}

// amounts are resources in the unit that they are counted in: cpu in
// thousandths, everything else in ones.
type amounts map[corev1.ResourceName]int64

// resourceRequest adds the containers up, raises that to what the greediest init
// container requests, and adds the overhead.
func resourceRequest(spec *podSpec) corev1.ResourceList {
	total := make(amounts, 4)
	for i := range spec.Containers {
		spec.Containers[i].each(func(name corev1.ResourceName, n int64) { total[name] = plus(total[name], n) })
	}
	for i := range spec.InitContainers {
		spec.InitContainers[i].each(func(name corev1.ResourceName, n int64) { total[name] = max(total[name], n) })
	}
	for name, q := range spec.Overhead {
		if n, ok := amount(name, q); ok {
			total[name] = plus(total[name], n)
		}
	}
	return total.list()
}

// each calls fn with the requests of the container; a limit without a request is
// one.
func (c *container) each(fn func(corev1.ResourceName, int64)) {
	for name, q := range c.Resources.Requests {
		if n, ok := amount(name, q); ok {
			fn(name, n)
		}
	}
	for name, q := range c.Resources.Limits {
		if _, ok := c.Resources.Requests[name]; ok {
			continue
		}
		if n, ok := amount(name, q); ok {
			fn(name, n)
		}
	}
}

// plus adds without wrapping around.
func plus(a, b int64) int64 {
	if b > 0 && a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

func amount(name corev1.ResourceName, q resource.Quantity) (int64, bool) {
	switch {
	case name == corev1.ResourceCPU:
		return q.MilliValue(), true
	case name == corev1.ResourceMemory, name == corev1.ResourceEphemeralStorage, name == corev1.ResourcePods, scalar(name):
		return q.Value(), true
	}
	return 0, false
}

// scalar reports whether a resource is one that the scheduler counts beside the
// basic ones.
func scalar(name corev1.ResourceName) bool {
	s := string(name)
	if strings.HasPrefix(s, corev1.ResourceHugePagesPrefix) || strings.HasPrefix(s, corev1.ResourceAttachableVolumesPrefix) ||
		strings.Contains(s, corev1.ResourceDefaultNamespacePrefix) {
		return true
	}
	return strings.Contains(s, "/") && !strings.HasPrefix(s, corev1.DefaultResourceRequestsPrefix) &&
		len(validation.IsQualifiedName(corev1.DefaultResourceRequestsPrefix+s)) == 0
}

// list returns the amounts that are not zero, or nil.
func (a amounts) list() corev1.ResourceList {
	var l corev1.ResourceList
	for name, n := range a {
		if n == 0 {
			continue
		}
		if l == nil {
			l = make(corev1.ResourceList, len(a))
		}
		switch {
		case name == corev1.ResourceCPU:
			l[name] = *resource.NewMilliQuantity(n, resource.DecimalSI)
		case name == corev1.ResourceMemory, name == corev1.ResourceEphemeralStorage,
			strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix):
			l[name] = *resource.NewQuantity(n, resource.BinarySI)
		default:
			l[name] = *resource.NewQuantity(n, resource.DecimalSI)
		}
	}
	return l
}
