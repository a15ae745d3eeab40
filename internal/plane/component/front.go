// SPDX-License-Identifier: Apache-2.0

package component

import (
	"muster.dev/muster/internal/plane/frontservers"
)

// front owns the published address of the plane, and passes connections to the API servers behind it (package
// planefront).
func front(c Config) (Spec, error) {
	servers := frontservers.Marshal([]frontservers.Server{{Address: c.Places.APIServer.Reach}})
	socket, file, trusted := c.Dir.FrontSocket(), c.file(Front, "servers.json"), c.Authority("cluster")
	return Spec{
		Name:        Front,
		Path:        c.program("muster-plane-front"),
		Args:        flags(map[string]string{"authority": trusted, "listen": c.Places.Published.Listen.String(), "servers": file, "socket": socket}),
		Files:       []File{{Path: file, Mode: modePrivate, Content: string(servers)}},
		Directories: []string{c.State.Run()},
		Address:     c.Places.Published.Listen.String(),
		View:        &View{Public: []string{trusted}, Listens: []string{socket}},
		Probe:       &Probe{URL: "http://front/readyz", Socket: socket},
		HandsOver:   true,
	}, nil
}
