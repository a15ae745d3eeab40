// SPDX-License-Identifier: Apache-2.0

package awsactions

func pricingActions() []Action {
	return []Action{
		{Name: "GetProducts", Mark: Real},
		{Name: "DescribeServices", Mark: Refused, Reason: "Muster's price list has the service AmazonEC2 only: use GetProducts"},
		{Name: "GetAttributeValues", Mark: Refused, Reason: "Muster's price list has the service AmazonEC2 only: use GetProducts"},
		{Name: "ListPriceLists", Mark: Refused, Reason: "Muster has no files of prices: use GetProducts"},
		{Name: "GetPriceListFileUrl", Mark: Refused, Reason: "Muster has no files of prices: use GetProducts"},
	}
}
