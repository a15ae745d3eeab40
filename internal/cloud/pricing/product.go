// SPDX-License-Identifier: Apache-2.0

package pricing

import (
	"crypto/sha256"
	"encoding/base32"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"muster.dev/muster/internal/machine/instancetype"
)

// The service and the region whose prices the list has; the region's are those of every region.
const (
	ec2Code  = "AmazonEC2"
	priceDay = "2026-08-01T00:00:00Z" // of the prices of package instancetype
	edition  = "20260801000000"
)

// The codes of the offer on demand by the hour, as AWS's price list has them for every product.
const (
	onDemand = "JRTCKXETXF"
	hourly   = "6YS6EN2CT7"
)

// product is a product of the list: attributes, and the price of an hour in US dollars.
type product struct {
	sku, family string
	attributes  map[string]string
	usd         float64
}

// products are the instance types of the account, and the one of bare metal.
func products(region string) []product {
	var all []product
	for _, t := range instancetype.All() {
		p := newProduct(region, t.Name, "Compute Instance", t.USD)
		p.attributes["tenancy"], p.attributes["usagetype"] = "Shared", "BoxUsage:"+t.Name
		p.attributes["vcpu"], p.attributes["memory"] = strconv.Itoa(t.VCPUs), fmt.Sprintf("%d GiB", t.MemoryMiB>>10)
		p.attributes["networkPerformance"], p.attributes["clockSpeed"] = t.Network, fmt.Sprintf("%g GHz", t.ClockGHz)
		if !t.Current {
			p.attributes["currentGeneration"] = "No"
		}
		all = append(all, p)
	}
	return append(all, metal(region))
}

// metal is m5.metal. Its price is that of package instancetype's source.
func metal(region string) product {
	const name, usd = "m5.metal", 4.608
	p := newProduct(region, name, "Compute Instance (bare metal)", usd)
	p.attributes["tenancy"], p.attributes["usagetype"] = "Dedicated", "DedicatedUsage:"+name
	p.attributes["vcpu"], p.attributes["memory"] = "96", "384 GiB"
	p.attributes["networkPerformance"], p.attributes["clockSpeed"] = "25 Gigabit", "3.1 GHz"
	return p
}

// newProduct is a product with the attributes that all have in common.
func newProduct(region, instanceType, family string, usd float64) product {
	sum := sha256.Sum256([]byte(instanceType + "/" + family))
	return product{
		sku: base32.StdEncoding.EncodeToString(sum[:])[:16], family: family, usd: usd,
		attributes: map[string]string{
			"servicecode": ec2Code, "servicename": "Amazon Elastic Compute Cloud", "regionCode": region, "locationType": "AWS Region",
			"instanceType": instanceType, "instanceFamily": familyOf(instanceType), "currentGeneration": "Yes", "operatingSystem": "Linux", "preInstalledSw": "NA",
			"licenseModel": "No License required", "capacitystatus": "Used", "marketoption": "OnDemand", "operation": "RunInstances",
			"processorArchitecture": "64-bit", "storage": "EBS only",
		},
	}
}

// familyOf is the family of an instance type in the words of the price list.
func familyOf(instanceType string) string {
	switch instanceType[0] {
	case 'c':
		return "Compute optimized"
	case 'r':
		return "Memory optimized"
	default:
		return "General purpose"
	}
}

// named are the attributes that filters have other names for, in lower case.
func named(field string) string {
	switch lower := strings.ToLower(field); lower {
	case "termtype":
		return "marketoption"
	default:
		return lower
	}
}

// value is the value of an attribute, whose name is in lower case, and reports whether the list has such an attribute.
func (p product) value(field string) (string, bool) {
	switch field {
	case "productfamily":
		return p.family, true
	case "sku":
		return p.sku, true
	}
	for name, value := range p.attributes {
		if strings.ToLower(name) == field {
			return value, true
		}
	}
	return "", false
}

// item is a product as GetProducts has it, in JSON (AWS's price list, format aws_v1).
type item struct {
	Product struct {
		ProductFamily string            `json:"productFamily"`
		Attributes    map[string]string `json:"attributes"`
		SKU           string            `json:"sku"`
	} `json:"product"`
	ServiceCode string `json:"serviceCode"`
	Terms       struct {
		OnDemand map[string]term `json:"OnDemand"`
	} `json:"terms"`
	Version         string `json:"version"`
	PublicationDate string `json:"publicationDate"`
}

type term struct {
	PriceDimensions map[string]dimension `json:"priceDimensions"`
	SKU             string               `json:"sku"`
	EffectiveDate   string               `json:"effectiveDate"`
	OfferTermCode   string               `json:"offerTermCode"`
	TermAttributes  struct{}             `json:"termAttributes"`
}

type dimension struct {
	Unit         string            `json:"unit"`
	EndRange     string            `json:"endRange"`
	Description  string            `json:"description"`
	AppliesTo    []string          `json:"appliesTo"`
	RateCode     string            `json:"rateCode"`
	BeginRange   string            `json:"beginRange"`
	PricePerUnit map[string]string `json:"pricePerUnit"`
}

// text is the product in JSON.
func (p product) text() (string, error) {
	price := strconv.FormatFloat(p.usd, 'f', 10, 64)
	i := item{ServiceCode: ec2Code, Version: edition, PublicationDate: priceDay}
	i.Product.ProductFamily, i.Product.Attributes, i.Product.SKU = p.family, p.attributes, p.sku
	offer := p.sku + "." + onDemand
	rate := offer + "." + hourly
	i.Terms.OnDemand = map[string]term{offer: {
		SKU: p.sku, EffectiveDate: priceDay, OfferTermCode: onDemand,
		PriceDimensions: map[string]dimension{rate: {
			Unit: "Hrs", BeginRange: "0", EndRange: "Inf", AppliesTo: []string{}, RateCode: rate, PricePerUnit: map[string]string{"USD": price},
			Description: fmt.Sprintf("$%g per On Demand Linux %s Instance Hour", p.usd, p.attributes["instanceType"]),
		}},
	}}
	raw, err := json.Marshal(i)
	if err != nil {
		return "", fmt.Errorf("writing the product %s: %w", p.sku, err)
	}
	return string(raw), nil
}
