// SPDX-License-Identifier: Apache-2.0

package kms

import (
	"context"

	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/cloud/awsrecord"
	"muster.dev/muster/internal/cloud/awsresource"
)

func (a *api) describeKey() awsfront.Spec[keyInput, keyOutput] {
	return awsfront.Spec[keyInput, keyOutput]{
		About: func(ctx context.Context, call *awsfront.Call, in *keyInput) ([]awsfront.Target, error) {
			return a.aboutKey(ctx, call, in.KeyID, nil)
		},
		Do: func(ctx context.Context, call *awsfront.Call, in *keyInput) (*keyOutput, error) {
			found, err := a.must(ctx, call, in.KeyID, true)
			if err != nil {
				return nil, err
			}
			return &keyOutput{a.show(call, found)}, nil
		},
	}
}

type listKeysInput struct {
	Limit  *int32
	Marker string
}

type listKeysOutput struct {
	Keys       []keyEntry
	NextMarker string
	Truncated  bool
}

type keyEntry struct{ KeyID, KeyARN string }

func (a *api) listKeys() awsfront.Spec[listKeysInput, listKeysOutput] {
	return awsfront.Spec[listKeysInput, listKeysOutput]{
		Do: func(ctx context.Context, call *awsfront.Call, in *listKeysInput) (*listKeysOutput, error) {
			if err := a.sweep(ctx, call); err != nil {
				return nil, err
			}
			all, err := keys.List(ctx, a.Management)
			if err != nil {
				return nil, away(err)
			}
			page, next, err := awsresource.Page(a.Account, call, nil, all, func(r awsrecord.Record[key]) string { return r.ID }, in.Limit, in.Marker)
			out := &listKeysOutput{Keys: []keyEntry{}, NextMarker: next, Truncated: next != ""}
			for _, r := range page {
				out.Keys = append(out.Keys, keyEntry{r.ID, a.keyARN(call, r.ID)})
			}
			return out, err
		},
	}
}
