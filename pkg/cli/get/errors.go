package get

import (
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/karmada-toolkit/karmada/pkg/cli/fanout"
)

// errUnknownType is the error of a server that does not serve a resource type.
type errUnknownType struct{ arg string }

func (e errUnknownType) Error() string {
	return fmt.Sprintf("the server doesn't have a resource type %q", e.arg)
}

// errNoType is the error of a server that does not serve a type.
var errNoType = errors.New("the server could not find the requested resource")

// isMissing reports whether an object does not exist whose type does.
func isMissing(err error) bool {
	return apierrors.IsNotFound(err) && !isNoType(err)
}

func isNoType(err error) bool {
	var status apierrors.APIStatus
	if !apierrors.IsNotFound(err) || !errors.As(err, &status) {
		return false
	}
	details := status.Status().Details
	return details == nil || details.Name == ""
}

// typed replaces the error of a server that does not serve a type.
func typed(err error) error {
	if isNoType(err) {
		return errNoType
	}
	return err
}

// addFailure adds the errors of a cluster. That a cluster has not reported yet is a note, unless the cluster was named.
func (c *collector) addFailure(res *result, cluster string, failure error) {
	deadline := c.memberTimeout
	if cluster == controlPlaneName {
		deadline = 0
	}
	for _, err := range each(failure) {
		text := clusterError(cluster, err, deadline)
		res.failed[cluster] = text.Error()
		if fanout.NotReported(err) && !slices.Contains(c.clusters, cluster) {
			res.notes = append(res.notes, text.Error())
			continue
		}
		res.errs = append(res.errs, text)
	}
}

// clusterError names the cluster that failed. The role search stands for none.
func clusterError(cluster string, err error, deadline time.Duration) error {
	if cluster == searchName {
		return err
	}
	return fanout.ClusterError(cluster, err, deadline)
}

// each returns the errors of a joined error.
func each(err error) []error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		return joined.Unwrap()
	}
	return []error{err}
}

// missing are the requested names that clusters do not have.
type missing struct {
	order    []string
	clusters map[string][]string
	errs     map[string]error
	// inNamespace are the names whose namespace some cluster has.
	inNamespace map[string]bool
}

func (m *missing) add(cluster string, p *part, found map[string]bool) {
	resource := p.mapping.Resource.GroupResource()
	for _, name := range p.names() {
		found[resource.String()+"/"+name] = true
	}
	for _, name := range p.missing {
		key := resource.String() + "/" + name
		if m.errs[key] == nil {
			m.order = append(m.order, key)
			m.errs[key] = apierrors.NewNotFound(resource, name)
		}
		m.clusters[key] = append(m.clusters[key], cluster)
		m.inNamespace[key] = m.inNamespace[key] || !p.namespaceMissing
	}
}

func (m *missing) errors(c *collector, found map[string]bool) []error {
	var errs []error
	add := func(err error) {
		if !slices.ContainsFunc(errs, func(e error) bool { return e.Error() == err.Error() }) {
			errs = append(errs, err)
		}
	}
	for _, key := range m.order {
		err := m.errs[key]
		if !found[key] && !m.inNamespace[key] {
			err = apierrors.NewNotFound(corev1.Resource("namespaces"), c.sources.namespace)
		}
		if !found[key] && (len(c.clusters) == 0 || c.cached) {
			add(err)
			continue
		}
		for _, cluster := range m.clusters[key] {
			if slices.Contains(c.clusters, cluster) {
				add(fmt.Errorf("cluster(%s): %w", cluster, err))
			}
		}
	}
	return errs
}
