// SPDX-License-Identifier: Apache-2.0

package connectproxy

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const generous = time.Minute // that a test has with a busy computer

// serve runs a server until the test ends.
func serve(t *testing.T, server *Server) (socket string) {
	t.Helper()
	socket = filepath.Join(t.TempDir(), "proxy.sock")
	listener, err := new(net.ListenConfig).Listen(t.Context(), "unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(ctx, listener) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return socket
}

// echo is a peer that answers with what it was sent, when the sender has ended its direction.
func echo(ctx context.Context, _ string) (net.Conn, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp4", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	go func() {
		connection, err := listener.Accept()
		_ = listener.Close()
		if err != nil {
			return
		}
		heard, _ := io.ReadAll(connection)
		_, _ = connection.Write(heard)
		_ = connection.Close()
	}()
	return new(net.Dialer).DialContext(ctx, "tcp4", listener.Addr().String())
}

// Bytes that a client sends ahead of the answer arrive, and the end of one direction is passed on.
func TestConnect(t *testing.T) {
	socket := serve(t, &Server{Dial: echo})
	connection, err := new(net.Dialer).DialContext(t.Context(), "unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = connection.Close() }()
	if err := connection.SetDeadline(time.Now().Add(generous)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(connection, "CONNECT there:443 HTTP/1.1\r\nHost: x\r\n\r\nearly"); err != nil {
		t.Fatal(err)
	}
	reader := bufio.NewReader(connection)
	answer, err := http.ReadResponse(reader, &http.Request{Method: http.MethodConnect})
	if err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("%v, %v", answer, err)
	}
	_ = answer.Body.Close()
	if _, err := io.WriteString(connection, " and late"); err != nil {
		t.Fatal(err)
	}
	if err := connection.(*net.UnixConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(reader); err != nil || string(got) != "early and late" {
		t.Errorf("%q, %v", got, err)
	}
}

func TestThrough(t *testing.T) {
	got := make(chan string, 1)
	socket := serve(t, &Server{Dial: func(ctx context.Context, target string) (net.Conn, error) {
		got <- target
		return echo(ctx, target)
	}})
	connection, err := Through(t.Context(), socket, "there.example.com:443", generous)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = connection.Close() }()
	if target := <-got; target != "there.example.com:443" {
		t.Errorf("the server is asked for %q", target)
	}
	_, err = io.WriteString(connection, "hello")
	err = errors.Join(err, connection.(*net.UnixConn).CloseWrite())
	if heard, failed := io.ReadAll(connection); err != nil || failed != nil || string(heard) != "hello" {
		t.Errorf("%q, %v, %v", heard, err, failed)
	}
}

// The reason is in the status line, all that an API server shows, and nothing that a client wrote begins another line.
func TestReasons(t *testing.T) {
	room := true
	socket := serve(t, &Server{Take: func() bool { return room }, Give: func() {}, Dial: func(_ context.Context, target string) (net.Conn, error) {
		if strings.HasPrefix(target, "no:") {
			return nil, fmt.Errorf("dialling: %w", Refuse("no to %s\r\nX: y\nü%s", target, strings.Repeat("z", 2*maxReason)))
		}
		return nil, errors.New("nobody answers")
	}})
	_, err := Through(t.Context(), socket, "no:1", generous)
	var refused *Refused
	if !errors.As(err, &refused) || !strings.HasPrefix(refused.Reason, "dialling: no to no:1??X: y?") || len(refused.Reason) > maxReason {
		t.Errorf("a refusal: %v", err)
	}
	if _, err := Through(t.Context(), socket, "there:1", generous); err == nil || err.Error() != "nobody answers" || errors.As(err, &refused) {
		t.Errorf("a failure: %v", err)
	}
	if _, err := Through(t.Context(), socket, "there:1\r\nX: y", generous); !errors.As(err, &refused) {
		t.Errorf("two lines: %v", err)
	}
	room = false
	if _, err := Through(t.Context(), socket, "there:1", generous); err == nil || !strings.Contains(err.Error(), "too many connections") {
		t.Errorf("without room: %v", err)
	}
}

func TestThroughWaits(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "proxy.sock")
	if _, err := Through(t.Context(), socket, "there:1", 0); err == nil {
		t.Error("nobody listens")
	}
	came := make(chan error, 1)
	go func() {
		connection, err := Through(t.Context(), socket, "there:1", generous)
		if err == nil {
			_ = connection.Close()
		}
		came <- err
	}()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- (&Server{Dial: echo}).Serve(ctx, listener) }()
	if err := <-came; err != nil {
		t.Error(err)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// A proxy that says nothing holds nobody longer than the context.
func TestThroughEnds(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "proxy.sock")
	listener, err := new(net.ListenConfig).Listen(t.Context(), "unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, err := Through(ctx, socket, "there:1", generous); err == nil {
		t.Error("it is connected")
	}
}
