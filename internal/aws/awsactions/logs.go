// SPDX-License-Identifier: Apache-2.0

package awsactions

func logsActions() []Action {
	return []Action{
		{Name: "CreateLogGroup", Mark: Record, Resources: []string{"log-group"}, Keys: tagged()},
		{Name: "DescribeLogGroups", Mark: Record},
		{Name: "DeleteLogGroup", Mark: Record, Resources: []string{"log-group"}},
		{Name: "PutRetentionPolicy", Mark: Record, Resources: []string{"log-group"}},
		{Name: "DeleteRetentionPolicy", Mark: Record, Resources: []string{"log-group"}},
		{Name: "AssociateKmsKey", Mark: Record, Resources: []string{"log-group"}},
		{Name: "DisassociateKmsKey", Mark: Record, Resources: []string{"log-group"}},
		{Name: "PutLogGroupDeletionProtection", Mark: Record, Resources: []string{"log-group"}},
		{Name: "ListTagsForResource", Mark: Record, Resources: []string{"log-group"}},
		{Name: "TagResource", Mark: Record, Resources: []string{"log-group"}, Keys: tagged()},
		{Name: "UntagResource", Mark: Record, Resources: []string{"log-group"}, Keys: []string{"aws:TagKeys"}},
		{Name: "ListTagsLogGroup", Mark: Record, Resources: []string{"log-group"}},
		{Name: "TagLogGroup", Mark: Record, Resources: []string{"log-group"}, Keys: tagged()},
		{Name: "UntagLogGroup", Mark: Record, Resources: []string{"log-group"}, Keys: []string{"aws:TagKeys"}},
		{Name: "DescribeLogStreams", Mark: Refused, Reason: "Muster's log groups are records: `muster logs` has what a control plane writes"},
		{Name: "CreateLogStream", Mark: Refused, Reason: "Muster's log groups are records and take no events"},
		{Name: "PutLogEvents", Mark: Refused, Reason: "Muster's log groups are records and take no events"},
		{Name: "GetLogEvents", Mark: Refused, Reason: "Muster's log groups are records: `muster logs` has what a control plane writes"},
		{Name: "FilterLogEvents", Mark: Refused, Reason: "Muster's log groups are records: `muster logs` has what a control plane writes"},
	}
}

func logsResources() []Resource {
	return []Resource{
		{Type: "log-group", ARN: "arn:${Partition}:logs:${Region}:${Account}:log-group:${LogGroupName}"},
	}
}
