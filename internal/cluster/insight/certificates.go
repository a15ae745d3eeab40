// SPDX-License-Identifier: Apache-2.0

package insight

import (
	"fmt"
	"time"
)

const (
	// endsSoon is when a certificate that the service renews should have been renewed long ago.
	endsSoon = 7 * 24 * time.Hour
	// authorityEndsSoon is when an authority is to be replaced; nobody does so by itself.
	authorityEndsSoon = 90 * 24 * time.Hour
)

// certificates looks for certificates near their end: ERROR if they have ended.
func certificates(f Facts) Insight {
	i := Insight{
		Name: "Certificates near their end", Category: UpgradeReadiness, Minor: f.Next,
		Description:    "Looks at the certificates of the control plane and of its authorities",
		Recommendation: "See `muster certs`: the service renews certificates by itself while it runs; an authority is rotated",
	}
	if f.Host.Certificates.Unknown != "" {
		return i.unknown(f.Host.Certificates.Unknown)
	}
	var resources []Resource
	for _, c := range f.Host.Certificates.Is {
		soon := authorityEndsSoon
		if c.Renews {
			soon = endsSoon
		}
		switch left := c.Ends.Sub(f.Now); {
		case left <= 0:
			resources = append(resources, Resource{Finding{Error, "The certificate ended at " + c.Ends.UTC().Format(time.RFC3339)}, "certificate/" + c.Name})
		case left < soon:
			resources = append(resources, Resource{Finding{Warning, "The certificate ends at " + c.Ends.UTC().Format(time.RFC3339)}, "certificate/" + c.Name})
		}
	}
	return i.of(resources, "No certificate is near its end", fmt.Sprintf("%d of %d certificates are near their end", len(resources), len(f.Host.Certificates.Is)))
}
