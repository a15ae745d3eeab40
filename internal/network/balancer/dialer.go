// SPDX-License-Identifier: Apache-2.0

package balancer

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"sync"
	"time"

	"muster.dev/muster/internal/network/vpc"
	"muster.dev/muster/internal/platform/lru"
)

// dialer connects to targets of a cluster from an address of the VPC. An error that is [vpc.ErrForbidden] means that
// the target is not the cluster's.
type dialer interface {
	Dial(ctx context.Context, cluster string, source netip.Addr, target netip.AddrPort) (net.Conn, error)
	DialUDP(cluster string, source netip.Addr, target netip.AddrPort) (*net.UDPConn, error)
}

const (
	// admittedFor is how long a target that was admitted is not looked up again: an address goes to another cluster's
	// machine no sooner.
	admittedFor = time.Second
	maxAdmitted = 16384
)

// admitted asks the VPC about targets before it connects.
type admitted struct {
	reach *vpc.Dialer

	mutex sync.Mutex
	until *lru.Map[whose, time.Time]
}

type whose struct {
	cluster string
	target  netip.AddrPort
}

func newAdmitted(reach *vpc.Dialer) *admitted {
	return &admitted{reach: reach, until: lru.New[whose, time.Time](maxAdmitted)}
}

func (a *admitted) admit(cluster string, target netip.AddrPort) error {
	key, now := whose{cluster, target}, time.Now()
	a.mutex.Lock()
	until, ok := a.until.Get(key)
	a.mutex.Unlock()
	if ok && now.Before(until) {
		return nil
	}
	if err := a.reach.Admit(cluster, target); err != nil {
		return err
	}
	a.mutex.Lock()
	a.until.Put(key, now.Add(admittedFor))
	a.mutex.Unlock()
	return nil
}

func (a *admitted) Dial(ctx context.Context, cluster string, source netip.Addr, target netip.AddrPort) (net.Conn, error) {
	if err := a.admit(cluster, target); err != nil {
		return nil, err
	}
	return a.reach.Dial(ctx, source, target)
}

func (a *admitted) DialUDP(cluster string, source netip.Addr, target netip.AddrPort) (*net.UDPConn, error) {
	if err := a.admit(cluster, target); err != nil {
		return nil, err
	}
	return a.reach.DialUDP(source, target)
}

// reasonOf is a failure to connect in few words.
func reasonOf(err error) string {
	var system *net.OpError
	if errors.As(err, &system) && system.Err != nil {
		return system.Err.Error()
	}
	return err.Error()
}
