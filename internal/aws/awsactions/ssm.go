// SPDX-License-Identifier: Apache-2.0

package awsactions

func ssmActions() []Action {
	return []Action{
		{Name: "GetParameter", Mark: Real, Resources: []string{"parameter"}},
		{Name: "GetParameters", Mark: Real, Resources: []string{"parameter"}},
		{Name: "GetParametersByPath", Mark: Real, Resources: []string{"parameter"}, Keys: []string{"ssm:Recursive"}},
		{Name: "DescribeParameters", Mark: Refused, Reason: "Muster has only the public parameters of EKS's images: read them by GetParameter or GetParametersByPath"},
		{Name: "PutParameter", Mark: Refused, Reason: "Muster has only the public parameters of EKS's images"},
		{Name: "DeleteParameter", Mark: Refused, Reason: "Muster has only the public parameters of EKS's images"},
	}
}

func ssmResources() []Resource {
	return []Resource{
		{Type: "parameter", ARN: "arn:${Partition}:ssm:${Region}:${Account}:parameter/${ParameterNameWithoutLeadingSlash}"},
	}
}
