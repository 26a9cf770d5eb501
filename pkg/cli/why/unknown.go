package why

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"

	"github.com/karmada-toolkit/karmada/pkg/cli/locate"
)

const (
	// maxNearest is the number of names that an error proposes.
	maxNearest = 3
	// maxCompared is the number of objects whose names are compared.
	maxCompared = 500
)

// nearest returns the candidates that a word may be meant to be, as the commands of the program are proposed: by prefix, and by the
// Levenshtein distance.
func nearest(word string, candidates []string) []string {
	all := &cobra.Command{SuggestionsMinimumDistance: 2}
	for _, c := range candidates {
		all.AddCommand(&cobra.Command{Use: c, Run: func(*cobra.Command, []string) {}})
	}
	found := all.SuggestionsFor(word)
	return found[:min(len(found), maxNearest)]
}

// didYouMean adds the nearest candidates to an error.
func didYouMean(err error, word string, candidates []string) error {
	if found := nearest(word, candidates); len(found) > 0 {
		return fmt.Errorf("%w; did you mean %s?", err, strings.Join(found, ", "))
	}
	return err
}

// findInMember makes the question one about the only member that has an object which the control plane does not have, as it reported
// by err. The error proposes the names that are nearest.
func (q *question) findInMember(ctx context.Context, err error) error {
	kind, name := q.named()
	switch {
	case strings.HasPrefix(err.Error(), "the server doesn't have a resource type"):
		return didYouMean(err, kind, q.types())
	case !apierrors.IsNotFound(err):
		return err
	}
	if !strings.Contains(err.Error(), ".karmada.io") { // members have no such objects
		cluster, lost := locate.Member(ctx, q.env, q.access, locate.Target{Arg: kind + "/" + name})
		if lost == nil {
			q.env.Say("using cluster(%s)", cluster)
			q.cluster = cluster
			return nil
		}
		err = fmt.Errorf("%w in the control plane; %w", err, lost)
	}
	return didYouMean(err, name, q.others(ctx, kind))
}

// named returns the type and the name of the object.
func (q *question) named() (kind, name string) {
	if len(q.args) == 2 {
		return q.args[0], q.args[1]
	}
	kind, name, _ = strings.Cut(q.args[0], "/")
	return kind, name
}

// types returns the names of the types of the control plane.
func (q *question) types() []string {
	client, err := q.access.ToDiscoveryClient()
	if err != nil {
		return nil
	}
	lists, err := client.ServerPreferredResources()
	if err != nil && !discovery.IsGroupDiscoveryFailedError(err) {
		return nil
	}
	var out []string
	for _, list := range lists {
		for i := range list.APIResources {
			out = append(out, list.APIResources[i].Name, list.APIResources[i].SingularName)
		}
	}
	slices.Sort(out)
	return slices.DeleteFunc(slices.Compact(out), func(name string) bool { return name == "" || strings.Contains(name, "/") })
}

// others returns the names of the objects of a type in the namespace, or none if they cannot be listed.
func (q *question) others(ctx context.Context, kind string) []string {
	resource, namespace, err := locate.Resource(q.access, kind)
	if err != nil {
		return nil
	}
	config, err := q.access.ControlPlane.RESTConfig()
	if err != nil {
		return nil
	}
	client, err := metadata.NewForConfig(config)
	if err != nil {
		return nil
	}
	list, err := client.Resource(resource).Namespace(namespace).List(ctx, metav1.ListOptions{Limit: maxCompared})
	if err != nil {
		return nil
	}
	var out []string
	for i := range list.Items {
		out = append(out, list.Items[i].Name)
	}
	return out
}
