// SPDX-License-Identifier: Apache-2.0

package certificatecontroller

import (
	"context"
	"fmt"
	"time"

	"muster.dev/muster/internal/certificates/facts"
	"muster.dev/muster/internal/certificates/pki"
	"muster.dev/muster/internal/certificates/policy"
)

// answerTime is how long the API server may take to tell what is reserved.
const answerTime = 30 * time.Second

// rules are the policy of the file. Where it reserves no addresses the cluster's own are: nobody gets a certificate for
// a Service's, or the API server's, because a line was forgotten.
func (a *assembled) rules(ctx context.Context) (policy.Policy, error) {
	p := a.config.Policy.Policy()
	names := false
	for _, profile := range p.Signers {
		names = names || profile.Names != pki.NamesNone
	}
	if !names || len(p.ReservedAddresses) > 0 {
		return p, nil
	}
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	addresses, err := facts.ServiceAddresses(ctx, a.client)
	if err != nil {
		return p, fmt.Errorf("policy.reserved.addresses is empty, and the addresses of Services cannot be read instead; list them there, such as 10.96.0.0/12: %w", err)
	}
	p.ReservedAddresses = addresses
	a.config.Logger.Info("addresses of Services are reserved", "addresses", addresses)
	return p, nil
}
