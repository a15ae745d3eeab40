// SPDX-License-Identifier: Apache-2.0

package provision

import "context"

func templateHandlers() map[string]handler {
	return map[string]handler{
		"AWS::EC2::LaunchTemplate": {
			create: launchTemplates.order, read: launchTemplates.reads("LaunchTemplateId", "DefaultVersionNumber", "LatestVersionNumber"), remove: launchTemplates.deletes("DeleteLaunchTemplate"),
			update: func(ctx context.Context, j *job) (bool, error) {
				return both(ctx, j, addVersion, launchTemplates.retag)
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
