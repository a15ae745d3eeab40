// SPDX-License-Identifier: Apache-2.0

package vpc

import (
	"net"
	"net/netip"
	"sync"
)

// shares counts what each address has of something that all share.
type shares struct {
	limit int
	// room is how many are left for all; nil if the limit is all that counts.
	room  func() int
	mutex sync.Mutex
	taken map[netip.Addr]share
}

// share is what an address has, all and what it took itself.
type share struct{ all, itself int }

func newShares(limit int) *shares { return &shares{limit: limit, taken: map[netip.Addr]share{}} }

// take takes one more for an address, unless it has its limit already. A quarter of it is for the address itself and not for those that it stands
// for, such as the pods of a machine: what they take must not keep the machine out, even if they took it when more was left and the limit was higher.
func (s *shares) take(peer netip.Addr, itself bool) bool {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	limit := s.limit
	if s.room != nil { // however many take what they can, one more gets its share: of N that take all they get, each has total/(N+8)
		limit = min(limit, max(1, s.room()/8))
	}
	has := s.taken[peer]
	switch {
	case !itself && has.all >= limit-limit/4:
		return false
	case itself && has.all >= limit && has.itself >= max(1, limit/4):
		return false
	}
	s.taken[peer] = has.add(1, itself)
	return true
}

// give gives back what was taken.
func (s *shares) give(peer netip.Addr, itself bool) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	left := s.taken[peer].add(-1, itself)
	if s.taken[peer] = left; left.all <= 0 {
		delete(s.taken, peer)
	}
}

func (s share) add(n int, itself bool) share {
	s.all += n
	if itself {
		s.itself += n
	}
	return s
}

// peerOf is the address that a connection comes from.
func peerOf(connection net.Conn) netip.Addr {
	address, err := netip.ParseAddrPort(connection.RemoteAddr().String())
	if err != nil {
		return netip.Addr{}
	}
	return address.Addr().Unmap()
}
