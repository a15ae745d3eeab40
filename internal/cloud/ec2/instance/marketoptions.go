// SPDX-License-Identifier: Apache-2.0

package instance

import (
	"fmt"
	"strconv"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/awsfault"
	"muster.dev/muster/internal/cloud/ec2/ec2resource"
	"muster.dev/muster/internal/cloud/launchtemplate"
	"muster.dev/muster/internal/cloud/spotrequest"
	"muster.dev/muster/internal/machine/instancetype"
)

// isSpot reports whether the instances are spot instances. Data is what the request and its launch template say together.
func (in *runInstancesInput) isSpot(data launchtemplate.Data) bool {
	return in.spot || data.InstanceMarketOptions != nil
}

// market is how the instances are bought.
func (in *runInstancesInput) market(data launchtemplate.Data) v1alpha1.MarketType {
	if in.isSpot(data) {
		return v1alpha1.MarketSpot
	}
	return v1alpha1.MarketOnDemand
}

// maxPrice is the highest price that data names, as requests are described by; empty if it names none.
func maxPrice(data launchtemplate.Data) string {
	price, err := strconv.ParseFloat(data.InstanceMarketOptions.Spot().MaxPrice, 64)
	if err != nil {
		return ""
	}
	return usd(price)
}

// usd is a price as EC2 writes those of spot instances.
func usd(price float64) string { return fmt.Sprintf("%.6f", price) }

// checkMarket refuses market options that no launch can have, those that this launch cannot have, and a highest price below the
// price of the type.
func (in *runInstancesInput) checkMarket(data launchtemplate.Data) error {
	if !in.isSpot(data) && len(tagsOfType(data, spotrequest.Resource)) > 0 { // also those of a launch template
		return awsfault.Errorf(ec2resource.InvalidParameter, "You cannot specify tags for Spot instances requests if there are no Spot instances requests being created by the request.")
	}
	options := data.InstanceMarketOptions
	if err := options.Check(); options == nil || err != nil {
		return err
	}
	switch {
	case in.noMarketOptions != nil:
		return in.noMarketOptions
	case options.MarketType == "":
		return awsfault.Errorf(ec2resource.MissingParameter, "The request must contain the parameter MarketType")
	case options.Spot().ValidUntil != nil:
		return awsfault.Errorf(ec2resource.InvalidCombination, "ValidUntil is of persistent Spot Instance requests: leave it out of a one-time request")
	}
	return tooLow(options.Spot().MaxPrice, data.InstanceType)
}

// tooLow refuses a highest price below the price of a type; an empty one is the price on demand. The price and the type have been
// checked, or will be.
func tooLow(highest, instanceType string) error {
	price, err := strconv.ParseFloat(highest, 64)
	if kind, unknown := instancetype.Find(instanceType); err == nil && unknown == nil && price < kind.SpotUSD() {
		return awsfault.Errorf("SpotMaxPriceTooLow", "Your Spot request price of %s is lower than the minimum required Spot request fulfillment price of %s.", usd(price), usd(kind.SpotUSD()))
	}
	return nil
}
