// SPDX-License-Identifier: Apache-2.0

package hostagent

import (
	"context"
	"maps"
	"net"
	"slices"
	"sync"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/machine/machine"
	"muster.dev/muster/internal/node/bootreport"
	"muster.dev/muster/internal/platform/statedir"
	"muster.dev/muster/internal/storage/filestore"
	"muster.dev/muster/internal/storage/volumemount"
)

// Config says what a host has.
type Config struct {
	// Providers work in this process.
	Providers machine.Providers
	// Files are the file systems whose directories and disks are mounted on machines.
	Files *filestore.Store
	// State is the directory with the images that are loaded.
	State statedir.Dir
}

// Agent is the host that this process runs on.
type Agent struct {
	providers machine.Providers
	files     *filestore.Store
	state     statedir.Dir
	mutex     sync.Mutex
	mounted   map[v1alpha1.Provider]*volumemount.Host
}

var _ Host = (*Agent)(nil)

// New makes the host. It does nothing yet.
func New(c Config) *Agent {
	return &Agent{providers: c.Providers, files: c.Files, state: c.State, mounted: map[v1alpha1.Provider]*volumemount.Host{}}
}

// Providers returns the providers of this host, asked through it.
func (h *Agent) Providers() machine.Providers {
	return Providers(h, slices.Collect(maps.Keys(h.providers))...)
}

// Launch implements [Host].
func (h *Agent) Launch(ctx context.Context, ask Launch) (machine.Instance, error) {
	provider, err := h.providers.Find(ask.Provider)
	if err != nil {
		return machine.Instance{}, err
	}
	return provider.Launch(ctx, ask.Request)
}

// Get implements [Host].
func (h *Agent) Get(ctx context.Context, ask Machine) (machine.Instance, error) {
	provider, err := h.providers.Find(ask.Provider)
	if err != nil {
		return machine.Instance{}, err
	}
	return provider.Get(ctx, ask.ID)
}

// List implements [Host].
func (h *Agent) List(ctx context.Context, ask List) ([]machine.Instance, error) {
	provider, err := h.providers.Find(ask.Provider)
	if err != nil {
		return nil, err
	}
	return provider.List(ctx)
}

// Stop implements [Host].
func (h *Agent) Stop(ctx context.Context, ask Machine) error {
	provider, err := h.providers.Find(ask.Provider)
	if err != nil {
		return err
	}
	return provider.Stop(ctx, ask.ID)
}

// Terminate implements [Host].
func (h *Agent) Terminate(ctx context.Context, ask Machine) error {
	provider, err := h.providers.Find(ask.Provider)
	if err != nil {
		return err
	}
	return provider.Terminate(ctx, ask.ID)
}

// Report implements [Host].
func (h *Agent) Report(_ context.Context, ask Machine) (*bootreport.Report, error) {
	reporter, err := machine.Ask[machine.Reporter](h.providers, ask.Provider, v1alpha1.KeepLogs)
	if err != nil {
		return nil, err
	}
	report, ok := reporter.Report(ask.ID)
	if !ok {
		return nil, nil //nolint:nilnil // the machine reports nothing
	}
	return &report, nil
}

// Dial implements [Host].
func (h *Agent) Dial(ctx context.Context, ask Dial) (net.Conn, error) {
	dialer, err := machine.Ask[machine.Dialer](h.providers, ask.Provider, v1alpha1.JoinNetwork)
	if err != nil {
		return nil, err
	}
	return dialer.DialInside(ctx, ask.ID, network, ask.Address.String())
}

// network is how connections into machines are made.
const network = "tcp"
