// SPDX-License-Identifier: Apache-2.0

package component

// BalancerSpec serves the load balancers of the Services of a VPC's clusters.
func BalancerSpec(a Account, vpc string) Spec {
	return Spec{
		Name: "balancer-" + vpc,
		Path: a.program("muster"),
		Args: append([]string{"balancer"}, flags(map[string]string{
			"id":        vpc,
			"state-dir": string(a.State),
		})...),
		Directories: []string{a.State.Run(), a.State.VPC(vpc)},
		Probe:       &Probe{URL: "http://balancer/readyz", Socket: a.State.BalancerSocket(vpc)},
	}
}
