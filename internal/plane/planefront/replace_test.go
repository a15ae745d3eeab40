// SPDX-License-Identifier: Apache-2.0

package planefront

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"muster.dev/muster/internal/plane/frontservers"
)

// A client whose connection no server takes any more, and that speaks on, is reset like any other that speaks to nobody.
func TestSpeakingAfterTheEnd(t *testing.T) {
	client, server, _ := joined(t)
	if _, err := io.WriteString(client, "hello"); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(server, make([]byte, len("hello"))); err != nil {
		t.Fatal(err)
	}
	_ = server.Close()
	if got, err := io.ReadAll(client); len(got) > 0 || err != nil {
		t.Fatalf("%q, %v", got, err)
	}
	soon(t, "the client is reset", func() bool {
		_, err := io.WriteString(client, "more")
		return errors.Is(err, unix.ECONNRESET) || errors.Is(err, unix.EPIPE)
	})
}

// The end of a server is passed on though it takes nothing from the client.
func TestEndOfAServerThatDoesNotRead(t *testing.T) {
	client, server, _ := joined(t)
	full := make(chan struct{})
	go func() {
		defer close(full)
		_ = client.SetWriteDeadline(time.Now().Add(time.Second))
		for err := error(nil); err == nil; _, err = client.Write(make([]byte, chunk)) {
		}
	}()
	<-full
	if err := server.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("the client reads %v", err)
	}
}

// A connection waits for servers as long as the constant says, in all: not as long again for each that goes without a word.
func TestHeldInAll(t *testing.T) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	file := os.NewFile(uintptr(fd), "server")
	defer func() { _ = file.Close() }()
	if err := unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil { // it refuses connections until it listens
		t.Fatal(err)
	}
	name, err := unix.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, frontservers.Server{Address: at(uint16(name.(*unix.SockaddrInet4).Port))}) //nolint:forcetypeassert // of a TCP socket
	w.every = time.Hour
	w.start(t)
	var client net.Conn
	soon(t, "the front listens", func() bool {
		client, err = net.Dial("tcp", w.config.Listen.String())
		return err == nil
	})
	defer func() { _ = client.Close() }()
	began := time.Now()
	if _, err := io.WriteString(client, "hello"); err != nil {
		t.Fatal(err)
	}
	<-time.After(hold / 2)
	if err := unix.Listen(fd, 1); err != nil {
		t.Fatal(err)
	}
	server, err := net.FileListener(file)
	if err != nil {
		t.Fatal(err)
	}
	c, err := server.Accept()
	if err != nil {
		t.Fatal(err)
	}
	_, _ = server.Close(), file.Close()
	if _, err := io.ReadFull(c, make([]byte, len("hello"))); err != nil {
		t.Fatal(err)
	}
	reset(c)
	_, err = client.Read(make([]byte, 1))
	if took := time.Since(began); !errors.Is(err, unix.ECONNRESET) || took > hold+hold/4 {
		t.Errorf("%v after %v", err, took)
	}
}

// Clients that end before they are answered, in whatever way, and clients that speak no TLS leave nothing behind, while a
// server ends connections without a word; others are answered.
func TestUnrulyClients(t *testing.T) {
	a := newBackend(t, "a")
	s := newSilent(t, newBackend(t, "s"), reset)
	w := newWorld(t, frontservers.Server{Address: s.address}, frontservers.Server{Address: a.address})
	f, _, _ := w.start(t)
	soon(t, "both are ready", func() bool { return f.isReady(a.address) && f.isReady(s.address) })
	var clients sync.WaitGroup
	unruly := func(do func(c *net.TCPConn)) {
		clients.Go(func() {
			for range 50 {
				c, err := dial(t.Context(), w.config.Listen)
				if err != nil {
					t.Error(err)
					return
				}
				_ = c.SetDeadline(time.Now().Add(20 * time.Second))
				do(c)
				_ = c.Close()
			}
		})
	}
	hello := []byte("\x16\x03\x01\x02\x00\x01") // it begins like a ClientHello
	unruly(func(c *net.TCPConn) { reset(c) })
	unruly(func(c *net.TCPConn) {
		_, _ = c.Write(hello)
		reset(c)
	})
	unruly(func(c *net.TCPConn) {
		_, _ = c.Write(hello)
		_ = c.CloseWrite()
		_, _ = io.ReadAll(c)
	})
	unruly(func(c *net.TCPConn) {
		_, _ = io.WriteString(c, "SSH-2.0-client\r\n")
		_, _ = io.ReadAll(c)
	})
	unruly(func(c *net.TCPConn) {
		_, _ = c.Write(make([]byte, 2*maxSaid))
		_, _ = io.ReadAll(c)
	})
	unruly(func(*net.TCPConn) { s.silent.Store(!s.silent.Load()) })
	for range 50 {
		if got, err := w.ask(); got != "a" && got != "s" {
			t.Errorf("%q, %v", got, err)
		}
	}
	clients.Wait()
	soon(t, "nothing is left", func() bool {
		f.pool.mu.Lock()
		defer f.pool.mu.Unlock()
		return len(f.slots) == 0 && len(f.pool.open) == 0
	})
}
