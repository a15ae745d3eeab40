// SPDX-License-Identifier: Apache-2.0

package launchtemplate

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/awsfault"
)

// MarketOptions say how instances are bought.
type MarketOptions struct {
	MarketType  string       `json:",omitempty"`
	SpotOptions *SpotOptions `json:",omitempty"`
}

// SpotOptions are those of the Spot Instance request.
type SpotOptions struct {
	InstanceInterruptionBehavior string     `json:",omitempty"`
	MaxPrice                     string     `json:",omitempty"` // US dollars an hour
	SpotInstanceType             string     `json:",omitempty"`
	ValidUntil                   *time.Time `json:",omitempty"`
}

// maxMaxPrice is more than the price of any instance, so that a price is always written in a few digits.
const maxMaxPrice = 1e6

// Check refuses requests that Muster does not keep, and prices that cannot be. A highest price below the price of the instance
// type is refused when an instance is launched, as the launch may choose the type.
func (o *MarketOptions) Check() error {
	if o == nil {
		return nil
	}
	spot := o.Spot()
	for _, only := range []struct{ name, value, has, why string }{
		{"InstanceMarketOptions.MarketType", o.MarketType, string(v1alpha1.MarketSpot), "there are no capacity blocks and no reservations"},
		{"SpotOptions.SpotInstanceType", spot.SpotInstanceType, "one-time", "nothing is launched again after an interruption"},
		{"SpotOptions.InstanceInterruptionBehavior", spot.InstanceInterruptionBehavior, "terminate", "an interruption ends a machine"},
	} {
		if !slices.Contains([]string{"", only.has}, only.value) {
			return awsfault.Errorf(invalid, "Value (%.40s) for parameter %s is invalid. Muster has %s only: %s", only.value, only.name, only.has, only.why)
		}
	}
	return CheckPrice("MaxPrice", spot.MaxPrice)
}

// CheckPrice refuses a highest price that cannot be; empty is the price on demand.
func CheckPrice(parameter, price string) error {
	if price == "" {
		return nil
	}
	if usd, err := strconv.ParseFloat(price, 64); err != nil || strings.Trim(price, "0123456789.") != "" || !(usd > 0 && usd < maxMaxPrice) { // Go reads 0x1p-3 and 1_0, too
		return awsfault.Errorf(invalid, "Value (%.40s) for parameter %s is invalid. It must be US dollars an hour, such as 0.0416", price, parameter)
	}
	return nil
}

// Spot returns the options of the Spot Instance request; empty if there are none.
func (o *MarketOptions) Spot() SpotOptions {
	if o == nil || o.SpotOptions == nil {
		return SpotOptions{}
	}
	return *o.SpotOptions
}
