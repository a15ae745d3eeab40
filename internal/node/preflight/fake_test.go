// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"context"
	"time"
)

// fake is a host that answers as it is told; an answer that is not told is an error if there is one.
type fake struct {
	err error

	root, systemd, overlay, nftables, conntrack bool
	hostname, kernel                            string
	cgroups                                     Cgroups
	swap                                        []string
	swapAllowed                                 bool
	settings                                    map[string]string
	inotify                                     int
	listeners                                   map[int]string
	processes                                   map[string][]int
	programs                                    map[string]string
	runtime                                     Runtime
	existing                                    Existing
	dropIns                                     []DropIn
	space                                       Space
	endpoint                                    Endpoint
	endpointErr                                 error
	asked                                       int // how often the server was
}

// good is a machine that is to become a node.
func good() *fake {
	now := time.Date(2026, 7, 1, 12, 0, 0, 400e6, time.UTC)
	return &fake{
		root: true, systemd: true, overlay: true, nftables: true, conntrack: true,
		hostname: "worker-1.example.com", kernel: "6.1.0-28-amd64",
		cgroups:  Cgroups{Version: 2},
		settings: map[string]string{"net.ipv4.ip_forward": "1", "fs.inotify.max_user_instances": "128"},
		inotify:  128,
		programs: map[string]string{"mount": "/usr/bin/mount", "umount": "/usr/bin/umount"},
		runtime:  Runtime{Socket: "/run/containerd/containerd.sock", Program: "/usr/bin/containerd"},
		space:    Space{Free: 20 << 30, Total: 40 << 30, FreeInodes: 1000, TotalInodes: 2000},
		endpoint: Endpoint{URL: "https://10.0.0.1:6443", Status: 403, Date: now.Truncate(time.Second), At: now},
	}
}

func (f *fake) Root() (bool, error)              { return f.root, f.err }
func (f *fake) Systemd() (bool, error)           { return f.systemd, f.err }
func (f *fake) Hostname() (string, error)        { return f.hostname, f.err }
func (f *fake) Kernel() (string, error)          { return f.kernel, f.err }
func (f *fake) Cgroups() (Cgroups, error)        { return f.cgroups, f.err }
func (f *fake) Swap() ([]string, error)          { return f.swap, f.err }
func (f *fake) SwapAllowed() bool                { return f.swapAllowed }
func (f *fake) Overlay() (bool, error)           { return f.overlay, f.err }
func (f *fake) Nftables() (bool, error)          { return f.nftables, f.err }
func (f *fake) Conntrack() (bool, error)         { return f.conntrack, f.err }
func (f *fake) Setting(n string) (string, error) { return f.settings[n], f.err }
func (f *fake) Inotify(most int) (int, error)    { return min(f.inotify, most), f.err }
func (f *fake) Listener(p int) (string, error)   { return f.listeners[p], f.err }
func (f *fake) Processes(p string) ([]int, error) {
	return f.processes[p], f.err
}
func (f *fake) Program(n string) (string, error)         { return f.programs[n], f.err }
func (f *fake) Runtime(context.Context) (Runtime, error) { return f.runtime, f.err }
func (f *fake) Existing() (Existing, error)              { return f.existing, f.err }
func (f *fake) DropIns() ([]DropIn, error)               { return f.dropIns, f.err }
func (f *fake) Space(string) (Space, error)              { return f.space, f.err }

func (f *fake) Endpoint(context.Context) (Endpoint, error) {
	f.asked++
	if f.endpointErr != nil {
		return Endpoint{}, f.endpointErr
	}
	return f.endpoint, f.err
}
