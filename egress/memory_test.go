// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip/link/loopback"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv4"
	"gvisor.dev/gvisor/pkg/tcpip/transport/tcp"
	"gvisor.dev/gvisor/pkg/waiter"
)

// All connections of a machine together take a few hundred MiB at most, whatever is sent and not read.
func TestRoomIsBounded(t *testing.T) {
	total := 0
	for nth := 1; nth <= defaultLimits().connections.machine; nth++ {
		room := roomOf(nth)
		buffer := room.buffers.get()
		size := len(*buffer) + cmp.Or(int(room.stack), mostBuffered)
		room.buffers.put(buffer)
		total += 2 * size
	}
	if total > 320<<20 {
		t.Errorf("a machine can have the program hold %d MiB", total>>20)
	}
}

// The room is that of the connection in the stack.
func TestRoomIsLimited(t *testing.T) {
	s, err := newStack(loopback.New())
	if err != nil {
		t.Fatal(err)
	}
	defer endStack(s)
	for _, test := range []struct {
		nth  int
		want int64
	}{{1, buffered}, {manyConnections, buffered}, {manyConnections + 1, buffered}, {mostConnections + 1, buffered / 8}} { // at first: the stack may give the first ones more
		endpoint, failed := s.NewEndpoint(tcp.ProtocolNumber, ipv4.ProtocolNumber, new(waiter.Queue))
		if failed != nil {
			t.Fatal(failed)
		}
		roomOf(test.nth).limit(endpoint)
		if o := endpoint.SocketOptions(); o.GetReceiveBufferSize() != test.want || o.GetSendBufferSize() != test.want {
			t.Errorf("connection %d has %d and %d, want %d", test.nth, o.GetReceiveBufferSize(), o.GetSendBufferSize(), test.want)
		}
		endpoint.Close()
	}
}

// How many a machine has when one is taken is counted with it.
func TestNth(t *testing.T) {
	f := newFlows(limits{machine: 8, total: 120})
	first, second, other := &flow{machine: machineA}, &flow{machine: machineA}, &flow{machine: machineB}
	for _, one := range []*flow{first, second, other} {
		if !f.take(one, one.machine) {
			t.Fatal("no room")
		}
	}
	if first.nth != 1 || second.nth != 2 || other.nth != 1 {
		t.Errorf("%d, %d, %d", first.nth, second.nth, other.nth)
	}
}

// BenchmarkMemory measures what a machine's connections take of the program: those that have moved something and rest,
// and those that neither side reads from.
//
//	go -C egress test -run '^$' -bench Memory -benchtime 1x
func BenchmarkMemory(b *testing.B) {
	for _, count := range []int{250, 1000} {
		b.Run(fmt.Sprintf("idle/%d", count), func(b *testing.B) {
			for b.Loop() {
				b.ReportMetric(float64(idleConnections(b, count)/count), "KiB/connection")
			}
		})
		b.Run(fmt.Sprintf("stuck/%d", count), func(b *testing.B) {
			for b.Loop() {
				b.ReportMetric(float64(stuckConnections(b, count)/count), "KiB/connection")
			}
		})
	}
}

// idleConnections is what connections take, in KiB, that have carried something both ways.
func idleConnections(t testing.TB, count int) int {
	t.Helper()
	w := newWorld(t, nat())
	m := w.machine(firstMachine, openGroup)
	listenIn(t, w.far, ":80", echo)
	before := w.memory()
	data := make([]byte, 256<<10)
	for range count {
		c, err := dialIn(t, m, "tcp4", farAddress+":80")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		if _, err := roundTrip(c, data); err != nil {
			t.Fatal(err)
		}
	}
	return w.memory() - before
}

// stuckConnections returns the memory, in KiB, of connections on which neither side reads what the other sends.
func stuckConnections(t testing.TB, count int) int {
	t.Helper()
	w := newWorld(t, nat())
	m := w.machine(firstMachine, openGroup)
	over := make(chan struct{})
	t.Cleanup(func() { close(over) })
	fill := func(c net.Conn) {
		_ = c.SetWriteDeadline(time.Now().Add(fillTime))
		_, _ = io.Copy(c, zeros{})
	}
	listenIn(t, w.far, ":80", func(c *net.TCPConn) {
		defer c.Close()
		fill(c)
		<-over
	})
	before := w.memory()
	var group sync.WaitGroup
	for range count {
		c, err := dialIn(t, m, "tcp4", farAddress+":80")
		if err != nil {
			t.Fatal(err)
		}
		group.Go(func() { fill(c) })
		t.Cleanup(func() { _ = c.Close() })
	}
	group.Wait()
	return w.memory() - before
}

// fillTime is how long each side sends at most.
const fillTime = 8 * time.Second

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }

// memory is what the program has in memory, in KiB.
func (w *world) memory() int {
	w.t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", w.process.Process.Pid))
	if err != nil {
		w.t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			n, err := strconv.Atoi(strings.Fields(rest)[0])
			if err != nil {
				w.t.Fatal(err)
			}
			return n
		}
	}
	w.t.Fatal("no VmRSS")
	return 0
}
