// SPDX-License-Identifier: Apache-2.0

package evaluation

import "fmt"

// Limits bound the memory of a query.
type Limits struct {
	Bytes  int // that rows, groups and values take, about
	Groups int // of stats, dedup and pattern together
	Values int // that count_distinct, pct and median keep
}

// DefaultLimits hold a query to about 64 MiB.
func DefaultLimits() Limits {
	return Limits{Bytes: 64 << 20, Groups: 100_000, Values: 1_000_000}
}

// LimitError is why a query fails that would need too much memory.
type LimitError struct {
	What  string // bytes, groups or values
	Limit int
	Fix   string
}

// Error says which limit was reached and what to do.
func (e *LimitError) Error() string {
	return fmt.Sprintf("query needs too much memory: more %s than the limit of %d: %s", e.What, e.Limit, e.Fix)
}

// budget is what is left of the limits.
type budget struct {
	limits                Limits
	bytes, groups, values int // in use
}

func (b *budget) keep(r *row) error { return b.spend(r.size()) }

func (b *budget) drop(r *row) { b.bytes -= r.size() }

// spend counts bytes, which may be negative.
func (b *budget) spend(bytes int) error {
	if b.bytes += bytes; b.bytes > b.limits.Bytes {
		return &LimitError{"bytes", b.limits.Bytes, "use a lower limit, a shorter time range or a filter"}
	}
	return nil
}

// fits refuses a row that alone takes too many bytes.
func (b *budget) fits(r *row) error {
	err := b.spend(r.bytes)
	b.bytes -= r.bytes
	return err
}

// group counts a group that takes so many bytes.
func (b *budget) group(bytes int) error {
	if b.groups++; b.groups > b.limits.Groups {
		return &LimitError{"groups", b.limits.Groups, "group by fewer fields or longer periods, or use a filter"}
	}
	return b.spend(bytes + rowOverhead)
}

// value counts a value that takes so many bytes.
func (b *budget) value(bytes int) error {
	if b.values++; b.values > b.limits.Values {
		return &LimitError{"values of count_distinct, pct and median", b.limits.Values, "use a shorter time range or a filter"}
	}
	return b.spend(bytes)
}
