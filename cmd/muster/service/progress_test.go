// SPDX-License-Identifier: Apache-2.0

package service

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/cmd/muster/clitest"
	"muster.dev/muster/internal/cluster/servicestatus"
	"muster.dev/muster/internal/plane/runner"
	"muster.dev/muster/internal/platform/termsafe"
)

// Several errors are one row.
func TestProgressOfSeveralErrors(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	newProgress(&out).show(servicestatus.Status{}, servicestatus.Cluster{Message: "no key\nno \x1b[31mport"})
	if got := out.String(); !strings.HasSuffix(got, "  control plane  no key; no \\x1b[31mport\n") || strings.Count(got, "\n") != 1 {
		t.Errorf("printed %q", got)
	}
}

// start is how a cluster starts, status by status.
func start() []servicestatus.Cluster {
	component := func(name string, state runner.State) runner.Status {
		return runner.Status{Name: name, State: state, Since: time.Now(), Message: `Get "https://127.0.0.1:29306/readyz": dial tcp 127.0.0.1:29306: connect: connection refused`}
	}
	names := []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "muster-certificate-controller"}
	var all []servicestatus.Cluster
	for ready := range len(names) + 1 {
		var now servicestatus.Cluster
		for i, name := range names {
			state := runner.Starting
			if i < ready {
				state = runner.Ready
			}
			now.Components = append(now.Components, component(name, state))
		}
		all = append(all, now)
	}
	up := all[len(all)-1]
	up.Ready = true
	for ready := range int32(4) {
		group := servicestatus.NodeGroup{Name: "default", Desired: 3, Machines: 3, Ready: ready}
		up.NodeGroups, up.Machines = []servicestatus.NodeGroup{group}, nil
		for i := range 3 - ready {
			up.Machines = append(up.Machines, servicestatus.Machine{
				Name: fmt.Sprintf("i-%017x", i), NodeGroup: "default", Phase: v1alpha1.MachineNotReady, Step: v1alpha1.StepNodeRegistered,
				Message: "it waits for its network: " + strings.Repeat("container runtime network not ready ", 10),
			})
		}
		all = append(all, up)
	}
	return all
}

// A start leaves two rows on a terminal, of whatever width and when it is resized, and no line of what they were
// before.
func TestProgressOnATerminal(t *testing.T) {
	for _, columns := range []int{60, 80, 200} {
		t.Run(fmt.Sprint(columns), func(t *testing.T) {
			terminal := clitest.NewTerminal(t, columns, 24)
			terminal.Reflow(true)
			p := newProgress(terminal.File)
			for i, now := range start() {
				p.show(servicestatus.Status{}, now)
				lines := terminal.Lines(t)
				if want := 2 + min(len(now.NodeGroups), 1); len(lines) != want || termsafe.Width(lines[0]) >= columns {
					t.Fatalf("after %d statuses there are %d lines, want %d:\n%s", i+1, len(lines), want, strings.Join(lines, "\n"))
				}
				if i%2 == 1 { // somebody pulls at the window
					terminal.Resize(t, columns*2/3, 24)
					p.show(servicestatus.Status{}, now)
					terminal.Resize(t, columns, 24)
				}
			}
			if diff := cmp.Diff([]string{"✓ control plane  ready", "✓ default        3 of 3 nodes are Ready", ""}, terminal.Lines(t)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// In a pipe each change is a line, and none is a wall of refused connections.
func TestProgressInAPipe(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	p := newProgress(&out)
	for _, now := range start() {
		p.said = map[string]said{} // as if a second had passed
		p.show(servicestatus.Status{}, now)
	}
	var got []string
	for line := range strings.Lines(out.String()) {
		_, row, _ := strings.Cut(line, "s  ")
		got = append(got, strings.TrimSpace(row))
	}
	want := []string{
		"control plane  starting 5 components: etcd, kube-apiserver, kube-controller-manager, kube-scheduler, muster-certificate-controller",
		"control plane  starting 4 components: kube-apiserver, kube-controller-manager, kube-scheduler, muster-certificate-controller",
		"control plane  starting 3 components: kube-controller-manager, kube-scheduler, muster-certificate-controller",
		"control plane  starting 2 components: kube-scheduler, muster-certificate-controller",
		"control plane  starting muster-certificate-controller",
		"control plane  setting up",
		"control plane  ready",
	}
	if diff := cmp.Diff(want, got[:len(want)]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := got[len(got)-1]; got != "default        3 of 3 nodes are Ready" {
		t.Errorf("at the end %q", got)
	}
}
