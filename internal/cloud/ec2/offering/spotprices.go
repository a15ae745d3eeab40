// SPDX-License-Identifier: Apache-2.0

package offering

import (
	"context"
	"fmt"
	"slices"
	"time"

	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/cloud/awsresource"
	"muster.dev/muster/internal/cloud/ec2/ec2resource"
	"muster.dev/muster/internal/machine/instancetype"
)

// describeSpotPriceHistoryInput names instance types, zones, products and times. A price that never changes is that of
// all times.
type describeSpotPriceHistoryInput struct {
	ec2resource.Paged
	AvailabilityZone    string
	AvailabilityZoneID  string
	InstanceTypes       []string
	ProductDescriptions []string
	StartTime, EndTime  *time.Time
}

type describeSpotPriceHistoryOutput struct {
	SpotPriceHistory []spotPrice
	NextToken        string
}

type spotPrice struct {
	InstanceType       string    `filter:"instance-type"`
	AvailabilityZone   string    `filter:"availability-zone"`
	AvailabilityZoneID string    `filter:"availability-zone-id"`
	ProductDescription string    `filter:"product-description"`
	SpotPrice          string    `filter:"spot-price"`
	Timestamp          time.Time `filter:"timestamp"`
}

// linux is the one product that Muster's machines run, in EC2's two names.
const linux = "Linux/UNIX"

// pricesAPage is how many prices a page has at most.
const pricesAPage = 1000

func (a *Actions) describeSpotPriceHistory() awsfront.Spec[describeSpotPriceHistoryInput, describeSpotPriceHistoryOutput] {
	return awsfront.Spec[describeSpotPriceHistoryInput, describeSpotPriceHistoryOutput]{
		Do: func(_ context.Context, call *awsfront.Call, in *describeSpotPriceHistoryInput) (*describeSpotPriceHistoryOutput, error) {
			products := in.ProductDescriptions
			wants := len(products) == 0 || slices.Contains(products, linux) || slices.Contains(products, linux+" (Amazon VPC)")
			day := call.Now.UTC().Truncate(24 * time.Hour)
			prices := []spotPrice{}
			for _, t := range instancetype.All() {
				for _, z := range a.ec2.Place.Zones {
					if wants && chosen(in.InstanceTypes, t.Name) && chosen(one(in.AvailabilityZone), z.Name) && chosen(one(in.AvailabilityZoneID), z.ID) {
						prices = append(prices, spotPrice{t.Name, z.Name, z.ID, linux, fmt.Sprintf("%.6f", t.SpotUSD()), day})
					}
				}
			}
			if in.MaxResults != nil { // EC2 refuses no large page here: Karpenter asks for 2000
				in.MaxResults = new(min(*in.MaxResults, pricesAPage))
			}
			out := &describeSpotPriceHistoryOutput{}
			var err error
			out.SpotPriceHistory, out.NextToken, err = ec2resource.Choose(a.ec2, call, ec2resource.Noun[spotPrice]{
				ID: func(p *spotPrice) string { return p.InstanceType + "/" + p.AvailabilityZone }, Fields: awsresource.FiltersOf[spotPrice](),
			}, prices, nil, in.Paged)
			return out, err
		},
	}
}

// chosen reports whether a request that names some values, or none, is about a value.
func chosen(named []string, value string) bool {
	return len(named) == 0 || slices.Contains(named, value)
}

func one(value string) []string {
	if value == "" {
		return nil
	}
	return []string{value}
}
