// SPDX-License-Identifier: Apache-2.0

package live

import (
	"encoding/json"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/pricing"
	"github.com/aws/aws-sdk-go-v2/service/pricing/types"
)

// pricingActions are those of the price list.
func pricingActions() []action {
	filter := func(field, value string) types.Filter {
		return types.Filter{Field: &field, Type: types.FilterTypeTermMatch, Value: &value}
	}
	return []action{
		{"GetProducts", func(w *world) {
			pages := pricing.NewGetProductsPaginator(w.pricing, &pricing.GetProductsInput{
				ServiceCode: aws.String("AmazonEC2"), MaxResults: aws.Int32(6),
				Filters: []types.Filter{filter("regionCode", w.config.Region), filter("tenancy", "Shared"), filter("capacitystatus", "Used"), filter("marketoption", "OnDemand")},
			})
			seen := map[string]bool{}
			for pages.HasMorePages() {
				page := need(pages.NextPage(w.ctx()))
				for _, text := range page.PriceList {
					var p struct {
						Product struct{ Attributes struct{ InstanceType string } }
					}
					must(json.Unmarshal([]byte(text), &p))
					seen[p.Product.Attributes.InstanceType] = true
				}
			}
			if !seen["m5.large"] || !seen["t3.small"] || len(seen) < 15 {
				w.Errorf("%v", seen)
			}
			_, err := w.pricing.GetProducts(w.ctx(), &pricing.GetProductsInput{ServiceCode: aws.String("AmazonS3")})
			w.refused("InvalidParameterException", err)
		}},
	}
}
