// SPDX-License-Identifier: Apache-2.0

package vpc

import (
	"net"
	"net/netip"
	"sync"
)

// shares counts what each machine has of something that all share.
type shares struct {
	limit int
	// room is how many are left for all; nil if the limit is all that counts.
	room func() int
	// podFraction is the fraction of what is left for the pods of a machine that one of them may have; 0 if each may
	// have all of it.
	podFraction int

	mutex sync.Mutex
	taken map[netip.Addr]*share
}

// share is what a machine has: all, what it took itself, and what each of its pods did.
type share struct {
	all, itself int
	pods        map[netip.Addr]int
}

func newShares(limit int) *shares { return &shares{limit: limit, taken: map[netip.Addr]*share{}} }

// take takes one more for an address of a machine, its own or that of a pod, unless it has its limit already. A quarter
// of the limit is for the machine itself: what its pods take must not keep it out, even if they took it when more was
// left and the limit was higher. Of the rest one pod takes no more than its fraction: of N pods that take all they get,
// each has a part in (N + podFraction), and one more gets as much.
func (s *shares) take(machine, peer netip.Addr) bool {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	limit := s.limit
	if s.room != nil { // however many take what they can, one more gets its share: of N that take all they get, each has total/(N+8)
		limit = min(limit, max(1, s.room()/8))
	}
	has := s.taken[machine]
	if has == nil {
		has = &share{}
	}
	switch itself := machine == peer; {
	case itself && has.all >= limit && has.itself >= max(1, limit/4):
		return false
	case !itself && !s.podMayTake(has, peer, limit-limit/4-has.all):
		return false
	}
	has.add(1, peer, machine == peer)
	s.taken[machine] = has
	return true
}

// podMayTake reports whether a pod gets one more, with so many left for the pods of its machine.
func (s *shares) podMayTake(has *share, pod netip.Addr, left int) bool {
	return left > 0 && (s.podFraction == 0 || has.pods[pod] < max(1, left/s.podFraction))
}

// give gives back what was taken.
func (s *shares) give(machine, peer netip.Addr) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	has := s.taken[machine]
	if has == nil {
		return
	}
	if has.add(-1, peer, machine == peer); has.all <= 0 {
		delete(s.taken, machine)
	}
}

func (s *share) add(n int, peer netip.Addr, itself bool) {
	s.all += n
	if itself {
		s.itself += n
		return
	}
	if s.pods == nil {
		s.pods = map[netip.Addr]int{}
	}
	if s.pods[peer] += n; s.pods[peer] <= 0 {
		delete(s.pods, peer)
	}
}

// peerOf is the address that a connection comes from.
func peerOf(connection net.Conn) netip.Addr {
	address, err := netip.ParseAddrPort(connection.RemoteAddr().String())
	if err != nil {
		return netip.Addr{}
	}
	return address.Addr().Unmap()
}
