// SPDX-License-Identifier: Apache-2.0

package live

import (
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	logs "github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs/types"
	"github.com/aws/aws-sdk-go-v2/service/kms"
)

func logsActions() []action {
	name := aws.String("/aws/eks/live/cluster")
	shown := func(w *world) types.LogGroup {
		out := need(w.logs.DescribeLogGroups(w.ctx(), &logs.DescribeLogGroupsInput{LogGroupNamePrefix: name}))
		if len(out.LogGroups) != 1 {
			w.Fatalf("%d log groups", len(out.LogGroups))
		}
		return out.LogGroups[0]
	}
	arn := func(w *world) *string {
		return aws.String("arn:aws:logs:" + w.config.Region + ":" + account + ":log-group:" + *name)
	}
	tags := func(w *world, want string) {
		if got := fmt.Sprint(need(w.logs.ListTagsForResource(w.ctx(), &logs.ListTagsForResourceInput{ResourceArn: arn(w)})).Tags); got != want {
			w.Errorf("tags %s, want %s", got, want)
		}
	}
	return []action{
		{"CreateLogGroup", func(w *world) {
			need(w.logs.CreateLogGroup(w.ctx(), &logs.CreateLogGroupInput{LogGroupName: name, Tags: map[string]string{"team": "a"}}))
			_, err := w.logs.CreateLogGroup(w.ctx(), &logs.CreateLogGroupInput{LogGroupName: name})
			w.refused("ResourceAlreadyExistsException", err)
		}},
		{"DescribeLogGroups", func(w *world) {
			out := need(w.logs.DescribeLogGroups(w.ctx(), &logs.DescribeLogGroupsInput{LogGroupNamePrefix: name}))
			w.has(out, "LogGroups[].LogGroupName", "LogGroups[].Arn", "LogGroups[].LogGroupArn", "LogGroups[].LogGroupClass", "LogGroups[].CreationTime", "LogGroups[].StoredBytes", "LogGroups[].MetricFilterCount")
			if group := out.LogGroups[0]; group.RetentionInDays != nil || group.KmsKeyId != nil {
				w.Errorf("made up: %+v", group)
			}
		}},
		{"PutRetentionPolicy", func(w *world) {
			need(w.logs.PutRetentionPolicy(w.ctx(), &logs.PutRetentionPolicyInput{LogGroupName: name, RetentionInDays: aws.Int32(90)}))
			if got := aws.ToInt32(shown(w).RetentionInDays); got != 90 {
				w.Errorf("%d days", got)
			}
			_, err := w.logs.PutRetentionPolicy(w.ctx(), &logs.PutRetentionPolicyInput{LogGroupName: name, RetentionInDays: aws.Int32(2)})
			w.refused("InvalidParameterException", err)
		}},
		{"DeleteRetentionPolicy", func(w *world) {
			need(w.logs.DeleteRetentionPolicy(w.ctx(), &logs.DeleteRetentionPolicyInput{LogGroupName: name}))
			if got := shown(w).RetentionInDays; got != nil {
				w.Errorf("%d days", *got)
			}
		}},
		{"AssociateKmsKey", func(w *world) {
			_, err := w.logs.AssociateKmsKey(w.ctx(), &logs.AssociateKmsKeyInput{LogGroupName: name, KmsKeyId: aws.String("none")})
			w.refused("InvalidParameterException", err)
			key := need(w.kms.CreateKey(w.ctx(), &kms.CreateKeyInput{})).KeyMetadata
			need(w.logs.AssociateKmsKey(w.ctx(), &logs.AssociateKmsKeyInput{LogGroupName: name, KmsKeyId: key.Arn}))
			if got := aws.ToString(shown(w).KmsKeyId); got != *key.Arn {
				w.Errorf("key %s, want %s", got, *key.Arn)
			}
			need(w.kms.ScheduleKeyDeletion(w.ctx(), &kms.ScheduleKeyDeletionInput{KeyId: key.KeyId}))
		}},
		{"DisassociateKmsKey", func(w *world) {
			need(w.logs.DisassociateKmsKey(w.ctx(), &logs.DisassociateKmsKeyInput{ResourceIdentifier: arn(w)}))
			if got := shown(w).KmsKeyId; got != nil {
				w.Errorf("key %s", *got)
			}
		}},
		{"TagResource", func(w *world) {
			need(w.logs.TagResource(w.ctx(), &logs.TagResourceInput{ResourceArn: arn(w), Tags: map[string]string{"b": "2"}}))
		}},
		{"UntagResource", func(w *world) {
			need(w.logs.UntagResource(w.ctx(), &logs.UntagResourceInput{ResourceArn: arn(w), TagKeys: []string{"team"}}))
		}},
		{"ListTagsForResource", func(w *world) { tags(w, "map[b:2]") }},
		{"TagLogGroup", func(w *world) {
			need(w.logs.TagLogGroup(w.ctx(), &logs.TagLogGroupInput{LogGroupName: name, Tags: map[string]string{"c": "3"}})) //nolint:staticcheck // SA1019: old tools call it
			tags(w, "map[b:2 c:3]")
		}},
		{"UntagLogGroup", func(w *world) {
			need(w.logs.UntagLogGroup(w.ctx(), &logs.UntagLogGroupInput{LogGroupName: name, Tags: []string{"b"}})) //nolint:staticcheck // SA1019: old tools call it
		}},
		{"ListTagsLogGroup", func(w *world) {
			out := need(w.logs.ListTagsLogGroup(w.ctx(), &logs.ListTagsLogGroupInput{LogGroupName: name})) //nolint:staticcheck // SA1019: old tools call it
			if got := fmt.Sprint(out.Tags); got != "map[c:3]" {
				w.Errorf("tags %s", got)
			}
		}},
		{"PutLogGroupDeletionProtection", func(w *world) {
			need(w.logs.PutLogGroupDeletionProtection(w.ctx(), &logs.PutLogGroupDeletionProtectionInput{LogGroupIdentifier: name, DeletionProtectionEnabled: aws.Bool(true)}))
			_, err := w.logs.DeleteLogGroup(w.ctx(), &logs.DeleteLogGroupInput{LogGroupName: name})
			w.refused("ValidationException", err)
			need(w.logs.PutLogGroupDeletionProtection(w.ctx(), &logs.PutLogGroupDeletionProtectionInput{LogGroupIdentifier: name, DeletionProtectionEnabled: aws.Bool(false)}))
		}},
		{"DeleteLogGroup", func(w *world) {
			need(w.logs.DeleteLogGroup(w.ctx(), &logs.DeleteLogGroupInput{LogGroupName: name}))
			_, err := w.logs.DeleteLogGroup(w.ctx(), &logs.DeleteLogGroupInput{LogGroupName: name})
			w.refused("ResourceNotFoundException", err)
		}},
	}
}
