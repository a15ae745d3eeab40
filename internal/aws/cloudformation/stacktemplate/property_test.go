// SPDX-License-Identifier: Apache-2.0

package stacktemplate_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
	"pgregory.net/rapid"

	"muster.dev/muster/internal/aws/cloudformation/stacktemplate"
)

// words are texts that YAML could read as something else.
var words = []string{"a", "b-c", "", "yes", "012", "1.5", "2012-10-17", "null", "~", "{x}", "a: b", "#", " lead", "line\nbreak", "äö", "!Sub", "*x", "${!y}"}

// text draws an expression whose value is a text.
func text(t *rapid.T, depth int, others []string) any {
	kinds := []string{"word", "word", "ref", "pseudo"}
	if len(others) > 0 {
		kinds = append(kinds, "resource", "attribute")
	}
	if depth > 0 {
		kinds = append(kinds, "join", "base64", "sub", "if", "select", "map", "json")
	}
	other := func() string { return rapid.SampledFrom(others).Draw(t, "other") }
	switch rapid.SampledFrom(kinds).Draw(t, "kind") {
	case "ref":
		return fn("Ref", "Text")
	case "pseudo":
		return fn("Ref", "AWS::StackName")
	case "resource":
		return fn("Ref", other())
	case "attribute":
		return fn("Fn::GetAtt", []any{other(), "Arn"})
	case "join":
		return fn("Fn::Join", []any{"-", list(t, depth-1, others)})
	case "base64":
		return fn("Fn::Base64", text(t, depth-1, others))
	case "sub":
		variables := map[string]any{"own": text(t, depth-1, others)}
		pattern := "${own} ${Text} ${AWS::Region} ${!literal}"
		if len(others) > 0 {
			pattern += "${" + other() + "}${" + other() + ".Arn}"
		}
		return fn("Fn::Sub", []any{pattern, variables})
	case "if":
		return fn("Fn::If", []any{rapid.SampledFrom([]string{"Yes", "No"}).Draw(t, "condition"), text(t, depth-1, others), text(t, depth-1, others)})
	case "select":
		return fn("Fn::Select", []any{json.Number("0"), []any{text(t, depth-1, others), "x"}})
	case "map":
		return fn("Fn::FindInMap", []any{"Map", fn("Ref", "AWS::Region"), "key"})
	case "json":
		return fn("Fn::ToJsonString", map[string]any{"k": value(t, depth-1, others)})
	}
	return rapid.SampledFrom(words).Draw(t, "word")
}

// list draws a list of texts.
func list(t *rapid.T, depth int, others []string) []any {
	items := []any{}
	for range rapid.IntRange(0, 3).Draw(t, "items") {
		items = append(items, text(t, depth, others))
	}
	return items
}

// value draws any expression.
func value(t *rapid.T, depth int, others []string) any {
	switch kind := rapid.IntRange(0, 7).Draw(t, "value"); {
	case kind == 0:
		return rapid.Bool().Draw(t, "boolean")
	case kind == 1:
		return json.Number(strconv.Itoa(rapid.IntRange(-5, 99_999).Draw(t, "number")))
	case kind == 2 && depth > 0:
		return list(t, depth-1, others)
	case kind == 3 && depth > 0:
		return map[string]any{"one": value(t, depth-1, others), "012": value(t, depth-1, others)}
	case kind == 4:
		return fn("Ref", "AWS::NoValue")
	}
	return text(t, depth, others)
}

func fn(name string, argument any) map[string]any { return map[string]any{name: argument} }

// drawTemplate draws a template without mistakes. Each resource names only resources that were drawn before.
func drawTemplate(t *rapid.T) map[string]any {
	resources, names := map[string]any{}, []string{}
	for _, n := range rapid.Permutation([]int{0, 1, 2, 3, 4, 5, 6, 7}).Draw(t, "names")[:rapid.IntRange(1, 8).Draw(t, "resources")] {
		resource := map[string]any{"Type": "T", "Properties": map[string]any{"P": value(t, 3, names), "Q": value(t, 2, names)}}
		if len(names) > 0 && rapid.Bool().Draw(t, "depends") {
			resource["DependsOn"] = []any{rapid.SampledFrom(names).Draw(t, "on")}
		}
		name := fmt.Sprintf("R%d", n)
		resources[name], names = resource, append(names, name)
	}
	return map[string]any{
		"Transform":  "AWS::LanguageExtensions",
		"Parameters": map[string]any{"Text": map[string]any{"Type": "String", "Default": "of the parameter"}},
		"Mappings":   map[string]any{"Map": map[string]any{"eu-west-1": map[string]any{"key": "mapped"}}},
		"Conditions": map[string]any{"Yes": fn("Fn::Equals", []any{"a", "a"}), "No": fn("Fn::Not", []any{fn("Condition", "Yes")})},
		"Resources":  resources,
		"Outputs":    map[string]any{"O": map[string]any{"Value": text(t, 2, names)}},
	}
}

// asYAML makes a node of a value, with short forms of functions where short draws so.
func asYAML(value any, short func() bool) *yaml.Node {
	switch value := value.(type) {
	case map[string]any:
		for name, argument := range value {
			tag := "!" + strings.TrimPrefix(name, "Fn::")
			isFunction := len(value) == 1 && (name == "Ref" || name == "Condition" || strings.HasPrefix(name, "Fn::"))
			if node := asYAML(argument, short); isFunction && node.Tag != "" && !strings.HasPrefix(node.Tag, "!F") && short() && !isTagged(node) {
				node.Tag, node.Style = tag, node.Style|yaml.TaggedStyle
				return node
			}
		}
		node := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
		for _, key := range slices.Sorted(maps.Keys(value)) {
			node.Content = append(node.Content, asYAML(key, short), asYAML(value[key], short))
		}
		return node
	case []any:
		node := &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq", Style: yaml.FlowStyle}
		for _, item := range value {
			node.Content = append(node.Content, asYAML(item, short))
		}
		return node
	case string:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Style: yaml.DoubleQuotedStyle, Value: value}
	}
	tag := "!!int"
	if _, ok := value.(bool); ok {
		tag = "!!bool"
	}
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: tag, Value: fmt.Sprint(value)}
}

// isTagged reports whether a node is the short form of a function already: a node has one tag.
func isTagged(node *yaml.Node) bool { return !strings.HasPrefix(node.Tag, "!!") }

// outcome makes a stack of a template and returns all that was evaluated, in the order of the resources.
func outcome(t *rapid.T, body []byte) string {
	template, err := stacktemplate.Parse(body)
	if err != nil {
		t.Fatalf("%v in\n%s", err, body)
	}
	env := environment()
	if env.Parameters, err = template.Arguments(nil); err == nil {
		err = template.Check(nil)
	}
	if err == nil {
		_, err = template.Rehearse(env)
	}
	order, orderErr := template.Order()
	if err != nil || orderErr != nil || len(order) != len(template.Resources) {
		t.Fatalf("%v, %v, order %q of\n%s", err, orderErr, order, body)
	}
	var result strings.Builder
	resources := made{}
	env.Resource = resources.resource
	for _, id := range order {
		for _, needed := range template.References(id) {
			if !resources[needed] {
				t.Fatalf("%s comes before %s, which it needs: %q", id, needed, order)
			}
		}
		properties, err := template.Properties(env, id)
		if err != nil {
			t.Fatalf("%s: %v in\n%s", id, err, body)
		}
		text, err := json.Marshal(properties)
		if err != nil || strings.Contains(string(text), "null,") && !strings.Contains(string(text), `"null,`) {
			t.Fatalf("%s: %s, %v", id, text, err)
		}
		fmt.Fprintf(&result, "%s %s\n", id, text)
		resources[id] = true
	}
	outputs, err := template.OutputValues(env)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(&result, "%+v", outputs)
	return result.String()
}

// Any template without mistakes passes all checks; its order respects references; its values do not depend on chance,
// nor on whether it is JSON or YAML, with short forms or without.
func TestAnyTemplate(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		drawn := drawTemplate(t)
		body, err := json.Marshal(drawn)
		if err != nil {
			t.Fatal(err)
		}
		want := outcome(t, body)
		if got := outcome(t, body); got != want {
			t.Fatalf("two evaluations differ:\n%s\n%s", want, got)
		}
		shorten := rapid.Bool()
		for _, short := range []func() bool{func() bool { return false }, func() bool { return shorten.Draw(t, "short") }} {
			asText, err := yaml.Marshal(asYAML(drawn, short))
			if err != nil {
				t.Fatal(err)
			}
			if got := outcome(t, asText); got != want {
				t.Fatalf("JSON and YAML differ:\n%s\n%s\n%s", want, got, asText)
			}
		}
	})
}
