// SPDX-License-Identifier: Apache-2.0

package awsactions

func ec2ImageActions() []Action {
	return []Action{
		{Name: "DescribeImages", Mark: Real},
		{Name: "CopyImage", Mark: Real, Resources: []string{"image"}, Keys: tagged()},
		{Name: "DeregisterImage", Mark: Real, Resources: []string{"image"}},
		{Name: "EnableImageDeprecation", Mark: Real, Resources: []string{"image"}},
		{Name: "DisableImageDeprecation", Mark: Real, Resources: []string{"image"}},
	}
}
