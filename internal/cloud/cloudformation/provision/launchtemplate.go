// SPDX-License-Identifier: Apache-2.0

package provision

import "context"

func templateHandlers() map[string]handler {
	return map[string]handler{
		"AWS::EC2::LaunchTemplate": {
			create: launchTemplates.order, read: launchTemplates.reads("LaunchTemplateId", "DefaultVersionNumber", "LatestVersionNumber"), remove: launchTemplates.deletes("DeleteLaunchTemplate"),
			update: func(ctx context.Context, j *job) (bool, error) {
				return both(ctx, j, addVersion, retagTemplate)
			},
		},
	}
}

// addVersion makes the next version of a launch template, if its data differ. The default version stays, as CloudFormation
// leaves it.
func addVersion(ctx context.Context, j *job) error {
	changed, _ := j.of.Changes(j.was, j.is)
	for _, name := range changed {
		if name != "LaunchTemplateData" && name != "VersionDescription" {
			continue
		}
		members := map[string]any{
			"LaunchTemplateId": j.attribute("LaunchTemplateId"), "LaunchTemplateData": j.is["LaunchTemplateData"], "ClientToken": j.stepToken("version"),
		}
		if description, ok := j.is["VersionDescription"]; ok {
			members["VersionDescription"] = description
		}
		_, err := j.ask(ctx, ec2, "CreateLaunchTemplateVersion", members)
		return err
	}
	return nil
}

// retagTemplate brings the tags of the template itself to those that its TagSpecifications ask for.
func retagTemplate(ctx context.Context, j *job) error {
	own := *j
	own.is, own.was = tagsOfTemplate(j.is), tagsOfTemplate(j.was)
	return launchTemplates.retag(ctx, &own)
}

// tagsOfTemplate are the tags of a launch template as other types have theirs.
func tagsOfTemplate(properties map[string]any) map[string]any {
	specified, _ := properties["TagSpecifications"].([]any)
	for _, entry := range specified {
		if one, _ := entry.(map[string]any); textOf(one["ResourceType"]) == "launch-template" {
			return map[string]any{"Tags": one["Tags"]}
		}
	}
	return map[string]any{}
}
