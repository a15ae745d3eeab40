// SPDX-License-Identifier: Apache-2.0

package awsactions

func logsActions() []Action {
	return []Action{
		{Name: "CreateLogGroup", Mark: Real, Resources: []string{"log-group"}, Keys: tagged()},
		{Name: "DescribeLogGroups", Mark: Real},
		{Name: "DeleteLogGroup", Mark: Real, Resources: []string{"log-group"}},
		{Name: "PutRetentionPolicy", Mark: Real, Resources: []string{"log-group"}},
		{Name: "DeleteRetentionPolicy", Mark: Real, Resources: []string{"log-group"}},
		{Name: "AssociateKmsKey", Mark: Record, Resources: []string{"log-group"}},
		{Name: "DisassociateKmsKey", Mark: Record, Resources: []string{"log-group"}},
		{Name: "PutLogGroupDeletionProtection", Mark: Record, Resources: []string{"log-group"}},
		{Name: "ListTagsForResource", Mark: Record, Resources: []string{"log-group"}},
		{Name: "TagResource", Mark: Record, Resources: []string{"log-group"}, Keys: tagged()},
		{Name: "UntagResource", Mark: Record, Resources: []string{"log-group"}, Keys: []string{"aws:TagKeys"}},
		{Name: "ListTagsLogGroup", Mark: Record, Resources: []string{"log-group"}},
		{Name: "TagLogGroup", Mark: Record, Resources: []string{"log-group"}, Keys: tagged()},
		{Name: "UntagLogGroup", Mark: Record, Resources: []string{"log-group"}, Keys: []string{"aws:TagKeys"}},
		{Name: "CreateLogStream", Mark: Real, Resources: []string{"log-stream"}},
		{Name: "DescribeLogStreams", Mark: Real, Resources: []string{"log-group"}},
		{Name: "DeleteLogStream", Mark: Real, Resources: []string{"log-stream"}},
		{Name: "PutLogEvents", Mark: Real, Resources: []string{"log-stream"}},
		{Name: "GetLogEvents", Mark: Real, Resources: []string{"log-stream"}},
		{Name: "FilterLogEvents", Mark: Real, Resources: []string{"log-group"}},
		{Name: "StartQuery", Mark: Real, Resources: []string{"log-group"}},
		{Name: "GetQueryResults", Mark: Real, Resources: []string{"log-group"}},
		{Name: "StopQuery", Mark: Real, Resources: []string{"log-group"}},
		{Name: "DescribeQueries", Mark: Real},
	}
}

func logsResources() []Resource {
	return []Resource{
		{Type: "log-group", ARN: "arn:${Partition}:logs:${Region}:${Account}:log-group:${LogGroupName}"},
		{Type: "log-stream", ARN: "arn:${Partition}:logs:${Region}:${Account}:log-group:${LogGroupName}:log-stream:${LogStreamName}"},
	}
}
