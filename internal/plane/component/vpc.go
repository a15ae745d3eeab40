// SPDX-License-Identifier: Apache-2.0

package component

// VPCSpec holds a private network that machines live in, the endpoints of clusters' API servers in it, and their doors
// to it. Its name is the VPC's id.
func VPCSpec(a Account, id string) Spec {
	return Spec{
		Name: id,
		Path: a.program("muster"),
		Args: append([]string{"vpc"}, flags(map[string]string{
			"id":        id,
			"region":    a.Region.Name,
			"state-dir": string(a.State),
		})...),
		Directories: []string{a.State.Run(), a.State.VPC(id)},
		Probe:       &Probe{URL: "http://vpc/readyz", Socket: a.State.VPCSocket(id)},
		HandsOver:   true,
	}
}

// WayOutSpec carries packets out of a private network, by sockets of the host. Its name is the VPC's id and "egress".
func WayOutSpec(a Account, id string) Spec {
	return Spec{
		Name:        id + "-egress",
		Path:        a.program("muster-egress"),
		Args:        flags(map[string]string{"id": id, "state-dir": string(a.State)}),
		Directories: []string{a.State.Run(), a.State.VPC(id)},
		Probe:       &Probe{URL: "http://egress/readyz", Socket: a.State.WayOutSocket(id)},
	}
}

// simulator runs the simulated machines. It reads pods with a certificate of its own; for all else each machine has
// one.
func simulator(c Config) (Spec, error) {
	return Spec{
		Name: Simulator,
		Path: c.program("muster"),
		Args: append([]string{"simulator"}, flags(map[string]string{
			"api-server": c.Places.Published.URL(),
			"ca-file":    c.Authority("cluster"),
			"cluster":    c.Cluster.Spec.Name,
			"pod-reader": c.Credential(Simulator),
			"state-dir":  string(c.State),
		})...),
		Directories: []string{c.State.Machines()},
		Credentials: sorted(c.Credential(Simulator), c.Authority("cluster")),
		After:       []string{Front, APIServer},
	}, nil
}
