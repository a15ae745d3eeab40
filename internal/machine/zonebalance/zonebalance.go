// SPDX-License-Identifier: Apache-2.0

// Package zonebalance decides which zones of a group of machines have too many and which too few, as the process AZRebalance
// of Auto Scaling does, and says so in its words. It is pure: values in, values out.
//
// A group is even if no two of its zones differ by more than one machine. Each move makes it more even, so that moves end.
// The caller carries moves out: a machine is launched in the emptier zone first, and when it serves one ends in the
// fuller zone, so that a group has more than its size for a while, and by Margin more than its maximum at most.
package zonebalance

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Zone is an availability zone and what a group has there.
type Zone struct {
	Name string
	// Machines of the group that count.
	Machines int
	// Movable machines are those of them that may end, as protected ones may not.
	Movable int
	// Open says that a machine may be launched there now.
	Open bool
	// Left says that the group is not in the zone any more: all machines there that may end do.
	Left bool
}

// Move is one machine less in a zone for one more in another.
type Move struct{ From, To string }

// Margin is how many machines a group may have above its maximum while it is rebalanced: 10 percent, and at least one
// (docs.aws.amazon.com/autoscaling/ec2/userguide/ec2-auto-scaling-benefits.html).
func Margin(most int) int { return max(1, most/10) }

// Moves are those that make the zones even as far as zones are open and machines may end, the first first, but no more than
// a number. The order of the zones does not matter.
func Moves(zones []Zone, most int) []Move {
	left := slices.Clone(zones)
	var moves []Move
	for len(moves) < most {
		from, to := fullest(left), emptiest(left)
		if from < 0 || to < 0 || from == to || !left[from].Left && left[from].Machines-left[to].Machines < 2 {
			return moves
		}
		move := Move{From: left[from].Name, To: left[to].Name}
		Carry(left, move)
		moves = append(moves, move)
	}
	return moves
}

// Carry counts zones as they are after a move.
func Carry(zones []Zone, move Move) {
	for i := range zones {
		switch z := &zones[i]; z.Name {
		case move.From:
			z.Machines, z.Movable = z.Machines-1, z.Movable-1
		case move.To:
			z.Machines++
		}
	}
}

// fullest is the zone that loses the next machine; -1 if no zone has a machine to lose.
func fullest(zones []Zone) int {
	return best(zones, func(z Zone) bool { return z.Movable > 0 }, fuller)
}

// Before reports whether a zone loses a machine before another one does.
func (z Zone) Before(other Zone) bool {
	return cmp.Or(fuller(z, other), cmp.Compare(z.Name, other.Name)) < 0
}

// fuller orders zones that a group has left first, and then those with more machines.
func fuller(a, b Zone) int {
	return cmp.Or(boolean(b.Left, a.Left), cmp.Compare(b.Machines, a.Machines))
}

// emptiest is the zone that gets the next machine; -1 if no zone is open.
func emptiest(zones []Zone) int {
	return best(zones, func(z Zone) bool { return z.Open && !z.Left }, func(a, b Zone) int { return cmp.Compare(a.Machines, b.Machines) })
}

// best is the first of the zones that may be chosen, by an order and then by name.
func best(zones []Zone, may func(Zone) bool, order func(a, b Zone) int) int {
	found := -1
	for i, z := range zones {
		if may(z) && (found < 0 || cmp.Or(order(z, zones[found]), cmp.Compare(z.Name, zones[found].Name)) < 0) {
			found = i
		}
	}
	return found
}

// boolean orders false before true.
func boolean(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

// LaunchCause is why a machine is launched that makes zones even, in the words of Auto Scaling.
func LaunchCause(now time.Time, zones []Zone) string {
	sorted := byName(zones)
	names, counts := make([]string, 0, len(sorted)), make([]string, 0, len(sorted))
	for _, z := range sorted {
		names, counts = append(names, z.Name), append(counts, fmt.Sprint(z.Machines))
	}
	return fmt.Sprintf("At %s availability zones %s had %s instances respectively.  An instance was launched to aid in balancing the group's zones.",
		now.UTC().Format(time.RFC3339), strings.Join(names, " "), strings.Join(counts, " "))
}

// EndCause is why a machine ends that is too many after others were launched in some zones to make zones even, in the words
// of Auto Scaling. The cause of its end without that follows.
func EndCause(launched time.Time, zones []string, cause string) string {
	sorted := slices.Compact(slices.Sorted(slices.Values(zones)))
	return fmt.Sprintf("At %s instances were launched to balance instances in zones %s with other zones resulting in more than desired number of instances in the group.  %s",
		launched.UTC().Format(time.RFC3339), strings.Join(sorted, " "), cause)
}

// Counts says how many machines each zone has, for people, as "us-east-1a 3, us-east-1b 1".
func Counts(zones []Zone) string {
	var parts []string
	for _, z := range byName(zones) {
		parts = append(parts, fmt.Sprintf("%s %d", z.Name, z.Machines))
	}
	return strings.Join(parts, ", ")
}

func byName(zones []Zone) []Zone {
	return slices.SortedFunc(slices.Values(zones), func(a, b Zone) int { return cmp.Compare(a.Name, b.Name) })
}
