package override

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/karmada-toolkit/karmada/internal/limit"
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
)

// parsePointer splits a JSON pointer; the empty one is the whole document.
func parsePointer(s string) ([]string, error) {
	if s == "" {
		return nil, nil
	}
	if !strings.HasPrefix(s, "/") {
		return nil, fmt.Errorf("path %q does not start with a slash", s)
	}
	tokens := strings.Split(s[1:], "/")
	for i, token := range tokens {
		tokens[i] = strings.ReplaceAll(strings.ReplaceAll(token, "~1", "/"), "~0", "~")
	}
	return tokens, nil
}

// index reads an index into a list of n elements; a negative one counts from the
// end.
func index(token string, n int) (int, error) {
	i, err := strconv.Atoi(token)
	if err != nil {
		return 0, fmt.Errorf("%q is not an index", token)
	}
	if i < 0 {
		i += n
	}
	if i < 0 || i >= n {
		return 0, fmt.Errorf("index %s is out of range", token)
	}
	return i, nil
}

// lookup returns what is at the path.
func lookup(node any, tokens []string) (any, error) {
	for _, token := range tokens {
		switch n := node.(type) {
		case map[string]any:
			value, ok := n[token]
			if !ok {
				return nil, fmt.Errorf("there is no %q", token)
			}
			node = value
		case []any:
			i, err := index(token, len(n))
			if err != nil {
				return nil, err
			}
			node = n[i]
		default:
			return nil, fmt.Errorf("%q is looked for in %T", token, node)
		}
	}
	return node, nil
}

// patch does one operation of RFC 6902 and returns the changed node. Maps and
// list elements are changed in place.
func patch(node any, tokens []string, op policyv1alpha1.OverriderOperator, value any) (any, error) {
	if len(tokens) == 0 {
		if op == policyv1alpha1.OverriderOpRemove {
			return nil, errors.New("the whole document cannot be removed")
		}
		return value, nil
	}
	switch n := node.(type) {
	case map[string]any:
		return n, patchMap(n, tokens, op, value)
	case []any:
		return patchList(n, tokens, op, value)
	}
	return nil, fmt.Errorf("%q is looked for in %T", tokens[0], node)
}

func patchMap(m map[string]any, tokens []string, op policyv1alpha1.OverriderOperator, value any) error {
	key := tokens[0]
	child, ok := m[key]
	if !ok && (len(tokens) > 1 || op != policyv1alpha1.OverriderOpAdd) {
		return fmt.Errorf("there is no %q", key)
	}
	if len(tokens) == 1 && op == policyv1alpha1.OverriderOpRemove {
		delete(m, key)
		return nil
	}
	changed, err := patch(child, tokens[1:], op, value)
	if err != nil {
		return err
	}
	m[key] = changed
	return nil
}

func patchList(list []any, tokens []string, op policyv1alpha1.OverriderOperator, value any) (any, error) {
	if len(tokens) == 1 && op == policyv1alpha1.OverriderOpAdd {
		if tokens[0] == "-" {
			return append(slices.Clip(list), value), nil
		}
		i, err := index(tokens[0], len(list)+1)
		if err != nil {
			return nil, err
		}
		return slices.Insert(slices.Clip(list), i, value), nil
	}
	i, err := index(tokens[0], len(list))
	if err != nil {
		return nil, err
	}
	if len(tokens) == 1 && op == policyv1alpha1.OverriderOpRemove {
		return slices.Delete(slices.Clone(list), i, i+1), nil
	}
	changed, err := patch(list[i], tokens[1:], op, value)
	if err != nil {
		return nil, err
	}
	list[i] = changed
	return list, nil
}

// decodeValue reads the value of an operation; none is null.
func decodeValue(raw []byte) (any, error) {
	if len(raw) == 0 {
		return nil, nil
	}
	var value any
	if err := utiljson.Unmarshal(raw, &value); err != nil {
		return nil, fmt.Errorf("decoding the value: %w", err)
	}
	return value, nil
}

// overridePlaintext does one operation on the object.
func (r *run) overridePlaintext(o *policyv1alpha1.PlaintextOverrider) error {
	switch o.Operator {
	case policyv1alpha1.OverriderOpAdd, policyv1alpha1.OverriderOpReplace, policyv1alpha1.OverriderOpRemove:
	default:
		return fmt.Errorf("unknown operator %q", o.Operator)
	}
	if err := r.budget.path(o.Path); err != nil {
		return err
	}
	tokens, err := parsePointer(o.Path)
	if err != nil {
		return err
	}
	if err := r.budget.step(1 + len(o.Value.Raw)/16); err != nil {
		return err
	}
	value, err := decodeValue(o.Value.Raw)
	if err != nil {
		return err
	}
	if err := r.accountValue(tokens, o.Operator, value); err != nil {
		return err
	}
	r.known = false
	changed, err := patch(r.obj.Object, tokens, o.Operator, value)
	if err != nil {
		return fmt.Errorf("%s %q: %w", o.Operator, o.Path, err)
	}
	m, ok := changed.(map[string]any)
	if !ok {
		return fmt.Errorf("%s %q: the object would become %T", o.Operator, o.Path, changed)
	}
	r.obj.Object = m
	return nil
}

// accountValue accounts for a value at a path: what it replaces, the list whose elements move, and how deep it is.
func (r *run) accountValue(tokens []string, operator policyv1alpha1.OverriderOperator, value any) error {
	freed := 0
	if len(tokens) > 0 {
		parent, err := lookup(r.obj.Object, tokens[:len(tokens)-1])
		if err != nil {
			return nil //nolint:nilerr // Patching reports it.
		}
		list, isList := parent.([]any)
		if err := r.budget.step(len(list) / 16); err != nil {
			return err
		}
		if old, err := lookup(parent, tokens[len(tokens)-1:]); err == nil && (!isList || operator != policyv1alpha1.OverriderOpAdd) {
			freed = treeSize(old)
		}
	}
	if err := r.budget.step(freed / 64); err != nil {
		return err
	}
	if operator == policyv1alpha1.OverriderOpRemove {
		return r.budget.grow(-freed)
	}
	if len(tokens)+treeDepth(value) > limit.MaxDepth {
		return fmt.Errorf("%w: more than %d objects and lists would be in each other", ErrBudget, limit.MaxDepth)
	}
	return r.budget.grow(treeSize(value) - freed)
}
