// SPDX-License-Identifier: Apache-2.0

package hostagent

import (
	"context"
	"net"
	"time"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/machine/machine"
)

// Answerer answers machines of the host at sockets that they reach.
type Answerer interface {
	// Boot names the boot of a machine that runs: it is another one after each reboot. It is empty if the machine does not
	// run.
	Boot(ctx context.Context, ask Machine) (string, error)
	// Listen makes a unix socket that root on the machine reaches at a path. The context is that of making it.
	Listen(ctx context.Context, ask Listen) (net.Listener, error)
}

// Listen asks for a socket on a machine.
type Listen struct {
	Machine
	// Socket is its absolute path there.
	Socket string `json:"socket"`
}

func (a Listen) validate() error {
	if err := a.Machine.validate(); err != nil {
		return err
	}
	return validTarget(a.Socket)
}

// answered are machines of this host that are answered.
type answered interface {
	Boot(id string) (string, bool)
	Listen(id, socket string) (net.Listener, error)
}

// Boot implements [Answerer].
func (h *Agent) Boot(_ context.Context, ask Machine) (string, error) {
	machines, err := machine.Ask[answered](h.providers, ask.Provider, v1alpha1.MountVolumes)
	if err != nil {
		return "", err
	}
	boot, running := machines.Boot(ask.ID)
	if !running {
		return "", nil
	}
	return boot, nil
}

// Listen implements [Answerer].
func (h *Agent) Listen(_ context.Context, ask Listen) (net.Listener, error) {
	machines, err := machine.Ask[answered](h.providers, ask.Provider, v1alpha1.MountVolumes)
	if err != nil {
		return nil, err
	}
	return machines.Listen(ask.ID, ask.Socket)
}

// socketPatience bounds a question for the boot of a machine, and the making of a socket there, since a machine may hang.
const socketPatience = 30 * time.Second

// Boot names the boot of a machine that runs. A machine whose host is away is answered as little as one that does not
// run.
func (m mounts) Boot(id string) (string, bool) {
	ctx, cancel := context.WithTimeout(context.Background(), socketPatience)
	defer cancel()
	boot, err := m.host.Boot(ctx, m.of(id))
	return boot, err == nil && boot != ""
}

// Listen makes a unix socket that root on the machine reaches at a path.
func (m mounts) Listen(id, socket string) (net.Listener, error) {
	ctx, cancel := context.WithTimeout(context.Background(), socketPatience)
	defer cancel()
	return m.host.Listen(ctx, Listen{m.of(id), socket})
}
