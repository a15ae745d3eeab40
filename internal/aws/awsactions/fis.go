// SPDX-License-Identifier: Apache-2.0

package awsactions

func fisActions() []Action {
	template, experiment, both := []string{"experiment-template"}, []string{"experiment"}, []string{"experiment", "experiment-template"}
	const oneAccount = "Muster's experiments are of one account"
	return []Action{
		{Name: "CreateExperimentTemplate", Mark: Real, Resources: []string{"action", "experiment-template"}, Keys: tagged()},
		{Name: "GetExperimentTemplate", Mark: Real, Resources: template},
		{Name: "ListExperimentTemplates", Mark: Real},
		{Name: "DeleteExperimentTemplate", Mark: Real, Resources: template},
		{Name: "StartExperiment", Mark: Real, Resources: both, Keys: tagged()},
		{Name: "GetExperiment", Mark: Real, Resources: experiment},
		{Name: "ListExperiments", Mark: Real},
		{Name: "StopExperiment", Mark: Real, Resources: experiment},
		{Name: "TagResource", Mark: Real, Resources: both, Keys: tagged()},
		{Name: "UntagResource", Mark: Real, Resources: both, Keys: []string{"aws:TagKeys"}},
		{Name: "ListTagsForResource", Mark: Real, Resources: both},
		{Name: "UpdateExperimentTemplate", Mark: Refused, Reason: "Muster keeps an experiment template as it was made: delete it, and make another"},
		{Name: "GetAction", Mark: Refused, Reason: "Muster has the action aws:ec2:send-spot-instance-interruptions only"},
		{Name: "ListActions", Mark: Refused, Reason: "Muster has the action aws:ec2:send-spot-instance-interruptions only"},
		{Name: "GetTargetResourceType", Mark: Refused, Reason: "Muster has the resource type aws:ec2:spot-instance only"},
		{Name: "ListTargetResourceTypes", Mark: Refused, Reason: "Muster has the resource type aws:ec2:spot-instance only"},
		{Name: "ListExperimentResolvedTargets", Mark: Refused, Reason: "Muster shows the instances of targets in GetExperiment"},
		{Name: "CreateTargetAccountConfiguration", Mark: Refused, Reason: oneAccount},
		{Name: "DeleteTargetAccountConfiguration", Mark: Refused, Reason: oneAccount},
		{Name: "GetTargetAccountConfiguration", Mark: Refused, Reason: oneAccount},
		{Name: "ListTargetAccountConfigurations", Mark: Refused, Reason: oneAccount},
		{Name: "UpdateTargetAccountConfiguration", Mark: Refused, Reason: oneAccount},
		{Name: "GetExperimentTargetAccountConfiguration", Mark: Refused, Reason: oneAccount},
		{Name: "ListExperimentTargetAccountConfigurations", Mark: Refused, Reason: oneAccount},
		{Name: "GetSafetyLever", Mark: Refused, Reason: "Muster has no safety lever: StopExperiment ends an experiment"},
		{Name: "UpdateSafetyLeverState", Mark: Refused, Reason: "Muster has no safety lever: StopExperiment ends an experiment"},
	}
}

func fisResources() []Resource {
	return []Resource{
		{Type: "action", ARN: "arn:${Partition}:fis:${Region}:${Account}:action/${Id}"},
		{Type: "experiment-template", ARN: "arn:${Partition}:fis:${Region}:${Account}:experiment-template/${Id}"},
		{Type: "experiment", ARN: "arn:${Partition}:fis:${Region}:${Account}:experiment/${Id}"},
	}
}
