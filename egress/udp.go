// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/transport/udp"
	"gvisor.dev/gvisor/pkg/waiter"
)

const (
	// idleUDP is how long a flow of datagrams may rest: QUIC's clients give up after half a minute.
	idleUDP = time.Minute
	// idleShort is for what is one question and its answer.
	idleShort = 15 * time.Second
	portDNS   = 53
	portNTP   = 123
)

// datagram serves the first datagram of a flow. If it returns false, the sender gets "port unreachable".
func (e *egress) datagram(request *udp.ForwarderRequest) bool {
	between := endsOf(request.ID())
	ctx, cancel := context.WithCancel(e.ctx)
	own := &flow{machine: e.machine(between.source.Addr()), destination: between.destination.Addr(), end: cancel}
	if !e.datagrams.take(own, between.source.Addr()) {
		e.over(between, own.machine, "udp")
		cancel()
		return false
	}
	outside, err := e.dial(ctx, "udp4", between) // which does not wait
	if err != nil {
		e.datagrams.give(own)
		cancel()
		return false
	}
	var queue waiter.Queue
	endpoint, failed := request.CreateEndpoint(&queue)
	if failed != nil {
		e.datagrams.give(own)
		cancel()
		_ = outside.Close()
		return false
	}
	idle := idleUDP
	if port := between.destination.Port(); port == portDNS || port == portNTP {
		idle = idleShort
	}
	e.counted.flows.Inc()
	e.running.Go(func() {
		defer e.datagrams.give(own)
		defer cancel()
		exchange(ctx, cancel, e.counted, endpointOf{endpoint, &queue}, outside, idle)
	})
	return true
}

// exchange carries datagrams both ways until none has come for a while, one side fails, or the context ends.
func exchange(ctx context.Context, cancel func(), counted *counters, inside endpointOf, outside net.Conn, idle time.Duration) {
	var last atomic.Int64
	begun := time.Now()
	touch := func() { last.Store(int64(time.Since(begun))) }
	var both sync.WaitGroup
	defer both.Wait()
	defer inside.Close()
	defer func() { _ = outside.Close() }()
	both.Go(func() {
		defer cancel()
		socket, ok := outside.(*net.UDPConn)
		if !ok {
			return
		}
		_ = lazyRead(socket, false, chunks, func(read []byte) error {
			touch()
			counted.in.Add(float64(len(read)))
			_, _ = inside.Write(bytes.NewReader(read), tcpip.WriteOptions{}) // a datagram that has no room is lost, as datagrams are
			return nil
		})
	})
	both.Go(func() {
		defer cancel()
		_ = lazyReadInside(ctx, inside, chunks, func(read []byte) error {
			touch()
			counted.out.Add(float64(len(read)))
			_, err := outside.Write(read)
			return err
		})
	})
	for {
		timer := time.NewTimer(idle - (time.Since(begun) - time.Duration(last.Load())))
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
			if time.Since(begun)-time.Duration(last.Load()) >= idle {
				cancel()
				return
			}
		}
	}
}
