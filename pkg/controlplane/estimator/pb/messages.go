// Package pb is how estimators are asked over gRPC: the messages of the service,
// written and read by hand, since they are few and name Kubernetes' own types by
// their encoding.
package pb

import (
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
)

// Message is a message of the service.
type Message interface {
	// Append appends the encoding of the message.
	Append(b []byte) ([]byte, error)
	// Parse replaces the message by what is encoded.
	Parse(data []byte) error
}

// MaxAvailableReplicasRequest asks how many replicas fit.
type MaxAvailableReplicasRequest struct {
	Cluster string
	// Requirements of one replica; nil for none.
	Requirements *workv1alpha2.ReplicaRequirements
	// Assumed is what was given to the cluster and may not be there yet.
	Assumed []AssumedWorkload
}

// AssumedWorkload is a workload that was given to a cluster.
type AssumedWorkload struct {
	Namespace  string
	Components []workv1alpha2.Component
}

// MaxAvailableReplicasResponse is the answer.
type MaxAvailableReplicasResponse struct{ MaxReplicas int32 }

// MaxAvailableComponentSetsRequest asks how many sets of components fit.
type MaxAvailableComponentSetsRequest struct {
	Cluster    string
	Components []workv1alpha2.Component
	Namespace  string
	Assumed    []AssumedWorkload
}

// MaxAvailableComponentSetsResponse is the answer.
type MaxAvailableComponentSetsResponse struct{ MaxSets int32 }

// UnschedulableReplicasRequest asks how many replicas have found no node.
type UnschedulableReplicasRequest struct {
	Cluster  string
	Resource ObjectReference
	// Threshold is for how long they must have, in nanoseconds.
	Threshold int64
}

// ObjectReference names an object.
type ObjectReference struct{ APIVersion, Kind, Namespace, Name string }

// UnschedulableReplicasResponse is the answer.
type UnschedulableReplicasResponse struct{ UnschedulableReplicas int32 }

// Append implements Message.
func (m *MaxAvailableReplicasRequest) Append(b []byte) ([]byte, error) {
	w := writer{b: b}
	w.text(1, m.Cluster)
	if m.Requirements != nil {
		w.message(2, func(w *writer) { w.requirements(m.Requirements) })
	}
	w.assumed(3, m.Assumed)
	return w.b, w.err
}

// Parse implements Message.
func (m *MaxAvailableReplicasRequest) Parse(data []byte) error {
	*m = MaxAvailableReplicasRequest{}
	return parse(data, func(f field) (err error) {
		switch f.number {
		case 1:
			m.Cluster = string(f.bytes)
		case 2:
			m.Requirements, err = parseRequirements(f.bytes)
		case 3:
			m.Assumed, err = appendAssumed(m.Assumed, f.bytes)
		}
		return err
	})
}

// Append implements Message.
func (m *MaxAvailableReplicasResponse) Append(b []byte) ([]byte, error) {
	w := writer{b: b}
	w.integer(1, int64(m.MaxReplicas))
	return w.b, nil
}

// Parse implements Message.
func (m *MaxAvailableReplicasResponse) Parse(data []byte) error {
	*m = MaxAvailableReplicasResponse{}
	return parse(data, func(f field) error {
		if f.number == 1 {
			m.MaxReplicas = int32(f.varint)
		}
		return nil
	})
}

// Append implements Message.
func (m *MaxAvailableComponentSetsRequest) Append(b []byte) ([]byte, error) {
	w := writer{b: b}
	w.text(1, m.Cluster)
	w.components(2, m.Components)
	w.text(3, m.Namespace)
	w.assumed(4, m.Assumed)
	return w.b, w.err
}

// Parse implements Message.
func (m *MaxAvailableComponentSetsRequest) Parse(data []byte) error {
	*m = MaxAvailableComponentSetsRequest{}
	return parse(data, func(f field) (err error) {
		switch f.number {
		case 1:
			m.Cluster = string(f.bytes)
		case 2:
			m.Components, err = appendComponent(m.Components, f.bytes)
		case 3:
			m.Namespace = string(f.bytes)
		case 4:
			m.Assumed, err = appendAssumed(m.Assumed, f.bytes)
		}
		return err
	})
}

// Append implements Message.
func (m *MaxAvailableComponentSetsResponse) Append(b []byte) ([]byte, error) {
	w := writer{b: b}
	w.integer(1, int64(m.MaxSets))
	return w.b, nil
}

// Parse implements Message.
func (m *MaxAvailableComponentSetsResponse) Parse(data []byte) error {
	*m = MaxAvailableComponentSetsResponse{}
	return parse(data, func(f field) error {
		if f.number == 1 {
			m.MaxSets = int32(f.varint)
		}
		return nil
	})
}

// Append implements Message.
func (m *UnschedulableReplicasRequest) Append(b []byte) ([]byte, error) {
	w := writer{b: b}
	w.text(1, m.Cluster)
	w.message(2, func(w *writer) {
		w.text(1, m.Resource.APIVersion)
		w.text(2, m.Resource.Kind)
		w.text(3, m.Resource.Namespace)
		w.text(4, m.Resource.Name)
	})
	w.integer(3, m.Threshold)
	return w.b, w.err
}

// Parse implements Message.
func (m *UnschedulableReplicasRequest) Parse(data []byte) error {
	*m = UnschedulableReplicasRequest{}
	return parse(data, func(f field) error {
		switch f.number {
		case 1:
			m.Cluster = string(f.bytes)
		case 2:
			return parse(f.bytes, func(f field) error {
				for i, into := range []*string{&m.Resource.APIVersion, &m.Resource.Kind, &m.Resource.Namespace, &m.Resource.Name} {
					if int(f.number) == i+1 {
						*into = string(f.bytes)
					}
				}
				return nil
			})
		case 3:
			m.Threshold = int64(f.varint)
		}
		return nil
	})
}

// Append implements Message.
func (m *UnschedulableReplicasResponse) Append(b []byte) ([]byte, error) {
	w := writer{b: b}
	w.integer(1, int64(m.UnschedulableReplicas))
	return w.b, nil
}

// Parse implements Message.
func (m *UnschedulableReplicasResponse) Parse(data []byte) error {
	*m = UnschedulableReplicasResponse{}
	return parse(data, func(f field) error {
		if f.number == 1 {
			m.UnschedulableReplicas = int32(f.varint)
		}
		return nil
	})
}

func (w *writer) requirements(r *workv1alpha2.ReplicaRequirements) {
	w.claim(1, r.NodeClaim)
	w.text(3, r.Namespace)
	w.text(4, r.PriorityClassName)
	w.resources(5, r.ResourceRequest)
}

func parseRequirements(data []byte) (*workv1alpha2.ReplicaRequirements, error) {
	r := &workv1alpha2.ReplicaRequirements{}
	return r, parse(data, func(f field) (err error) {
		switch f.number {
		case 1:
			r.NodeClaim, err = parseClaim(f.bytes)
		case 3:
			r.Namespace = string(f.bytes)
		case 4:
			r.PriorityClassName = string(f.bytes)
		case 5:
			err = addResource(&r.ResourceRequest, f.bytes)
		}
		return err
	})
}

func (w *writer) assumed(number int32, list []AssumedWorkload) {
	for i := range list {
		w.message(number, func(w *writer) {
			w.text(1, list[i].Namespace)
			w.components(2, list[i].Components)
		})
	}
}

func appendAssumed(list []AssumedWorkload, data []byte) ([]AssumedWorkload, error) {
	var a AssumedWorkload
	err := parse(data, func(f field) (err error) {
		switch f.number {
		case 1:
			a.Namespace = string(f.bytes)
		case 2:
			a.Components, err = appendComponent(a.Components, f.bytes)
		}
		return err
	})
	return append(list, a), err
}

func (w *writer) components(number int32, list []workv1alpha2.Component) {
	for i := range list {
		c := &list[i]
		w.message(number, func(w *writer) {
			w.text(1, c.Name)
			if r := c.ReplicaRequirements; r != nil {
				w.message(2, func(w *writer) {
					w.claim(1, r.NodeClaim)
					w.text(3, r.PriorityClassName)
					w.resources(4, r.ResourceRequest)
				})
			}
			w.integer(3, int64(c.Replicas))
		})
	}
}

func appendComponent(list []workv1alpha2.Component, data []byte) ([]workv1alpha2.Component, error) {
	var c workv1alpha2.Component
	err := parse(data, func(f field) (err error) {
		switch f.number {
		case 1:
			c.Name = string(f.bytes)
		case 2:
			c.ReplicaRequirements, err = parseComponentRequirements(f.bytes)
		case 3:
			c.Replicas = int32(f.varint)
		}
		return err
	})
	return append(list, c), err
}

func parseComponentRequirements(data []byte) (*workv1alpha2.ComponentReplicaRequirements, error) {
	r := &workv1alpha2.ComponentReplicaRequirements{}
	return r, parse(data, func(f field) (err error) {
		switch f.number {
		case 1:
			r.NodeClaim, err = parseClaim(f.bytes)
		case 3:
			r.PriorityClassName = string(f.bytes)
		case 4:
			err = addResource(&r.ResourceRequest, f.bytes)
		}
		return err
	})
}

func (w *writer) claim(number int32, c *workv1alpha2.NodeClaim) {
	if c == nil {
		return
	}
	w.message(number, func(w *writer) {
		for _, key := range sortedKeys(c.NodeSelector) {
			w.message(2, func(w *writer) {
				w.text(1, key)
				w.text(2, c.NodeSelector[key])
			})
		}
		if c.HardNodeAffinity != nil {
			w.encoded(4, c.HardNodeAffinity)
		}
		for i := range c.Tolerations {
			w.encoded(5, &c.Tolerations[i])
		}
	})
}

func parseClaim(data []byte) (*workv1alpha2.NodeClaim, error) {
	c := &workv1alpha2.NodeClaim{}
	return c, parse(data, func(f field) error {
		switch f.number {
		case 2:
			key, value, err := parseEntry(f.bytes)
			if c.NodeSelector == nil {
				c.NodeSelector = map[string]string{}
			}
			c.NodeSelector[key] = string(value)
			return err
		case 4:
			c.HardNodeAffinity = &corev1.NodeSelector{}
			return kubernetes(c.HardNodeAffinity, f.bytes)
		case 5:
			var t corev1.Toleration
			err := kubernetes(&t, f.bytes)
			c.Tolerations = append(c.Tolerations, t)
			return err
		}
		return nil
	})
}

func (w *writer) resources(number int32, list corev1.ResourceList) {
	for _, name := range sortedKeys(list) {
		q := list[name]
		w.message(number, func(w *writer) {
			w.text(1, string(name))
			w.encoded(2, &q)
		})
	}
}

func addResource(list *corev1.ResourceList, data []byte) error {
	name, value, err := parseEntry(data)
	if err != nil {
		return err
	}
	var q resource.Quantity
	if err := kubernetes(&q, value); err != nil {
		return err
	}
	if *list == nil {
		*list = corev1.ResourceList{}
	}
	(*list)[corev1.ResourceName(name)] = q
	return nil
}

// parseEntry reads an entry of a map.
func parseEntry(data []byte) (key string, value []byte, err error) {
	err = parse(data, func(f field) error {
		switch f.number {
		case 1:
			key = string(f.bytes)
		case 2:
			value = slices.Clone(f.bytes)
		}
		return nil
	})
	return key, value, err
}

// kubernetes reads one of Kubernetes' messages. Theirs panic on some garbage.
func kubernetes(into interface{ Unmarshal(data []byte) error }, data []byte) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("decoding %T: %v", into, r)
		}
	}()
	if err := into.Unmarshal(data); err != nil {
		return fmt.Errorf("decoding %T: %w", into, err)
	}
	return nil
}

var errMessage = errors.New("not a message of the estimator service")
