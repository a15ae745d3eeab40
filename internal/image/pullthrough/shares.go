// SPDX-License-Identifier: Apache-2.0

package pullthrough

import "sync"

// slots are places of which a VPC may have as many as are left: of N that take all they get each has limit/(N+1), and
// one more gets as much.
type slots struct {
	limit int
	taken int
	vpcs  map[string]int
}

func newSlots(limit int) slots { return slots{limit: limit, vpcs: map[string]int{}} }

func (s *slots) take(vpc string) bool {
	if s.limit-s.taken <= s.vpcs[vpc] {
		return false
	}
	s.taken++
	s.vpcs[vpc]++
	return true
}

func (s *slots) give(vpc string) {
	s.taken--
	if s.vpcs[vpc]--; s.vpcs[vpc] == 0 {
		delete(s.vpcs, vpc)
	}
}

// share is how many times what is left a VPC may have of the bytes that are being pulled: one alone four fifths of the
// bound, for a blob may be large.
const share = 4

// pulling counts the bytes that are being pulled.
type pulling struct {
	mutex sync.Mutex
	total int64
	vpcs  map[string]int64
}

// fits reports whether a VPC may have some more.
func (p *pulling) fits(vpc string, more, bound int64) bool {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return p.within(vpc, more, bound)
}

func (p *pulling) within(vpc string, more, bound int64) bool {
	left := bound - p.total - more
	return left >= 0 && (p.vpcs[vpc]+more)/share <= left
}

// add counts bytes that have come, and reports whether they may be that many.
func (p *pulling) add(vpc string, n, bound int64) bool {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	may := p.within(vpc, n, bound)
	p.total += n
	p.vpcs[vpc] += n
	return may
}

// end takes away what a pull has added.
func (p *pulling) end(vpc string, n int64) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.total -= n
	if p.vpcs[vpc] -= n; p.vpcs[vpc] == 0 {
		delete(p.vpcs, vpc)
	}
}
