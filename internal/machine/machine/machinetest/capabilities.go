// SPDX-License-Identifier: Apache-2.0

package machinetest

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/machine/machine"
)

// ability is how the suite tests a capability.
type ability struct {
	// ask asks the registry for the interface of the capability. Nil if the capability has none, and Launch is asked
	// instead.
	ask func(machine.Providers, v1alpha1.Provider) error
	// has reports whether the provider has the methods, whatever the table says.
	has func(machine.Provider) bool
	// works checks the effect on the machine First, which runs.
	works func(*testing.T, machine.Provider)
}

// by is an ability with an interface.
func by[T any](do v1alpha1.Capability, works func(*testing.T, T)) ability {
	return ability{
		ask: func(p machine.Providers, name v1alpha1.Provider) error {
			_, err := machine.Ask[T](p, name, do)
			return err
		},
		has: func(p machine.Provider) bool { _, ok := machine.As[T](p, do); return ok },
		works: func(t *testing.T, p machine.Provider) {
			t.Helper()
			able, ok := machine.As[T](p, do)
			if !ok {
				t.Fatalf("the table says that its machines can %s, and %T has not the methods", do, p)
			}
			works(t, able)
		},
	}
}

func abilities() map[v1alpha1.Capability]ability {
	return map[v1alpha1.Capability]ability{
		v1alpha1.RunPods:      {works: runsPods},
		v1alpha1.JoinNetwork:  by(v1alpha1.JoinNetwork, joinsNetwork),
		v1alpha1.MountVolumes: by(v1alpha1.MountVolumes, mountsVolumes),
		v1alpha1.AttachBlocks: by(v1alpha1.AttachBlocks, attachesBlocks),
		v1alpha1.KeepLogs:     by(v1alpha1.KeepLogs, keepsLogs),
		v1alpha1.OpenShell:    by(v1alpha1.OpenShell, opensShell),
	}
}

// capabilities checks that machines do everything that the table of providers says, and that the provider refuses
// everything else.
func (s *suite) capabilities(t *testing.T, factory Factory) {
	p, tested := factory(t), abilities()
	providers := machine.Providers{s.name: p}
	if !s.name.Can(v1alpha1.RunPods) {
		_, err := p.Launch(t.Context(), machine.LaunchRequest{ID: First, UserData: s.userData, Pods: 8})
		s.refused(t, v1alpha1.RunPods, err)
		if left, err := p.List(t.Context()); err != nil || len(left) > 0 {
			t.Errorf("List after a refused launch is %v, %v; want nothing", left, err)
		}
	}
	s.launch(t, p, First)
	for _, do := range v1alpha1.Capabilities() {
		how, ok := tested[do]
		switch {
		case !ok:
			t.Errorf("the suite does not know how to test whether machines can %s", do)
		case s.name.Can(do) && how.ask != nil && how.ask(providers, s.name) != nil:
			t.Errorf("asked to %s: %v", do, how.ask(providers, s.name))
		case s.name.Can(do):
			t.Run(strings.ReplaceAll(string(do), " ", "-"), func(t *testing.T) { how.works(t, p) })
		case how.ask != nil:
			s.refused(t, do, how.ask(providers, s.name))
			if how.has(p) {
				t.Errorf("%T has the methods to %s, and the table of providers does not say that its machines can", p, do)
			}
		}
	}
}

// refused checks the error of a provider whose machines lack a capability: it names the provider and the capability,
// and says what to do.
func (s *suite) refused(t *testing.T, do v1alpha1.Capability, err error) {
	t.Helper()
	if want := (machine.CannotError{Provider: s.name, Do: do}); !errors.Is(err, want) {
		t.Errorf("asked to %s: %v, want %v", do, err, want)
		return
	}
	what, instead, _ := strings.Cut(err.Error(), "provider "+string(s.name)+" cannot "+string(do)+": ")
	if what == err.Error() || instead == "" {
		t.Errorf("the refusal %q does not name provider %s, the capability %q and what to do", err, s.name, do)
	}
}

// runsPods checks that a new machine gets a range of addresses for its pods.
func runsPods(t *testing.T, p machine.Provider) {
	t.Helper()
	instance, err := p.Launch(t.Context(), machine.LaunchRequest{ID: Second, UserData: []byte("none"), Pods: 8})
	if err != nil {
		t.Fatalf("Launch of a machine with 8 pods: %v", err)
	}
	if !instance.PodRange.IsValid() || instance.PodRange.Contains(instance.PrivateIP) {
		t.Errorf("a machine with the address %s has %s for its pods", instance.PrivateIP, instance.PodRange)
	}
}

// joinsNetwork checks that a connection from the machine's inside is made in its own network and not in the host's.
func joinsNetwork(t *testing.T, p machine.Dialer) {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	if connection, err := p.DialInside(t.Context(), First, "tcp", listener.Addr().String()); err == nil {
		_ = connection.Close()
		t.Error("a connection inside the machine reached a listener of the host")
	} else if !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("DialInside: %v, want a refused connection", err)
	}
}

// mountsVolumes checks that a directory of the host comes and goes on the machine.
func mountsVolumes(t *testing.T, p machine.Mounter) {
	t.Helper()
	const target = "/var/lib/kubelet/suite"
	dir := filepath.Join(t.TempDir(), "volume")
	if err := os.Mkdir(dir, 0o750); err != nil {
		t.Fatal(err)
	}
	source, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = source.Close() }()
	for range 2 {
		if err := p.Mount(First, source, target, false); err != nil {
			t.Fatalf("Mount: %v", err)
		}
	}
	if mounted, err := p.Mounted(First, source, target); err != nil || !mounted {
		t.Errorf("Mounted after Mount: %v, %v", mounted, err)
	}
	for range 2 {
		if err := p.Unmount(First, target); err != nil {
			t.Fatalf("Unmount: %v", err)
		}
	}
	if mounted, err := p.Mounted(First, source, target); err != nil || mounted {
		t.Errorf("Mounted after Unmount: %v, %v", mounted, err)
	}
}

// attachesBlocks checks that a new machine has no devices, and that it cannot detach the device of another.
func attachesBlocks(t *testing.T, p machine.Attacher) {
	t.Helper()
	if has, err := p.Loops(First); err != nil || len(has) > 0 {
		t.Errorf("a new machine has the block devices %v, %v", has, err)
	}
	if err := p.ResizeLoop(First, 0); err == nil {
		t.Error("a device that is not attached was resized")
	}
	if err := p.DetachLoop(First, 0); err == nil {
		t.Error("a machine detached a device that it does not have")
	}
	file, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	if d, err := p.AttachLoop(First, file, true); err == nil {
		t.Errorf("a character device became %s", d.Node())
	}
}

// keepsLogs checks that nothing is reported of an instance that does not exist.
func keepsLogs(t *testing.T, p machine.Reporter) {
	t.Helper()
	if report, ok := p.Report(third); ok {
		t.Errorf("a machine that does not exist reports %+v", report)
	}
}

// opensShell checks that a machine that runs has a boot to enter, and that an unknown one has none.
func opensShell(t *testing.T, p machine.Booter) {
	t.Helper()
	if boot, running := p.Boot(First); !running || boot == "" {
		t.Errorf("Boot of a machine that runs: %q, %v", boot, running)
	}
	if boot, running := p.Boot(third); running {
		t.Errorf("a machine that does not exist runs: %q", boot)
	}
}
