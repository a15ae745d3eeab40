// SPDX-License-Identifier: Apache-2.0

package stacktemplate_test

import (
	"strings"
	"testing"

	"muster.dev/muster/internal/aws/cloudformation/stacktemplate"
)

func TestFunctions(t *testing.T) {
	t.Parallel()
	for expression, want := range map[string]string{
		`"text"`:                  `"text"`,
		`[1, 1.50, true, "a"]`:    `[1,1.50,true,"a"]`,
		`{"a": {"b": []}}`:        `{"a":{"b":[]}}`,
		`{"Ref": "Text"}`:         `"text"`,
		`{"Ref": "List"}`:         `["a","b","c"]`,
		`{"Ref": "Number"}`:       `"5"`,
		`{"Ref": "Other"}`:        `"id-of-Other"`,
		`{"Ref": "AWS::Region"}`:  `"eu-west-1"`,
		`{"Ref": "AWS::NoValue"}`: `null`,
		`[1, {"Ref": "AWS::NoValue"}, {"a": {"Ref": "AWS::NoValue"}}]`:     `[1,{}]`,
		`{"Ref": "x", "other": 1}`:                                         `{"Ref":"x","other":1}`,
		`{"Fn::GetAtt": ["Other", "Arn"]}`:                                 `"Other-Arn"`,
		`{"Fn::GetAtt": "Other.Arn"}`:                                      `"Other-Arn"`,
		`{"Fn::GetAtt": ["Other", "Number"]}`:                              `7`,
		`{"Fn::Join": ["-", ["a", 1, true, {"Ref": "AWS::NoValue"}]]}`:     `"a-1-true"`,
		`{"Fn::Join": ["", {"Ref": "List"}]}`:                              `"abc"`,
		`{"Fn::Join": [",", []]}`:                                          `""`,
		`{"Fn::Select": [1, {"Ref": "List"}]}`:                             `"b"`,
		`{"Fn::Select": ["2", ["x", "y", {"z": 1}]]}`:                      `{"z":1}`,
		`{"Fn::Split": ["|", "a||b"]}`:                                     `["a","","b"]`,
		`{"Fn::Split": [",", {"Fn::ImportValue": "e"}]}`:                   `["e-1","e-2"]`,
		`{"Fn::If": ["Yes", "a", "b"]}`:                                    `"a"`,
		`{"Fn::If": ["No", {"Ref": "Never"}, {"Ref": "AWS::NoValue"}]}`:    `null`,
		`{"Fn::If": ["Yes", "a", {"Fn::Select": [9, ["x"]]}]}`:             `"a"`,
		`{"Fn::FindInMap": ["Map", {"Ref": "AWS::Region"}, "one"]}`:        `"1"`,
		`{"Fn::FindInMap": ["Map", "eu-west-1", "list"]}`:                  `["x","y"]`,
		`{"Fn::FindInMap": ["Map", "no", "one", {"DefaultValue": "d"}]}`:   `"d"`,
		`{"Fn::FindInMap": ["Map", "text", "one", {"DefaultValue": "d"}]}`: `"of text"`,
		`{"Fn::FindInMap": ["Map", {"Fn::FindInMap": ["Map", {"Ref": "Text"}, "none", {"DefaultValue": "text"}]}, "one"]}`: `"of text"`,
		`{"Fn::Base64": "hällo"}`:                                `"aMOkbGxv"`,
		`{"Fn::Base64": ""}`:                                     `""`,
		`{"Fn::GetAZs": ""}`:                                     `["eu-west-1a","eu-west-1b","eu-west-1c"]`,
		`{"Fn::GetAZs": {"Ref": "AWS::Region"}}`:                 `["eu-west-1a","eu-west-1b","eu-west-1c"]`,
		`{"Fn::Cidr": ["10.0.0.0/24", "2", "5"]}`:                `["10.0.0.0/27","10.0.0.32/27"]`,
		`{"Fn::Cidr": ["10.0.0.0/24", 1, 8]}`:                    `["10.0.0.0/24"]`,
		`{"Fn::Cidr": ["10.1.2.3/16", 1, 8]}`:                    `["10.1.0.0/24"]`,
		`{"Fn::Cidr": ["2001:db8::/56", 2, 64]}`:                 `["2001:db8::/64","2001:db8:0:1::/64"]`,
		`{"Fn::Length": {"Ref": "List"}}`:                        `3`,
		`{"Fn::Length": [1, {"Ref": "AWS::NoValue"}]}`:           `1`,
		`{"Fn::ToJsonString": {"b": 1, "a": [{"Ref": "Text"}]}}`: `"{\"a\":[\"text\"],\"b\":1}"`,
		`{"Fn::ToJsonString": ["<&>", true, 1.50]}`:              `"[\"<&>\",true,1.50]"`,
		`{"Fn::Sub": "plain $ $x {a}"}`:                          `"plain $ $x {a}"`,
		`{"Fn::Sub": ""}`:                                        `""`,
		`{"Fn::Sub": "${Text}${AWS::StackName}"}`:                `"texttest"`,
		`{"Fn::Sub": "$${Text}"}`:                                `"$text"`,
		`{"Fn::Sub": "${!Text} ${!a b} ${Number}"}`:              `"${Text} ${a b} 5"`,
		`{"Fn::Sub": "${Other}/${Other.Arn}"}`:                   `"id-of-Other/Other-Arn"`,
		`{"Fn::Sub": ["${Text}-${Other.Arn}-${n}", {"Text": "own", "Other.Arn": {"Ref": "Text"}, "n": 1}]}`: `"own-text-1"`,
		`{"Fn::Sub": ["${a}", {"a": "${Text}"}]}`:                                                           `"${Text}"`,
	} {
		got, err := evaluate(t, expression)
		if err != nil {
			t.Errorf("%s: %v", expression, err)
		} else if text := jsonOf(t, got); text != want {
			t.Errorf("%s\n got %s\nwant %s", expression, text, want)
		}
	}
}

// A function without a result is an error with its path, never nil.
func TestFunctionsWithoutResult(t *testing.T) {
	t.Parallel()
	const at = "Resources.R.Properties.P"
	for expression, want := range map[string]string{
		`{"Ref": "Nothing"}`:                                 at + `.Ref: nothing is called "Nothing"`,
		`{"Ref": "R"}`:                                       at + `.Ref: the resource R is not made yet`,
		`{"Ref": "Never"}`:                                   at + `.Ref: the resource Never is not made, since the condition No is false`,
		`{"Ref": "AWS::Other"}`:                              at + `.Ref: nothing is called "AWS::Other"`,
		`{"Fn::GetAtt": ["Nothing", "Arn"]}`:                 at + `.Fn::GetAtt: the template has no resource "Nothing"`,
		`{"Fn::GetAtt": ["Text", "Arn"]}`:                    at + `.Fn::GetAtt: the template has no resource "Text"`,
		`{"Fn::GetAtt": ["Other", "Colour"]}`:                at + `.Fn::GetAtt: the resource Other has no attribute "Colour": it has AllocationId, Arn`,
		`["a", {"Fn::Select": [3, ["x"]]}]`:                  at + `[1].Fn::Select: the list has 1 members, and none at index 3`,
		`{"Fn::Select": [-1, ["x"]]}`:                        `none at index -1`,
		`{"Fn::Select": ["x", ["x"]]}`:                       `[0]: "x" is not an index`,
		`{"Fn::Select": [0, {"Ref": "Text"}]}`:               `[1]: a list is needed, and the value is a text`,
		`{"Fn::Join": ["", [["a"]]]}`:                        `[1][0]: a text is needed, and the value is a list`,
		`{"Fn::Join": ["", {"Ref": "Text"}]}`:                `[1]: a list is needed, and the value is a text`,
		`{"Fn::Join": ["", [{"a": 1}]]}`:                     `a text is needed, and the value is a map`,
		`{"Fn::Split": [",", {"Ref": "List"}]}`:              `a text is needed, and the value is a list`,
		`{"Fn::If": ["Broken", 1, 2]}`:                       `Conditions.Broken.Fn::Equals[0].Fn::Select: the list has 3 members`,
		`{"Fn::If": ["Nothing", 1, 2]}`:                      `.Fn::If: the template has no condition "Nothing"`,
		`{"Fn::FindInMap": ["Map", "us-east-1", "one"]}`:     `the mapping "Map" has no key "us-east-1"`,
		`{"Fn::FindInMap": ["Map", "eu-west-1", "two"]}`:     `the mapping "Map" has no key "two" in "eu-west-1"`,
		`{"Fn::FindInMap": ["Nothing", "a", "b"]}`:           `the template has no mapping "Nothing"`,
		`{"Fn::FindInMap": ["Map", {"Ref": "Secret"}, "b"]}`: `the mapping "Map" has no key ****`,
		`{"Fn::Base64": {"Ref": "List"}}`:                    `.Fn::Base64: a text is needed, and the value is a list`,
		`{"Fn::Base64": {"Ref": "AWS::NoValue"}}`:            `a text is needed, and the value is AWS::NoValue`,
		`{"Fn::GetAZs": "us-east-1"}`:                        `the zones of the region "us-east-1" are not known`,
		`{"Fn::ImportValue": "missing"}`:                     `.Fn::ImportValue: importing "missing": no export has this name`,
		`{"Fn::Cidr": ["10.0.0.0", 1, 8]}`:                   `[0]: "10.0.0.0" is not an address block`,
		`{"Fn::Cidr": ["10.0.0.0/24", 9, 5]}`:                `a /24 has room for 8 blocks of /27, not for 9`,
		`{"Fn::Cidr": ["10.0.0.0/24", 1, 9]}`:                `a block with 9 host bits is larger than /24`,
		`{"Fn::Cidr": ["10.0.0.0/8", 257, 8]}`:               `the count 257 is not between 1 and 256`,
		`{"Fn::Cidr": ["10.0.0.0/8", 0, 8]}`:                 `the count 0 is not between 1 and 256`,
		`{"Fn::Cidr": ["10.0.0.0/8", 1, 0]}`:                 `cidrBits 0 is not between 1 and 32`,
		`{"Fn::Cidr": ["10.0.0.0/8", "x", 8]}`:               `[1]: "x" is not a whole number`,
		`{"Fn::Length": {"Ref": "Text"}}`:                    `a list is needed`,
		`{"Fn::ToJsonString": {"Ref": "Text"}}`:              `a map or a list is needed, and the value is a text`,
		`{"Fn::Sub": "${Nothing}"}`:                          at + `.Fn::Sub: nothing is called "Nothing"`,
		`{"Fn::Sub": "${List}"}`:                             `a text is needed, and the value is a list`,
		`{"Fn::Sub": "${AWS::NoValue}"}`:                     `a text is needed, and the value is AWS::NoValue`,
		`{"Fn::Sub": ["${a}", {"a": {"Ref": "List"}}]}`:      `.Fn::Sub[1].a: a text is needed`,
		`{"Fn::Join": ["", ["{{resolve", ":ssm:a}}"]]}`:      `.Fn::Join: dynamic references`,
	} {
		_, err := evaluate(t, expression)
		expect(t, expression, err, want)
		if err != nil && strings.Contains(err.Error(), "s3cr3t") {
			t.Errorf("%s shows a secret: %v", expression, err)
		}
	}
	_, err := evaluate(t, `{"a": {"Ref": "One"}, "b": [{"Fn::Sub": "${Two}"}, {"Fn::GetAtt": ["Three", "Arn"]}]}`)
	expect(t, "all at once", err, at+`.a.Ref: nothing is called "One"`, at+`.b[0].Fn::Sub: nothing is called "Two"`, at+`.b[1].Fn::GetAtt: the template has no resource "Three"`)
}

func TestConditions(t *testing.T) {
	t.Parallel()
	const yes, no = `{"Fn::Equals": ["a", "a"]}`, `{"Fn::Equals": ["a", "b"]}`
	for expression, want := range map[string]bool{
		yes: true, no: false,
		`{"Fn::Not": [` + yes + `]}`: false, `{"Fn::Not": [` + no + `]}`: true,
		`{"Fn::And": [` + yes + `,` + yes + `]}`: true, `{"Fn::And": [` + yes + `,` + no + `]}`: false,
		`{"Fn::Or": [` + no + `,` + yes + `]}`: true, `{"Fn::Or": [` + no + `,` + no + `]}`: false,
		`{"Fn::Or": [` + yes + `,` + yes + `]}`:                  true,
		`{"Condition": "Base"}`:                                  true,
		`{"Fn::Not": [{"Condition": "Base"}]}`:                   false,
		`{"Fn::Equals": [1, "1"]}`:                               true,
		`{"Fn::Equals": [true, "true"]}`:                         true,
		`{"Fn::Equals": ["a", "A"]}`:                             false,
		`{"Fn::Equals": [["a"], ["a"]]}`:                         true,
		`{"Fn::Equals": [["a"], "a"]}`:                           false,
		`{"Fn::Equals": [{"Ref": "P"}, "v"]}`:                    true,
		`{"Fn::Equals": [{"a": 1}, {"a": "1"}]}`:                 true,
		`{"Fn::Equals": [{"a": 1}, {"a": "2"}]}`:                 false,
		`{"Fn::Equals": [{"Fn::Join": ["", ["a", "b"]]}, "ab"]}`: true,
	} {
		template := parse(t, `{"Parameters": {"P": {"Type": "String", "Default": "v"}}, "Conditions": {"Base": `+yes+`, "C": `+expression+`},
			"Resources": {"R": {"Type": "T", "Condition": "C"}}}`)
		env := environment()
		env.Parameters, _ = template.Arguments(nil)
		if got, err := template.Created(env, "R"); err != nil || got != want {
			t.Errorf("%s is %v, %v", expression, got, err)
		}
	}
}

// A function that contains a parameter with NoEcho is shown as ****, and errors do not quote the value.
func TestNoEcho(t *testing.T) {
	t.Parallel()
	template := parse(t, `
Parameters:
  Secret: {Type: String, NoEcho: true, MinLength: 3}
  Pin: {Type: Number, NoEcho: "true", Default: 1234}
Conditions: {Set: !Equals [!Ref Secret, s3cr3t]}
Resources:
  R:
    Type: T
    Properties:
      Plain: a
      Direct: !Ref Secret
      Nested: {List: [!Base64 {"Fn::Sub": "x ${Secret}"}, !Join ["", [a, !Ref Pin]], !Select [0, !Split [",", !Ref Secret]]]}
      Chosen: !If [Set, !Ref Secret, b]
      Constant: !If [Set, c, d]
Outputs: {O: {Value: !Sub "${Secret}"}, P: {Value: p}}
`)
	env := environment()
	var err error
	if env.Parameters, err = template.Arguments(map[string]string{"Secret": "s3cr3t"}); err != nil {
		t.Fatal(err)
	}
	shown, err := template.Shown(env, "R")
	if want := `{"Chosen":"****","Constant":"c","Direct":"****","Nested":{"List":["****","****","****"]},"Plain":"a"}`; err != nil || jsonOf(t, shown) != want {
		t.Errorf("%s, %v", jsonOf(t, shown), err)
	}
	full, err := template.Properties(env, "R")
	if want := `{"Chosen":"s3cr3t","Constant":"c","Direct":"s3cr3t","Nested":{"List":["eCBzM2NyM3Q=","a1234","s3cr3t"]},"Plain":"a"}`; err != nil || jsonOf(t, full) != want {
		t.Errorf("%s, %v", jsonOf(t, full), err)
	}
	outputs, err := template.OutputValues(env)
	want := []stacktemplate.OutputValue{{Name: "O", Value: "s3cr3t", Secret: true}, {Name: "P", Value: "p"}}
	if err != nil || len(outputs) != 2 || outputs[0] != want[0] || outputs[1] != want[1] {
		t.Errorf("%+v, %v", outputs, err)
	}
	_, err = template.Arguments(map[string]string{"Secret": "zq", "Pin": "zq9"})
	expect(t, "NoEcho", err, "Parameters.Secret: the value is shorter than 3 characters", "Parameters.Pin: the value is not a number")
	if strings.Contains(err.Error(), "zq") {
		t.Errorf("shows a secret: %v", err)
	}
}
