// SPDX-License-Identifier: Apache-2.0

package render

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A machine's labels are those of AWS's cloud controller; a host that nobody launched has none, whatever else is known
// of it.
func TestLabels(t *testing.T) {
	whole := Instance{ID: "i-0123456789abcdef0", Type: "m5.large", Region: "eu-west-1", AvailabilityZone: "eu-west-1b", AvailabilityZoneID: "euw1-az2"}
	host := whole
	host.ID = ""
	for name, test := range map[string]struct {
		of   Instance
		want map[string]string
	}{
		"a machine": {whole, map[string]string{
			"node.kubernetes.io/instance-type": "m5.large", "topology.kubernetes.io/region": "eu-west-1",
			"topology.kubernetes.io/zone": "eu-west-1b", "topology.k8s.aws/zone-id": "euw1-az2",
		}},
		"of no type":             {Instance{ID: "i-0123456789abcdef0", Region: "eu-west-1"}, map[string]string{"topology.kubernetes.io/region": "eu-west-1"}},
		"nothing known":          {Instance{ID: "i-0123456789abcdef0"}, map[string]string{}},
		"a host nobody launched": {host, map[string]string{}},
	} {
		if diff := cmp.Diff(test.want, test.of.Labels()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if got := whole.ProviderID(); got != "aws:///eu-west-1b/i-0123456789abcdef0" {
		t.Errorf("the provider id is %s", got)
	}
	if got := host.ProviderID(); got != "" {
		t.Errorf("a host has the provider id %s", got)
	}
}
