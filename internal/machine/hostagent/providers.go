// SPDX-License-Identifier: Apache-2.0

package hostagent

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"time"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/machine/machine"
	"muster.dev/muster/internal/node/bootreport"
)

// Providers returns providers by name whose machines are on a host.
func Providers(host Host, names ...v1alpha1.Provider) machine.Providers {
	all := machine.Providers{}
	for _, name := range names {
		all[name] = provider{host, name}
	}
	return all
}

// provider has its machines on a host.
type provider struct {
	host Host
	name v1alpha1.Provider
}

var _ machine.Indirect = provider{}

func (p provider) of(id string) Machine { return Machine{p.name, id} }

// Launch implements [machine.Provider].
func (p provider) Launch(ctx context.Context, request machine.LaunchRequest) (machine.Instance, error) {
	return p.host.Launch(ctx, Launch{p.name, request})
}

// Get implements [machine.Provider].
func (p provider) Get(ctx context.Context, id string) (machine.Instance, error) {
	if machine.ValidateID(id) != nil {
		return machine.Instance{}, fmt.Errorf("%w: %s", machine.ErrNotFound, id)
	}
	return p.host.Get(ctx, p.of(id))
}

// List implements [machine.Provider].
func (p provider) List(ctx context.Context) ([]machine.Instance, error) {
	return p.host.List(ctx, List{p.name})
}

// Stop implements [machine.Provider].
func (p provider) Stop(ctx context.Context, id string) error {
	if machine.ValidateID(id) != nil {
		return nil //nolint:nilerr // no machine has such an id, so it does not run
	}
	return p.host.Stop(ctx, p.of(id))
}

// Terminate implements [machine.Provider].
func (p provider) Terminate(ctx context.Context, id string) error {
	if machine.ValidateID(id) != nil {
		return nil //nolint:nilerr // no machine has such an id, so it is terminated
	}
	return p.host.Terminate(ctx, p.of(id))
}

// As implements [machine.Indirect].
func (p provider) As(do v1alpha1.Capability) any {
	switch {
	case !p.name.Can(do):
		return nil
	case do == v1alpha1.RunPods:
		return driller{p}
	case do == v1alpha1.KeepLogs:
		return reporter{p}
	case do == v1alpha1.JoinNetwork:
		return dialer{p}
	case do == v1alpha1.MountVolumes:
		return mounts{p}
	default:
		return nil
	}
}

// reporter has machines that keep logs.
type reporter struct{ provider }

// reportPatience is how long a host may take to say what a machine reports.
const reportPatience = 5 * time.Second

// Report implements [machine.Reporter]. A host that is away says as little as a machine that reports nothing.
func (r reporter) Report(id string) (bootreport.Report, bool) {
	ctx, cancel := context.WithTimeout(context.Background(), reportPatience)
	defer cancel()
	report, err := r.host.Report(ctx, r.of(id))
	if err != nil || report == nil {
		return bootreport.Report{}, false
	}
	return *report, true
}

// familyOf is TCP of the family that an address has, as package net names it.
func familyOf(at netip.AddrPort) string {
	if at.Addr().Is4() {
		return network + "4"
	}
	return network + "6"
}

// dialer has machines that are in a network.
type dialer struct{ provider }

// DialInside implements [machine.Dialer].
func (d dialer) DialInside(ctx context.Context, id, by, address string) (net.Conn, error) {
	at, err := netip.ParseAddrPort(address)
	if err != nil || by != network && by != familyOf(at) {
		return nil, fmt.Errorf("a connection to %q by %s is not made inside machine %s: it must be %s to an IP address and a port", address, by, id, network)
	}
	return d.host.Dial(ctx, Dial{d.of(id), at})
}
