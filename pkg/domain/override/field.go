package override

import (
	"encoding/json"
	"fmt"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"sigs.k8s.io/yaml"

	"github.com/karmada-toolkit/karmada/internal/limit"
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
)

// overrideField changes the JSON or YAML document in a string field. An entry
// without operations blanks the field.
func (r *run) overrideField(o *policyv1alpha1.FieldOverrider) error {
	if err := r.budget.path(o.FieldPath); err != nil {
		return err
	}
	tokens, err := parsePointer(o.FieldPath)
	if err != nil {
		return err
	}
	value, err := lookup(r.obj.Object, tokens)
	if err != nil {
		return fmt.Errorf("field path %q: %w", o.FieldPath, err)
	}
	text, ok := value.(string)
	if !ok {
		return fmt.Errorf("Get object's value by overrider's path(%s) is not string", o.FieldPath) //nolint:staticcheck // The text is part of the contract.
	}
	if err := r.accountDocument(text, o); err != nil {
		return err
	}
	changed := ""
	switch {
	case len(o.YAML) > 0:
		changed, err = patchYAML(text, o.YAML)
	case len(o.JSON) > 0:
		changed, err = patchJSON(text, o.JSON)
	}
	if err != nil {
		return fmt.Errorf("field path %q: %w", o.FieldPath, err)
	}
	if err := r.budget.replaceText(text, changed); err != nil {
		return err
	}
	r.known = false
	_, err = patch(r.obj.Object, tokens, policyv1alpha1.OverriderOpReplace, changed)
	return err
}

// accountDocument accounts for reading, changing and writing a document. Every operation may move all elements of a list.
func (r *run) accountDocument(text string, o *policyv1alpha1.FieldOverrider) error {
	if err := r.budget.step(len(text)/32 + len(o.JSON)*(1+len(text)/256)); err != nil {
		return err
	}
	if err := r.budget.step(min(len(o.YAML), 1)*len(text)/4 + len(o.YAML)*(1+len(text)/256)); err != nil {
		return err
	}
	added := 0
	account := func(path string, value []byte) error {
		added += len(path) + len(value)
		return r.budget.path(path)
	}
	for i := range o.JSON {
		if err := account(o.JSON[i].SubPath, o.JSON[i].Value.Raw); err != nil {
			return err
		}
	}
	for i := range o.YAML {
		if err := account(o.YAML[i].SubPath, o.YAML[i].Value.Raw); err != nil {
			return err
		}
	}
	if len(text)+added > MaxResultBytes {
		return fmt.Errorf("%w: a document would have more than %d bytes", ErrBudget, MaxResultBytes)
	}
	return r.budget.step(added / 8)
}

func patchJSON(text string, ops []policyv1alpha1.JSONPatchOperation) (string, error) {
	document, err := documentPatch(ops)
	if err != nil {
		return "", err
	}
	if err := limit.CheckJSON([]byte(text)); err != nil {
		return "", err
	}
	changed, err := document.Apply([]byte(text))
	if err != nil {
		return "", fmt.Errorf("changing the JSON document: %w", err)
	}
	if err := limit.CheckJSON(changed); err != nil {
		return "", err
	}
	return string(changed), nil
}

func patchYAML(text string, ops []policyv1alpha1.YAMLPatchOperation) (string, error) {
	same := make([]policyv1alpha1.JSONPatchOperation, len(ops))
	for i := range ops {
		same[i] = policyv1alpha1.JSONPatchOperation(ops[i])
	}
	document, err := documentPatch(same)
	if err != nil {
		return "", err
	}
	data, err := limit.YAMLToJSON([]byte(text))
	if err != nil {
		return "", fmt.Errorf("reading the YAML document: %w", err)
	}
	if data, err = document.Apply(data); err != nil {
		return "", fmt.Errorf("changing the YAML document: %w", err)
	}
	if err := limit.CheckJSON(data); err != nil {
		return "", err
	}
	if data, err = yaml.JSONToYAML(data); err != nil {
		return "", fmt.Errorf("writing the YAML document: %w", err)
	}
	return string(data), nil
}

// documentPatch returns the operations as a patch of RFC 6902. Documents are
// patched as text, so that what is not touched keeps its order.
func documentPatch(ops []policyv1alpha1.JSONPatchOperation) (jsonpatch.Patch, error) {
	type operation struct {
		Op    policyv1alpha1.OverriderOperator `json:"op"`
		Path  string                           `json:"path"`
		Value json.RawMessage                  `json:"value"`
	}
	list := make([]operation, len(ops))
	for i := range ops {
		list[i] = operation{Op: ops[i].Operator, Path: ops[i].SubPath, Value: json.RawMessage("null")}
		if len(ops[i].Value.Raw) > 0 {
			list[i].Value = ops[i].Value.Raw
		}
	}
	data, err := json.Marshal(list)
	if err != nil {
		return nil, fmt.Errorf("encoding the operations: %w", err)
	}
	document, err := jsonpatch.DecodePatch(data)
	if err != nil {
		return nil, fmt.Errorf("decoding the operations: %w", err)
	}
	return document, nil
}
