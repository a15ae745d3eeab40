// SPDX-License-Identifier: Apache-2.0

package webhookproxy

import (
	"bufio"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"muster.dev/muster/internal/platform/connectproxy"
	"muster.dev/muster/internal/platform/socketdir"
)

const generous = time.Minute // that a test has with a busy computer

// start runs a proxy until the test ends, and waits until it serves.
func start(t *testing.T, c Config) {
	t.Helper()
	c.Log = slog.New(slog.DiscardHandler)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- Run(ctx, c) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", c.Socket)
	}}}
	for deadline := time.Now().Add(generous); ; {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://proxy/readyz", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := client.Do(request)
		if err == nil {
			_ = answer.Body.Close()
			return
		}
		select {
		case err := <-ended:
			t.Fatalf("it ended: %v", err)
		case <-time.After(10 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
}

// saying is a server on loopback that says its name.
func saying(t *testing.T, name string) (address string) {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(connection, name+"\n")
			_ = connection.Close()
		}
	}()
	return listener.Addr().String()
}

// asked returns what a target says that is dialled by a proxy, or why it is not.
func asked(t *testing.T, socket, target string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), generous)
	defer cancel()
	connection, err := connectproxy.Through(ctx, socket, target, generous)
	if err != nil {
		return err.Error()
	}
	defer func() { _ = connection.Close() }()
	line, err := bufio.NewReader(connection).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(line)
}

// vpcProcess answers as the process of a VPC does, and says which targets it got.
func vpcProcess(t *testing.T, socket string) (stop func()) {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	server := connectproxy.Server{Dial: func(_ context.Context, target string) (net.Conn, error) {
		if strings.HasPrefix(target, "refused.") {
			return nil, connectproxy.Refuse("%s is refused", target)
		}
		here, there := net.Pipe()
		go func() {
			_, _ = io.WriteString(there, "in the VPC: "+target+"\n")
			_ = there.Close()
		}()
		return here, nil
	}}
	go func() {
		defer close(ended)
		if err := server.Serve(ctx, listener); err != nil {
			t.Error(err)
		}
	}()
	return func() { cancel(); <-ended }
}

func TestTargets(t *testing.T) {
	dir := t.TempDir()
	own, stranger := saying(t, "own"), saying(t, "stranger")
	c := Config{Socket: filepath.Join(dir, "proxy.sock"), Own: []string{own}, VPCSocket: filepath.Join(dir, "vpc.sock")}
	start(t, c)
	stop := vpcProcess(t, c.VPCSocket)
	_, port, err := net.SplitHostPort(own)
	if err != nil {
		t.Fatal(err)
	}
	for target, want := range map[string]string{
		own:                             "own",
		stranger:                        "in the VPC: " + stranger,
		"localhost:" + port:             "in the VPC: localhost:" + port,
		"127.0.0.2:" + port:             "in the VPC: 127.0.0.2:" + port,
		"127.1:" + port:                 "in the VPC: 127.1:" + port,
		"[::ffff:127.0.0.1]:" + port:    "in the VPC: [::ffff:127.0.0.1]:" + port,
		"webhooks.example.com:443":      "in the VPC: webhooks.example.com:443",
		"refused.example.com:443":       "refused.example.com:443 is refused",
		own + "\r\nHost: elsewhere:443": "is not a host and a port",
	} {
		if got := asked(t, c.Socket, target); !strings.Contains(got, want) {
			t.Errorf("%q: %q, want %q", target, got, want)
		}
	}
	if target, err := os.Readlink(c.Socket); err != nil || target != socketdir.Link(c.Socket) {
		t.Errorf("the socket is at %q, %v: it cannot be shown to the API server", target, err)
	}

	// Logins need nothing of the VPC's process, and what is for that waits until it is back.
	stop()
	waiting := make(chan string)
	go func() { waiting <- asked(t, c.Socket, "10.0.0.7:443") }()
	if got := asked(t, c.Socket, own); got != "own" {
		t.Errorf("without the VPC's process: %q", got)
	}
	defer vpcProcess(t, c.VPCSocket)()
	if got := <-waiting; got != "in the VPC: 10.0.0.7:443" {
		t.Errorf("while the VPC's process is started again: %q", got)
	}
}

func TestWithoutVPC(t *testing.T) {
	own, stranger := saying(t, "own"), saying(t, "stranger")
	c := Config{Socket: filepath.Join(t.TempDir(), "proxy.sock"), Own: []string{own}}
	if err := os.WriteFile(c.Socket, nil, 0o600); err != nil { // left by a killed process
		t.Fatal(err)
	}
	start(t, c)
	if got := asked(t, c.Socket, own); got != "own" {
		t.Errorf("its own port: %q", got)
	}
	for _, target := range []string{stranger, "192.0.2.7:443"} {
		if got := asked(t, c.Socket, target); !strings.Contains(got, "the cluster has no VPC") {
			t.Errorf("%s: %q", target, got)
		}
	}
}

func TestConfig(t *testing.T) {
	log := slog.New(slog.DiscardHandler)
	for _, c := range []Config{{Own: []string{"127.0.0.1:1"}, Log: log}, {Socket: "s", Own: []string{"127.0.0.1:1"}}} {
		if _, err := newProxy(c); err == nil {
			t.Errorf("%+v is taken", c)
		}
	}
	for _, own := range []string{"192.0.2.7:443", "127.0.0.1:0", "localhost:443", "127.0.0.1", "127.0.0.1:0443", ""} {
		if _, err := newProxy(Config{Socket: "s", Own: []string{own}, Log: log}); err == nil || !strings.Contains(err.Error(), "invalid own port") {
			t.Errorf("%q: %v", own, err)
		}
	}
	var refused *connectproxy.Refused
	if _, err := (&proxy{}).dial(t.Context(), "10.0.0.7:443"); !errors.As(err, &refused) {
		t.Errorf("%v", err)
	}
}
