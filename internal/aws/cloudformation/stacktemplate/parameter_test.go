// SPDX-License-Identifier: Apache-2.0

package stacktemplate_test

import (
	"fmt"
	"strings"
	"testing"

	"muster.dev/muster/internal/aws/cloudformation/stacktemplate"
)

func TestArguments(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		parameter, given, want string
		problems               []string
	}{
		{"{Type: String}", "a", `"a"`, nil},
		{"{Type: String}", "", `""`, nil},
		{"{Type: String, Default: 1}", "-", `"1"`, nil},
		{"{Type: String, Default: yes}", "-", `"true"`, nil},
		{"{Type: String}", "-", "", []string{"Parameters.P: the parameter has no default: give a value"}},
		{"{Type: String, AllowedValues: [a, 1, true]}", "1", `"1"`, nil},
		{"{Type: String, AllowedValues: [a, 1, true]}", "true", `"true"`, nil},
		{"{Type: String, AllowedValues: [a, b]}", "c", "", []string{`"c" is not one of a, b`}},
		{"{Type: String, AllowedPattern: '[a-z]+'}", "abc", `"abc"`, nil},
		{"{Type: String, AllowedPattern: '[a-z]+'}", "abc1", "", []string{`"abc1" does not match the pattern [a-z]+`}},
		{"{Type: String, AllowedPattern: 'a|b'}", "xb", "", []string{`does not match`}},
		{"{Type: String, AllowedPattern: 'a', ConstraintDescription: must be a}", "b", "", []string{`"b" does not match`, "constraint: must be a"}},
		{"{Type: String, MinLength: 2, MaxLength: '3'}", "äö", `"äö"`, nil},
		{"{Type: String, MinLength: 2}", "ä", "", []string{"is shorter than 2 characters"}},
		{"{Type: String, MaxLength: 2}", "abc", "", []string{"is longer than 2 characters"}},
		{"{Type: String}", strings.Repeat("x", 4097), "", []string{"the value has 4097 bytes: at most 4096"}},
		{"{Type: Number}", "1.50", `"1.50"`, nil},
		{"{Type: Number}", "-1e3", `"-1e3"`, nil},
		{"{Type: Number}", "0x1", "", []string{`"0x1" is not a number`}},
		{"{Type: Number}", "NaN", "", []string{`"NaN" is not a number`}},
		{"{Type: Number}", "", "", []string{`"" is not a number`}},
		{"{Type: Number, MinValue: 1, MaxValue: 2.5}", "2.5", `"2.5"`, nil},
		{"{Type: Number, MinValue: 1}", "0", "", []string{`"0" is less than 1`}},
		{"{Type: Number, MaxValue: 2.5}", "3", "", []string{`"3" is greater than 2.5`}},
		{"{Type: List<Number>}", "1, 2", `["1","2"]`, nil},
		{"{Type: List<Number>, MaxValue: 2}", "1,x,3", "", []string{`"x" is not a number`, `"3" is greater than 2`}},
		{"{Type: CommaDelimitedList}", " a b ,,c", `["a b","","c"]`, nil},
		{"{Type: CommaDelimitedList, AllowedValues: [a, b]}", "b,a", `["b","a"]`, nil},
		{"{Type: CommaDelimitedList, AllowedPattern: '[a-z]'}", "b,1", "", []string{`"1" does not match`}},
		{"{Type: 'AWS::EC2::VPC::Id'}", "vpc-1", `"vpc-1"`, nil},
		{"{Type: 'List<AWS::EC2::Subnet::Id>'}", "subnet-1,subnet-2", `["subnet-1","subnet-2"]`, nil},
		{"{Type: 'AWS::SSM::Parameter::Name'}", "/a/b", `"/a/b"`, nil},
		{"{Type: 'AWS::SSM::Parameter::Value<List<String>>'}", "/a/b", `"/a/b"`, nil},
	} {
		template := parse(t, "Parameters: {P: "+c.parameter+"}\nResources: {R: {Type: T}}")
		given := map[string]string{"P": c.given}
		if c.given == "-" {
			given = nil
		}
		values, err := template.Arguments(given)
		expect(t, c.parameter+" "+c.given, err, c.problems...)
		if err == nil && jsonOf(t, values["P"]) != c.want {
			t.Errorf("%s %q: %s, want %s", c.parameter, c.given, jsonOf(t, values["P"]), c.want)
		}
	}
	template := parse(t, "Parameters: {A: {Type: String}, B: {Type: Number}, C: {Type: String}}\nResources: {R: {Type: T}}")
	_, err := template.Arguments(map[string]string{"A": "a", "B": "b", "Z": "z", "Y": "y"})
	expect(t, "all at once", err, `Parameters.B: "b" is not a number`, "Parameters.C: the parameter has no default", "Parameters.Y: the template has no such parameter", "Parameters.Z: the template has no such")
}

func TestParameterProblems(t *testing.T) {
	t.Parallel()
	for parameter, want := range map[string][]string{
		"{}":                                 {"the parameter has no Type"},
		"{Type: Text}":                       {`Parameters.P.Type: "Text" is not a type`},
		"{Type: 'List<CommaDelimitedList>'}": {"is not a type"},
		"{Type: 'AWS::SSM::Parameter::Value<Number>'}":                         {"is not a type"},
		"{Type: String, Colour: red}":                                          {"Parameters.P.Colour: a parameter has no such attribute"},
		"{Type: String, Default: [a]}":                                         {"Parameters.P.Default: a text or a number is needed"},
		"{Type: String, Default: !Ref Q}":                                      {"Parameters.P.Default: a text or a number is needed"},
		"{Type: String, NoEcho: perhaps}":                                      {`NoEcho: "perhaps" is not true or false`},
		"{Type: String, AllowedValues: []}":                                    {"AllowedValues: a list of at least one value"},
		"{Type: String, AllowedPattern: '('}":                                  {"AllowedPattern: the pattern is not a regular expression"},
		"{Type: String, AllowedPattern: '(?!a)b'}":                             {"AllowedPattern: the pattern is not a regular expression of RE2"},
		"{Type: String, AllowedPattern: '(((a{50}){50}){50})'}":                {"AllowedPattern: the pattern"},
		"{Type: String, AllowedPattern: '(abcdefghijklmnopqrstuvwxyz){1000}'}": {"AllowedPattern: the patterns of the template repeat too much"},
		"{Type: String, MinLength: -1, MaxLength: x}":                          {"is not a length", "is not a length"},
		"{Type: Number, MinValue: x}":                                          {`MinValue: "x" is not a number`},
		"{Type: String, MinValue: 1}":                                          {"MinValue and MaxValue are for the type Number"},
		"{Type: Number, MinLength: 1}":                                         {"MinLength and MaxLength are for the type String"},
		"{Type: CommaDelimitedList, MinLength: 1}":                             {"MinLength and MaxLength are for the type String"},
		"{Type: Number, AllowedPattern: a}":                                    {"AllowedPattern is for the types String"},
		"{Type: String, MinLength: 3, MaxLength: 2}":                           {"MinLength is greater than MaxLength"},
		"{Type: Number, MinValue: 3, MaxValue: 2}":                             {"MinValue is greater than MaxValue"},
		"{Type: String, Default: c, AllowedValues: [a, b]}":                    {`Parameters.P.Default: "c" is not one of a, b`},
	} {
		_, err := stacktemplate.Parse([]byte("Parameters: {P: " + parameter + "}\nResources: {R: {Type: T}}"))
		expect(t, parameter, err, want...)
	}
}

// The value of a parameter of Systems Manager takes the place of its name, and the constraints are about the value.
func TestStored(t *testing.T) {
	t.Parallel()
	template := parse(t, `
Parameters:
  Image: {Type: "AWS::SSM::Parameter::Value<AWS::EC2::Image::Id>", Default: /aws/image, AllowedPattern: "ami-.*"}
  Names: {Type: "AWS::SSM::Parameter::Value<List<String>>", Default: /names}
  Plain: {Type: String, Default: p}
Resources: {R: {Type: T, Properties: {P: [!Ref Image, !Ref Names, !Ref Plain]}}}`)
	arguments, err := template.Arguments(map[string]string{"Names": "/mine"})
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(template.Stored(arguments)); got != "map[Image:/aws/image Names:/mine]" {
		t.Error(got)
	}
	env := environment()
	if env.Parameters, err = template.WithStored(arguments, map[string]string{"Image": "ami-1", "Names": "a,b"}); err != nil {
		t.Fatal(err)
	}
	if properties, err := template.Properties(env, "R"); err != nil || jsonOf(t, properties) != `{"P":["ami-1",["a","b"],"p"]}` {
		t.Errorf("%v, %v", properties, err)
	}
	_, err = template.WithStored(arguments, map[string]string{"Image": "img-1"})
	expect(t, "WithStored", err, `Parameters.Image: "img-1" does not match`, "Parameters.Names: Systems Manager has no such parameter")
	if fmt.Sprint(arguments["Image"]) != "/aws/image" {
		t.Error("the arguments were changed")
	}
}
