// SPDX-License-Identifier: Apache-2.0

package awsactions

func ec2SpotActions() []Action {
	return []Action{
		{Name: "RequestSpotInstances", Mark: Real, Resources: []string{"image", "security-group", "subnet", "key-pair", "spot-instances-request"}, Keys: tagged()},
		{Name: "DescribeSpotInstanceRequests", Mark: Real},
		{Name: "CancelSpotInstanceRequests", Mark: Record, Resources: []string{"spot-instances-request"}},
	}
}
