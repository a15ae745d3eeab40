// SPDX-License-Identifier: Apache-2.0

package authenticator

import (
	"context"
	"log/slog"

	"muster.dev/muster/internal/certificates/facts/ec2instances"
	"muster.dev/muster/internal/iam/authenticatorconfig"
	"muster.dev/muster/internal/iam/authenticatorserver"
	"muster.dev/muster/internal/iam/tokenverify"
)

// instances looks up instances in EC2, as the certificate controller does.
func instances(ctx context.Context, from authenticatorconfig.EC2, onCall func(), logger *slog.Logger) (authenticatorserver.Describe, error) {
	lookup, err := ec2instances.NewLookup(ctx, ec2instances.LookupConfig{
		Region: from.Region, Endpoint: from.Endpoint, PerSecond: from.PerSecond, Burst: from.Burst, OnCall: onCall, Logger: logger,
	})
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, ids []string) (map[string]tokenverify.Instance, error) {
		described, err := lookup.Describe(ctx, ids)
		found := make(map[string]tokenverify.Instance, len(described))
		for id, d := range described {
			found[id] = tokenverify.Instance(d)
		}
		return found, err
	}, nil
}
