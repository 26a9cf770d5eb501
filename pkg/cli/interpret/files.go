package interpret

import (
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"k8s.io/cli-runtime/pkg/resource"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"

	configv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/config/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/apis/validation"
	"github.com/karmada-toolkit/karmada/pkg/domain/interpreter/lua"
)

// attempts is how often the request for a URL is sent that does not respond.
const attempts = 3

// eachFile opens every file that a name stands for: a path, a directory, a
// pattern or a URL.
func eachFile(name string, recursive bool, use func(io.Reader) error) error {
	if isURL(name) {
		return download(name, use)
	}
	matches := []string{name}
	if _, err := os.Stat(name); os.IsNotExist(err) {
		found, err := filepath.Glob(name)
		if err != nil {
			return fmt.Errorf("the pattern %q is not valid: %w", name, err)
		}
		if len(found) == 0 {
			return fmt.Errorf("the path %q does not exist", name)
		}
		matches = found
	}
	for _, match := range matches {
		if err := walk(match, recursive, use); err != nil {
			return err
		}
	}
	return nil
}

func walk(root string, recursive bool, use func(io.Reader) error) error {
	return filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != root && !recursive:
			return filepath.SkipDir
		case d.IsDir():
			return nil
		case path != root && !slices.Contains(resource.FileExtensions, strings.ToLower(filepath.Ext(path))):
			return nil
		}
		f, err := os.Open(path) //nolint:gosec // the user's own files, read with the user's rights
		if err != nil {
			return err
		}
		defer func() { _ = f.Close() }()
		if err := use(f); err != nil {
			return fmt.Errorf("reading %s: %w", path, err)
		}
		return nil
	})
}

func download(url string, use func(io.Reader) error) error {
	client := http.Client{Timeout: 30 * time.Second}
	var failure error
	for range attempts {
		response, err := client.Get(url)
		if err != nil {
			failure = err
			continue
		}
		defer func() { _ = response.Body.Close() }()
		if response.StatusCode == http.StatusOK {
			return use(response.Body)
		}
		failure = fmt.Errorf("unable to read URL %q, server reported %s, status code=%d", url, response.Status, response.StatusCode)
		if response.StatusCode < http.StatusInternalServerError {
			break
		}
	}
	return failure
}

// check reports for every rule whether the control plane would accept it. Scripts are
// compiled, not run.
func (c *command) check(names []string) error {
	all, err := c.source.customizations(c.flags.filenames, names)
	if err != nil {
		return err
	}
	if len(all) == 0 {
		return fmt.Errorf("there is no %s in %v", customizationKind, c.flags.filenames)
	}
	bad := false
	for i, one := range all {
		var before []configv1alpha1.ResourceInterpreterCustomization
		for _, other := range all[:i] {
			before = append(before, *other.ResourceInterpreterCustomization)
		}
		c.printf("-----------------------------------\nSOURCE: %s\nTARGET: %s %s\nRULERS:\n",
			one.title(), one.Spec.Target.APIVersion, one.Spec.Target.Kind)
		for _, r := range rules() {
			verdict := "UNSET"
			if r.get(&one.Spec.Customizations) != "" {
				verdict = "PASS"
				if err := checkRule(r, one.ResourceInterpreterCustomization, before); err != nil {
					verdict, bad = "ERROR: "+strings.TrimSpace(err.Error()), true
				}
			}
			c.printf("    %-25s%s\n", r.operation+":", verdict)
		}
	}
	if bad {
		return cmdutil.ErrExit
	}
	return nil
}

// checkRule judges one rule beside the customizations that come before it.
func checkRule(r rule, c *configv1alpha1.ResourceInterpreterCustomization, before []configv1alpha1.ResourceInterpreterCustomization) error {
	script := r.get(&c.Spec.Customizations)
	if err := lua.Check(script); err != nil {
		return err
	}
	only := &configv1alpha1.ResourceInterpreterCustomization{ObjectMeta: c.ObjectMeta}
	only.Spec.Target = c.Spec.Target
	r.set(&only.Spec.Customizations, script)
	return validation.ValidateCustomization(only, before, lua.Check)
}
