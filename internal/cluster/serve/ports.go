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

// chosen is a port, and the process that listens on it; empty for the service itself, which does not yet.
type chosen struct {
	port    *int
	process string
	asked   bool // by the user: no other will do
}

// accountPorts are the ports of the account's own components.
func (s *Service) accountPorts() (component.AccountPorts, error) {
	var ports component.AccountPorts
	path := s.cfg.State.Ports()
	if err := readPorts(path, &ports); err != nil {
		return ports, err
	}
	err := s.choosePorts(path, &ports, []chosen{
		{&ports.ManagementEtcd, component.ManagementEtcd, false},
		{&ports.ManagementEtcdPeer, component.ManagementEtcd, false},
		{&ports.Management, component.Management, false},
		{&ports.Identity, "", false},
	})
	return ports, err
}

// clusterPorts are the ports of a cluster's components. wanted is the API server's port that the user asked for, or 0.
func (s *Service) clusterPorts(dir statedir.Cluster, wanted int) (component.Ports, error) {
	var ports component.Ports
	if err := readPorts(dir.Ports(), &ports); err != nil {
		return ports, err
	}
	if wanted != 0 && ports.APIServer != wanted {
		if !free(wanted) {
			return ports, portInUse(wanted)
		}
		ports.APIServer = wanted
	}
	prefix := component.ProcessPrefix(dir.Namespace())
	err := s.choosePorts(dir.Ports(), &ports, []chosen{
		{&ports.APIServer, prefix + component.APIServer, wanted != 0}, // first, so that a port that was asked for is its own and no other's
		{&ports.Etcd, prefix + component.Etcd, false},
		{&ports.EtcdPeer, prefix + component.Etcd, false},
		{&ports.ControllerManager, prefix + component.ControllerManager, false},
		{&ports.Scheduler, prefix + component.Scheduler, false},
		{&ports.CertificateController, prefix + component.CertificateController, false},
		{&ports.Authenticator, prefix + component.Authenticator, false},
	})
	return ports, err
}

func readPorts(path string, into any) error {
	raw, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading ports: %w", err)
	}
	if err := json.Unmarshal(raw, into); err != nil {
		return damagedPorts(path, err)
	}
	return nil
}

// choosePorts keeps the ports that a plane has, and chooses those that are missing or have since been taken by other processes.
func (s *Service) choosePorts(path string, ports any, all []chosen) error {
	s.ports.Lock()
	defer s.ports.Unlock()
	running, err := supervise.Find(s.cfg.State)
	if err != nil {
		return err
	}
	alive := map[string]bool{}
	for _, p := range running {
		alive[p.Name] = true
	}
	taken, err := s.othersPorts(path)
	if err != nil {
		return err
	}
	for _, p := range all {
		if *p.port == 0 || taken[*p.port] || !alive[p.process] && !free(*p.port) {
			if p.asked {
				return portInUse(*p.port)
			}
			if *p.port, err = freePort(taken); err != nil {
				return err
			}
		}
		taken[*p.port] = true
	}
	raw, err := json.Marshal(ports)
	if err != nil {
		return err
	}
	return atomicfile.Write(path, append(raw, '\n'), 0o600)
}

// othersPorts are the ports of the account's other planes: they are theirs while their processes are stopped, too.
func (s *Service) othersPorts(own string) (map[int]bool, error) {
	clusters, err := s.cfg.State.ListClusters()
	if err != nil {
		return nil, err
	}
	paths := []string{s.cfg.State.Ports()}
	for _, cluster := range clusters {
		paths = append(paths, cluster.Ports())
	}
	taken := map[int]bool{}
	for _, path := range paths {
		var ports map[string]int
		if path == own || readPorts(path, &ports) != nil {
			continue // a damaged file is for its own plane to say
		}
		for _, port := range ports {
			taken[port] = true
		}
	}
	return taken, nil
}

func damagedPorts(path string, err error) error {
	return fmt.Errorf("reading ports: %s is damaged (%w): remove the file, and other ports are chosen", path, err)
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
