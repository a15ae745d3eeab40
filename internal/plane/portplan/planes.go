// SPDX-License-Identifier: Apache-2.0

package portplan

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
	"sync"
	"syscall"

	"muster.dev/muster/internal/node/preflight"
	"muster.dev/muster/internal/plane/component"
	"muster.dev/muster/internal/plane/runner"
	"muster.dev/muster/internal/platform/atomicfile"
	"muster.dev/muster/internal/platform/statedir"
)

// Planes are the planes of one account: its own components and its clusters. One plane chooses its ports at a time.
type Planes struct {
	state   statedir.Dir
	running func() ([]runner.Running, error)

	mu     sync.Mutex
	claims *claims
}

// New returns the planes of the account in a state directory. running lists what runs, which keeps its ports.
func New(state statedir.Dir, running func() ([]runner.Running, error)) *Planes {
	return &Planes{state: state, running: running, claims: newClaims(loopback, state)}
}

// Close gives the claims to all ports back, when the service ends.
func (p *Planes) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.claims.keep(nil)
}

// Account returns the ports of the account's own components. It chooses those that are missing or taken, and writes
// them down.
func (p *Planes) Account() (AccountPorts, error) {
	var ports AccountPorts
	path := p.state.Ports()
	if err := Read(path, &ports); err != nil {
		return ports, err
	}
	// In a Muster from before there was no front, and the API server listened at the published port.
	err := p.choose(path, &ports, []wish{
		{port: &ports.ManagementEtcd, processes: []string{component.ManagementEtcd}},
		{port: &ports.ManagementEtcdPeer, processes: []string{component.ManagementEtcd}},
		{port: &ports.Management, processes: []string{component.ManagementFront, component.Management}},
		{port: &ports.ManagementServer0, processes: []string{component.ManagementName(0)}},
		{port: &ports.ManagementServer1, processes: []string{component.ManagementName(1)}},
		{port: &ports.Identity},
		{port: &ports.Registry, processes: []string{component.Registry}},
	})
	return ports, err
}

// Cluster returns the ports of a cluster's components. It chooses those that are missing or taken, and writes them
// down. wanted is the API server's port that the user asked for, or 0; the error says so if another program listens on
// it.
func (p *Planes) Cluster(dir statedir.Cluster, wanted int) (Ports, error) {
	var ports Ports
	if err := Read(dir.Ports(), &ports); err != nil {
		return ports, err
	}
	if wanted != 0 && ports.Published != wanted {
		if err := CheckFree(wanted); err != nil {
			return ports, err
		}
		ports.Published = wanted
	}
	of := func(port *int, names ...string) wish {
		w := wish{port: port}
		for _, name := range names {
			w.processes = append(w.processes, component.ProcessPrefix(dir.Namespace())+name)
		}
		return w
	}
	// The published port comes first, so that one that was asked for is its own and no other's. In a Muster from before
	// there was no front, and the API server listened on it: it runs on until it is replaced.
	published := of(&ports.Published, component.Front, component.APIServer)
	published.asked = wanted != 0
	err := p.choose(dir.Ports(), &ports, []wish{
		published,
		of(&ports.APIServer0, component.APIServerName(0)),
		of(&ports.APIServer1, component.APIServerName(1)),
		of(&ports.APIServer2, component.APIServerName(2)),
		of(&ports.Etcd, component.Etcd),
		of(&ports.EtcdPeer, component.Etcd),
		of(&ports.ControllerManager, component.ControllerManager),
		of(&ports.Scheduler, component.Scheduler),
		of(&ports.CertificateController, component.CertificateController),
		of(&ports.CertificateControllerMetrics, component.CertificateController),
		of(&ports.CertificateControllerAuthorization, component.CertificateController),
		of(&ports.Authenticator, component.Authenticator),
		of(&ports.PodWebhook, component.PodWebhook),
		of(&ports.PodWebhookMetrics, component.PodWebhook),
		of(&ports.PodWebhookHealth, component.PodWebhook),
		of(&ports.TokenSigner, component.TokenSigner),
	})
	return ports, err
}

// Read reads the ports of a plane into its [Ports] or [AccountPorts]. They stay 0 if none have been
// chosen.
func Read(path string, into any) error {
	raw, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading ports: %w", err)
	}
	if err := json.Unmarshal(raw, into); err != nil {
		return fmt.Errorf("reading ports: %s is damaged (%w): remove the file, and other ports are chosen", path, err)
	}
	return nil
}

// CheckFree returns an error if another program listens on the port that the user asked for.
func CheckFree(port int) error {
	if why := useOn(loopback)(port); why != nil {
		return inUse(port, why)
	}
	return nil
}

func (p *Planes) choose(path string, ports any, wishes []wish) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	processes, err := p.running()
	if err != nil {
		return err
	}
	running := map[string]bool{}
	for _, process := range processes {
		running[process.Process] = true
	}
	taken, err := p.others(path)
	if err != nil {
		return err
	}
	listening := useOn(loopback)
	use := func(port int) error {
		if err := p.claims.take(port); err != nil {
			return err
		}
		return listening(port)
	}
	if err := choose(wishes, surroundings{address: loopback, taken: taken, running: running, use: use, random: rand.IntN}); err != nil {
		return err
	}
	for _, w := range wishes {
		taken[*w.port] = true
	}
	p.claims.keep(taken)
	raw, err := json.Marshal(ports)
	if err != nil {
		return err
	}
	return atomicfile.Write(path, append(raw, '\n'), 0o600)
}

// others are the ports of the account's other planes: they are theirs while their processes are stopped, too.
func (p *Planes) others(own string) (map[int]bool, error) {
	clusters, err := p.state.ListClusters()
	if err != nil {
		return nil, err
	}
	paths := []string{p.state.Ports()}
	for _, cluster := range clusters {
		paths = append(paths, cluster.Ports())
	}
	taken := map[int]bool{}
	for _, path := range paths {
		var ports map[string]int
		if path == own || Read(path, &ports) != nil {
			continue // a damaged file is for its own plane to say
		}
		for _, port := range ports {
			taken[port] = true
		}
	}
	return taken, nil
}

// Free returns a port that nothing listens on at an address now.
func Free(address string) (int, error) {
	return pick(nil, surroundings{address: address, use: useOn(address), random: rand.IntN})
}

// useOn returns a function that says who keeps a port of an address from being listened on now, nil if nobody does.
func useOn(address string) func(port int) error {
	return func(port int) error {
		listener, err := net.Listen("tcp", net.JoinHostPort(address, strconv.Itoa(port))) //nolint:noctx // it does not block
		if err != nil {
			return listens(port, err)
		}
		_ = listener.Close()
		return nil
	}
}

// listens names the program that listens on a port which could not be listened on, as far as it can be seen from here.
func listens(port int, failed error) error {
	if !errors.Is(failed, syscall.EADDRINUSE) {
		return failed
	}
	who, err := preflight.System(preflight.Config{}).Listener(port)
	if err != nil || who == "" {
		who = "another program"
	}
	return fmt.Errorf("%s listens on it", who)
}
