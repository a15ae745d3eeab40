// SPDX-License-Identifier: Apache-2.0

package issuer

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

func TestHostName(t *testing.T) {
	taken, err := net.Listen("tcp", "127.93.14.202:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	port := taken.Addr().(*net.TCPAddr).Port
	for _, test := range []struct {
		hostname, leads, name, at, refused string
	}{
		{hostname: "vm", leads: "127.93.14.201", name: "vm", at: "127.93.14.201"},
		{hostname: "DESKTOP-7", leads: "127.93.14.201", name: "desktop-7", at: "127.93.14.201"},
		{hostname: "vm", leads: "127.93.14.203 127.93.14.201", name: "vm", at: "127.93.14.203"},
		{hostname: "vm", leads: "::1 127.93.14.201", name: "vm", at: "127.93.14.201"},
		{hostname: "vm", leads: "::1", refused: "leads to no IPv4 loopback address"},
		{hostname: "vm", leads: "", refused: "leads to no IPv4 loopback address"},
		{hostname: "vm", leads: "127.93.14.201 192.0.2.1", refused: "leads to 192.0.2.1, which is not a loopback address"},
		{hostname: "vm", leads: "fe80::1 127.93.14.201", refused: "leads to fe80::1, which is not a loopback address"},
		{hostname: "vm", leads: "127.93.14.201 127.93.14.202", refused: fmt.Sprintf("leads to 127.93.14.202, which cannot be listened on: port %d is in use by %s (process %d)", port, filepath.Base(os.Args[0]), os.Getpid())},
		{hostname: "unknown", refused: "is not known to this host's resolver: no such host"},
		{hostname: "vm.example.com", refused: "has more than one label"},
		{hostname: "localhost", refused: "is another thing to pods"},
		{hostname: "Kubernetes", refused: "is another thing to pods"},
		{hostname: "127.0.0.1", refused: "has more than one label"},
		{hostname: "", refused: "is not a DNS name"},
		{hostname: "a_b", refused: "is not a DNS name"},
		{hostname: "vm:8443", refused: "is not a DNS name"},
		{hostname: "10", refused: "is not a DNS name"},
	} {
		resolve := func(_ context.Context, name string) ([]netip.Addr, error) {
			if name != strings.ToLower(test.hostname) {
				t.Errorf("%s is looked up as %s", test.hostname, name)
			}
			if name == "unknown" {
				return nil, errors.New("no such host")
			}
			if test.leads == "" && test.name == "" && name != "vm" {
				t.Errorf("%s is looked up", test.hostname)
			}
			var found []netip.Addr
			for text := range strings.FieldsSeq(test.leads) {
				found = append(found, netip.MustParseAddr(text))
			}
			return found, nil
		}
		name, at, err := hostName(t.Context(), test.hostname, port, resolve)
		if test.refused != "" {
			if err == nil || !strings.HasPrefix(err.Error(), "this host's name "+strconv.Quote(test.hostname)+" "+test.refused) || name != "" || at.IsValid() {
				t.Errorf("%s at %s: %s %s, %v; want %q", test.hostname, test.leads, name, at, err, test.refused)
			}
			continue
		}
		if err != nil || name != test.name || at.String() != test.at {
			t.Errorf("%s at %s: %s at %s, %v", test.hostname, test.leads, name, at, err)
		}
	}
}

// A name of /etc/hosts is found there, whatever the network is like.
func TestResolve(t *testing.T) {
	found, err := Resolve(t.Context(), "localhost")
	if err != nil || len(found) == 0 {
		t.Fatal(found, err)
	}
	for _, address := range found {
		if !address.IsLoopback() || address.Is4In6() {
			t.Errorf("localhost is at %s", address)
		}
	}
}
