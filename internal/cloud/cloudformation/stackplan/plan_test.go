// SPDX-License-Identifier: Apache-2.0

package stackplan_test

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"muster.dev/muster/internal/aws/cloudformation/resource"
	"muster.dev/muster/internal/aws/cloudformation/stack"
	"muster.dev/muster/internal/cloud/cloudformation/stackplan"
)

const body = `
Parameters:
  Secret: {Type: String, NoEcho: true}
  Size: {Type: Number, Default: 2}
  More: {Type: String, Default: "no"}
Conditions: {More: !Equals [!Ref More, "yes"]}
Resources:
  Group:
    Type: AWS::EC2::SecurityGroup
    Properties: {GroupDescription: !Ref Secret, Tags: [{Key: own, Value: b}]}
  Template:
    Type: AWS::EC2::LaunchTemplate
    Properties: {LaunchTemplateData: {SecurityGroupIds: [!Ref Group]}}
  Extra: {Type: "AWS::EC2::InternetGateway", Condition: More, DependsOn: Group}
Outputs:
  Group: {Value: !Ref Group, Export: {Name: !Sub "${AWS::StackName}-group"}}
  Secret: {Value: !Ref Secret}
`

func place() stackplan.Place {
	return stackplan.Place{
		Region: "us-east-1", Account: "000000000000", StackID: "arn:aws:cloudformation:us-east-1:000000000000:stack/net/1", StackName: "net", Zones: []string{"us-east-1a", "us-east-1b"},
		Imports: func(string) (string, error) { return "", errors.New("no export") },
	}
}

func read(t *testing.T, change func(*stackplan.Asked)) *stackplan.Plan {
	t.Helper()
	asked := stackplan.Asked{Template: body, Parameters: map[string]string{"Secret": "abcdefgh"}, Tags: map[string]string{"team": "a", "own": "stack"}}
	if change != nil {
		change(&asked)
	}
	plan, err := stackplan.Read(asked, place())
	if err != nil {
		t.Fatal(err)
	}
	return plan
}

func TestGraph(t *testing.T) {
	for more, want := range map[string][]string{"no": {"Group", "Template"}, "yes": {"Extra", "Group", "Template"}} {
		plan := read(t, func(a *stackplan.Asked) { a.Parameters["More"] = more })
		if err := plan.Check(stack.State{}); err != nil {
			t.Fatal(err)
		}
		graph, err := plan.Graph()
		if err != nil {
			t.Fatal(err)
		}
		var ids []string
		for id := range graph {
			ids = append(ids, id)
		}
		slices.Sort(ids)
		if !slices.Equal(ids, want) || !slices.Equal(graph["Template"].Needs, []string{"Group"}) {
			t.Errorf("%s: %v", more, graph)
		}
	}
}

// judge is what the plan wants of a resource, had with properties.
func judge(t *testing.T, plan *stackplan.Plan, s stack.State, id string, had map[string]any, serial int) stack.Wanted {
	t.Helper()
	var r *stack.Resource
	if had != nil {
		r = &stack.Resource{LogicalID: id, Serial: serial, Definition: stack.Definition{Properties: had}}
	}
	wanted, err := plan.Judge(s, id, r)
	if err != nil {
		t.Fatal(err)
	}
	return wanted
}

func TestNamesAndTags(t *testing.T) {
	plan := read(t, nil)
	first := judge(t, plan, stack.State{}, "Group", nil, 0)
	name := first.Properties["GroupName"].(string)
	if !strings.HasPrefix(name, "net-Group-") || name != judge(t, plan, stack.State{}, "Group", nil, 0).Properties["GroupName"] {
		t.Errorf("the group is called %s", name)
	}
	want := []any{map[string]any{"Key": "own", "Value": "b"}, map[string]any{"Key": "team", "Value": "a"}}
	if diff := cmp.Diff(want, first.Properties["Tags"]); diff != "" {
		t.Error(diff)
	}
	for name, c := range map[string]struct {
		change  func(*stackplan.Asked)
		want    stack.Change
		renamed bool
	}{
		"nothing":           {nil, stack.None, false},
		"a tag of a stack":  {func(a *stackplan.Asked) { a.Tags["team"] = "b" }, stack.InPlace, false},
		"what replaces":     {func(a *stackplan.Asked) { a.Parameters["Secret"] = "ijklmnop" }, stack.Replace, true},
		"the same and more": {func(a *stackplan.Asked) { a.Parameters["More"] = "yes" }, stack.None, false},
	} {
		t.Run(name, func(t *testing.T) {
			again := judge(t, read(t, c.change), stack.State{Serial: 4}, "Group", first.Properties, 1)
			if again.Change != c.want || c.renamed != (again.Properties["GroupName"] != first.Properties["GroupName"]) {
				t.Errorf("%+v", again)
			}
		})
	}
}

// Two resources cannot have one name: a resource with a name of its own is not replaced under it.
func TestANamedResourceIsNotReplaced(t *testing.T) {
	plan := read(t, func(a *stackplan.Asked) {
		a.Template = `{"Resources": {"G": {"Type": "AWS::EC2::SecurityGroup", "Properties": {"GroupName": "g", "GroupDescription": "new"}}}}`
		a.Parameters = nil
	})
	had := &stack.Resource{LogicalID: "G", Serial: 1, Definition: stack.Definition{Properties: map[string]any{"GroupName": "g", "GroupDescription": "old"}}}
	if _, err := plan.Judge(stack.State{}, "G", had); err == nil || !strings.Contains(err.Error(), "custom-named resource requires replacing") {
		t.Error(err)
	}
	had.Properties["GroupName"] = "h"
	if wanted, err := plan.Judge(stack.State{}, "G", had); err != nil || wanted.Change != stack.Replace {
		t.Errorf("%+v, %v", wanted, err)
	}
}

func TestOutputsAndSecrets(t *testing.T) {
	plan := read(t, nil)
	state := stack.State{Resources: []stack.Resource{{LogicalID: "Group", Type: "AWS::EC2::SecurityGroup", Serial: 1, PhysicalID: "sg-1", Status: stack.CreateComplete, Attributes: map[string]any{"GroupId": "sg-1"}}}}
	outputs, err := plan.Outputs(state)
	if err != nil || len(outputs) != 2 || outputs[0].Value != "sg-1" || outputs[0].Export != "net-group" || !outputs[1].Secret {
		t.Errorf("%+v, %v", outputs, err)
	}
	if shown := plan.Shown(); shown[0] != (stackplan.Parameter{Name: "Secret", Value: "****"}) || shown[1].Value != "2" {
		t.Errorf("%+v", shown)
	}
	if got := plan.Properties(state, "Group"); strings.Contains(got, "abcdefgh") || !strings.Contains(got, "****") {
		t.Error(got)
	}
	secrets := stackplan.Secrets(stackplan.Asked{Template: body, Parameters: map[string]string{"Secret": "abcdefgh"}})
	if got := stackplan.Hide("the value abcdefgh is wrong", secrets); got != "the value **** is wrong" {
		t.Error(got)
	}
	names, err := plan.Exports(stack.State{})
	if err != nil || !slices.Equal(names, []string{"net-group"}) {
		t.Errorf("%v, %v", names, err)
	}
}

// Everything that is wrong is told at once.
func TestProblems(t *testing.T) {
	for name, c := range map[string]struct {
		template string
		want     []string
	}{
		"types and properties": {
			`{"Resources": {"A": {"Type": "AWS::EC2::Subnet", "CreationPolicy": {"ResourceSignal": {"Count": 1}}}, "B": {"Type": "AWS::EC2::VPC", "DeletionPolicy": "Snapshot"}}}`,
			[]string{"Resources.A.Properties: AWS::EC2::Subnet needs the property VpcId", "Resources.A.CreationPolicy", "Resources.B: there are no snapshots"},
		},
		"policies of updates": {
			`{"Resources": {"A": {"Type": "AWS::EC2::VPC", "UpdatePolicy": {"AutoScalingReplacingUpdate": {"WillReplace": true}}}}}`, []string{"AutoScalingReplacingUpdate: it is not supported"},
		},
		"a missing export": {`{"Resources": {"A": {"Type": "AWS::EC2::VPC", "Properties": {"CidrBlock": {"Fn::ImportValue": "x"}}}}}`, []string{"Resources.A.Properties.CidrBlock", "no export"}},
		"a cycle":          {`{"Resources": {"A": {"Type": "AWS::EC2::VPC", "DependsOn": "B"}, "B": {"Type": "AWS::EC2::VPC", "DependsOn": "A"}}}`, []string{"A needs B needs A"}},
	} {
		t.Run(name, func(t *testing.T) {
			plan, err := stackplan.Read(stackplan.Asked{Template: c.template}, place())
			if err == nil {
				err = plan.Check(stack.State{})
			}
			if err == nil {
				t.Fatal("nothing is wrong")
			}
			text, invalid := stackplan.Problems(err)
			for _, want := range c.want {
				if !invalid || !strings.Contains(text, want) {
					t.Errorf("no %q in %s", want, text)
				}
			}
		})
	}
}

// Each template that eksctl was recorded to send can be a stack: nothing is wrong with it, and the actions that make its resources
// take what it asks of them.
func TestTemplatesOfEksctl(t *testing.T) {
	const recorded = "../../../aws/cloudformation/stacktemplate/testdata/"
	for _, name := range []string{"accessentry", "addon", "cluster", "fargate", "iamserviceaccount", "managed-nodegroup", "podidentity", "self-managed"} {
		t.Run(name, func(t *testing.T) {
			body, err := os.ReadFile(recorded + name + ".json")
			if err != nil {
				t.Fatal(err)
			}
			at := place()
			at.Imports = func(string) (string, error) { return "imported-1,imported-2", nil }
			plan, err := stackplan.Read(stackplan.Asked{Template: string(body), Tags: map[string]string{"alpha.eksctl.io/cluster-name": "seed"}}, at)
			if err != nil {
				t.Fatal(err)
			}
			if err := plan.Check(stack.State{}); err != nil {
				t.Fatal(err)
			}
			graph, err := plan.Graph()
			if err != nil {
				t.Fatal(err)
			}
			order, err := plan.Template.Order()
			if err != nil {
				t.Fatal(err)
			}
			state := stack.State{Graph: graph}
			for _, id := range order {
				wanted, err := plan.Judge(state, id, nil)
				if err != nil {
					t.Fatal(err)
				}
				of, err := resource.Find(graph[id].Type)
				if err != nil {
					t.Fatal(err)
				}
				if input, err := of.Input(wanted.Properties, nil, "token"); err != nil || len(input) == 0 {
					t.Errorf("%s: %v, %v", id, input, err)
				}
				state.Serial++
				attributes := map[string]any{}
				for _, name := range of.Attributes {
					attributes[name] = id + "-" + name
				}
				state.Resources = append(state.Resources, stack.Resource{LogicalID: id, Type: of.Name, Serial: state.Serial, PhysicalID: "id-of-" + id, Status: stack.CreateComplete, Attributes: attributes})
			}
			if _, err := plan.Outputs(state); err != nil {
				t.Error(err)
			}
		})
	}
}
