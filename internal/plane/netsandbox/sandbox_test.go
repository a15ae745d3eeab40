// SPDX-License-Identifier: Apache-2.0

package netsandbox

import (
	"bufio"
	"context"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestCheck(t *testing.T) {
	t.Parallel()
	good := func() Config {
		return Config{
			Program: "/bin/true", Proxy: "/proxy", ProbeSocket: "/probe", Log: slog.New(slog.DiscardHandler),
			Reach: []netip.AddrPort{netip.MustParseAddrPort("127.128.0.1:443")}, Probe: netip.MustParseAddrPort("127.0.0.1:8081"),
		}
	}
	if err := good().check(); err != nil {
		t.Error(err)
	}
	for name, change := range map[string]func(*Config){
		"no program":      func(c *Config) { c.Program = "" },
		"no proxy":        func(c *Config) { c.Proxy = "" },
		"no probe socket": func(c *Config) { c.ProbeSocket = "" },
		"nothing reached": func(c *Config) { c.Reach = nil },
		"no log":          func(c *Config) { c.Log = nil },
		"another host":    func(c *Config) { c.Reach[0] = netip.MustParseAddrPort("10.0.0.1:443") },
		"no port":         func(c *Config) { c.Reach[0] = netip.MustParseAddrPort("127.0.0.1:0") },
		"probe elsewhere": func(c *Config) { c.Probe = netip.MustParseAddrPort("[::]:8081") },
	} {
		c := good()
		change(&c)
		if err := c.check(); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
}

func TestAlone(t *testing.T) {
	t.Parallel()
	loopback := net.Interface{Name: "lo", Flags: net.FlagUp | net.FlagLoopback}
	if err := alone([]net.Interface{loopback, {Name: "sit0"}}); err != nil {
		t.Error(err)
	}
	if err := alone([]net.Interface{loopback, {Name: "eth0", Flags: net.FlagUp}}); err == nil || !strings.Contains(err.Error(), "eth0") {
		t.Errorf("the host's network: %v", err)
	}
}

func TestEnvironment(t *testing.T) {
	t.Parallel()
	if got := environment([]string{"PATH=/bin", "MUSTER_PROCESS=x", "CLUSTER_NAME=blue"}); !slices.Equal(got, []string{"PATH=/bin", "CLUSTER_NAME=blue"}) {
		t.Errorf("%v", got)
	}
}

func TestAwait(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "file")
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if await(ctx, path) == nil {
			t.Error("found a file that is not there")
		}
	})
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := await(t.Context(), path); err != nil {
		t.Error(err)
	}
}

// A connection is passed on in both directions; the end of one that cannot be dialled is seen.
func TestForward(t *testing.T) {
	t.Parallel()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	dials := 0
	go func() {
		defer close(ended)
		forward(ctx, listener, slog.New(slog.DiscardHandler), func(context.Context) (net.Conn, error) {
			if dials++; dials > 1 {
				return nil, io.ErrUnexpectedEOF
			}
			near, far := net.Pipe()
			go func() {
				line, _ := bufio.NewReader(far).ReadString('\n')
				_, _ = io.WriteString(far, "heard "+line)
				_ = far.Close()
			}()
			return near, nil
		})
	}()
	for _, want := range []string{"heard hello\n", ""} {
		connection, err := new(net.Dialer).DialContext(ctx, "tcp", listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(connection, "hello\n")
		if got, _ := io.ReadAll(connection); string(got) != want {
			t.Errorf("got %q, want %q", got, want)
		}
		_ = connection.Close()
	}
	cancel()
	<-ended
}

// The program ends with the context, and its own end is an error.
func TestProgram(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := (Config{Program: "/bin/cat"}).program(ctx); err != nil {
		t.Error(err)
	}
	for _, program := range []string{"/bin/true", "/bin/false", "/nowhere"} {
		if err := (Config{Program: program}).program(t.Context()); err == nil || !strings.Contains(err.Error(), program) {
			t.Errorf("%s: %v", program, err)
		}
	}
}
