// SPDX-License-Identifier: Apache-2.0

package instance

import (
	"fmt"
	"strconv"
	"strings"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/awsfault"
	"muster.dev/muster/internal/cloud/ec2/ec2resource"
	"muster.dev/muster/internal/machine/instancetype"
)

// marketOptions is the parameter InstanceMarketOptions of RunInstances. The front refuses its other members, such as
// ValidUntil: no request waits.
type marketOptions struct {
	MarketType  string
	SpotOptions spotOptions
}

type spotOptions struct{ MaxPrice, SpotInstanceType, InstanceInterruptionBehavior string }

// isSpot reports whether the instances are spot instances.
func (in *runInstancesInput) isSpot() bool { return in.spot || in.InstanceMarketOptions != nil }

// market is how the instances are bought.
func (in *runInstancesInput) market() v1alpha1.MarketType {
	if in.isSpot() {
		return v1alpha1.MarketSpot
	}
	return v1alpha1.MarketOnDemand
}

// maxPrice is the highest price that the request names, as requests are described by; empty if it names none.
func (in *runInstancesInput) maxPrice() string {
	if in.InstanceMarketOptions == nil {
		return ""
	}
	price, err := strconv.ParseFloat(in.InstanceMarketOptions.SpotOptions.MaxPrice, 64)
	if err != nil {
		return ""
	}
	return usd(price)
}

// usd is a price as EC2 writes those of spot instances.
func usd(price float64) string { return fmt.Sprintf("%.6f", price) }

// checkMarket refuses what no spot instance can be, and a highest price below the price of the type.
func (in *runInstancesInput) checkMarket(instanceType string) error {
	if in.InstanceMarketOptions == nil {
		return nil
	}
	o := in.InstanceMarketOptions.SpotOptions
	for _, only := range [][3]string{
		{"InstanceMarketOptions.MarketType", in.InstanceMarketOptions.MarketType, "spot"},
		{"InstanceMarketOptions.SpotOptions.SpotInstanceType", o.SpotInstanceType, "one-time"},
		{"InstanceMarketOptions.SpotOptions.InstanceInterruptionBehavior", o.InstanceInterruptionBehavior, "terminate"},
	} {
		if err := ec2resource.Only(only[0], only[1], only[2]); err != nil {
			return err
		}
	}
	if o.MaxPrice == "" {
		return nil
	}
	price, err := strconv.ParseFloat(o.MaxPrice, 64)
	if err != nil || strings.Trim(o.MaxPrice, "0123456789.") != "" || !(price > 0 && price < 1e6) { // Go reads 0x1p-3 and 1_0, too
		return awsfault.Errorf(ec2resource.InvalidParameter, "Value (%.40s) for parameter MaxPrice is invalid. It must be US dollars an hour, such as 0.0416", o.MaxPrice)
	}
	if kind, err := instancetype.Find(instanceType); err == nil && price < kind.SpotUSD() {
		return awsfault.Errorf("SpotMaxPriceTooLow", "Your Spot request price of %s is lower than the minimum required Spot request fulfillment price of %s.", usd(price), usd(kind.SpotUSD()))
	}
	return nil
}
