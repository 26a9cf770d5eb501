package plan

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/cli-runtime/pkg/resource"
	"k8s.io/kubectl/pkg/util"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karmada-toolkit/karmada/internal/limit"
	"github.com/karmada-toolkit/karmada/pkg/cli/env"
	"github.com/karmada-toolkit/karmada/pkg/cli/planning"
	"github.com/karmada-toolkit/karmada/pkg/insight/plan"
)

// step is a change that a flag names.
type step struct {
	flag, value string
	// manifests are the objects of a file.
	manifests []*unstructured.Unstructured
	// kind is that of an object TYPE/NAME.
	kind schema.GroupVersionKind
	name string
	// rest is what follows the name.
	rest string
}

// errorf returns an error about the flag.
func (s *step) errorf(format string, args ...any) error {
	return fmt.Errorf("--%s %s: %w", s.flag, s.value, fmt.Errorf(format, args...))
}

// steps are changes in the order of their flags.
type steps struct{ all []*step }

// value is a flag that adds steps.
type value struct {
	flag  string
	steps *steps
}

// Set implements pflag.Value.
func (v value) Set(text string) error {
	if text == "" {
		return errors.New("it is empty")
	}
	v.steps.all = append(v.steps.all, &step{flag: v.flag, value: text})
	return nil
}

// String implements pflag.Value.
func (value) String() string { return "" }

// Type implements pflag.Value.
func (v value) Type() string {
	switch v.flag {
	case "filename", "kustomize":
		return "path"
	}
	return "string"
}

// addFlags adds the flags that name changes.
func (s *steps) addFlags(cmd *cobra.Command, access *env.Access) {
	for _, f := range []struct{ name, short, help string }{
		{"filename", "f", "File, directory or URL with objects that are applied, - for standard input."},
		{"kustomize", "k", "Directory with a kustomization.yaml whose objects are applied."},
		{"delete", "", "Object that is deleted: TYPE/NAME, with -n for its namespace."},
		{"scale", "", "Workload whose replicas are set: TYPE/NAME=N."},
		{"lose", "", "Cluster that becomes unreachable."},
		{"unjoin", "", "Cluster that is removed from the control plane."},
		{"taint", "", "Taint that a cluster gets: CLUSTER=KEY[=VALUE]:EFFECT."},
		{"cordon", "", "Cluster that is marked as unschedulable."},
		{"label", "", "Label that a cluster gets: CLUSTER=KEY=VALUE, or CLUSTER KEY=VALUE."},
	} {
		cmd.Flags().VarP(value{f.name, s}, f.name, f.short, f.help+" Can be given several times.")
		switch f.name {
		case "lose", "unjoin", "cordon", "taint", "label":
			_ = cmd.RegisterFlagCompletionFunc(f.name, access.Complete.Clusters)
		}
	}
}

// bare gives arguments, which are labels, to --label without one.
func (s *steps) bare(args []string) error {
	for _, step := range s.all {
		if step.flag == "label" && !strings.Contains(step.value, "=") {
			if len(args) == 0 {
				return step.errorf("name a label as CLUSTER=KEY=VALUE")
			}
			step.value, args = step.value+"="+args[0], args[1:]
		}
	}
	if len(args) > 0 {
		return fmt.Errorf("unknown argument %q: changes are named by flags, such as -f FILE", args[0])
	}
	return nil
}

// load reads the files, and finds the kinds of the objects that are named.
func (s *steps) load(ctx context.Context, p *plans) error {
	for _, step := range s.all {
		var err error
		switch step.flag {
		case "filename", "kustomize":
			step.manifests, err = limit.Within(ctx, step.value, func() ([]*unstructured.Unstructured, error) { return step.read(ctx, p) })
			if err == nil && len(step.manifests) == 0 {
				err = step.errorf("it has no objects")
			}
		case "delete", "scale":
			of, rest, _ := strings.Cut(step.value, "=")
			kind, name, ok := strings.Cut(of, "/")
			if !ok || kind == "" || name == "" {
				return step.errorf("name an object as TYPE/NAME, such as deployment/nginx")
			}
			step.name, step.rest = name, rest
			if step.kind, err = resolve(p.mapper, kind); err != nil {
				err = step.errorf("the control plane has no type %q", kind)
			}
		}
		if err != nil {
			return err
		}
	}
	namespace, enforced, err := p.access.Namespace()
	if err != nil {
		return err
	}
	return planning.Scope(s.manifests(), p.mapper, namespace, enforced)
}

// read reads the manifests of a file.
func (s *step) read(ctx context.Context, p *plans) (out []*unstructured.Unstructured, err error) {
	options := &resource.FilenameOptions{Filenames: []string{s.value}}
	if s.flag == "kustomize" {
		options, err = &resource.FilenameOptions{Kustomize: s.value}, env.CheckKustomization(s.value)
	} else {
		options.Filenames[0], err = p.env.Manifest(ctx, s.value, false)
	}
	if err != nil {
		return nil, err
	}
	return planning.Objects(resource.NewBuilder(p.access).Unstructured().Local().ContinueOnError().FilenameParam(false, options).Flatten().Do())
}

// manifests returns the objects of all files.
func (s *steps) manifests() []*unstructured.Unstructured {
	var out []*unstructured.Unstructured
	for _, step := range s.all {
		out = append(out, step.manifests...)
	}
	return out
}

// kinds returns the kinds of the objects that change, and of what may depend on policies that change.
func (s *steps) kinds() []schema.GroupKind {
	var out []schema.GroupKind
	for _, step := range s.all {
		if step.name != "" {
			out = append(out, step.kind.GroupKind())
		}
	}
	return append(out, plan.Kinds(s.manifests())...)
}

// changes returns the changes of the steps.
func (s *steps) changes(ctx context.Context, p *plans) ([]plan.Change, error) {
	namespace, _, err := p.access.Namespace()
	if err != nil {
		return nil, err
	}
	manifests := plan.NewManifests(func(text string) { p.env.SayLine("Warning: " + text) })
	var out []plan.Change
	for _, step := range s.all {
		if step.manifests == nil {
			change, err := step.change(p.mapper, namespace)
			if err != nil {
				return nil, err
			}
			out = append(out, change)
		}
		for _, u := range step.manifests {
			if p.serverSide {
				stored, err := dryRun(ctx, p.source.Client, u)
				if err != nil {
					return nil, err
				}
				out = append(out, plan.Store(stored))
				continue
			}
			out = append(out, manifests.Apply(u))
		}
	}
	return out, nil
}

// change returns the change of a flag that names no file.
func (s *step) change(mapper meta.RESTMapper, namespace string) (plan.Change, error) {
	cluster, rest, _ := strings.Cut(s.value, "=")
	switch s.flag {
	case "delete", "scale":
		return s.ofObject(mapper, namespace)
	case "lose":
		return plan.Lose(s.value), nil
	case "unjoin":
		return plan.Unjoin(s.value), nil
	case "cordon":
		return plan.Cordon(s.value), nil
	case "taint":
		if rest == "" {
			return nil, s.errorf("name a taint as CLUSTER=KEY[=VALUE]:EFFECT")
		}
		taint, err := taintOf(rest)
		if err != nil {
			return nil, s.errorf("%w; write CLUSTER=KEY[=VALUE]:EFFECT", err)
		}
		return plan.Taint(cluster, taint), nil
	}
	key, text, ok := strings.Cut(rest, "=")
	problems := append(validation.IsQualifiedName(key), validation.IsValidLabelValue(text)...)
	if !ok {
		return nil, s.errorf("%q has no value; write CLUSTER=KEY=VALUE", rest)
	}
	if len(problems) > 0 {
		return nil, s.errorf("it is no label: %s; write CLUSTER=KEY=VALUE", strings.Join(problems, "; "))
	}
	return plan.Label(cluster, map[string]string{key: text}), nil
}

// ofObject returns the change of an object TYPE/NAME.
func (s *step) ofObject(mapper meta.RESTMapper, namespace string) (plan.Change, error) {
	mapping, err := mapper.RESTMapping(s.kind.GroupKind(), s.kind.Version)
	if err != nil {
		return nil, s.errorf("%w", err)
	}
	if mapping.Scope.Name() != meta.RESTScopeNameNamespace {
		namespace = ""
	}
	if s.flag == "delete" {
		return plan.Delete(s.kind.GroupKind(), namespace, s.name), nil
	}
	replicas, err := strconv.ParseInt(s.rest, 10, 32)
	if err != nil || replicas < 0 {
		return nil, s.errorf("%q is no number of replicas; write TYPE/NAME=N", s.rest)
	}
	return plan.Scale(s.kind.GroupKind(), namespace, s.name, replicas), nil
}

// taintOf parses KEY[=VALUE]:EFFECT.
func taintOf(text string) (corev1.Taint, error) {
	left, effect, _ := strings.Cut(text, ":")
	key, value, _ := strings.Cut(left, "=")
	if problems := append(validation.IsQualifiedName(key), validation.IsValidLabelValue(value)...); len(problems) > 0 {
		return corev1.Taint{}, errors.New(strings.Join(problems, "; "))
	}
	switch t := (corev1.Taint{Key: key, Value: value, Effect: corev1.TaintEffect(effect)}); t.Effect {
	case corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute:
		return t, nil
	}
	return corev1.Taint{}, fmt.Errorf("%q is no effect: NoSchedule or NoExecute", effect)
}

// dryRun returns an object as the API server would store it.
func dryRun(ctx context.Context, c client.Client, u *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	out := u.DeepCopy()
	err := c.Apply(ctx, client.ApplyConfigurationFromUnstructured(out), client.DryRunAll, client.ForceOwnership, client.FieldOwner("kubectl"))
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("%s %q: %w; the objects that it needs are not created by a dry run: leave out --server-side", u.GetKind(), u.GetName(), err)
	}
	if err != nil {
		return nil, fmt.Errorf("%s %q would be refused: %w", u.GetKind(), u.GetName(), err)
	}
	if annotations := out.GetAnnotations(); annotations[corev1.LastAppliedConfigAnnotation] != "" {
		// The API server writes it in another form than "apply" does.
		modified := u.DeepCopy()
		if err := util.CreateOrUpdateAnnotation(true, modified, unstructured.UnstructuredJSONScheme); err != nil {
			return nil, fmt.Errorf("encoding %s %q: %w", u.GetKind(), u.GetName(), err)
		}
		annotations[corev1.LastAppliedConfigAnnotation] = modified.GetAnnotations()[corev1.LastAppliedConfigAnnotation]
		out.SetAnnotations(annotations)
	}
	return out, nil
}
