// SPDX-License-Identifier: Apache-2.0

package awsactions

import "slices"

func cloudformationActions() []Action {
	stack, passed, set := []string{"stack"}, []string{"cloudformation:RoleArn"}, []string{"cloudformation:ChangeSetName"}
	asked := append(tagged(), "cloudformation:ResourceTypes", "cloudformation:RoleArn", "cloudformation:StackPolicyUrl", "cloudformation:TemplateUrl")
	described := slices.Sorted(slices.Values(slices.Concat(asked, set)))
	const (
		policies = "Muster has no stack policies: IAM's policies say who may update which stack"
		drifts   = "Muster does not look for drift"
	)
	return []Action{
		{Name: "CreateStack", Mark: Real, Resources: stack, Keys: asked},
		{Name: "UpdateStack", Mark: Real, Resources: stack, Keys: asked},
		{Name: "DeleteStack", Mark: Real, Resources: stack, Keys: passed},
		{Name: "RollbackStack", Mark: Real, Resources: stack, Keys: passed},
		{Name: "ContinueUpdateRollback", Mark: Real, Resources: stack, Keys: passed},
		{Name: "UpdateTerminationProtection", Mark: Real, Resources: stack},
		{Name: "CreateChangeSet", Mark: Real, Resources: stack, Keys: described},
		{Name: "DescribeChangeSet", Mark: Real, Resources: stack, Keys: set},
		{Name: "ListChangeSets", Mark: Real, Resources: stack},
		{Name: "ExecuteChangeSet", Mark: Real, Resources: stack, Keys: append(slices.Clone(set), passed...)},
		{Name: "DeleteChangeSet", Mark: Real, Resources: stack, Keys: set},
		{Name: "DescribeStacks", Mark: Real, Resources: stack},
		{Name: "ListStacks", Mark: Real},
		{Name: "DescribeStackEvents", Mark: Real, Resources: stack},
		{Name: "DescribeStackResource", Mark: Real, Resources: stack},
		{Name: "DescribeStackResources", Mark: Real, Resources: stack},
		{Name: "ListStackResources", Mark: Real, Resources: stack},
		{Name: "GetTemplate", Mark: Real, Resources: stack},
		{Name: "GetTemplateSummary", Mark: Real, Resources: stack},
		{Name: "ValidateTemplate", Mark: Real},
		{Name: "ListExports", Mark: Real},
		{Name: "ListImports", Mark: Real},
		{Name: "CancelUpdateStack", Mark: Refused, Reason: "Muster ends an update or rolls it back after a failure: wait for it, and update the stack again"},
		{Name: "SignalResource", Mark: Refused, Reason: "Muster has no signals: a template with a CreationPolicy is refused"},
		{Name: "EstimateTemplateCost", Mark: Refused, Reason: "Muster costs nothing"},
		{Name: "GetStackPolicy", Mark: Refused, Reason: policies},
		{Name: "SetStackPolicy", Mark: Refused, Reason: policies},
		{Name: "DetectStackDrift", Mark: Refused, Reason: drifts},
		{Name: "DetectStackResourceDrift", Mark: Refused, Reason: drifts},
		{Name: "DescribeStackDriftDetectionStatus", Mark: Refused, Reason: drifts},
		{Name: "DescribeStackResourceDrifts", Mark: Refused, Reason: drifts},
	}
}

func cloudformationResources() []Resource {
	return []Resource{
		{Type: "stack", ARN: "arn:${Partition}:cloudformation:${Region}:${Account}:stack/${StackName}/${Id}"},
	}
}
