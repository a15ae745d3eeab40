// SPDX-License-Identifier: Apache-2.0

package awsactions

func taggingActions() []Action {
	return []Action{
		{Name: "GetResources", Mark: Real},
		{Name: "GetTagKeys", Mark: Real},
		{Name: "GetTagValues", Mark: Real},
		{Name: "TagResources", Mark: Refused, Reason: "Muster sets tags by the action of the service: ec2:CreateTags, TagResource, TagQueue and others"},
		{Name: "UntagResources", Mark: Refused, Reason: "Muster removes tags by the action of the service: ec2:DeleteTags, UntagResource, UntagQueue and others"},
		{Name: "GetComplianceSummary", Mark: Refused, Reason: "Muster has no tag policies"},
		{Name: "ListRequiredTags", Mark: Refused, Reason: "Muster has no tag policies"},
		{Name: "StartReportCreation", Mark: Refused, Reason: "Muster has no tag policies"},
		{Name: "DescribeReportCreation", Mark: Refused, Reason: "Muster has no tag policies"},
	}
}
