// SPDX-License-Identifier: Apache-2.0

package kms

import (
	"context"
	"encoding/hex"
	"fmt"
	"unicode/utf8"

	"github.com/google/uuid"

	"muster.dev/muster/internal/aws/awsfault"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/aws/awstag"
	"muster.dev/muster/internal/cloud/awsrecord"
	"muster.dev/muster/internal/cloud/awsresource"
)

// maxDescription is how many characters a description may have.
const maxDescription = 8192

type createKeyInput struct {
	Policy                         *string
	Description                    string
	KeyUsage                       string
	CustomerMasterKeySpec, KeySpec string
	Origin                         string
	BypassPolicyLockoutSafetyCheck *bool
	Tags                           []tag
	MultiRegion                    bool
}

func (a *api) createKey() awsfront.Spec[createKeyInput, keyOutput] {
	return awsfront.Spec[createKeyInput, keyOutput]{
		About: func(_ context.Context, call *awsfront.Call, in *createKeyInput) ([]awsfront.Target, error) {
			conditions := map[string][]string{"kms:CallerAccount": {call.Caller.Account()}}
			awsresource.RequestTags(conditions, plainTags(in.Tags))
			keyConditions(conditions, in.MultiRegion)
			bypass(conditions, in.BypassPolicyLockoutSafetyCheck)
			return []awsfront.Target{{Resource: "*", Conditions: conditions}}, nil
		},
		Do: a.doCreateKey,
	}
}

func bypass(conditions map[string][]string, asked *bool) {
	if asked != nil {
		conditions["kms:BypassPolicyLockoutSafetyCheck"] = []string{fmt.Sprint(*asked)}
	}
}

func (a *api) doCreateKey(ctx context.Context, call *awsfront.Call, in *createKeyInput) (*keyOutput, error) {
	for _, one := range []struct{ name, value, has string }{
		{"KeyUsage", in.KeyUsage, usage}, {"KeySpec", in.KeySpec, symmetric}, {"CustomerMasterKeySpec", in.CustomerMasterKeySpec, symmetric}, {"Origin", in.Origin, origin},
	} {
		if one.value != "" && one.value != one.has {
			return nil, awsfault.Errorf(unsupported, "Muster's KMS keys are records without key material: %s must be %s, not %.40q", one.name, one.has, one.value)
		}
	}
	if err := checkDescription(in.Description); err != nil {
		return nil, err
	}
	tags, err := awstag.Read(service, plainTags(in.Tags))
	if err != nil {
		return nil, err
	}
	policy := a.defaultPolicy(call)
	if in.Policy != nil {
		policy = *in.Policy
	}
	if err := checkPolicy(policy); err != nil {
		return nil, err
	}
	if err := a.sweep(ctx, call); err != nil {
		return nil, err
	}
	id := uuid.New()
	made := &awsrecord.Record[key]{ID: id.String(), Tags: awsresource.KeptTags(tags), Data: key{Policy: policy, Description: in.Description, MultiRegion: in.MultiRegion}}
	if in.MultiRegion {
		made.ID = "mrk-" + hex.EncodeToString(id[:])
	}
	if err := keys.Create(ctx, a.Management, made); err != nil {
		return nil, away(err)
	}
	return &keyOutput{a.show(call, made)}, nil
}

func checkDescription(text string) error {
	if n := utf8.RuneCountInString(text); n > maxDescription {
		return awsfault.Errorf(validation, "1 validation error detected: Value at 'description' failed to satisfy constraint: Member must have length less than or equal to %d; it has %d", maxDescription, n)
	}
	return nil
}
