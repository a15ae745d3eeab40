// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"bufio"
	"encoding/hex"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// listen takes a port for the time of the test.
func listen(t *testing.T) string {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	address := listener.Addr().String()
	return address[strings.LastIndex(address, ":")+1:]
}

// loopbackOnly looks at every socket that a process of the cluster listens on in the host's network.
func loopbackOnly(t *testing.T, i *installation) {
	host, err := os.Readlink("/proc/self/ns/net")
	if err != nil {
		t.Fatal(err)
	}
	listening := listeners(t)
	count := 0
	for name, p := range i.processes() {
		root := fmt.Sprintf("/proc/%d", p.PID)
		if ns, err := os.Readlink(filepath.Join(root, "ns/net")); err != nil || ns != host {
			continue // a machine: it listens in the VPC
		}
		descriptors, err := filepath.Glob(filepath.Join(root, "fd", "*"))
		if err != nil {
			t.Fatal(err)
		}
		for _, fd := range descriptors {
			target, err := os.Readlink(fd)
			if err != nil {
				continue
			}
			address, ok := listening[strings.TrimSuffix(strings.TrimPrefix(target, "socket:["), "]")]
			if !ok {
				continue
			}
			count++
			if !address.Addr().IsLoopback() {
				t.Errorf("%s listens on %s", name, address)
			}
		}
	}
	if count < 6 { // etcd twice, two API servers, controller manager, scheduler, certificate controller
		t.Errorf("found %d listening sockets only; the test does not see what it should", count)
	}
}

// listeners are the addresses of listening TCP sockets, by inode (proc_pid_net(5): hexadecimal words in host order;
// state 0A is LISTEN).
func listeners(t *testing.T) map[string]netip.AddrPort {
	t.Helper()
	found := map[string]netip.AddrPort{}
	for _, path := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		file, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		scanner := bufio.NewScanner(file)
		for scanner.Scan() {
			fields := strings.Fields(scanner.Text())
			if len(fields) < 10 || fields[3] != "0A" {
				continue
			}
			text, port, _ := strings.Cut(fields[1], ":")
			raw, err := hex.DecodeString(text)
			if err != nil {
				t.Fatal(err)
			}
			for word := range slices.Chunk(raw, 4) {
				slices.Reverse(word)
			}
			addr, _ := netip.AddrFromSlice(raw)
			number, err := hex.DecodeString(port)
			if err != nil {
				t.Fatal(err)
			}
			found[fields[9]] = netip.AddrPortFrom(addr.Unmap(), uint16(number[0])<<8|uint16(number[1]))
		}
		_ = file.Close()
	}
	return found
}
