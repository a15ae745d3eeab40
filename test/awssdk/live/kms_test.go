// SPDX-License-Identifier: Apache-2.0

package live

import (
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/aws/aws-sdk-go-v2/service/kms/types"
)

func kmsActions() []action {
	alias := aws.String("alias/live/one")
	key := func(w *world) *string { return aws.String(w.notes["key"]) }
	described := func(w *world, id string) *types.KeyMetadata {
		return need(w.kms.DescribeKey(w.ctx(), &kms.DescribeKeyInput{KeyId: &id})).KeyMetadata
	}
	return []action{
		{"CreateKey", func(w *world) {
			out := need(w.kms.CreateKey(w.ctx(), &kms.CreateKeyInput{Description: aws.String("live"), Tags: []types.Tag{{TagKey: aws.String("team"), TagValue: aws.String("a")}}}))
			w.has(out, "KeyMetadata.KeyId", "KeyMetadata.Arn")
			w.notes["key"] = *out.KeyMetadata.KeyId
			_, err := w.kms.CreateKey(w.ctx(), &kms.CreateKeyInput{KeySpec: types.KeySpecRsa2048})
			w.refused("UnsupportedOperationException", err)
		}},
		{"DescribeKey", func(w *world) {
			out := need(w.kms.DescribeKey(w.ctx(), &kms.DescribeKeyInput{KeyId: key(w)}))
			w.has(
				out, "KeyMetadata.AWSAccountId", "KeyMetadata.KeyId", "KeyMetadata.Arn", "KeyMetadata.CreationDate", "KeyMetadata.Description", "KeyMetadata.KeyUsage", "KeyMetadata.KeyState",
				"KeyMetadata.Origin", "KeyMetadata.KeyManager", "KeyMetadata.KeySpec", "KeyMetadata.EncryptionAlgorithms", "KeyMetadata.MultiRegion",
			)
			if !out.KeyMetadata.Enabled {
				w.Errorf("%+v", out.KeyMetadata)
			}
			_, err := w.kms.DescribeKey(w.ctx(), &kms.DescribeKeyInput{KeyId: alias})
			w.refused("NotFoundException", err)
		}},
		{"ListKeys", func(w *world) {
			w.has(need(w.kms.ListKeys(w.ctx(), &kms.ListKeysInput{})), "Keys[].KeyId", "Keys[].KeyArn")
		}},
		{"UpdateKeyDescription", func(w *world) {
			need(w.kms.UpdateKeyDescription(w.ctx(), &kms.UpdateKeyDescriptionInput{KeyId: key(w), Description: aws.String("other")}))
			if got := described(w, *key(w)); *got.Description != "other" {
				w.Errorf("described as %s", *got.Description)
			}
		}},
		{"DisableKey", func(w *world) {
			need(w.kms.DisableKey(w.ctx(), &kms.DisableKeyInput{KeyId: key(w)}))
			if got := described(w, *key(w)); got.Enabled || got.KeyState != types.KeyStateDisabled {
				w.Errorf("%+v", got)
			}
		}},
		{"EnableKey", func(w *world) {
			need(w.kms.EnableKey(w.ctx(), &kms.EnableKeyInput{KeyId: key(w)}))
			if got := described(w, *key(w)); !got.Enabled {
				w.Errorf("%+v", got)
			}
		}},
		{"PutKeyPolicy", func(w *world) {
			const policy = `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":"*","Action":"kms:*","Resource":"*"}]}`
			need(w.kms.PutKeyPolicy(w.ctx(), &kms.PutKeyPolicyInput{KeyId: key(w), Policy: aws.String(policy)}))
			w.notes["policy"] = policy
			_, err := w.kms.PutKeyPolicy(w.ctx(), &kms.PutKeyPolicyInput{KeyId: key(w), Policy: aws.String("none")})
			w.refused("MalformedPolicyDocumentException", err)
		}},
		{"GetKeyPolicy", func(w *world) {
			if out := need(w.kms.GetKeyPolicy(w.ctx(), &kms.GetKeyPolicyInput{KeyId: key(w)})); *out.Policy != w.notes["policy"] || *out.PolicyName != "default" {
				w.Errorf("%s: %s", *out.PolicyName, *out.Policy)
			}
		}},
		{"EnableKeyRotation", func(w *world) {
			need(w.kms.EnableKeyRotation(w.ctx(), &kms.EnableKeyRotationInput{KeyId: key(w), RotationPeriodInDays: aws.Int32(100)}))
		}},
		{"GetKeyRotationStatus", func(w *world) {
			if out := need(w.kms.GetKeyRotationStatus(w.ctx(), &kms.GetKeyRotationStatusInput{KeyId: key(w)})); !out.KeyRotationEnabled || aws.ToInt32(out.RotationPeriodInDays) != 100 {
				w.Errorf("%+v", out)
			}
		}},
		{"DisableKeyRotation", func(w *world) {
			need(w.kms.DisableKeyRotation(w.ctx(), &kms.DisableKeyRotationInput{KeyId: key(w)}))
		}},
		{"TagResource", func(w *world) {
			need(w.kms.TagResource(w.ctx(), &kms.TagResourceInput{KeyId: key(w), Tags: []types.Tag{{TagKey: aws.String("stage"), TagValue: aws.String("x")}}}))
		}},
		{"UntagResource", func(w *world) {
			need(w.kms.UntagResource(w.ctx(), &kms.UntagResourceInput{KeyId: key(w), TagKeys: []string{"team"}}))
		}},
		{"ListResourceTags", func(w *world) {
			out := need(w.kms.ListResourceTags(w.ctx(), &kms.ListResourceTagsInput{KeyId: key(w)}))
			if len(out.Tags) != 1 || *out.Tags[0].TagKey != "stage" || *out.Tags[0].TagValue != "x" {
				w.Errorf("%+v", out.Tags)
			}
		}},
		{"CreateAlias", func(w *world) {
			need(w.kms.CreateAlias(w.ctx(), &kms.CreateAliasInput{AliasName: alias, TargetKeyId: key(w)}))
			_, err := w.kms.CreateAlias(w.ctx(), &kms.CreateAliasInput{AliasName: alias, TargetKeyId: key(w)})
			w.refused("AlreadyExistsException", err)
		}},
		{"ListAliases", func(w *world) {
			w.has(need(w.kms.ListAliases(w.ctx(), &kms.ListAliasesInput{KeyId: key(w)})), "Aliases[].AliasName", "Aliases[].AliasArn", "Aliases[].TargetKeyId")
		}},
		{"UpdateAlias", func(w *world) {
			other := need(w.kms.CreateKey(w.ctx(), &kms.CreateKeyInput{})).KeyMetadata
			need(w.kms.UpdateAlias(w.ctx(), &kms.UpdateAliasInput{AliasName: alias, TargetKeyId: other.KeyId}))
			if got := described(w, *alias); *got.KeyId != *other.KeyId {
				w.Errorf("%s names %s, want %s", *alias, *got.KeyId, *other.KeyId)
			}
			need(w.kms.ScheduleKeyDeletion(w.ctx(), &kms.ScheduleKeyDeletionInput{KeyId: other.KeyId}))
		}},
		{"DeleteAlias", func(w *world) {
			need(w.kms.DeleteAlias(w.ctx(), &kms.DeleteAliasInput{AliasName: alias}))
			_, err := w.kms.DeleteAlias(w.ctx(), &kms.DeleteAliasInput{AliasName: alias})
			w.refused("NotFoundException", err)
		}},
		{"ScheduleKeyDeletion", func(w *world) {
			out := need(w.kms.ScheduleKeyDeletion(w.ctx(), &kms.ScheduleKeyDeletionInput{KeyId: key(w), PendingWindowInDays: aws.Int32(7)}))
			w.has(out, "KeyId", "DeletionDate", "KeyState", "PendingWindowInDays")
			_, err := w.kms.EnableKey(w.ctx(), &kms.EnableKeyInput{KeyId: key(w)})
			w.refused("KMSInvalidStateException", err)
		}},
		{"CancelKeyDeletion", func(w *world) {
			need(w.kms.CancelKeyDeletion(w.ctx(), &kms.CancelKeyDeletionInput{KeyId: key(w)}))
			if got := fmt.Sprint(described(w, *key(w)).KeyState); got != "Disabled" {
				w.Errorf("the key is %s", got)
			}
			need(w.kms.ScheduleKeyDeletion(w.ctx(), &kms.ScheduleKeyDeletionInput{KeyId: key(w)}))
		}},
	}
}
