// Package pb has the messages and the service of the accurate estimators, generated from messages.proto and
// service.proto, and conversions between the messages and the API types.
package pb

import (
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/karmada-toolkit/karmada/internal/quantity"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
)

// FromReplicaRequirements returns the message for the requirements of a replica; nil for nil. It returns an error when
// one of Kubernetes' types cannot be encoded.
func FromReplicaRequirements(r *workv1alpha2.ReplicaRequirements) (*ReplicaRequirements, error) {
	if r == nil {
		return nil, nil
	}
	claim, err := fromNodeClaim(r.NodeClaim)
	if err != nil {
		return nil, err
	}
	resources, err := fromResources(r.ResourceRequest)
	if err != nil {
		return nil, err
	}
	return &ReplicaRequirements{
		NodeClaim: claim, Namespace: r.Namespace, PriorityClassName: r.PriorityClassName, ResourceRequestBytes: resources,
	}, nil
}

// ToReplicaRequirements returns the requirements that a message describes; nil for nil. It returns an error when one of
// Kubernetes' types cannot be decoded.
func ToReplicaRequirements(m *ReplicaRequirements) (*workv1alpha2.ReplicaRequirements, error) {
	if m == nil {
		return nil, nil
	}
	claim, err := toNodeClaim(m.NodeClaim)
	if err != nil {
		return nil, err
	}
	resources, err := toResources(m.ResourceRequestBytes)
	if err != nil {
		return nil, err
	}
	return &workv1alpha2.ReplicaRequirements{
		NodeClaim: claim, Namespace: m.Namespace, PriorityClassName: m.PriorityClassName, ResourceRequest: resources,
	}, nil
}

// FromComponents returns the messages for components. It returns an error that names the component when one of
// Kubernetes' types cannot be encoded.
func FromComponents(components []workv1alpha2.Component) ([]*Component, error) {
	var out []*Component
	for i := range components {
		c := &components[i]
		m := &Component{Name: c.Name, Replicas: c.Replicas}
		if r := c.ReplicaRequirements; r != nil {
			one, err := FromReplicaRequirements(&workv1alpha2.ReplicaRequirements{NodeClaim: r.NodeClaim, ResourceRequest: r.ResourceRequest})
			if err != nil {
				return nil, fmt.Errorf("component %q: %w", c.Name, err)
			}
			m.ReplicaRequirements = &ComponentReplicaRequirements{
				NodeClaim: one.NodeClaim, PriorityClassName: r.PriorityClassName, ResourceRequestBytes: one.ResourceRequestBytes,
			}
		}
		out = append(out, m)
	}
	return out, nil
}

// ToComponents returns the components that messages describe. It returns an error that names the component when one of
// Kubernetes' types cannot be decoded.
func ToComponents(messages []*Component) ([]workv1alpha2.Component, error) {
	var out []workv1alpha2.Component
	for _, m := range messages {
		c := workv1alpha2.Component{Name: m.GetName(), Replicas: m.GetReplicas()}
		if r := m.GetReplicaRequirements(); r != nil {
			one, err := ToReplicaRequirements(&ReplicaRequirements{NodeClaim: r.NodeClaim, ResourceRequestBytes: r.ResourceRequestBytes})
			if err != nil {
				return nil, fmt.Errorf("component %q: %w", c.Name, err)
			}
			c.ReplicaRequirements = &workv1alpha2.ComponentReplicaRequirements{
				NodeClaim: one.NodeClaim, PriorityClassName: r.PriorityClassName, ResourceRequest: one.ResourceRequest,
			}
		}
		out = append(out, c)
	}
	return out, nil
}

func fromNodeClaim(c *workv1alpha2.NodeClaim) (*NodeClaim, error) {
	if c == nil {
		return nil, nil
	}
	m := &NodeClaim{NodeSelector: c.NodeSelector}
	if c.HardNodeAffinity != nil {
		data, err := c.HardNodeAffinity.Marshal()
		if err != nil {
			return nil, fmt.Errorf("encoding the node affinity: %w", err)
		}
		m.NodeAffinityBytes = data
	}
	for i := range c.Tolerations {
		data, err := c.Tolerations[i].Marshal()
		if err != nil {
			return nil, fmt.Errorf("encoding toleration %d: %w", i, err)
		}
		m.TolerationsBytes = append(m.TolerationsBytes, data)
	}
	return m, nil
}

func toNodeClaim(m *NodeClaim) (*workv1alpha2.NodeClaim, error) {
	if m == nil {
		return nil, nil
	}
	c := &workv1alpha2.NodeClaim{NodeSelector: m.NodeSelector}
	if len(m.NodeAffinityBytes) > 0 {
		c.HardNodeAffinity = &corev1.NodeSelector{}
		if err := decode(c.HardNodeAffinity, m.NodeAffinityBytes); err != nil {
			return nil, fmt.Errorf("decoding the node affinity: %w", err)
		}
	}
	for i, data := range m.TolerationsBytes {
		var toleration corev1.Toleration
		if err := decode(&toleration, data); err != nil {
			return nil, fmt.Errorf("decoding toleration %d: %w", i, err)
		}
		c.Tolerations = append(c.Tolerations, toleration)
	}
	return c, nil
}

func fromResources(list corev1.ResourceList) (map[string][]byte, error) {
	var out map[string][]byte
	for name, quantity := range list {
		data, err := quantity.Marshal()
		if err != nil {
			return nil, fmt.Errorf("encoding the quantity of %s: %w", name, err)
		}
		if out == nil {
			out = make(map[string][]byte, len(list))
		}
		out[string(name)] = data
	}
	return out, nil
}

func toResources(m map[string][]byte) (corev1.ResourceList, error) {
	var out corev1.ResourceList
	for name, data := range m {
		q, err := toQuantity(data)
		if err != nil {
			return nil, fmt.Errorf("decoding the quantity of %s: %w", name, err)
		}
		if out == nil {
			out = make(corev1.ResourceList, len(m))
		}
		out[corev1.ResourceName(name)] = q
	}
	return out, nil
}

// toQuantity decodes a quantity, whose text is its first field. It does not have Kubernetes decode it, whose parser
// takes minutes for numbers such as 1e-300000000.
func toQuantity(data []byte) (resource.Quantity, error) {
	text := ""
	for len(data) > 0 {
		number, kind, n := protowire.ConsumeTag(data)
		if n < 0 {
			return resource.Quantity{}, protowire.ParseError(n)
		}
		data = data[n:]
		if n = protowire.ConsumeFieldValue(number, kind, data); n < 0 {
			return resource.Quantity{}, protowire.ParseError(n)
		}
		if number == 1 && kind == protowire.BytesType {
			value, _ := protowire.ConsumeBytes(data)
			text = string(value)
		}
		data = data[n:]
	}
	if text == "" {
		return resource.Quantity{}, nil
	}
	return quantity.Parse(text)
}

// decode decodes one of Kubernetes' types, whose decoders panic on some invalid input.
func decode(into interface{ Unmarshal(data []byte) error }, data []byte) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("invalid %T: %v", into, r)
		}
	}()
	return into.Unmarshal(data)
}

// MetadataObject is the key of the gRPC metadata that names the object of a request, for the log of the server.
const MetadataObject = "object"
