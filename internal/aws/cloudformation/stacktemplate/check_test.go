// SPDX-License-Identifier: Apache-2.0

package stacktemplate_test

import (
	"fmt"
	"slices"
	"testing"

	"muster.dev/muster/internal/aws/cloudformation/stacktemplate"
)

// known has two types.
func known(typ string) (properties, attributes map[string]bool, ok bool) {
	switch typ {
	case "AWS::EC2::VPC":
		return map[string]bool{"CidrBlock": true, "Tags": true}, map[string]bool{"VpcId": true, "CidrBlock": true}, true
	case "AWS::EC2::Subnet":
		return map[string]bool{"VpcId": true, "CidrBlock": true}, map[string]bool{}, true
	}
	return nil, nil, false
}

// Check finds all problems at once, before anything is made.
func TestCheck(t *testing.T) {
	t.Parallel()
	template := parse(t, `
Parameters: {P: {Type: String, Default: a}}
Mappings: {M: {a: {b: c}}}
Conditions:
  Unknown: !Equals [!Ref Nothing, a]
  Early: !Equals [!Ref VPC, a]
  Other: !Not [!Condition Missing]
Resources:
  VPC:
    Type: AWS::EC2::VPC
    Condition: Missing
    DependsOn: [VPC, Nobody]
    Properties:
      Colour: red
      CidrBlock: !FindInMap [Nope, a, b]
      Tags: [!FindInMap [M, b, b], !FindInMap [M, a, c], !FindInMap [M, !Ref P, c], !If [Missing, 1, 2], !Ref "AWS::Nothing"]
  Subnet:
    Type: AWS::EC2::Subnet
    Properties:
      VpcId: !GetAtt VPC.Arn
      CidrBlock: !Sub ["${P} ${VPC.CidrBlock} ${Nothing.Arn} ${own}", {own: !GetAtt P.Arn}]
    UpdatePolicy: {X: !ImportValue {"Fn::Sub": "${VPC}"}}
    Metadata: {Y: !GetAtt Subnet2.Any}
  Subnet2: {Type: AWS::EC2::Subnet, Properties: {CidrBlock: !Cidr [!GetAtt VPC.CidrBlock, 1, 8]}}
  Bucket: {Type: AWS::S3::Bucket, Properties: {Anything: !Ref P}}
Outputs:
  O: {Condition: Missing, Value: !Ref Nothing, Export: {Name: !Sub "${VPC}"}}
`)
	expect(t, "Check", template.Check(known),
		`Conditions.Unknown.Fn::Equals[0].Ref: the template has no parameter or resource "Nothing"`,
		`Conditions.Early.Fn::Equals[0].Ref: the resource "VPC" cannot be named here`,
		`Conditions.Other.Fn::Not[0].Condition: the template has no condition "Missing"`,
		`Resources.VPC.Condition: the template has no condition "Missing"`,
		`Resources.VPC.DependsOn[0]: a resource cannot depend on itself`,
		`Resources.VPC.DependsOn[1]: the template has no resource "Nobody"`,
		`Resources.VPC.Properties.Colour: AWS::EC2::VPC has no such property`,
		`Resources.VPC.Properties.CidrBlock.Fn::FindInMap: the template has no mapping "Nope"`,
		`Resources.VPC.Properties.Tags[0].Fn::FindInMap: the mapping M has no key "b"`,
		`Resources.VPC.Properties.Tags[1].Fn::FindInMap: the mapping M has no key "c" in a`,
		`Resources.VPC.Properties.Tags[3].Fn::If: the template has no condition "Missing"`,
		`Resources.VPC.Properties.Tags[4].Ref: the template has no parameter or resource "AWS::Nothing"`,
		`Resources.Subnet.Properties.VpcId.Fn::GetAtt: AWS::EC2::VPC has no attribute "Arn": it has CidrBlock, VpcId`,
		`Resources.Subnet.Properties.CidrBlock.Fn::Sub: the template has no resource "Nothing"`,
		`Resources.Subnet.Properties.CidrBlock.Fn::Sub[1].own.Fn::GetAtt: the template has no resource "P"`,
		`Resources.Subnet.UpdatePolicy.X.Fn::ImportValue[0].Fn::Sub: the resource "VPC" cannot be named here`,
		`Resources.Subnet.Metadata.Y.Fn::GetAtt: AWS::EC2::Subnet has no attribute "Any": it has none`,
		`Resources.Bucket.Type: "AWS::S3::Bucket" is not a type of resources that stacks can have`,
		`Outputs.O.Condition: the template has no condition "Missing"`,
		`Outputs.O.Value.Ref: the template has no parameter or resource "Nothing"`,
		`Outputs.O.Export.Name.Fn::Sub: the resource "VPC" cannot be named here`,
		`the resources need each other in a circle: VPC needs VPC`,
	)
}

func TestCycles(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		`Resources: {A: {Type: T, DependsOn: A}}`:                                                                                 "the resources need each other in a circle: A needs A",
		`Resources: {A: {Type: T, DependsOn: C}, B: {Type: T, DependsOn: [A]}, C: {Type: T, DependsOn: B}}`:                       "circle: A needs C needs B needs A",
		`Resources: {X: {Type: T, DependsOn: A}, A: {Type: T, Properties: {P: !Sub "${X.Arn}"}}}`:                                 "circle: A needs X needs A",
		`Resources: {A: {Type: T, Properties: {P: !If [C, !Ref B, 1]}}, B: {Type: T, Metadata: {P: !Sub ["${v}", {v: !Ref A}]}}}`: "circle: A needs B needs A",
		`Resources: {A: {Type: T, UpdatePolicy: {P: !Ref B}}, B: {Type: T, CreationPolicy: {P: !GetAtt A.X}}}`:                    "circle: A needs B needs A",
	} {
		_, err := parse(t, body).Order()
		expect(t, body, err, want)
	}
	template := parse(t, `
Conditions: {A: !Not [!Condition B], B: !Not [!Condition C], C: !Not [!Condition A], D: !Not [!Condition D]}
Resources: {R: {Type: T, Condition: A}}`)
	expect(t, "conditions", template.Check(nil), "the conditions need each other in a circle: A needs B needs C needs A")
	_, err := template.Created(environment(), "R")
	expect(t, "conditions", err, "Conditions.C.Fn::Not[0].Condition: the condition A needs itself")
}

func TestReferences(t *testing.T) {
	t.Parallel()
	template := parse(t, `
Parameters: {P: {Type: String}}
Resources:
  A:
    Type: T
    DependsOn: [B, C]
    CreationPolicy: {X: !Ref D}
    UpdatePolicy: {X: !GetAtt E.Arn}
    Metadata: {X: !Sub "${F} ${G.Arn} ${P} ${AWS::Region} ${!H}"}
    Properties: {X: [!If [Any, !Ref H, !Ref I], !Sub ["${J} ${v}", {v: !Ref K, J: 1}], !Ref Nothing]}
  B: {Type: T}
  C: {Type: T, DependsOn: B}
  D: {Type: T}
  E: {Type: T}
  F: {Type: T}
  G: {Type: T}
  H: {Type: T}
  I: {Type: T}
  J: {Type: T}
  K: {Type: T, Properties: {X: !Ref L}}
  L: {Type: T}
`)
	if got, want := template.References("A"), []string{"B", "C", "D", "E", "F", "G", "H", "I", "K"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	order, err := template.Order()
	if want := []string{"B", "C", "D", "E", "F", "G", "H", "I", "L", "K", "A", "J"}; err != nil || !slices.Equal(order, want) {
		t.Errorf("%q, %v, want %q", order, err, want)
	}
}

// Rehearse finds what only values show, all at once, and knows what will be known.
func TestRehearse(t *testing.T) {
	t.Parallel()
	const text = `
Parameters: {P: {Type: String, Default: a}, L: {Type: CommaDelimitedList, Default: "a,b"}}
Mappings: {M: {b: {c: d}}}
Conditions: {Nope: !Equals [a, b], %s}
Resources:
  A: {Type: T, Properties: {Known: !Sub "${P}", Both: [1, !Ref B, {x: !GetAtt B.Arn}]}}
  B: {Type: T, Properties: {Join: !Join ["", [a, !Ref C]], Select: !Select [0, [!Ref C, x]], One: !Select [1, [!Ref C, x]], Base64: !Base64 {Ref: C}}}
  C: {Type: T, Properties: {Split: !Split [",", !GetAtt D.X], Cidr: !Select [0, !Cidr [!GetAtt D.X, 2, 8]], Sub: !Sub "a${D}"}}
  D: {Type: T}
  Never: {Type: T, Condition: Nope, Properties: {X: !ImportValue missing}}
%s
Outputs: {O: {Value: !Ref A, Export: {Name: !Sub "${AWS::StackName}-O"}}, N: {Condition: Nope, Value: !Ref Never}, %s}
`
	fill := func(conditions, resources, outputs string) (*stacktemplate.Template, stacktemplate.Env) {
		template := parse(t, fmt.Sprintf(text, conditions, resources, outputs))
		env := environment()
		env.Parameters, _ = template.Arguments(nil)
		return template, env
	}
	template, env := fill("", "", "")
	if err := template.Check(nil); err != nil {
		t.Fatal(err)
	}
	got, err := template.Rehearse(env)
	if err != nil {
		t.Fatal(err)
	}
	if want := `{"A":{"Both":[1,{},{"x":{}}],"Known":"a"},"B":{"Base64":{},"Join":{},"One":"x","Select":{}},"C":{"Cidr":{},"Split":{},"Sub":{}},"D":{}}`; jsonOf(t, got) != want {
		t.Errorf("%s", jsonOf(t, got))
	}
	if _, ok := got["B"]["Join"].(stacktemplate.Unknown); !ok {
		t.Errorf("%T is not Unknown", got["B"]["Join"])
	}
	env.Resource = made{"C": true}.resource
	if got, err = template.Rehearse(env); err != nil || got["B"]["Join"] != "aid-of-C" {
		t.Errorf("%v, %v: a resource that exists has its values", got["B"], err)
	}
	template, env = fill("Broken: !Equals [!Select [5, !Ref L], a]", `
  E: {Type: T, Properties: {X: !ImportValue missing, Y: !FindInMap [M, !Ref P, c]}}
  F: {Type: T, Condition: Broken, Properties: {X: !If [Broken, 1, 2]}}
  G: {Type: T, UpdatePolicy: {X: !Select [7, !Ref L]}, Properties: {X: !Ref Never}}
`, `Q: {Value: !Ref L}, R: {Value: x, Export: {Name: test-O}}, S: {Value: !GetAtt Never.Arn}`)
	_, err = template.Rehearse(env)
	expect(t, "Rehearse", err,
		`Conditions.Broken.Fn::Equals[0].Fn::Select: the list has 2 members, and none at index 5`,
		`Resources.E.Properties.X.Fn::ImportValue: importing "missing": no export has this name`,
		`Resources.E.Properties.Y.Fn::FindInMap: the mapping "M" has no key "a"`,
		`Resources.G.Properties.X.Ref: the resource Never is not made, since the condition Nope is false`,
		`Resources.G.UpdatePolicy.X.Fn::Select: the list has 2 members, and none at index 7`,
		`Outputs.Q.Value: a text is needed, and the value is a list`,
		`Outputs.R.Export.Name: the output O exports the same name`,
		`Outputs.S.Value.Fn::GetAtt: the resource Never is not made, since the condition Nope is false`,
	)
}
