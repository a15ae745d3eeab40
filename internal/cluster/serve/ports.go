// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net"
	"os"
	"strconv"

	"muster.dev/muster/internal/cluster/component"
	"muster.dev/muster/internal/cluster/supervise"
	"muster.dev/muster/internal/platform/atomicfile"
	"muster.dev/muster/internal/platform/statedir"
)

// Ports are taken from below the range that Linux gives to outgoing connections (32768 and up), where a port that was free
// yesterday may be in use by chance today.
const portMin, portMax = 20000, 32000

// choosePorts reads the ports that this state directory keeps, and chooses those that are missing or have since been taken
// by somebody else. wanted is the API server's port that the user asked for, or 0.
func choosePorts(dir statedir.Dir, wanted int, running []supervise.Process) (component.Ports, error) {
	var ports component.Ports
	raw, err := os.ReadFile(dir.Ports())
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return ports, fmt.Errorf("reading ports: %w", err)
	default:
		if err := json.Unmarshal(raw, &ports); err != nil {
			return ports, damagedPorts(dir, err)
		}
	}
	alive := map[string]bool{}
	for _, p := range running {
		alive[p.Name] = true
	}
	if wanted != 0 && ports.APIServer != wanted {
		if !free(wanted) {
			return ports, portInUse(wanted)
		}
		ports.APIServer = wanted
	}
	taken := map[int]bool{}
	for _, p := range []struct {
		port      *int
		component string
	}{
		{&ports.APIServer, component.APIServer}, // first, so that a port that was asked for is its own and no other's
		{&ports.Etcd, component.Etcd},
		{&ports.EtcdPeer, component.Etcd},
		{&ports.ManagementEtcd, component.ManagementEtcd},
		{&ports.ManagementEtcdPeer, component.ManagementEtcd},
		{&ports.Management, component.Management},
		{&ports.ControllerManager, component.ControllerManager},
		{&ports.Scheduler, component.Scheduler},
		{&ports.CertificateController, component.CertificateController},
		{&ports.Identity, ""}, // this process listens on it, and does not yet
		{&ports.Authenticator, component.Authenticator},
	} {
		if *p.port != 0 && !taken[*p.port] && (alive[p.component] || free(*p.port)) {
			taken[*p.port] = true
			continue
		}
		if wanted != 0 && p.component == component.APIServer {
			return ports, portInUse(wanted)
		}
		if *p.port, err = freePort(taken); err != nil {
			return ports, err
		}
		taken[*p.port] = true
	}
	raw, err = json.Marshal(ports)
	if err != nil {
		return ports, err
	}
	return ports, atomicfile.Write(dir.Ports(), append(raw, '\n'), 0o600)
}

func damagedPorts(dir statedir.Dir, err error) error {
	return fmt.Errorf("reading ports: %s is damaged (%w): remove the file, and other ports are chosen", dir.Ports(), err)
}

func portInUse(port int) error {
	return fmt.Errorf("spec.apiServer.port: %d is in use by another program: choose another port, or leave it out and a free one is taken", port)
}

func freePort(taken map[int]bool) (int, error) {
	for range 200 {
		port := portMin + rand.IntN(portMax-portMin) //nolint:gosec // G404: any free port will do
		if !taken[port] && free(port) {
			return port, nil
		}
	}
	return 0, fmt.Errorf("found no free port from %d to %d on %s", portMin, portMax, component.Loopback)
}

// free reports whether a port can be listened on now.
func free(port int) bool {
	listener, err := net.Listen("tcp", net.JoinHostPort(component.Loopback, strconv.Itoa(port))) //nolint:noctx // it does not block
	if err != nil {
		return false
	}
	_ = listener.Close()
	return true
}
