// SPDX-License-Identifier: Apache-2.0

package component

import (
	"fmt"
	"net"
)

// vpc holds the private network that machines live in, the API server's endpoint in it, and the API server's door to it.
func vpc(c Config) (Spec, error) {
	return Spec{
		Name: VPC,
		Path: c.program("muster"),
		Args: append([]string{"vpc"}, flags(map[string]string{
			"api-server": net.JoinHostPort(Loopback, fmt.Sprint(c.Ports.APIServer)),
			"pod-cidr":   c.Cluster.Spec.Network.PodCIDR,
			"state-dir":  string(c.State),
			"vpc-cidr":   c.VPCCIDR,
		})...),
		Directories: []string{c.State.Run(), c.State.VPC()},
		Probe:       &Probe{URL: "http://vpc/readyz", Socket: c.State.EgressSocket()},
	}, nil
}

// simulator runs the simulated machines. It has no credentials: each machine has its own.
func simulator(c Config) (Spec, error) {
	return Spec{
		Name: Simulator,
		Path: c.program("muster"),
		Args: append([]string{"simulator"}, flags(map[string]string{
			"api-server": c.ServerURL(),
			"ca-file":    c.Authority("cluster"),
			"state-dir":  string(c.State),
		})...),
		Directories: []string{c.State.Machines()},
		After:       []string{APIServer},
	}, nil
}
