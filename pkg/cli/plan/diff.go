package plan

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/pmezard/go-difflib/difflib"
	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"github.com/karmada-toolkit/karmada/pkg/insight/plan"
)

const (
	// parallel is the number of members' objects that are read at a time.
	parallel = 32
	// context is the number of lines around a change.
	contextLines = 2
)

// diffs returns, with --diff, what changes in the objects of the members, by what happens in a cluster.
func (p *plans) diffs(ctx context.Context, effects *plan.Effects) map[*plan.Cluster]string {
	if !p.diff {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, deadline)
	defer cancel()
	out := map[*plan.Cluster]string{}
	var mu sync.Mutex
	var group errgroup.Group
	group.SetLimit(parallel)
	for i := range effects.Objects {
		for j := range effects.Objects[i].Clusters {
			c := &effects.Objects[i].Clusters[j]
			group.Go(func() error {
				text := p.diffIn(ctx, c)
				mu.Lock()
				defer mu.Unlock()
				out[c] = text
				return nil
			})
		}
	}
	_ = group.Wait()
	return out
}

// diffIn returns what changes in the object of a cluster.
func (p *plans) diffIn(ctx context.Context, c *plan.Cluster) string {
	delivered, after, err := c.Objects()
	if err != nil || after == nil || c.Action == plan.ActionKeep {
		return ""
	}
	note, before := "", delivered
	if delivered != nil {
		live, err := p.live(ctx, c.Name, delivered)
		switch {
		case err != nil:
			note = fmt.Sprintf("      the cluster was not read: %v; compared with what was delivered\n", err)
		case live == nil:
			note, before = "      the cluster does not have it\n", nil
		default:
			if merged, err := plan.Delivered(live, delivered, after); err == nil {
				before, after = live, merged
			}
		}
	}
	text, err := difflib.GetUnifiedDiffString(difflib.UnifiedDiff{A: lines(before, after), B: lines(after, before), Context: contextLines})
	if err != nil {
		return fmt.Sprintf("      %v\n", err)
	}
	var indented strings.Builder
	indented.WriteString(note)
	for line := range strings.Lines(text) {
		indented.WriteString("      " + line)
	}
	return indented.String()
}

// live returns the object that a cluster has; nil if it does not exist.
func (p *plans) live(ctx context.Context, cluster string, u *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	config, err := p.access.MemberAccess(cluster).ToRESTConfig()
	if err != nil {
		return nil, err
	}
	member, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	kind := u.GroupVersionKind()
	mapping, err := p.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return nil, err
	}
	found, err := member.Resource(mapping.Resource).Namespace(u.GetNamespace()).Get(ctx, u.GetName(), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return found, err
}

// lines returns the lines of an object without what the API server of a member writes. Values of Secrets are masked, those that differ
// from the other object's differently.
func lines(u, other *unstructured.Unstructured) []string {
	if u == nil {
		return nil
	}
	shown := plan.Shown(u, other)
	text, err := yaml.Marshal(shown)
	if err != nil {
		return []string{err.Error() + "\n"}
	}
	return difflib.SplitLines(strings.TrimSuffix(string(text), "\n"))
}
