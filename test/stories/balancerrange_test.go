// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"
)

// anotherBalancer is a Service in front of the same pods.
const anotherBalancer = `{apiVersion: v1, kind: Service, metadata: {name: %s}, spec: {type: LoadBalancer, selector: {app: web}, ports: [{port: 80, targetPort: 8080}]}}
`

// balancersOfARange chooses a range of two addresses while everything runs, and then one that the host does not have.
// No balancer moves.
func balancersOfARange(t *testing.T, i *installation) {
	const small, foreign = "127.31.0.4/30", "198.51.100.4/30"
	before, _ := i.balancerOf("web")
	i.muster("up", "--nodes", "2", "--load-balancer-range", small)
	taken := map[string]string{}
	for _, name := range []string{"first", "second"} {
		i.apply(fmt.Sprintf(anotherBalancer, name))
		ip, _ := i.balancerOf(name)
		if other, twice := taken[ip]; twice || !netip.MustParsePrefix(small).Contains(netip.MustParseAddr(ip)) {
			t.Errorf("%s is at %s; the range is %s, and %q is there", name, ip, small, other)
		}
		taken[ip] = name
		i.eventually("Service "+name+" is answered", func() error {
			_, err := askPod(t.Context(), balancerClient(), "http://"+ip+"/")
			return err
		})
	}
	i.apply(fmt.Sprintf(anotherBalancer, "third"))
	i.toldOf("third", "LoadBalancerRangeFull", "all of "+small+" are taken")
	i.mustKubectl("delete", "service", "first", "--timeout=30s")
	if ip, _ := i.balancerOf("third"); taken[ip] != "first" {
		t.Errorf("third is at %s, of those that were taken by %v", ip, taken)
	}

	i.muster("up", "--nodes", "2", "--load-balancer-range", foreign)
	i.apply(fmt.Sprintf(anotherBalancer, "fourth"))
	i.toldOf("fourth", "SyncLoadBalancerFailed", "this host does not have the address")
	if out := i.mustKubectl("get", "service", "fourth", "-o", "jsonpath={.status.loadBalancer}"); out != "{}" {
		t.Errorf("nothing listens there, and its status is %s", out)
	}
	if after, _ := i.balancerOf("web"); after != before {
		t.Errorf("web was at %s and is at %s", before, after)
	}
	i.mustKubectl("delete", "service", "second", "third", "fourth", "--timeout=30s")
}

// toldOf waits for an Event of a Service.
func (i *installation) toldOf(service, reason, message string) {
	i.t.Helper()
	i.eventually("an Event says "+reason, func() error {
		out, err := i.kubectl("get", "events", "--field-selector", "involvedObject.name="+service+",reason="+reason, "-o", "jsonpath={.items[*].message}")
		if err == nil && !strings.Contains(out, message) {
			err = errors.New(out)
		}
		return err
	})
}
