// SPDX-License-Identifier: Apache-2.0

package live

import (
	"errors"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation/types"
)

// stackTemplate is a VPC whose subnet is of the zone that a parameter has the number of.
const stackTemplate = `
Parameters:
  Zone: {Type: Number, Default: 0, AllowedValues: [0, 1]}
  Word: {Type: String, NoEcho: true, Default: abcdefgh}
Resources:
  VPC:
    Type: AWS::EC2::VPC
    Properties: {CidrBlock: 10.71.0.0/16}
  Subnet:
    Type: AWS::EC2::Subnet
    Properties:
      VpcId: !Ref VPC
      CidrBlock: !Select [0, !Cidr [!GetAtt VPC.CidrBlock, 1, 8]]
      AvailabilityZone: !Select [!Ref Zone, !GetAZs ""]
  Role:
    Type: AWS::IAM::Role
    Properties:
      AssumeRolePolicyDocument: {Version: "2012-10-17", Statement: [{Effect: Allow, Principal: {Service: ec2.amazonaws.com}, Action: "sts:AssumeRole"}]}
Outputs:
  VPC: {Value: !Ref VPC, Export: {Name: !Sub "${AWS::StackName}::VPC"}}
  Zone: {Value: !GetAtt Subnet.AvailabilityZone}
  Word: {Value: !Ref Word}
`

// importer is a template that imports what stackTemplate exports.
const importer = `
Resources:
  Group: {Type: "AWS::EC2::SecurityGroup", Properties: {GroupDescription: imports, VpcId: !ImportValue "live::VPC"}}
`

// settles waits until a stack has a status.
func (w *world) settles(name, status string) types.Stack {
	w.Helper()
	var found types.Stack
	w.eventually(2*time.Minute, func() error {
		found = need(w.stacks.DescribeStacks(w.ctx(), &cloudformation.DescribeStacksInput{StackName: &name})).Stacks[0]
		if string(found.StackStatus) != status {
			return errors.New(string(found.StackStatus) + ": " + aws.ToString(found.StackStatusReason))
		}
		return nil
	})
	return found
}

func stackActions() []action {
	name, other := aws.String("live"), aws.String("live-import")
	allowed := []types.Capability{types.CapabilityCapabilityIam}
	return []action{
		{"ValidateTemplate", func(w *world) {
			out := need(w.stacks.ValidateTemplate(w.ctx(), &cloudformation.ValidateTemplateInput{TemplateBody: aws.String(stackTemplate)}))
			w.has(out, "Parameters[].ParameterKey", "Capabilities", "CapabilitiesReason")
			_, err := w.stacks.ValidateTemplate(w.ctx(), &cloudformation.ValidateTemplateInput{TemplateBody: aws.String("Resources: {A: {Type: X, Properties: {B: !Ref C}}}")})
			w.refused("ValidationError", err)
		}},
		{"GetTemplateSummary", func(w *world) {
			w.has(need(w.stacks.GetTemplateSummary(w.ctx(), &cloudformation.GetTemplateSummaryInput{TemplateBody: aws.String(stackTemplate)})), "ResourceTypes", "Parameters[].ParameterType")
		}},
		{"CreateStack", func(w *world) {
			in := &cloudformation.CreateStackInput{StackName: name, TemplateBody: aws.String(stackTemplate), ClientRequestToken: aws.String("live-create"), EnableTerminationProtection: aws.Bool(true)}
			_, err := w.stacks.CreateStack(w.ctx(), in)
			w.refused("InsufficientCapabilitiesException", err)
			in.Capabilities, in.Tags = allowed, []types.Tag{{Key: aws.String("team"), Value: aws.String("a")}}
			w.notes["stack"] = *need(w.stacks.CreateStack(w.ctx(), in)).StackId
			if again := need(w.stacks.CreateStack(w.ctx(), in)); *again.StackId != w.notes["stack"] {
				w.Errorf("the same request made %s and %s", w.notes["stack"], *again.StackId)
			}
			in.ClientRequestToken = aws.String("live-other")
			_, err = w.stacks.CreateStack(w.ctx(), in)
			w.refused("AlreadyExistsException", err)
		}},
		{"DescribeStacks", func(w *world) {
			found := w.settles(*name, "CREATE_COMPLETE")
			w.has(&cloudformation.DescribeStacksOutput{Stacks: []types.Stack{found}}, "Stacks[].StackId", "Stacks[].CreationTime", "Stacks[].Outputs[].OutputValue", "Stacks[].Parameters[].ParameterKey", "Stacks[].Tags[].Key")
			for _, o := range found.Outputs {
				if *o.OutputKey == "Word" && *o.OutputValue != "****" {
					w.Errorf("a NoEcho value shows: %s", *o.OutputValue)
				}
			}
			_, err := w.stacks.DescribeStacks(w.ctx(), &cloudformation.DescribeStacksInput{StackName: aws.String("live-none")})
			w.refused("ValidationError", err)
		}},
		{"ListStacks", func(w *world) {
			w.has(need(w.stacks.ListStacks(w.ctx(), &cloudformation.ListStacksInput{StackStatusFilter: []types.StackStatus{types.StackStatusCreateComplete}})), "StackSummaries[].StackName")
		}},
		{"DescribeStackEvents", func(w *world) {
			out := need(w.stacks.DescribeStackEvents(w.ctx(), &cloudformation.DescribeStackEventsInput{StackName: name}))
			if newest := out.StackEvents[0]; *newest.LogicalResourceId != *name || newest.ResourceStatus != types.ResourceStatusCreateComplete {
				w.Errorf("the newest event is %s of %s", newest.ResourceStatus, *newest.LogicalResourceId)
			}
		}},
		{"DescribeStackResource", func(w *world) {
			out := need(w.stacks.DescribeStackResource(w.ctx(), &cloudformation.DescribeStackResourceInput{StackName: name, LogicalResourceId: aws.String("VPC")}))
			if w.notes["vpc"] = aws.ToString(out.StackResourceDetail.PhysicalResourceId); !strings.HasPrefix(w.notes["vpc"], "vpc-") {
				w.Errorf("the VPC is %q", w.notes["vpc"])
			}
		}},
		{"DescribeStackResources", func(w *world) {
			out := need(w.stacks.DescribeStackResources(w.ctx(), &cloudformation.DescribeStackResourcesInput{PhysicalResourceId: aws.String(w.notes["vpc"])}))
			if len(out.StackResources) != 3 {
				w.Errorf("%d resources", len(out.StackResources))
			}
		}},
		{"ListStackResources", func(w *world) {
			w.has(need(w.stacks.ListStackResources(w.ctx(), &cloudformation.ListStackResourcesInput{StackName: name})), "StackResourceSummaries[].PhysicalResourceId")
		}},
		{"GetTemplate", func(w *world) {
			if out := need(w.stacks.GetTemplate(w.ctx(), &cloudformation.GetTemplateInput{StackName: name})); *out.TemplateBody != stackTemplate {
				w.Errorf("the template is %q", *out.TemplateBody)
			}
		}},
		{"ListExports", func(w *world) {
			w.has(need(w.stacks.ListExports(w.ctx(), &cloudformation.ListExportsInput{})), "Exports[].Name", "Exports[].Value")
		}},
		{"CreateChangeSet", func(w *world) {
			in := &cloudformation.CreateChangeSetInput{StackName: other, ChangeSetName: aws.String("first"), ChangeSetType: types.ChangeSetTypeCreate, TemplateBody: aws.String(importer)}
			w.notes["set"] = *need(w.stacks.CreateChangeSet(w.ctx(), in)).Id
			same := &cloudformation.CreateChangeSetInput{StackName: name, ChangeSetName: aws.String("same"), UsePreviousTemplate: aws.Bool(true), Capabilities: allowed}
			need(w.stacks.CreateChangeSet(w.ctx(), same))
			other := &cloudformation.CreateChangeSetInput{
				StackName: name, ChangeSetName: aws.String("other"), UsePreviousTemplate: aws.Bool(true), Capabilities: allowed,
				Parameters: []types.Parameter{{ParameterKey: aws.String("Zone"), ParameterValue: aws.String("1")}},
			}
			need(w.stacks.CreateChangeSet(w.ctx(), other))
		}},
		{"DescribeChangeSet", func(w *world) {
			out := need(w.stacks.DescribeChangeSet(w.ctx(), &cloudformation.DescribeChangeSetInput{ChangeSetName: aws.String(w.notes["set"])}))
			if out.Status != types.ChangeSetStatusCreateComplete || len(out.Changes) != 1 || out.Changes[0].ResourceChange.Action != types.ChangeActionAdd {
				w.Errorf("%+v", out)
			}
			out = need(w.stacks.DescribeChangeSet(w.ctx(), &cloudformation.DescribeChangeSetInput{StackName: name, ChangeSetName: aws.String("same")}))
			if out.Status != types.ChangeSetStatusFailed || !strings.Contains(*out.StatusReason, "didn't contain changes") {
				w.Errorf("%+v", out)
			}
			out = need(w.stacks.DescribeChangeSet(w.ctx(), &cloudformation.DescribeChangeSetInput{StackName: name, ChangeSetName: aws.String("other")}))
			if len(out.Changes) != 1 || out.Changes[0].ResourceChange.Replacement != types.ReplacementTrue {
				w.Errorf("%+v", out.Changes)
			}
		}},
		{"ListChangeSets", func(w *world) {
			w.has(need(w.stacks.ListChangeSets(w.ctx(), &cloudformation.ListChangeSetsInput{StackName: name})), "Summaries[].ChangeSetName", "Summaries[].ExecutionStatus")
		}},
		{"DeleteChangeSet", func(w *world) {
			need(w.stacks.DeleteChangeSet(w.ctx(), &cloudformation.DeleteChangeSetInput{StackName: name, ChangeSetName: aws.String("same")}))
		}},
		{"ExecuteChangeSet", func(w *world) {
			need(w.stacks.ExecuteChangeSet(w.ctx(), &cloudformation.ExecuteChangeSetInput{ChangeSetName: aws.String(w.notes["set"])}))
			w.settles(*other, "CREATE_COMPLETE")
		}},
		{"ListImports", func(w *world) {
			if out := need(w.stacks.ListImports(w.ctx(), &cloudformation.ListImportsInput{ExportName: aws.String("live::VPC")})); len(out.Imports) != 1 || out.Imports[0] != *other {
				w.Errorf("%v", out.Imports)
			}
		}},
		{"UpdateStack", func(w *world) {
			in := &cloudformation.UpdateStackInput{StackName: name, UsePreviousTemplate: aws.Bool(true), Capabilities: allowed}
			_, err := w.stacks.UpdateStack(w.ctx(), in)
			w.refused("ValidationError", err)
			in.Parameters = []types.Parameter{{ParameterKey: aws.String("Zone"), ParameterValue: aws.String("1")}}
			need(w.stacks.UpdateStack(w.ctx(), in))
			// The subnet of the other zone has the range of the first one, which is there until it is replaced.
			w.settles(*name, "UPDATE_ROLLBACK_COMPLETE")
		}},
		{"RollbackStack", func(w *world) {
			_, err := w.stacks.RollbackStack(w.ctx(), &cloudformation.RollbackStackInput{StackName: name})
			w.refused("ValidationError", err)
		}},
		{"ContinueUpdateRollback", func(w *world) {
			_, err := w.stacks.ContinueUpdateRollback(w.ctx(), &cloudformation.ContinueUpdateRollbackInput{StackName: name})
			w.refused("ValidationError", err)
		}},
		{"UpdateTerminationProtection", func(w *world) {
			_, err := w.stacks.DeleteStack(w.ctx(), &cloudformation.DeleteStackInput{StackName: other})
			if err != nil {
				w.Error(err)
			}
			_, err = w.stacks.DeleteStack(w.ctx(), &cloudformation.DeleteStackInput{StackName: name})
			w.refused("ValidationError", err)
			need(w.stacks.UpdateTerminationProtection(w.ctx(), &cloudformation.UpdateTerminationProtectionInput{StackName: name, EnableTerminationProtection: aws.Bool(false)}))
		}},
		{"DeleteStack", func(w *world) {
			w.eventually(2*time.Minute, func() error { // until nothing imports the export any more
				_, err := w.stacks.DeleteStack(w.ctx(), &cloudformation.DeleteStackInput{StackName: name})
				return err
			})
			w.settles(w.notes["stack"], "DELETE_COMPLETE")
			need(w.stacks.DeleteStack(w.ctx(), &cloudformation.DeleteStackInput{StackName: aws.String("live-none")}))
		}},
	}
}
