// SPDX-License-Identifier: Apache-2.0

package awsactions

func eksauthActions() []Action {
	return []Action{
		{Name: "AssumeRoleForPodIdentity", Mark: Real, Resources: []string{"cluster"}},
	}
}

func eksauthResources() []Resource {
	return []Resource{
		{Type: "cluster", ARN: "arn:${Partition}:eks:${Region}:${Account}:cluster/${ClusterName}"},
	}
}
