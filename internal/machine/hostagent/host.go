// SPDX-License-Identifier: Apache-2.0

package hostagent

import (
	"context"
	"fmt"
	"net"
	"net/netip"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/machine/machine"
	"muster.dev/muster/internal/network/securitygroup"
	"muster.dev/muster/internal/node/bootreport"
)

// Host is what is done on one host for machines. Errors are those of the provider ([machine.Provider] and the
// interfaces of capabilities), and [machine.CannotError] for what machines of the provider cannot do.
type Host interface {
	// Launch makes sure that the machine exists and runs, and is attached to the network of its VPC.
	Launch(ctx context.Context, ask Launch) (machine.Instance, error)
	// Get returns one machine, or machine.ErrNotFound.
	Get(ctx context.Context, ask Machine) (machine.Instance, error)
	// List returns all machines of a provider, sorted by id.
	List(ctx context.Context, ask List) ([]machine.Instance, error)
	// Stop shuts the machine down and keeps what it has; Launch boots it again.
	Stop(ctx context.Context, ask Machine) error
	// Terminate ends the machine, detaches it and removes everything that it had. It is not an error if the machine does
	// not exist.
	Terminate(ctx context.Context, ask Machine) error
	// Report returns what the machine reports about itself; nil if it reports nothing.
	Report(ctx context.Context, ask Machine) (*bootreport.Report, error)
	// Dial connects to what the machine serves to itself alone. The context is that of dialing.
	Dial(ctx context.Context, ask Dial) (net.Conn, error)
	Mounter
	Answerer
	Driller
	Loader
}

// Mounter mounts volumes on machines of the host, as [volumemount.Host] does.
type Mounter interface {
	Mount(ctx context.Context, ask Mount) error
	Mounted(ctx context.Context, ask Mount) (bool, error)
	Unmount(ctx context.Context, ask Unmount) error
	Writers(ctx context.Context, ask Volume) ([]string, error)
	Resize(ctx context.Context, ask Volume) error
	Sweep(ctx context.Context, ask Sweep) error
}

// Machine names a machine.
type Machine struct {
	Provider v1alpha1.Provider `json:"provider"`
	ID       string            `json:"id"`
}

// Launch asks for a machine of a provider.
type Launch struct {
	Provider v1alpha1.Provider     `json:"provider"`
	Request  machine.LaunchRequest `json:"request"`
}

// List asks for the machines of a provider.
type List struct {
	Provider v1alpha1.Provider `json:"provider"`
}

// Dial asks for a connection by TCP, which the machine itself makes to an address.
type Dial struct {
	Machine
	Address netip.AddrPort `json:"address"`
}

// A request says what is wrong with it before anything is done for a stranger.
type request interface{ validate() error }

func (a Machine) validate() error { return machine.ValidateID(a.ID) }

func (a List) validate() error { return nil }

func (a Launch) validate() error {
	if err := a.Request.Validate(); err != nil {
		return err
	}
	for _, id := range a.Request.SecurityGroups { // a wrong id in the rules of a VPC would keep all later rules from it
		if err := securitygroup.ValidateID(id); err != nil {
			return err
		}
	}
	return nil
}

func (a Dial) validate() error {
	if !a.Address.IsValid() || a.Address.Port() == 0 {
		return fmt.Errorf("invalid address %q: must be an IP address and a port", a.Address)
	}
	return a.Machine.validate()
}
