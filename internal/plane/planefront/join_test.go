// SPDX-License-Identifier: Apache-2.0

package planefront

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// joined is a client and a server whose connections are passed on to each other, until end is called.
func joined(t *testing.T) (client, server *net.TCPConn, end func()) {
	t.Helper()
	client, a := pipe(t)
	b, server := pipe(t)
	ctx, cancel := context.WithCancel(t.Context())
	over := make(chan struct{})
	go func() {
		defer close(over)
		join(ctx, a, b, func() *net.TCPConn { return nil }, func() {})
	}()
	t.Cleanup(func() {
		cancel()
		<-over
	})
	for _, c := range []*net.TCPConn{client, server} {
		if err := c.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
			t.Fatal(err)
		}
	}
	return client, server, cancel
}

// sides are the two sides of a connection, each in turn.
func sides(t *testing.T, test func(t *testing.T, one, other *net.TCPConn, end func())) {
	t.Helper()
	t.Run("client", func(t *testing.T) {
		client, server, end := joined(t)
		test(t, client, server, end)
	})
	t.Run("server", func(t *testing.T) {
		client, server, end := joined(t)
		test(t, server, client, end)
	})
}

// A side that has said all still hears the other one to its end, however slowly it reads.
func TestHalfClosed(t *testing.T) {
	sides(t, func(t *testing.T, one, other *net.TCPConn, _ func()) {
		t.Helper()
		if _, err := io.WriteString(one, "question"); err != nil {
			t.Fatal(err)
		}
		if err := one.CloseWrite(); err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(other); string(got) != "question" || err != nil {
			t.Fatalf("%q, %v", got, err)
		}
		answer := bytes.Repeat([]byte("answer"), 4<<20) // more than the sockets hold
		sent := make(chan error, 1)
		go func() {
			_, err := other.Write(answer)
			sent <- errors.Join(err, other.Close())
		}()
		select {
		case err := <-sent:
			t.Errorf("nothing is read, and all of it was sent: %v", err)
		case <-time.After(100 * time.Millisecond):
		}
		if got, err := io.ReadAll(one); !bytes.Equal(got, answer) || err != nil {
			t.Errorf("%d bytes, %v", len(got), err)
		}
		if err := <-sent; err != nil {
			t.Error(err)
		}
	})
}

// A reset is passed on as a reset: the other side does not take what it has for all there is.
func TestReset(t *testing.T) {
	sides(t, func(t *testing.T, one, other *net.TCPConn, _ func()) {
		t.Helper()
		if _, err := io.WriteString(one, "the first half"); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(other, make([]byte, len("the first half"))); err != nil {
			t.Fatal(err)
		}
		reset(one)
		if got, err := io.ReadAll(other); !errors.Is(err, unix.ECONNRESET) {
			t.Errorf("after a reset: %q, %v", got, err)
		}
	})
}

// A side that sends to another one which has gone learns it.
func TestSendingToNobody(t *testing.T) {
	sides(t, func(t *testing.T, one, other *net.TCPConn, _ func()) {
		t.Helper()
		_ = other.Close()
		for err := error(nil); !errors.Is(err, unix.ECONNRESET) && !errors.Is(err, unix.EPIPE); _, err = one.Write(make([]byte, 1<<10)) {
			if err != nil {
				t.Fatal(err)
			}
		}
	})
}

// Connections that a front cuts are reset.
func TestCut(t *testing.T) {
	sides(t, func(t *testing.T, one, _ *net.TCPConn, end func()) {
		t.Helper()
		end()
		if got, err := io.ReadAll(one); !errors.Is(err, unix.ECONNRESET) {
			t.Errorf("after a cut: %q, %v", got, err)
		}
	})
}
