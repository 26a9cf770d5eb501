// Package locate finds the member that has an object, for commands on pods that
// name no cluster.
package locate

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"

	"github.com/karmada-toolkit/karmada/pkg/cli/env"
	"github.com/karmada-toolkit/karmada/pkg/cli/fanout"
)

// deadline is how long each member may take to answer.
const deadline = 5 * time.Second

// Target is what a command line names: an object, or the pods of a selector.
type Target struct {
	// Arg is NAME, which is a pod, or TYPE/NAME.
	Arg string
	// Selector is a label selector of pods, or of the objects of the type of TYPE/.
	Selector string
	// fields is a field selector of these.
	fields string
	// everywhere reports whether the objects of all namespaces are meant.
	everywhere bool
}

// Empty reports whether the command line names nothing.
func (t Target) Empty() bool { return t.Arg == "" && t.Selector == "" }

// String returns the target as errors name it.
func (t Target) String() string {
	if t.Selector != "" && t.Arg == "" {
		return fmt.Sprintf("pods with labels %q", t.Selector)
	}
	if kind, ok := strings.CutSuffix(t.Arg, "/"); ok {
		return "the selection of " + kind
	}
	if kind, name, found := strings.Cut(t.Arg, "/"); found {
		return fmt.Sprintf("%s %q", kind, name)
	}
	return fmt.Sprintf("pod %q", t.Arg)
}

// exist returns the verb that agrees with String.
func (t Target) exist() string {
	if t.Selector != "" {
		return "exist"
	}
	return "exists"
}

// Check wraps a command on pods: without a scope and a cluster the member that has
// the target becomes the server that the command works on. target returns what the
// command line names.
func Check(e *env.Env, access *env.Access, cmd *cobra.Command, target func(cmd *cobra.Command, args []string) Target) *cobra.Command {
	cmd.PreRunE = func(cmd *cobra.Command, args []string) error {
		t := target(cmd, args)
		if access.Target.Cluster == "" && !t.Empty() && (!access.Target.ScopeGiven() || access.Target.Scope == env.Members) {
			cluster, err := Member(cmd.Context(), e, access, t)
			if err != nil {
				return err
			}
			access.Target.Scope, access.Target.Cluster = env.Members, cluster
		}
		if access.Target.Cluster == "" && t.Empty() && !access.Target.ScopeGiven() {
			return nil // the command returns a usage error
		}
		return access.Connect(cmd.Context())
	}
	return cmd
}

// Member returns the name of the only member that has the target. The error names
// the members if there are several, and those that did not answer if there is none.
func Member(ctx context.Context, e *env.Env, access *env.Access, t Target) (string, error) {
	names, err := access.ControlPlane.ClusterNames(ctx)
	if err != nil {
		return "", err
	}
	if len(names) == 0 {
		return "", errors.New("the control plane has no member clusters, and runs no pods itself")
	}
	resource, namespace, err := t.resource(access)
	if err != nil {
		return "", err
	}
	found, failed := partition(holders(ctx, access, names, resource, namespace, t))
	cluster, err := choose(t, namespace, names, found, failed)
	if err == nil && len(failed) > 0 {
		e.Say("using cluster(%s); no answer of other clusters: %s", cluster, strings.Join(failed, "; "))
	}
	return cluster, err
}

// holders reports for each cluster whether it has the target.
func holders(ctx context.Context, access *env.Access, clusters []string, resource schema.GroupVersionResource, namespace string, t Target) []fanout.Outcome[bool] {
	return fanout.Each(ctx, fanout.Limits{Deadline: deadline}, clusters, func(ctx context.Context, cluster string) (bool, error) {
		config, err := access.ControlPlane.MemberConfig(cluster)
		if err != nil {
			return false, err
		}
		client, err := metadata.NewForConfig(config)
		if err != nil {
			return false, fmt.Errorf("making a client: %w", err)
		}
		return has(ctx, client.Resource(resource).Namespace(namespace), t)
	})
}

// partition returns the members that have the target, and the errors of those that did
// not answer.
func partition(outcomes []fanout.Outcome[bool]) (found, failed []string) {
	for _, o := range outcomes {
		switch {
		case o.Err != nil:
			failed = append(failed, fanout.ClusterError(o.Cluster, o.Err, 0).Error())
		case o.Value:
			found = append(found, o.Cluster)
		}
	}
	return found, failed
}

// choose returns the only member of found, or an error with the next step.
func choose(t Target, namespace string, clusters, found, failed []string) (string, error) {
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1:
		return "", fmt.Errorf("%s %s in several clusters: %s; choose one with --cluster", t, t.exist(), strings.Join(found, ", "))
	}
	text := fmt.Sprintf("%s not found in namespace %q of the clusters %s", t, namespace, strings.Join(clusters, ", "))
	if len(failed) > 0 {
		text += "; no answer of " + strings.Join(failed, "; ")
	}
	return "", errors.New(text)
}

// has reports whether a member has the target.
func has(ctx context.Context, client metadata.ResourceInterface, t Target) (bool, error) {
	if t.Selector != "" && t.Arg == "" {
		list, err := client.List(ctx, metav1.ListOptions{LabelSelector: t.Selector, Limit: 1})
		if err != nil {
			return false, err
		}
		return len(list.Items) > 0, nil
	}
	_, name, found := strings.Cut(t.Arg, "/")
	if !found {
		name = t.Arg
	}
	if name == "" {
		list, err := client.List(ctx, metav1.ListOptions{LabelSelector: t.Selector, FieldSelector: t.fields, Limit: 1})
		if apierrors.IsNotFound(err) {
			return false, nil // the type
		}
		return err == nil && len(list.Items) > 0, err
	}
	_, err := client.Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return false, nil // the object or its type
	}
	return err == nil, err
}

// resource returns the type of the target as the control plane knows it, and the namespace of its objects: empty for a type without
// namespaces.
func (t Target) resource(access *env.Access) (resource schema.GroupVersionResource, namespace string, err error) {
	if kind, _, found := strings.Cut(t.Arg, "/"); found {
		return Resource(access, kind)
	}
	namespace, _, err = access.Namespace()
	return corev1.SchemeGroupVersion.WithResource("pods"), namespace, err
}

// Resource returns a type as the control plane knows it, and the namespace of its objects: empty for a type without namespaces.
func Resource(access *env.Access, kind string) (resource schema.GroupVersionResource, namespace string, err error) {
	mapper, err := access.ControlPlane.RESTMapper()
	if err != nil {
		return resource, "", err
	}
	full, group := schema.ParseResourceArg(kind)
	err = errors.New("no version")
	if full != nil {
		resource, err = mapper.ResourceFor(*full)
	}
	if err != nil {
		resource, err = mapper.ResourceFor(group.WithVersion(""))
	}
	if err != nil {
		return resource, "", fmt.Errorf("the control plane has no resource type %q; name the cluster with --cluster", kind)
	}
	of, err := mapper.KindFor(resource)
	if err != nil {
		return resource, "", err
	}
	mapping, err := mapper.RESTMapping(of.GroupKind(), of.Version)
	if err != nil || mapping.Scope.Name() != meta.RESTScopeNameNamespace {
		return resource, "", err
	}
	namespace, _, err = access.Namespace()
	return resource, namespace, err
}
