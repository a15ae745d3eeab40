// SPDX-License-Identifier: Apache-2.0

package component

// FrontServers is the file from which the front of a cluster's API servers knows them (package frontservers). It changes
// while the front runs.
func (c Config) FrontServers() string { return c.file(Front, "servers.json") }

// front is the process that owns the published address and passes connections on to API servers (package planefront).
func front(c Config) (Spec, error) {
	socket, trusted := c.Dir.FrontSocket(), c.Authority("cluster")
	return Spec{
		Name:        Front,
		Path:        c.program("muster-plane-front"),
		Args:        flags(map[string]string{"authority": trusted, "listen": c.Places.Published.Listen.String(), "servers": c.FrontServers(), "socket": socket}),
		Directories: []string{c.State.Run()},
		Address:     c.Places.Published.Listen.String(),
		View:        &View{Public: []string{trusted}, Listens: []string{socket}},
		Probe:       &Probe{URL: "http://front/readyz", Socket: socket},
		HandsOver:   true,
	}, nil
}
