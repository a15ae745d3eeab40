// SPDX-License-Identifier: Apache-2.0

package redaction

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// ErrSecret refuses an object of the kind Secret: nothing but its name is ever shown.
var ErrSecret = errors.New("the object is a Secret: only its name may be shown")

// lastApplied is an annotation in which kubectl repeats the whole object (k8s.io/api, core/v1, LastAppliedConfigAnnotation).
const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// secretName is the name of a member that holds a secret.
var secretName = lazily(`(?i)(?:` + names + `|authorization|x-amz-signature|x-amz-credential)$`)

// JSON returns a value as indented JSON without its secrets, and how many of each kind it had. Left out whole are user
// data, the values of containers' variables, string members with the name of a secret, managedFields, and the
// annotation in which kubectl repeats an object. It fails with ErrSecret where the value holds a Secret.
func JSON(value any) ([]byte, Count, error) {
	raw, err := json.Marshal(value)
	if err != nil {
		return nil, nil, fmt.Errorf("writing JSON: %w", err)
	}
	tree, err := read(raw)
	if err != nil {
		return nil, nil, err
	}
	count := Count{}
	tree, err = clean(tree, "", count)
	if err != nil {
		return nil, nil, err
	}
	out, err := json.MarshalIndent(tree, "", "  ")
	if err != nil {
		return nil, nil, fmt.Errorf("writing JSON: %w", err)
	}
	return append(out, '\n'), count, nil
}

// read reads one value of JSON.
func read(raw []byte) (any, error) {
	var tree any
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber() // a large number stays as it is
	if err := decoder.Decode(&tree); err != nil {
		return nil, fmt.Errorf("reading JSON: %w", err)
	}
	if decoder.More() {
		return nil, errors.New("reading JSON: there is more than one value")
	}
	return tree, nil
}

// clean takes the secrets out of a value that is called name.
func clean(value any, name string, count Count) (any, error) {
	switch value := value.(type) {
	case map[string]any:
		return cleanObject(value, count)
	case []any:
		for i := range value {
			one, err := clean(value[i], name, count)
			if err != nil {
				return nil, err
			}
			if variable, ok := one.(map[string]any); ok && name == "env" {
				cleanVariable(variable, count)
			}
			value[i] = one
		}
	case string:
		switch {
		case value == "":
		case name == "userData":
			count[UserData]++
			return mark(UserData), nil
		case secretName().MatchString(name):
			count[Named]++
			return mark(Named), nil
		default:
			text, found := Text(value)
			count.Add(found)
			return text, nil
		}
	}
	return value, nil
}

func cleanObject(object map[string]any, count Count) (any, error) {
	_, data := object["data"]
	_, stringData := object["stringData"]
	if object["kind"] == "Secret" && (data || stringData) {
		return nil, ErrSecret
	}
	if name, ok := object["name"].(string); ok && secretName().MatchString(name) { // a variable or header
		if value, ok := object["value"].(string); ok && value != "" {
			count[Named]++
			object["value"] = mark(Named)
		}
	}
	if _, key := object["kty"]; key { // a JSON web key (RFC 7517): of a private one the secret members (RFC 7518, 6)
		for _, member := range []string{"d", "p", "q", "dp", "dq", "qi", "k"} {
			if value, ok := object[member].(string); ok && value != "" {
				count[PrivateKey]++
				object[member] = mark(PrivateKey)
			}
		}
	}
	delete(object, "managedFields")
	delete(object, lastApplied)
	for name, member := range object {
		one, err := clean(member, name, count)
		if err != nil {
			return nil, err
		}
		object[name] = one
		if text, count2 := Text(name); len(count2) > 0 { // a label or annotation may have any name
			count.Add(count2)
			delete(object, name)
			object[text] = one
		}
	}
	return object, nil
}

// cleanVariable leaves out the value of a container's variable; where it comes from another object stays.
func cleanVariable(variable map[string]any, count Count) {
	if value, ok := variable["value"].(string); ok && value != "" {
		count[Environment]++
		variable["value"] = mark(Environment)
	}
}
