// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"cmp"
	"math"
	"slices"

	"muster.dev/muster/internal/machine/instancetype"
)

// The allocation strategies: in which order pools are tried. All pools share one host, so a strategy by capacity has
// nothing to go by, and falls back to the price or to the order of the request.
const (
	lowestPrice            = "lowest-price"
	prioritized            = "prioritized"
	diversified            = "diversified"
	capacityOptimized      = "capacity-optimized"
	capacityPrioritized    = "capacity-optimized-prioritized"
	priceCapacityOptimized = "price-capacity-optimized"
)

// pool is one place that instances can come from.
type pool struct {
	// config and override are the places of the pool in the request. override is -1 for a configuration without any.
	config, override int
	instanceType     string   // of the override, or else of the template; empty if neither has one
	priority         *float64 // the lower, the sooner; nil comes last
}

// ordered returns pools in the order in which a strategy tries them. Pools that are alike stay in the order of the
// request. A pool whose type has no price comes after all others of a strategy by price.
func ordered(pools []pool, strategy string, spot bool) []pool {
	sorted := slices.Clone(pools)
	slices.SortStableFunc(sorted, func(x, y pool) int {
		switch strategy {
		case lowestPrice, priceCapacityOptimized:
			return cmp.Compare(price(x, spot), price(y, spot))
		case prioritized, capacityPrioritized:
			return cmp.Compare(rank(x), rank(y))
		}
		return 0
	})
	return sorted
}

func price(p pool, spot bool) float64 {
	kind, err := instancetype.Find(p.instanceType)
	switch {
	case err != nil:
		return math.Inf(1)
	case spot:
		return kind.SpotUSD()
	}
	return kind.USD
}

func rank(p pool) float64 {
	if p.priority == nil {
		return math.Inf(1)
	}
	return *p.priority
}
