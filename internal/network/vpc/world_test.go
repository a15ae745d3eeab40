// SPDX-License-Identifier: Apache-2.0

// These tests make network namespaces, which needs root. Their addresses are in those namespaces only.

package vpc

import (
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"muster.dev/muster/internal/network/securitygroup"
	"muster.dev/muster/internal/platform/host"
)

func newNetwork(t *testing.T) *Network {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Fatal("this test makes network namespaces, which needs root")
	}
	n, err := New(Config{Dir: filepath.Join(t.TempDir(), "vpc"), ID: vpcID, CIDR: cidr, Subnets: subnets})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.Delete(); err != nil {
			t.Error(err)
		}
	})
	if err := n.Ensure(); err != nil {
		t.Fatal(err)
	}
	if err := n.SetSecurity([]securitygroup.Group{open()}, nil); err != nil {
		t.Fatal(err)
	}
	return n
}

// openGroup lets everything through, both ways.
const openGroup = "sg-0123456789abcdef0"

func open() securitygroup.Group {
	return group(openGroup, rule(securitygroup.Ingress, securitygroup.AllProtocols, 0, "0.0.0.0/0"), rule(securitygroup.Egress, securitygroup.AllProtocols, 0, "0.0.0.0/0"))
}

func group(id string, rules ...securitygroup.Rule) securitygroup.Group {
	return securitygroup.Group{ID: id, Rules: rules}
}

// rule is of one port, by a range or a group.
func rule(direction securitygroup.Direction, protocol string, port int32, peer string) securitygroup.Rule {
	r := securitygroup.Rule{Direction: direction, Protocol: protocol, FromPort: port, ToPort: port}
	if cidr, err := netip.ParsePrefix(peer); err == nil {
		r.CIDR = cidr
	} else {
		r.Group = peer
	}
	return r
}

// interfaceOf is that of the one machine that an address has in a test.
func interfaceOf(address string, groups ...string) Interface {
	return Interface{Machine: "machine " + address, Address: netip.MustParseAddr(address), SecurityGroups: groups}
}

// newMachine is a network namespace attached to a network; nothing is kept from it.
func newMachine(t *testing.T, n *Network, address string) *os.File {
	t.Helper()
	return newMachineIn(t, n, address, openGroup)
}

// newMachineIn is one in some security groups.
func newMachineIn(t *testing.T, n *Network, address string, groups ...string) *os.File {
	t.Helper()
	return newMachineWith(t, n, interfaceOf(address, groups...))
}

func newMachineWith(t *testing.T, n *Network, own Interface) *os.File {
	t.Helper()
	file, ip := newNamespace(t), own.Address
	if err := n.Attach(file, own); err != nil {
		t.Fatal(err)
	}
	namespace, err := n.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = namespace.Close() }()
	waitUp(t, namespace, attachmentOf(ip).Link())
	waitUp(t, file, machineLink)
	return file
}

const (
	generous = time.Minute     // that a test has with a busy computer
	silence  = 2 * time.Second // in which what must not be answered is not answered
)

// long is how long a test waits for an answer.
func long(expected bool) time.Duration {
	if expected {
		return generous
	}
	return silence
}

// waitUp waits until a link carries packets: the kernel drops those that are sent within the second after both ends
// were set up, as it has not heard of it.
func waitUp(t *testing.T, namespace *os.File, name string) {
	t.Helper()
	for deadline := time.Now().Add(generous); time.Now().Before(deadline); {
		var state netlink.LinkOperState
		if err := withHandle(namespace, func(h *netlink.Handle) error {
			link, err := h.LinkByName(name)
			if err == nil {
				state = link.Attrs().OperState
			}
			return err
		}); err != nil {
			t.Fatal(err)
		}
		if state == netlink.OperUp {
			return
		}
		<-time.After(5 * time.Millisecond)
	}
	t.Fatalf("the link %s does not come up", name)
}

func newNamespace(t *testing.T) *os.File {
	t.Helper()
	holder := exec.Command("sleep", "600")
	holder.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL}
	if err := holder.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = holder.Process.Kill()
		_ = holder.Wait()
	})
	file, err := os.Open(filepath.Join("/proc", strconv.Itoa(holder.Process.Pid), "ns/net"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = file.Close() })
	return file
}

func listenIn(t *testing.T, namespace *os.File, address string) net.Listener {
	t.Helper()
	var listener net.Listener
	err := host.InNetwork(namespace, func() (err error) {
		listener, err = new(net.ListenConfig).Listen(t.Context(), "tcp4", address)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	return listener
}

func dialIn(t *testing.T, namespace *os.File, address string) (net.Conn, error) {
	t.Helper()
	var connection net.Conn
	err := host.InNetwork(namespace, func() (err error) {
		connection, err = (&net.Dialer{Timeout: 10 * time.Second, FallbackDelay: -1}).DialContext(t.Context(), "tcp4", address)
		return err
	})
	if err == nil {
		t.Cleanup(func() { _ = connection.Close() })
	}
	return connection, err
}

// echo answers each connection with what it was sent, after the sender has ended its direction.
func echo(t *testing.T, listener net.Listener) {
	t.Helper()
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer connection.Close()
				heard, err := io.ReadAll(connection)
				if err == nil {
					_, _ = fmt.Fprintf(connection, "heard %d bytes", len(heard))
				}
			}()
		}
	}()
}

// tell sends something, ends that direction, and returns the answer.
func tell(connection net.Conn, bytes int) (string, error) {
	if err := connection.SetDeadline(time.Now().Add(generous)); err != nil {
		return "", err
	}
	if _, err := io.WriteString(connection, strings.Repeat("x", bytes)); err != nil {
		return "", err
	}
	end, ok := connection.(interface{ CloseWrite() error })
	if !ok {
		return "", fmt.Errorf("%T cannot end one direction", connection)
	}
	if err := end.CloseWrite(); err != nil {
		return "", err
	}
	answer, err := io.ReadAll(connection)
	return string(answer), err
}
