// SPDX-License-Identifier: Apache-2.0

package stacktemplate_test

import (
	"fmt"
	"strings"
	"testing"

	"muster.dev/muster/internal/aws/cloudformation/stacktemplate"
)

func TestParseProblems(t *testing.T) {
	t.Parallel()
	const r = "\nResources: {R: {Type: T}}\n"
	for body, want := range map[string][]string{
		"":                         {"the template is empty"},
		"# nothing\n":              {"the template is empty"},
		"--- \n":                   {"line 2: null is not a value"},
		"[]":                       {"a template is a map of sections"},
		"text":                     {"a template is a map of sections"},
		"{}":                       {"no section Resources"},
		"{\n \"a\": ,}":            {"not well-formed JSON (line 2, column 7)"},
		"{a: 1}":                   {"not well-formed JSON (line 1, column 2)"},
		"a: [":                     {"not well-formed YAML: line 1"},
		"a: !Base64 !Sub x" + r:    {"not well-formed YAML"},
		"\xff: 1":                  {"not UTF-8"},
		"a: 1\n---\nb: 2":          {"more than one document"},
		"a: 1" + r:                 {"a: a template has no such section"},
		"Rules: {}\nHooks: {}" + r: {"Rules: the section is not supported", "Hooks: the section is not supported"},
		"Transform: AWS::Serverless-2016-10-31" + r:                {"Transform: transforms are not supported, except AWS::LanguageExtensions"},
		"Transform: [AWS::LanguageExtensions, Mine]" + r:           {"Transform: transforms are not supported"},
		"AWSTemplateFormatVersion: 2011-01-01" + r:                 {`AWSTemplateFormatVersion: "2011-01-01" is not a version`},
		"Description: [a]" + r:                                     {"Description: a text is needed"},
		"Description: " + strings.Repeat("x", 1025) + r:            {"Description: the description has 1025 bytes: at most 1024"},
		"Description: a\nDescription: b" + r:                       {"Description: the key is there twice"},
		"Resources: {}":                                            {"Resources: at least one resource is needed"},
		"Resources: [a]":                                           {"Resources: a map is needed"},
		"Resources: {R: {}}":                                       {"Resources.R: the resource has no Type"},
		"Resources: {R_1: {Type: T}}":                              {"Resources.R_1: a name has letters and digits only"},
		"Resources: {" + strings.Repeat("R", 256) + ": {Type: T}}": {"the name has 256 characters: at most 255"},
		"Resources: {R: {Type: T, Color: red, Properties: ~}}":     {"Resources.R.Color: a resource has no such attribute", "Resources.R.Properties: line 1: null is not a value"},
		"Resources: {R: {Type: T, DeletionPolicy: Keep, UpdateReplacePolicy: RetainExceptOnCreate, DependsOn: {a: b}}}": {
			`DeletionPolicy: "Keep" is not one of Delete, Retain, RetainExceptOnCreate, Snapshot`, `UpdateReplacePolicy: "RetainExceptOnCreate" is not one of`, "DependsOn: a text is needed",
		},
		"Resources: {R: {Type: T, Properties: !If [A, {}, {}]}}":                  {"Resources.R.Properties: Fn::If cannot stand here"},
		"Resources: {R: {Type: T, Properties: {a: {Fn::Nope: 1}}}}":               {"Resources.R.Properties.a.Fn::Nope: Fn::Nope is not a function"},
		"Resources: {R: {Type: T, Properties: {a: !Nope 1}}}":                     {"the tag !Nope is not a function"},
		"Resources: {R: {Type: T, Properties: {a: !Transform {Name: x}}}}":        {"Fn::Transform is not supported"},
		"Resources: {R: {Type: T, Properties: {\"Fn::ForEach::A\": [a, b, c]}}}":  {"Fn::ForEach::A cannot stand here"},
		"Resources: {R: {Type: T, Properties: {a: {Fn::Sub: x, b: 1}}}}":          {"Fn::Sub stands beside other keys"},
		"Resources: {R: {Type: T, Properties: {a: !Equals [a, b]}}}":              {"Fn::Equals is a function of the section Conditions"},
		"Resources: {R: {Type: T, Properties: {a: '{{resolve:ssm:x}}'}}}":         {"Resources.R.Properties.a: dynamic references"},
		"Resources: {R: {Type: T, Properties: {a: !Sub '{{resolve:ssm:x}}'}}}":    {"dynamic references"},
		"Resources: {R: {Type: T, Properties: &x {a: 1}, Metadata: *x}}":          {"Resources.R.Metadata: YAML aliases are not allowed"},
		"Resources: {R: {Type: T, Properties: {<<: {a: 1}}}}":                     {"merge keys"},
		"Resources: {R: {Type: T, Properties: {? [a] : 1}}}":                      {"a key must be text"},
		"Resources: {R: {Type: T, Properties: {a: !!binary aGk=, b: !!set {x}}}}": {"the tag !!binary is not allowed", "the tag !!set is not allowed"},
		"Conditions: {A: yes, B: {Ref: x}, C: {Fn::Not: []}, D: {Fn::Equals: [a]}, E: {Fn::And: [{Condition: A}]}, F: {Condition: [A]}}" + r: {
			"Conditions.A: a condition is one of Condition, Fn::And", "Conditions.B: a condition is one of", "Conditions.C.Fn::Not: Fn::Not takes a list of 1 to 1", "Conditions.D.Fn::Equals: Fn::Equals takes a list of 2 to 2",
			"Conditions.E.Fn::And: Fn::And takes a list of 2 to 10", "Conditions.F.Condition: Condition takes the name",
		},
		"Mappings: {M: {k: {v: {a: b}}, 'a b': {c: d}}, N: {}}" + r: {"Mappings.M.k.v: a text or a number is needed", "Mappings.M.a b: a key of a mapping has", "Mappings.N: a mapping has 1 to 200 keys, not 0"},
		"Outputs: {O: {}, P: {Value: a, Export: {Name: b, C: d}}, Q: {Value: a, Export: x}, S: {Value: a, Type: b}}" + r: {
			"Outputs.O: the output has no Value", "Outputs.P.Export: an export has a Name and nothing else", "Outputs.Q.Export: a map is needed", "Outputs.S.Type: an output has no such attribute",
		},
		"Parameters: {R: {Type: String}}" + r: {"Resources.R: a parameter has the same name"},
	} {
		_, err := stacktemplate.Parse([]byte(body))
		expect(t, body, err, want...)
	}
}

// Each function says what it takes.
func TestShapesOfFunctions(t *testing.T) {
	t.Parallel()
	for expression, want := range map[string]string{
		`{"Ref": ["a"]}`: "Ref takes the name", `{"Ref": ""}`: "Ref takes the name",
		`{"Fn::Base64": ["a"]}`: "takes a text", `{"Fn::Base64": {"a": "b"}}`: "takes a text",
		`{"Fn::Cidr": ["10.0.0.0/8", 1]}`: "takes [ipBlock, count, cidrBits]", `{"Fn::Cidr": "x"}`: "takes [ipBlock",
		`{"Fn::FindInMap": ["a", "b"]}`: "takes [mapping, key, second key]", `{"Fn::FindInMap": ["a", "b", "c", "d"]}`: "takes [mapping",
		`{"Fn::GetAtt": "a"}`: "takes [resource, attribute]", `{"Fn::GetAtt": ["a"]}`: "takes [resource", `{"Fn::GetAtt": [{"Ref": "Text"}, "b"]}`: "takes [resource",
		`{"Fn::GetAtt": ["a", {"Fn::Sub": "b"}]}`: "takes [resource",
		`{"Fn::If": ["a", "b"]}`:                  "takes [condition", `{"Fn::If": [{"Ref": "Text"}, "b", "c"]}`: "takes [condition",
		`{"Fn::Join": ["a", "b"]}`: "takes [delimiter, list]", `{"Fn::Join": [{"Ref": "Text"}, []]}`: "takes [delimiter", `{"Fn::Join": ["a"]}`: "takes [delimiter",
		`{"Fn::Split": ["", "a"]}`: "takes [delimiter, text]", `{"Fn::Split": ["a", ["b"]]}`: "takes [delimiter, text]",
		`{"Fn::Select": [0]}`: "takes [index, list]", `{"Fn::Length": "a"}`: "takes a list", `{"Fn::ToJsonString": "a"}`: "takes a map or a list",
		`{"Fn::Sub": ["a"]}`: "takes a text, or", `{"Fn::Sub": ["a", "b"]}`: "takes a text, or", `{"Fn::Sub": 1}`: "takes a text, or",
		`{"Fn::Sub": "${a"}`: "${ has no }", `{"Fn::Sub": "${}"}`: "a variable has letters", `{"Fn::Sub": "${a b}"}`: "a variable has letters",
		`{"Fn::Sub": "${HOME:-x}"}`:                              "write ${!name} for the literal text",
		`{"Fn::Sub": ["a", {"b c": 1}]}`:                         "Fn::Sub[1].b c: a variable of Fn::Sub has letters",
		`{"Fn::GetStackOutput": "x"}`:                            "Fn::GetStackOutput is not supported",
		`{"Condition": "Yes", "Fn::If": [1, 2, 3]}`:              "Fn::If stands beside other keys",
		`{"Fn::ImportValue": {"Fn::ImportValue": 1}, "x": null}`: "null is not a value",
	} {
		_, err := stacktemplate.Parse([]byte(withProperty(expression)))
		if problems := problemsOf(t, err); len(problems) == 0 || !strings.HasPrefix(problems[0], "Resources.R.Properties.P") || !strings.Contains(strings.Join(problems, "\n"), want) {
			t.Errorf("%s: %q, want %q", expression, problems, want)
		}
	}
	_, err := stacktemplate.Parse([]byte(strings.Replace(withProperty(`[{"Fn::Length": []}, {"Fn::ToJsonString": []}, {"Fn::FindInMap": ["Map", "a", "b", {"DefaultValue": 1}]}]`), `"Transform": "AWS::LanguageExtensions",`, "", 1)))
	expect(t, "without the transform", err, "P[0].Fn::Length: Fn::Length needs the line `Transform: AWS::LanguageExtensions`", "P[1].Fn::ToJsonString: Fn::ToJsonString needs", "P[2].Fn::FindInMap[3]: DefaultValue needs")
}

// Both forms of a template are the same template.
func TestYAML(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"yes": "true", "On": "true", "no": "false", "OFF": "false", "true": "true", "FALSE": "false", "'yes'": `"yes"`, "y": `"y"`,
		"1": "1", "-1.5": "-1.5", "1e3": "1e3", "0123": `"0123"`, "012345678901": `"012345678901"`, "0x1F": `"0x1F"`, "1_000": `"1_000"`, "+1": `"+1"`,
		".5": `".5"`, ".inf": `".inf"`, "'1'": `"1"`, "!!str 1": `"1"`, "2012-10-17": `"2012-10-17"`, "2001-12-14t21:59:43.10-05:00": `"2001-12-14t21:59:43.10-05:00"`,
		"\"\"": `""`, "<<": `"<<"`, "1.2.3.4": `"1.2.3.4"`, "12:30": `"12:30"`,
		"!Sub yes": `"yes"`, "!Base64 1": `"MQ=="`, "!Join [',', [1, !Sub 'a', !Join ['', [b, !Ref Text]]]]": `"1,a,btext"`,
		"!GetAtt Other.Arn": `"Other-Arn"`, "!GetAtt [Other, Arn]": `"Other-Arn"`, "{'Fn::GetAtt': Other.Arn}": `"Other-Arn"`,
		"!Select [0, !GetAZs '']": `"eu-west-1a"`, "!Sub ['${a}', {a: !Ref Text}]": `"text"`, "!FindInMap [Map, !Ref AWS::Region, one]": `"1"`,
		"!If ['Yes', !If ['No', 1, 2], 3]": "2", "[!Ref Text, {a: !Ref Text}]": `["text",{"a":"text"}]`,
		"{1: a, true: b, 2012-10-17: c}": `{"1":"a","2012-10-17":"c","true":"b"}`,
	} {
		body := strings.Replace(withProperty("1"), `"P": 1`, `"P": `+text, 1)
		template := parse(t, "---\n"+body)
		env := environment()
		env.Resource = made{"Other": true}.resource
		env.Parameters, _ = template.Arguments(nil)
		properties, err := template.Properties(env, "R")
		if err != nil {
			t.Errorf("%s: %v", text, err)
		} else if got := jsonOf(t, properties["P"]); got != want {
			t.Errorf("%s is %s, want %s", text, got, want)
		}
	}
}

func TestLimits(t *testing.T) {
	t.Parallel()
	section := func(name, member string, n int) string {
		var text strings.Builder
		for i := range n {
			fmt.Fprintf(&text, "%s\"X%d\":%s", map[bool]string{true: ",", false: ""}[i > 0], i, member)
		}
		return fmt.Sprintf(`{%q:{%s}%s}`, name, text.String(), map[bool]string{false: `,"Resources":{"R":{"Type":"T"}}`}[name == "Resources"])
	}
	for _, c := range []struct {
		name, member string
		most         int
	}{
		{"Resources", `{"Type":"T"}`, stacktemplate.MaxResources},
		{"Parameters", `{"Type":"String"}`, stacktemplate.MaxParameters},
		{"Outputs", `{"Value":"v"}`, stacktemplate.MaxOutputs},
		{"Mappings", `{"k":{"v":"w"}}`, stacktemplate.MaxMappings},
	} {
		if _, err := stacktemplate.Parse([]byte(section(c.name, c.member, c.most))); err != nil {
			t.Errorf("%d %s: %v", c.most, c.name, err)
		}
		_, err := stacktemplate.Parse([]byte(section(c.name, c.member, c.most+1)))
		expect(t, c.name, err, fmt.Sprintf("%s: the section has %d members: at most %d", c.name, c.most+1, c.most))
	}
	body := `{"Description":"", "Resources":{"R":{"Type":"T"}}}`
	fill := strings.Repeat(" ", stacktemplate.MaxBody-len(body))
	if _, err := stacktemplate.Parse([]byte(body + fill)); err != nil {
		t.Error(err)
	}
	_, err := stacktemplate.Parse([]byte(body + fill + " "))
	expect(t, "a large body", err, "the template has 51201 bytes: at most 51200")
	deep := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	for _, start := range []string{`{"Resources":{"R":{"Type":"T","Properties":{"P":%s}}}}`, `Resources: {"R":{"Type":"T","Properties":{"P":%s}}}`} {
		if _, err := stacktemplate.Parse(fmt.Appendf(nil, start, deep(stacktemplate.MaxDepth-4))); err != nil {
			t.Error(err)
		}
		_, err := stacktemplate.Parse(fmt.Appendf(nil, start, deep(stacktemplate.MaxDepth-3)))
		expect(t, start, err, "the template has more than 100 levels")
		_, err = stacktemplate.Parse(fmt.Appendf(nil, start, deep(9_000)))
		if err == nil {
			t.Errorf("%s: 9,000 levels are taken", start)
		}
	}
}
