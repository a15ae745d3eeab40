// SPDX-License-Identifier: Apache-2.0

package component

import "muster.dev/muster/internal/platform/statedir"

// FrontServers is the file from which the front of a cluster's API servers knows them (package frontservers). It changes
// while the front runs.
func (c Config) FrontServers() string { return c.file(Front, serversFile) }

// ManagementFrontServers is the file from which the front of the management plane knows its API servers.
func (a Account) ManagementFrontServers() string { return a.file(ManagementFront, serversFile) }

const serversFile = "servers.json"

// front is the process that owns a cluster's published address.
func front(c Config) (Spec, error) {
	socket, trusted := c.Dir.FrontSocket(), c.Authority("cluster")
	spec := c.frontAt(c.Places.Published, trusted, c.FrontServers(), socket)
	spec.Name, spec.View = Front, &View{Public: []string{trusted}, Listens: []string{socket}}
	return spec, nil
}

// managementFront is the process that owns the published address of the management plane.
func managementFront(a Account) Spec {
	spec := a.frontAt(a.Places.Management, a.Authority("management"), a.ManagementFrontServers(), statedir.Management(a.State).FrontSocket())
	spec.Name = ManagementFront
	return spec
}

// frontAt is a process that owns a published address and passes connections on to API servers (package planefront).
func (a Account) frontAt(published Place, trusted, servers, socket string) Spec {
	return Spec{
		Path:        a.program("muster-plane-front"),
		Args:        flags(map[string]string{"authority": trusted, "listen": published.Listen.String(), "servers": servers, "socket": socket}),
		Directories: []string{a.State.Run()},
		Address:     published.Listen.String(),
		Probe:       &Probe{URL: "http://front/readyz", Socket: socket},
		HandsOver:   true,
	}
}
