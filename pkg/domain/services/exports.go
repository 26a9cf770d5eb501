package services

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	workv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha1"
)

// Conditions of ServiceExports and their reasons, as the Multi-Cluster Services API defines
// them.
const (
	ExportValid    = "Valid"
	ExportReady    = "Ready"
	ExportConflict = "Conflict"

	reasonValid            = "Valid"
	reasonNoService        = "NoService"
	reasonInvalidType      = "InvalidServiceType"
	reasonExported         = "Exported"
	reasonPending          = "Pending"
	reasonFailed           = "Failed"
	reasonNoConflicts      = "NoConflicts"
	reasonPortConflict     = "PortConflict"
	reasonTypeConflict     = "TypeConflict"
	reasonAffinityConflict = "SessionAffinityConflict"
	reasonConfigConflict   = "SessionAffinityConfigConflict"
)

// maxDerivedName is the limit of names of Services.
const maxDerivedName = 63

// ExportingCluster is a cluster from which a Service is exported.
type ExportingCluster struct {
	Name string
	// Since is when the export began: of two that conflict, the older one applies.
	Since metav1.Time
	// Applied reports whether the cluster has the ServiceExport.
	Applied bool
	// Service is what the control plane propagates to the cluster, or nil if it
	// propagates no such Service.
	Service *corev1.Service
	// Slices is the number of collected slices.
	Slices int
}

// ServiceIn returns the Service of a Work, or nil for other Works.
func ServiceIn(work *workv1alpha1.Work) *corev1.Service {
	if !carries(work, "Service") {
		return nil
	}
	obj, err := manifestOf(work)
	if err != nil || obj.GetAPIVersion() != "v1" {
		return nil
	}
	out := &corev1.Service{}
	if runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, out) != nil {
		return nil
	}
	return out
}

// ExportConditions returns the conditions of a ServiceExport. template is the Service of
// the control plane, or nil; order of the clusters does not matter.
func ExportConditions(name string, template *corev1.Service, from []ExportingCluster) []metav1.Condition {
	from = slices.Clone(from)
	slices.SortFunc(from, func(a, b ExportingCluster) int {
		return cmp.Or(a.Since.Compare(b.Since.Time), cmp.Compare(a.Name, b.Name))
	})
	valid := validity(name, template, from)
	return []metav1.Condition{valid, readiness(valid, from), conflict(from)}
}

func condition(kind string, status metav1.ConditionStatus, reason, format string, args ...any) metav1.Condition {
	return metav1.Condition{Type: kind, Status: status, Reason: reason, Message: fmt.Sprintf(format, args...)}
}

func validity(name string, template *corev1.Service, from []ExportingCluster) metav1.Condition {
	known, collected := template != nil, 0
	all := []ExportingCluster{{Service: template}}
	for _, c := range append(all, from...) {
		collected += c.Slices
		if c.Service == nil {
			continue
		}
		known = true
		if c.Service.Spec.Type == corev1.ServiceTypeExternalName {
			return condition(ExportValid, metav1.ConditionFalse, reasonInvalidType, "Service %s has the type ExternalName, which has no endpoints to export: use another type", name)
		}
	}
	switch {
	case len(DerivedService(name)) > maxDerivedName:
		return condition(ExportValid, metav1.ConditionFalse, reasonFailed, "the name of the imported Service, %s, is longer than %d characters: rename the Service", DerivedService(name), maxDerivedName)
	case !known && collected == 0:
		return condition(ExportValid, metav1.ConditionFalse, reasonNoService, "Service %s does not exist: create it, and propagate it to the clusters of the ServiceExport", name)
	}
	return condition(ExportValid, metav1.ConditionTrue, reasonValid, "Service %s can be exported", name)
}

func readiness(valid metav1.Condition, from []ExportingCluster) metav1.Condition {
	if valid.Status != metav1.ConditionTrue {
		return condition(ExportReady, metav1.ConditionFalse, reasonFailed, "the ServiceExport is not valid: %s", valid.Message)
	}
	if len(from) == 0 {
		return condition(ExportReady, metav1.ConditionFalse, reasonPending, "no cluster has the ServiceExport: propagate it with a policy")
	}
	var exporting []string
	for _, c := range from {
		if c.Applied && c.Slices > 0 {
			exporting = append(exporting, c.Name)
		}
	}
	if len(exporting) == 0 {
		return condition(ExportReady, metav1.ConditionFalse, reasonPending, "no slice was collected of the %d clusters with the ServiceExport", len(from))
	}
	slices.Sort(exporting)
	return condition(ExportReady, metav1.ConditionTrue, reasonExported, "exported from %d of %d clusters: %s", len(exporting), len(from), listed(exporting))
}

// listed joins names, of many only the first.
func listed(all []string) string {
	out := strings.Join(all[:min(len(all), maxFailures)], ", ")
	if len(all) > maxFailures {
		out += ", ..."
	}
	return out
}

// conflict compares the Services with that of the oldest export.
func conflict(from []ExportingCluster) metav1.Condition {
	var first *ExportingCluster
	for i := range from {
		c := &from[i]
		if c.Service == nil {
			continue
		}
		if first == nil {
			first = c
			continue
		}
		if reason, what := difference(&first.Service.Spec, &c.Service.Spec); reason != "" {
			return condition(ExportConflict, metav1.ConditionTrue, reason, "cluster %s has another %s than cluster %s, whose export is older and applies: make them equal", c.Name, what, first.Name)
		}
	}
	return condition(ExportConflict, metav1.ConditionFalse, reasonNoConflicts, "the Services of all clusters agree")
}

// difference returns the reason and the name of the first property in which two Services
// conflict. Ports conflict when those of the same name differ; otherwise the union of the
// ports is exported.
func difference(a, b *corev1.ServiceSpec) (reason, what string) {
	if (a.ClusterIP == corev1.ClusterIPNone) != (b.ClusterIP == corev1.ClusterIPNone) {
		return reasonTypeConflict, "type (headless or not)"
	}
	for _, x := range a.Ports {
		for _, y := range b.Ports {
			same := x.Port == y.Port && cmp.Or(x.Protocol, corev1.ProtocolTCP) == cmp.Or(y.Protocol, corev1.ProtocolTCP)
			if x.Name == y.Name && (!same || ptr.Deref(x.AppProtocol, "") != ptr.Deref(y.AppProtocol, "")) || same && x.Name != y.Name {
				return reasonPortConflict, fmt.Sprintf("port %q", x.Name)
			}
		}
	}
	if cmp.Or(a.SessionAffinity, corev1.ServiceAffinityNone) != cmp.Or(b.SessionAffinity, corev1.ServiceAffinityNone) {
		return reasonAffinityConflict, "session affinity"
	}
	if a.SessionAffinity == corev1.ServiceAffinityClientIP && !equality.Semantic.DeepEqual(a.SessionAffinityConfig, b.SessionAffinityConfig) {
		return reasonConfigConflict, "configuration of session affinity"
	}
	return "", ""
}
