// SPDX-License-Identifier: Apache-2.0

package hostagenttest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"testing"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/machine/hostagent"
	"muster.dev/muster/internal/machine/machine"
	"muster.dev/muster/internal/machine/machine/machinetest"
)

const socket = "/var/lib/kubelet/plugins/efs.csi.aws.com/csi.sock"

// answered is what the driver of volumes wants of machines.
type answered interface {
	Boot(id string) (string, bool)
	Listen(id, socket string) (net.Listener, error)
}

func (m *machines) Boot(id string) (string, bool) { return "7", id == machinetest.First }

func (m *machines) Listen(id, at string) (net.Listener, error) {
	if id != machinetest.First || at != socket {
		return nil, errors.New("the machine does not run")
	}
	return new(net.ListenConfig).Listen(context.Background(), "unix", m.socket)
}

// newAnswered has one machine that runs, whose processes connect at a socket of this host.
func newAnswered(t *testing.T, reach Reach) (all answered, at string) {
	t.Helper()
	host, m := newHost(t, reach)
	m.socket = filepath.Join(t.TempDir(), "a.sock")
	all, err := machine.Ask[answered](hostagent.Providers(host, able()), able(), v1alpha1.MountVolumes)
	if err != nil {
		t.Fatal(err)
	}
	return all, m.socket
}

func dial(t *testing.T, at string) net.Conn {
	t.Helper()
	connection, err := new(net.Dialer).DialContext(t.Context(), "unix", at)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = connection.Close() })
	return connection
}

func machinesAreAnswered(t *testing.T, reach Reach) {
	all, at := newAnswered(t, reach)
	if boot, running := all.Boot(machinetest.First); boot != "7" || !running {
		t.Errorf("the boot is %q, %v", boot, running)
	}
	if boot, running := all.Boot(machinetest.Second); running {
		t.Errorf("a machine that does not run has the boot %q", boot)
	}
	if _, err := all.Listen(machinetest.Second, socket); err == nil || err.Error() != "the machine does not run" {
		t.Errorf("Listen on a machine that does not run: %v", err)
	}
	listener, err := all.Listen(machinetest.First, socket)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	for n := range 3 {
		process, said := dial(t, at), fmt.Sprint("hello ", n)
		answering, err := listener.Accept()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(process, said); err != nil {
			t.Fatal(err)
		}
		heard := make([]byte, len(said))
		if _, err := io.ReadFull(answering, heard); err != nil || string(heard) != said {
			t.Errorf("a machine says %q, %v; want %q", heard, err, said)
		}
		if _, err := answering.Write(heard); err != nil {
			t.Fatal(err)
		}
		if err := answering.Close(); err != nil {
			t.Fatal(err)
		}
		if back, err := io.ReadAll(process); err != nil || string(back) != said {
			t.Errorf("a machine is answered %q, %v; want %q", back, err, said)
		}
	}
}

// listenersEnd checks that a socket that was closed answers nobody, and that connections that nobody took end with it.
func listenersEnd(t *testing.T, reach Reach) {
	all, at := newAnswered(t, reach)
	listener, err := all.Listen(machinetest.First, socket)
	if err != nil {
		t.Fatal(err)
	}
	left := dial(t, at)
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	if connection, err := listener.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("Accept of a listener that was closed: %v, %v", connection, err)
	}
	if n, err := left.Read(make([]byte, 1)); err == nil {
		t.Errorf("a process whose connection nobody took reads %d bytes", n)
	}
	if again, err := all.Listen(machinetest.First, socket); err == nil { // once the first is gone
		_ = again.Close()
	}
}
