// SPDX-License-Identifier: Apache-2.0

package live

import (
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/aws/aws-sdk-go-v2/service/kms/types"
)

func kmsActions() []action {
	alias := aws.String("alias/live")
	key := func(w *world) *string { return aws.String(w.notes["key"]) }
	return []action{
		{"CreateKey", func(w *world) {
			out := need(w.kms.CreateKey(w.ctx(), &kms.CreateKeyInput{Description: aws.String("live"), Tags: []types.Tag{{TagKey: aws.String("team"), TagValue: aws.String("a")}}}))
			w.has(out, "KeyMetadata.KeyId", "KeyMetadata.Arn")
			w.notes["key"] = *out.KeyMetadata.KeyId
		}},
		{"DescribeKey", func(w *world) {
			out := need(w.kms.DescribeKey(w.ctx(), &kms.DescribeKeyInput{KeyId: key(w)}))
			w.has(out, "KeyMetadata.KeyId", "KeyMetadata.Arn", "KeyMetadata.KeyState", "KeyMetadata.KeyUsage", "KeyMetadata.Description", "KeyMetadata.KeySpec", "KeyMetadata.MultiRegion")
			_, err := w.kms.DescribeKey(w.ctx(), &kms.DescribeKeyInput{KeyId: aws.String("12345678-1234-1234-1234-123456789012")})
			w.refused("NotFoundException", err)
		}},
		{"EnableKeyRotation", func(w *world) { need(w.kms.EnableKeyRotation(w.ctx(), &kms.EnableKeyRotationInput{KeyId: key(w)})) }},
		{"GetKeyRotationStatus", func(w *world) {
			if out := need(w.kms.GetKeyRotationStatus(w.ctx(), &kms.GetKeyRotationStatusInput{KeyId: key(w)})); !out.KeyRotationEnabled {
				w.Error("the key does not rotate")
			}
		}},
		{"GetKeyPolicy", func(w *world) {
			w.has(need(w.kms.GetKeyPolicy(w.ctx(), &kms.GetKeyPolicyInput{KeyId: key(w), PolicyName: aws.String("default")})), "Policy")
		}},
		{"ListResourceTags", func(w *world) {
			w.has(need(w.kms.ListResourceTags(w.ctx(), &kms.ListResourceTagsInput{KeyId: key(w)})), "Tags[].TagKey", "Tags[].TagValue")
		}},
		{"CreateAlias", func(w *world) {
			need(w.kms.CreateAlias(w.ctx(), &kms.CreateAliasInput{AliasName: alias, TargetKeyId: key(w)}))
			_, err := w.kms.CreateAlias(w.ctx(), &kms.CreateAliasInput{AliasName: alias, TargetKeyId: key(w)})
			w.refused("AlreadyExistsException", err)
		}},
		{"ListAliases", func(w *world) {
			w.has(need(w.kms.ListAliases(w.ctx(), &kms.ListAliasesInput{KeyId: key(w)})), "Aliases[].AliasName", "Aliases[].AliasArn", "Aliases[].TargetKeyId")
		}},
		{"DeleteAlias", func(w *world) { need(w.kms.DeleteAlias(w.ctx(), &kms.DeleteAliasInput{AliasName: alias})) }},
		{"ScheduleKeyDeletion", func(w *world) {
			w.has(need(w.kms.ScheduleKeyDeletion(w.ctx(), &kms.ScheduleKeyDeletionInput{KeyId: key(w), PendingWindowInDays: aws.Int32(7)})), "KeyId", "DeletionDate")
			if out := need(w.kms.DescribeKey(w.ctx(), &kms.DescribeKeyInput{KeyId: key(w)})); out.KeyMetadata.KeyState != types.KeyStatePendingDeletion {
				w.Errorf("the key is %s", out.KeyMetadata.KeyState)
			}
		}},
	}
}

func logsActions() []action {
	group := aws.String("/live/group")
	return []action{
		{"CreateLogGroup", func(w *world) {
			need(w.logs.CreateLogGroup(w.ctx(), &cloudwatchlogs.CreateLogGroupInput{LogGroupName: group, Tags: map[string]string{"team": "a"}}))
			_, err := w.logs.CreateLogGroup(w.ctx(), &cloudwatchlogs.CreateLogGroupInput{LogGroupName: group})
			w.refused("ResourceAlreadyExistsException", err)
		}},
		{"PutRetentionPolicy", func(w *world) {
			need(w.logs.PutRetentionPolicy(w.ctx(), &cloudwatchlogs.PutRetentionPolicyInput{LogGroupName: group, RetentionInDays: aws.Int32(7)}))
		}},
		{"DescribeLogGroups", func(w *world) {
			out := need(w.logs.DescribeLogGroups(w.ctx(), &cloudwatchlogs.DescribeLogGroupsInput{LogGroupNamePrefix: group}))
			w.has(out, "LogGroups[].LogGroupName", "LogGroups[].Arn", "LogGroups[].RetentionInDays")
			w.notes["group"] = *out.LogGroups[0].Arn
		}},
		{"DeleteRetentionPolicy", func(w *world) {
			need(w.logs.DeleteRetentionPolicy(w.ctx(), &cloudwatchlogs.DeleteRetentionPolicyInput{LogGroupName: group}))
		}},
		{"DeleteLogGroup", func(w *world) {
			need(w.logs.DeleteLogGroup(w.ctx(), &cloudwatchlogs.DeleteLogGroupInput{LogGroupName: group}))
			_, err := w.logs.DeleteLogGroup(w.ctx(), &cloudwatchlogs.DeleteLogGroupInput{LogGroupName: group})
			w.refused("ResourceNotFoundException", err)
		}},
	}
}

func autoscalingActions() []action {
	return []action{
		{"DescribeAutoScalingGroups", func(w *world) {
			out := need(w.autoscaling.DescribeAutoScalingGroups(w.ctx(), &autoscaling.DescribeAutoScalingGroupsInput{}))
			w.has(
				out, "AutoScalingGroups[].AutoScalingGroupName", "AutoScalingGroups[].AutoScalingGroupARN", "AutoScalingGroups[].MinSize", "AutoScalingGroups[].MaxSize",
				"AutoScalingGroups[].DesiredCapacity", "AutoScalingGroups[].AvailabilityZones", "AutoScalingGroups[].Tags[].Key",
			)
			w.notes["asg"] = *out.AutoScalingGroups[0].AutoScalingGroupName
		}},
		{"DescribeScalingActivities", func(w *world) {
			need(w.autoscaling.DescribeScalingActivities(w.ctx(), &autoscaling.DescribeScalingActivitiesInput{AutoScalingGroupName: aws.String(w.notes["asg"])}))
		}},
		{"SetDesiredCapacity", func(w *world) {
			need(w.autoscaling.SetDesiredCapacity(w.ctx(), &autoscaling.SetDesiredCapacityInput{AutoScalingGroupName: aws.String(w.notes["asg"]), DesiredCapacity: aws.Int32(1)}))
		}},
	}
}
