// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"fmt"
	"time"

	"muster.dev/muster/internal/node/imds"
	"muster.dev/muster/internal/node/nodecerts"
	"muster.dev/muster/internal/node/nodeconfig"
)

// roles tells a machine's role.
type roles interface {
	Role(ctx context.Context) (string, error)
}

// prove gives a machine a way to prove its identity to the cluster. If its NodeConfig has none, the machine uses its
// role, as EKS's nodes do, whose NodeConfig has no field for it; a kubelet without either would be refused forever. A
// machine that has joined by a certificate goes on with that: the token that got the certificate is gone.
func (c credential) prove(ctx context.Context, spec nodeconfig.Spec, joined bool, metadata roles, now time.Time, say func(string)) (nodeconfig.Spec, error) {
	if spec.Join.Proves() || joined && !c.byRole() || len(spec.Validate()) > 0 {
		return spec, nil // its problems are told when it is settled
	}
	if spec.Join.DiscoveryFile != "" {
		return spec, errors.New("spec.join.token: Required value: this machine has no way to prove itself to the cluster: the discovery file says where that is, and not who this is; " +
			"give a token (spec.join.token or tokenFile)")
	}
	role, err := metadata.Role(ctx)
	switch {
	case errors.Is(err, imds.ErrNotFound):
		if client := nodecerts.Read(c.dir, now)[0]; client.Has(nodecerts.Expired) {
			return spec, fmt.Errorf("spec.join: Required value: %s; it was told no token, and its instance has no role; %s, and give it to this machine (`muster node init`), or launch another in its place",
				hasExpired(client), makeRejoin(client.NodeName()))
		}
		return spec, errors.New("spec.join: Required value: this machine has no way to prove itself to the cluster: it was told no token, and its instance has no role; " +
			"give a token (spec.join.token or tokenFile), or launch it with an instance profile")
	case err != nil:
		return spec, fmt.Errorf("asking for this machine's role, by which it joins if it is told no token: %w", err)
	}
	say(fmt.Sprintf("it was told no token, so it proves itself by its role %s, as EKS's nodes do", role))
	spec.Join.InstanceRole = true
	return spec, nil
}
