package local

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/local/federation"
	"github.com/karmada-toolkit/karmada/pkg/local/process"
)

// StopParts stops some processes or clusters of a federation; with a member it stops the agent and the estimator of the
// member as well. They stay members, and their data is kept. What does not run is no error.
func StopParts(ctx context.Context, d Deps, root, name string, parts []string) error {
	f, err := Load(root, name)
	if err != nil {
		return err
	}
	runtime := runtimeOf(d, f, UpRequest{})
	if err := checkParts(f, runtime, parts); err != nil {
		return err
	}
	unlock, err := f.Dir().Lock()
	if err != nil {
		return err
	}
	defer unlock()
	return runtime.StopParts(ctx, parts)
}

// StartParts starts some processes or clusters of a federation, with the control plane, and returns when they are ready. A
// member is started with its agent and estimator.
func StartParts(ctx context.Context, d Deps, root, name string, parts []string) error {
	_, err := Up(ctx, d, UpRequest{
		Root: root, Name: name, Only: parts, Members: -1, Pull: -1,
		Process: process.Request{Nodes: federation.NodeSpec{Count: -1}},
	})
	return err
}

// DescribeMembers returns a text for the members that parts of a federation are, or belong to, by name; none where it is empty.
func DescribeMembers(ctx context.Context, d Deps, root, name string, parts []string, text func(*clusterv1alpha1.Cluster) string) (map[string]string, error) {
	f, err := Load(root, name)
	if err != nil {
		return nil, err
	}
	status, err := runtimeOf(d, f, UpRequest{}).Status(ctx)
	if err != nil || status.ControlPlane == "" {
		return nil, err
	}
	return describe(ctx, status.ControlPlane, membersOf(f, parts), text)
}

func describe(ctx context.Context, kubeconfig string, members []string, text func(*clusterv1alpha1.Cluster) string) (map[string]string, error) {
	texts, err := clusters(ctx, kubeconfig, text)
	maps.DeleteFunc(texts, func(member, text string) bool { return text == "" || !slices.Contains(members, member) })
	return texts, err
}

// Logs prints the log of a process or cluster of a federation.
func Logs(ctx context.Context, d Deps, root, name, part string, options LogOptions, out io.Writer) error {
	f, err := Load(root, name)
	if err != nil {
		return err
	}
	runtime := runtimeOf(d, f, UpRequest{})
	if err := checkParts(f, runtime, []string{part}); err != nil {
		return err
	}
	return runtime.Logs(ctx, part, options, out)
}

// PartNames returns the names of the processes or clusters of a federation, in the order in which they are shown.
func PartNames(d Deps, root, name string) ([]string, error) {
	f, err := Load(root, name)
	if err != nil {
		return nil, err
	}
	return runtimeOf(d, f, UpRequest{}).Names(), nil
}

// SettingNames returns the flags that can be set on a federation, which need not exist, as ROLE.FLAG, and its feature gates.
func SettingNames(ctx context.Context, d Deps, root, name, runtime string) (flags, gates []string, err error) {
	f, err := Load(root, name)
	if errors.Is(err, ErrNoFederation) {
		f, err = federation.New(root, name, runtime, d.Now()), nil
	}
	if err != nil {
		return nil, nil, err
	}
	return runtimeOf(d, f, UpRequest{}).SettingNames(ctx)
}

// checkParts returns an error that names the parts of a federation if it lacks one.
func checkParts(f *Federation, runtime Runtime, parts []string) error {
	for _, part := range parts {
		if slices.Contains(runtime.Names(), part) {
			continue
		}
		var hint string
		if f.Runtime == RuntimeKind && (part == federation.ControlPlane || part == federation.Roles) {
			hint = "; its control plane runs in pods of the host, which kubectl shows with \"--context host --namespace karmada-system\""
		}
		return fmt.Errorf("federation %q has no %q; it has %s%s", f.Name, part, strings.Join(runtime.Names(), ", "), hint)
	}
	return nil
}

// membersOf returns the members that parts of a federation are, or belong to.
func membersOf(f *Federation, parts []string) []string {
	var out []string
	for _, m := range f.Members {
		if slices.ContainsFunc(parts, func(part string) bool {
			return part == m || part == federation.Agent(m) || part == federation.Estimator(m)
		}) {
			out = append(out, m)
		}
	}
	return out
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
