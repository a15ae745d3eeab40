// SPDX-License-Identifier: Apache-2.0

// Package preflight looks at a machine before it becomes a node: it finds problems that would keep the kubelet from
// starting or its pods from working, each with the evidence and the fix. It changes nothing.
//
// The checks are values in, values out, over the answers of a [Host]; [System] asks the machine that it runs on. A
// check that could not be made is never OK: it is a warning that says why.
package preflight

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// The results of a check. A machine with a Fail does not become a node that works.
const (
	OK   = "OK"
	Warn = "Warn"
	Fail = "Fail"
)

// Result is what came of one check.
type Result struct {
	Name string `json:"name"`
	// Status is OK, Warn or Fail.
	Status string `json:"status"`
	// Saw is what was found, whatever came of it.
	Saw string `json:"saw"`
	// Fix is what to do about it; empty if there is nothing to be done.
	Fix string `json:"fix,omitempty"`
}

// Host answers questions about a machine. An error says why an answer is not known.
type Host interface {
	// Root reports whether the caller may do everything.
	Root() (bool, error)
	// Systemd reports whether systemd is the first process.
	Systemd() (bool, error)
	// Hostname is the name that the node would register by.
	Hostname() (string, error)
	// Kernel is the kernel's release.
	Kernel() (string, error)
	// Cgroups are the control groups that are mounted.
	Cgroups() (Cgroups, error)
	// Swap lists what the kernel swaps to.
	Swap() ([]string, error)
	// SwapAllowed reports whether the kubelet will be told to run on a machine that swaps.
	SwapAllowed() bool
	// Overlay reports whether the kernel has the overlay file system, or can load it.
	Overlay() (bool, error)
	// Nftables reports whether the kernel has nf_tables, or can load it.
	Nftables() (bool, error)
	// Conntrack reports whether the kernel tracks connections, or can.
	Conntrack() (bool, error)
	// Setting is a setting of the kernel, such as net.ipv4.ip_forward.
	Setting(name string) (string, error)
	// Inotify tells how many inotify instances the caller could still have, up to a number.
	Inotify(most int) (int, error)
	// Listener names the process that listens on a TCP port of the machine; empty if none does.
	Listener(port int) (string, error)
	// Processes lists the running processes of a program.
	Processes(program string) ([]int, error)
	// Program is where a program is found; empty if it is not.
	Program(name string) (string, error)
	// Runtime is the container runtime's state.
	Runtime(ctx context.Context) (Runtime, error)
	// Existing lists what an earlier life as a node has left on the machine.
	Existing() (Existing, error)
	// DropIns are those of kubelet.service that are not muster's.
	DropIns() ([]DropIn, error)
	// Space is what is left on the file system that a directory is on, or will be.
	Space(dir string) (Space, error)
	// Endpoint asks the API server for anything at all.
	Endpoint(ctx context.Context) (Endpoint, error)
}

// Cgroups are the control groups of a machine.
type Cgroups struct {
	// Version is 1 on hybrid machines, too: there version 1 has the controllers.
	Version int
	// Missing are controllers that a kubelet needs.
	Missing []string
}

// Runtime is a container runtime.
type Runtime struct {
	// Socket is where it is expected.
	Socket string
	// Exists reports whether the socket is there, Answers whether something that speaks gRPC is behind it.
	Exists, Answers bool
	// Program is what would be started if none runs; empty if there is none.
	Program string
}

// Existing is what is on the machine already.
type Existing struct {
	// Files are configuration and certificates of a kubelet.
	Files []string
	// ByMuster tells that muster join made them: its ledger is there.
	ByMuster bool
}

// DropIn is a file that changes a unit of systemd's.
type DropIn struct {
	Path string
	// Decides tells that it changes what the kubelet is started with.
	Decides bool
}

// Space is room on a file system, in bytes and inodes. A file system that does not count inodes has none.
type Space struct {
	Free, Total             uint64
	FreeInodes, TotalInodes uint64
}

// Endpoint is how the API server answered.
type Endpoint struct {
	// URL is what was asked.
	URL string
	// Status is that of HTTP over TLS. The server's identity is not known yet: discovery finds it out.
	Status int
	// Date is the server's clock, to the second; At is the machine's at the same moment. Date is zero if it was not
	// told.
	Date, At time.Time
}

// check is one of them.
type check struct {
	name string
	run  func(context.Context, Host) Result
}

func checks() []check {
	return []check{
		{"root", root},
		{"systemd", systemd},
		{"hostname", hostname},
		{"kernel", kernel},
		{"cgroups", cgroups},
		{"swap", swap},
		{"overlay", overlay},
		{"nf_tables", nftables},
		{"conntrack", conntrack},
		{"ip_forward", forwarding},
		{"inotify", inotify},
		{"programs", programs},
		{"container runtime", containerRuntime},
		{"existing state", existing},
		{"kubelet drop-ins", dropIns},
		{"port 10250", port(10250, "kubelet")},
		{"port 10248", port(10248, "kubelet")},
		{"port 10256", port(10256, "kube-proxy")},
		{"disk", disk},
	}
}

// serverCheck is one of the API server's answer.
type serverCheck struct {
	name string
	run  func(Endpoint, error) Result
}

func serverChecks() []serverCheck { return []serverCheck{{"endpoint", endpoint}, {"clock", clock}} }

// Names are those of all checks, in the order of their results.
func Names() []string {
	var names []string
	for _, c := range checks() {
		names = append(names, c.name)
	}
	for _, c := range serverChecks() {
		names = append(names, c.name)
	}
	return names
}

// Run runs every check, in the order in which the causes of later ones come first.
func Run(ctx context.Context, host Host) []Result {
	var answer Endpoint
	var err error
	var asking sync.WaitGroup
	asking.Go(func() { answer, err = host.Endpoint(ctx) }) // meanwhile it is looked at the host
	var results []Result
	for _, c := range checks() {
		result := c.run(ctx, host)
		result.Name = c.name
		results = append(results, result)
	}
	// Two checks of one answer: the server is asked once.
	asking.Wait()
	for _, c := range serverChecks() {
		result := c.run(answer, err)
		result.Name = c.name
		results = append(results, result)
	}
	return results
}

func ok(format string, args ...any) Result {
	return Result{Status: OK, Saw: fmt.Sprintf(format, args...)}
}

// unknown is what comes of a question without an answer.
func unknown(err error, fix string) Result {
	return Result{Status: Warn, Saw: fmt.Sprintf("not known: %v", err), Fix: fix}
}
