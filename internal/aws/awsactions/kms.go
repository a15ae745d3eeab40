// SPDX-License-Identifier: Apache-2.0

package awsactions

func kmsActions() []Action {
	return []Action{
		{Name: "CreateKey", Mark: Record, Keys: []string{"aws:RequestTag/KEY", "aws:TagKeys", "kms:BypassPolicyLockoutSafetyCheck", "kms:KeyOrigin", "kms:KeySpec", "kms:KeyUsage", "kms:MultiRegion"}},
		{Name: "DescribeKey", Mark: Record, Resources: []string{"key"}, Keys: []string{"kms:RequestAlias"}},
		{Name: "ListKeys", Mark: Record},
		{Name: "GetKeyPolicy", Mark: Record, Resources: []string{"key"}},
		{Name: "PutKeyPolicy", Mark: Record, Resources: []string{"key"}, Keys: []string{"kms:BypassPolicyLockoutSafetyCheck"}},
		{Name: "GetKeyRotationStatus", Mark: Record, Resources: []string{"key"}},
		{Name: "EnableKeyRotation", Mark: Record, Resources: []string{"key"}},
		{Name: "DisableKeyRotation", Mark: Record, Resources: []string{"key"}},
		{Name: "EnableKey", Mark: Record, Resources: []string{"key"}},
		{Name: "DisableKey", Mark: Record, Resources: []string{"key"}},
		{Name: "UpdateKeyDescription", Mark: Record, Resources: []string{"key"}},
		{Name: "ScheduleKeyDeletion", Mark: Record, Resources: []string{"key"}, Keys: []string{"kms:ScheduleKeyDeletionPendingWindowInDays"}},
		{Name: "CancelKeyDeletion", Mark: Record, Resources: []string{"key"}},
		{Name: "ListResourceTags", Mark: Record, Resources: []string{"key"}},
		{Name: "TagResource", Mark: Record, Resources: []string{"key"}, Keys: tagged()},
		{Name: "UntagResource", Mark: Record, Resources: []string{"key"}, Keys: []string{"aws:TagKeys"}},
		{Name: "CreateAlias", Mark: Record, Resources: []string{"alias", "key"}},
		{Name: "ListAliases", Mark: Record},
		{Name: "UpdateAlias", Mark: Record, Resources: []string{"alias", "key"}},
		{Name: "DeleteAlias", Mark: Record, Resources: []string{"alias", "key"}},
		{Name: "CreateGrant", Mark: Refused, Reason: "Muster's KMS keys are records without key material: nothing is granted"},
		{Name: "Encrypt", Mark: Refused, Reason: "Muster's KMS keys are records without key material: they encrypt nothing"},
		{Name: "Decrypt", Mark: Refused, Reason: "Muster's KMS keys are records without key material: they decrypt nothing"},
		{Name: "GenerateDataKey", Mark: Refused, Reason: "Muster's KMS keys are records without key material: they make no data keys"},
	}
}

func kmsResources() []Resource {
	return []Resource{
		{Type: "key", ARN: "arn:${Partition}:kms:${Region}:${Account}:key/${KeyId}", Keys: []string{"kms:KeyOrigin", "kms:KeySpec", "kms:KeyUsage", "kms:MultiRegion", "kms:ResourceAliases"}},
		{Type: "alias", ARN: "arn:${Partition}:kms:${Region}:${Account}:alias/${Alias}"},
	}
}
