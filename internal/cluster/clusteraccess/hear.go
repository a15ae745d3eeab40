// SPDX-License-Identifier: Apache-2.0

package clusteraccess

import (
	"muster.dev/muster/internal/iam/identityservice"
	"muster.dev/muster/internal/iam/keyservice"
	"muster.dev/muster/internal/machine/nodegroup"
)

// Hear returns a function that passes on what an authenticator says of a machine whose token it refused. An
// authenticator says nothing about machines of other clusters.
func Hear(machines *identityservice.Machines, hear func(nodegroup.Heard)) func(cluster, instance string, r keyservice.Refused) {
	return func(cluster, instance string, r keyservice.Refused) {
		if machines.Of(cluster, instance) {
			hear(nodegroup.Heard{Machine: instance, Refusal: nodegroup.Refusal{Rule: r.Rule, Saw: r.Saw, Fix: r.Fix}})
		}
	}
}
