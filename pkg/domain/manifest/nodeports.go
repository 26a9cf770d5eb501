package manifest

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
)

// nodePort is a node port of a Service.
type nodePort struct {
	// of is PORT/PROTOCOL, or healthCheckNodePort.
	of string
	// path is that of the field, which the map in has under its name.
	path, field string
	in          map[string]any
}

// String returns of=VALUE.
func (p nodePort) String() string { return fmt.Sprintf("%s=%v", p.of, p.in[p.field]) }

// nodePorts returns the node ports that a Service has, none for other kinds.
func nodePorts(obj map[string]any) []nodePort {
	spec := child(obj, "spec")
	if kindOf(obj) != (kind{"", "Service"}) || spec == nil {
		return nil
	}
	all := []nodePort{{healthCheckNodePort, "spec." + healthCheckNodePort, healthCheckNodePort, spec}}
	for i, port := range mapsOf(spec["ports"]) {
		all = append(all, nodePort{fmt.Sprintf("%v/%v", port["port"], port["protocol"]), fmt.Sprintf("spec.ports[%d].nodePort", i), "nodePort", port})
	}
	return slices.DeleteFunc(all, func(p nodePort) bool { return p.in[p.field] == nil || fmt.Sprint(p.in[p.field]) == "0" })
}

const healthCheckNodePort = "healthCheckNodePort"

// markNodePorts lists the node ports that no field manager owns in the annotation of allocated ones.
func markNodePorts(obj map[string]any, managed []map[string]any) {
	var allocated []string
	for _, p := range nodePorts(obj) {
		path := []string{"f:" + healthCheckNodePort}
		if p.of != healthCheckNodePort {
			path = []string{"f:ports", portKey(p.in), "f:nodePort"}
		}
		if !owned(managed, path...) {
			allocated = append(allocated, p.String())
		}
	}
	if len(allocated) > 0 {
		ensure(ensure(obj, "metadata"), "annotations")[workv1alpha2.AllocatedNodePortsAnnotation] = strings.Join(allocated, ",")
	}
}

// allocatedNodePorts returns the node ports of a manifest that the control plane allocated, as long as no override changed them.
func allocatedNodePorts(obj *unstructured.Unstructured) []nodePort {
	marked := strings.Split(obj.GetAnnotations()[workv1alpha2.AllocatedNodePortsAnnotation], ",")
	return slices.DeleteFunc(nodePorts(obj.Object), func(p nodePort) bool { return !slices.Contains(marked, p.String()) })
}

// KeepNodePorts changes desired in place: instead of node ports that the control plane allocated it gets those that the member has
// already. It returns a line for each that differs.
func KeepNodePorts(desired, observed *unstructured.Unstructured) (different []string) {
	have := nodePorts(observed.Object)
	for _, p := range allocatedNodePorts(desired) {
		i := slices.IndexFunc(have, func(other nodePort) bool { return other.of == p.of })
		if i < 0 || have[i].String() == p.String() {
			continue
		}
		different = append(different, fmt.Sprintf("%s %v is %v there", p.path, p.in[p.field], have[i].in[have[i].field]))
		p.in[p.field] = have[i].in[have[i].field]
	}
	return different
}

// DropNodePorts returns a copy of desired without those node ports that the control plane allocated and a member refuses, by the
// path of their field: the member allocates others. It is nil if there is none of them.
func DropNodePorts(desired *unstructured.Unstructured, refused func(path string) bool) *unstructured.Unstructured {
	out, dropped := desired.DeepCopy(), false
	for _, p := range allocatedNodePorts(out) {
		if refused(p.path) {
			delete(p.in, p.field)
			dropped = true
		}
	}
	if !dropped {
		return nil
	}
	return out
}
