// SPDX-License-Identifier: Apache-2.0

package kms

import (
	"errors"

	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/cloud/awsresource"
)

const service = "kms"

// api has the actions.
type api struct{ awsresource.Account }

// Register adds the actions to the front.
func Register(f *awsfront.Front, account awsresource.Account) error {
	if account.Management == nil || account.Pages == nil || account.Region == "" {
		return errors.New("the actions of KMS need a client of the management plane, a sealer of pages and a region")
	}
	a := &api{account}

	awsfront.Register(f, service, "CreateKey", a.createKey())
	awsfront.Register(f, service, "DescribeKey", a.describeKey())
	awsfront.Register(f, service, "ListKeys", a.listKeys())
	awsfront.Register(f, service, "UpdateKeyDescription", a.updateKeyDescription())
	awsfront.Register(f, service, "EnableKey", a.enableKey())
	awsfront.Register(f, service, "DisableKey", a.disableKey())

	awsfront.Register(f, service, "GetKeyPolicy", a.getKeyPolicy())
	awsfront.Register(f, service, "PutKeyPolicy", a.putKeyPolicy())

	awsfront.Register(f, service, "GetKeyRotationStatus", a.getKeyRotationStatus())
	awsfront.Register(f, service, "EnableKeyRotation", a.enableKeyRotation())
	awsfront.Register(f, service, "DisableKeyRotation", a.disableKeyRotation())

	awsfront.Register(f, service, "ScheduleKeyDeletion", a.scheduleKeyDeletion())
	awsfront.Register(f, service, "CancelKeyDeletion", a.cancelKeyDeletion())

	awsfront.Register(f, service, "ListResourceTags", a.listResourceTags())
	awsfront.Register(f, service, "TagResource", a.tagResource())
	awsfront.Register(f, service, "UntagResource", a.untagResource())

	a.TagSources.Add(service, a.tagged)

	awsfront.Register(f, service, "CreateAlias", a.createAlias())
	awsfront.Register(f, service, "ListAliases", a.listAliases())
	awsfront.Register(f, service, "UpdateAlias", a.updateAlias())
	awsfront.Register(f, service, "DeleteAlias", a.deleteAlias())
	return nil
}
