// SPDX-License-Identifier: Apache-2.0

package addon

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"k8s.io/kube-openapi/pkg/validation/strfmt"
	"k8s.io/kube-openapi/pkg/validation/validate"
	"sigs.k8s.io/yaml"
)

// Values are the settings of an add-on.
type Values map[string]any

// Read reads the configuration of an add-on, in JSON or YAML, and checks it by the schema. All that is wrong is in the
// error.
func (a Addon) Read(text string) (Values, error) {
	values := Values{}
	if strings.TrimSpace(text) == "" {
		return values, nil
	}
	raw, err := yaml.YAMLToJSONStrict([]byte(text))
	if err != nil {
		return nil, fmt.Errorf("it is neither JSON nor YAML: %w", err)
	}
	var document any
	if err := utiljson.Unmarshal(raw, &document); err != nil {
		return nil, fmt.Errorf("it is neither JSON nor YAML: %w", err)
	}
	if document == nil {
		return values, nil
	}
	object, ok := document.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("[$: %s found, object expected]", kindOf(document))
	}
	schema := &spec.Schema{}
	if err := json.Unmarshal([]byte(a.Schema), schema); err != nil {
		return nil, fmt.Errorf("reading the schema of add-on %s: %w", a.Name, err)
	}
	result := validate.NewSchemaValidator(schema, nil, "$", strfmt.Default).Validate(object)
	if result.IsValid() {
		return object, nil
	}
	problems := make([]string, 0, len(result.Errors))
	for _, problem := range result.Errors {
		problems = append(problems, strings.ReplaceAll(problem.Error(), " in body ", " "))
	}
	slices.Sort(problems)
	return nil, fmt.Errorf("[%s]", strings.Join(slices.Compact(problems), "; "))
}

func kindOf(value any) string {
	switch value.(type) {
	case string:
		return "string"
	case []any:
		return "array"
	case bool:
		return "boolean"
	}
	return "number"
}
