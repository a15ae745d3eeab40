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
	taken map[netip.Addr]int
}

func newShares(limit int) *shares { return &shares{limit: limit, taken: map[netip.Addr]int{}} }

// take takes one more for an address, unless it has its limit already. A quarter of it is not for those that the address stands for, such
// as the pods of a machine: what they take must not keep the machine out.
func (s *shares) take(peer netip.Addr, itself bool) bool {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	limit := s.limit
	if s.room != nil { // however many take what they can, one more gets its share: of N that take all they get, each has total/(N+8)
		limit = min(limit, max(1, s.room()/8))
	}
	if !itself {
		limit -= limit / 4
	}
	if s.taken[peer] >= limit {
		return false
	}
	s.taken[peer]++
	return true
}

// give gives one back.
func (s *shares) give(peer netip.Addr) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.taken[peer]--; s.taken[peer] <= 0 {
		delete(s.taken, peer)
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
