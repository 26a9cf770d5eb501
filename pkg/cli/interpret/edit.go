package interpret

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/cli-runtime/pkg/resource"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
	"k8s.io/kubectl/pkg/cmd/util/editor"
	"sigs.k8s.io/yaml"

	configv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/config/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/cli/env"
)

// editing is the edit of one customization.
type editing struct {
	*command
	before *loaded
	launch func(prefix, suffix string, r io.Reader) ([]byte, string, error)
}

// edit opens a customization in an editor until it can be saved.
func (c *command) edit(cmd *cobra.Command, names []string) error {
	before, err := c.toEdit(names)
	if err != nil {
		return err
	}
	if err := c.flags.record.Complete(cmd); err != nil {
		return err
	}
	e := &editing{command: c, before: before, launch: editor.NewDefaultEditor([]string{"KUBE_EDITOR", "EDITOR"}).LaunchTempFile}
	after, path, err := e.loop()
	if after == nil {
		return err
	}
	if err := e.save(after); err != nil {
		c.env.Say("A copy of your changes has been stored to %q", path)
		return err
	}
	_ = os.Remove(path) // it is in the system's directory for such files
	return nil
}

// toEdit returns the one customization to edit; an empty file is a new one.
func (c *command) toEdit(names []string) (*loaded, error) {
	all, err := c.source.customizations(c.flags.filenames, names)
	if err != nil {
		return nil, err
	}
	switch {
	case len(all) == 1:
		return all[0], nil
	case len(all) > 1 || len(c.flags.filenames) != 1:
		return nil, errors.New("only one customization can be edited")
	}
	fresh := &configv1alpha1.ResourceInterpreterCustomization{}
	fresh.SetGroupVersionKind(configv1alpha1.GroupVersion.WithKind(customizationKind))
	obj := &unstructured.Unstructured{Object: map[string]any{}}
	obj.SetGroupVersionKind(fresh.GroupVersionKind())
	return &loaded{ResourceInterpreterCustomization: fresh, info: &resource.Info{Source: c.flags.filenames[0], Object: obj}}, nil
}

// loop returns what the user made of the customization, and the file that holds
// it; nil when there is nothing to save.
func (e *editing) loop() (*configv1alpha1.ResourceInterpreterCustomization, string, error) {
	text := document(e.before.ResourceInterpreterCustomization, e.flags.showDoc, nil)
	failed := false
	prefix := filepath.Base(e.env.Root) + "-edit-"
	for {
		edited, path, err := e.launch(prefix, ".lua", strings.NewReader(text))
		if err != nil {
			return nil, path, fmt.Errorf("running the editor: %w", err)
		}
		if string(edited) == text {
			if failed {
				e.env.Say("A copy of your changes has been stored to %q", path)
				e.env.Say("Edit cancelled, no valid changes were saved.")
				return nil, path, cmdutil.ErrExit
			}
			_ = os.Remove(path) // there is nothing of the user's in it
			e.env.Say("Edit cancelled, no changes made.")
			return nil, path, nil
		}
		after, err := parseDocument(string(edited), e.before.ResourceInterpreterCustomization)
		if err == nil {
			err = e.mayBecome(after)
		}
		if err == nil {
			if equality.Semantic.DeepEqual(after, e.before.ResourceInterpreterCustomization) {
				_ = os.Remove(path) // there is nothing of the user's in it
				e.env.Say("Edit cancelled, no changes made.")
				return nil, path, nil
			}
			return after, path, nil
		}
		_ = os.Remove(path) // the next file begins with all that is in this one
		failed, text = true, withProblem(string(edited), err)
	}
}

// mayBecome refuses to rename what is in the control plane.
func (e *editing) mayBecome(after *configv1alpha1.ResourceInterpreterCustomization) error {
	if e.before.stored && (after.Name != e.before.Name || after.Spec.Target != e.before.Spec.Target) {
		return errors.New("At least one of apiVersion, kind and name was changed") //nolint:staticcheck // the contract's words
	}
	return nil
}

// save writes the customization to where it is from.
func (e *editing) save(after *configv1alpha1.ResourceInterpreterCustomization) error {
	obj, err := e.merged(after)
	if err != nil {
		return err
	}
	switch source := e.before.info.Source; {
	case e.before.stored:
		if err := e.patch(obj); err != nil {
			return err
		}
	case source == "STDIN" || source == "-" || env.IsURL(source):
		text, err := yaml.Marshal(obj.Object)
		if err != nil {
			return fmt.Errorf("encoding: %w", err)
		}
		c := e.command
		c.printf("%s", text)
		return nil
	default:
		if err := writeFile(source, obj); err != nil {
			return err
		}
	}
	printer, err := e.flags.print.ToPrinter()
	if err != nil {
		return err
	}
	return printer.PrintObj(obj, e.env.Out)
}

// merged returns the object with what was edited; the rest of it stays.
func (e *editing) merged(after *configv1alpha1.ResourceInterpreterCustomization) (*unstructured.Unstructured, error) {
	original, ok := e.before.info.Object.(*unstructured.Unstructured)
	if !ok {
		return nil, fmt.Errorf("%s holds a %T", e.before.info.Source, e.before.info.Object)
	}
	spec, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&after.Spec)
	if err != nil {
		return nil, fmt.Errorf("encoding: %w", err)
	}
	obj := original.DeepCopy()
	obj.SetName(after.Name)
	obj.Object["spec"] = spec
	return obj, nil
}

// patch writes to the control plane.
func (e *editing) patch(obj *unstructured.Unstructured) error {
	recorder, err := e.flags.record.ToRecorder()
	if err != nil {
		return err
	}
	if err := recorder.Record(obj); err != nil {
		return fmt.Errorf("recording the change: %w", err)
	}
	before, err := json.Marshal(e.before.info.Object)
	if err != nil {
		return fmt.Errorf("encoding: %w", err)
	}
	after, err := json.Marshal(obj)
	if err != nil {
		return fmt.Errorf("encoding: %w", err)
	}
	change, err := jsonpatch.CreateMergePatch(before, after)
	if err != nil {
		return fmt.Errorf("comparing: %w", err)
	}
	info := e.before.info
	_, err = resource.NewHelper(info.Client, info.Mapping).Patch(info.Namespace, info.Name, types.MergePatchType, change, nil)
	return err
}

// writeFile replaces a file, which stays JSON if it is, as a whole or not at all.
func writeFile(path string, obj *unstructured.Unstructured) error {
	old, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	text, err := yaml.Marshal(obj.Object)
	if utilyaml.IsJSONBuffer(old) {
		if text, err = json.MarshalIndent(obj.Object, "", "  "); err == nil {
			text = append(text, '\n')
		}
	}
	if err != nil {
		return fmt.Errorf("encoding: %w", err)
	}
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if path, err = filepath.EvalSymlinks(path); err != nil {
		return err
	}
	next, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return err
	}
	_, err = io.Copy(next, bytes.NewReader(text))
	if err = errors.Join(err, next.Chmod(info.Mode().Perm()), next.Close()); err == nil {
		err = os.Rename(next.Name(), path)
	}
	if err != nil {
		_ = os.Remove(next.Name()) // the first error is returned
	}
	return err
}
