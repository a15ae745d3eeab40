// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

// servicesNotExposed has Services that nobody outside the VPC reaches say so, once.
func servicesNotExposed(t *testing.T, i *installation) {
	i.apply(`{apiVersion: v1, kind: Service, metadata: {name: given}, spec: {type: LoadBalancer, loadBalancerClass: example.com/other, ports: [{port: 80, targetPort: 8080}]}}`)
	i.mustKubectl("patch", "service", "given", "--subresource=status", "-p", `{"status": {"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}}}`)
	i.apply(`{apiVersion: v1, kind: Service, metadata: {name: pending}, spec: {type: LoadBalancer, loadBalancerClass: example.com/other, ports: [{port: 80, targetPort: 8080}]}}`)
	i.mustKubectl("create", "service", "nodeport", "ported", "--tcp=80:8080")
	i.mustKubectl("create", "service", "clusterip", "inside", "--tcp=80:8080")
	said := func(name string) (string, error) {
		return i.kubectl("get", "events", "--field-selector", "involvedObject.kind=Service,involvedObject.name="+name, "-o", `jsonpath={range .items[*]}{.type} {.reason} {.message}{"\n"}{end}`)
	}
	for _, c := range []struct{ name, begins string }{
		{"ported", "Normal OnlyInVPC it answers at every node's address, on port %s/TCP, which only pods and machines of the VPC reach; a Service of type LoadBalancer is reached from the host, too; from the host use `kubectl -n default port-forward service/ported "},
		{"pending", "Warning NoLoadBalancer it has no address from a load balancer: its class example.com/other is not one of Muster's, which are none, service.k8s.aws/nlb and eks.amazonaws.com/nlb, and nothing else has taken it; inside the VPC it answers at every node's address, on port %s/TCP; "},
	} {
		want := fmt.Sprintf(c.begins, i.mustKubectl("get", "service", c.name, "-o", "jsonpath={.spec.ports[0].nodePort}"))
		took := i.eventually(c.name+" says so", func() error {
			got, err := said(c.name)
			if err == nil && (!strings.HasPrefix(got, want) || strings.Contains(got, "\n")) {
				err = errors.New(got)
			}
			return err
		})
		t.Logf("%s said so after %s", c.name, took.Round(100*time.Millisecond))
	}
	for _, name := range []string{"given", "inside"} {
		if got, err := said(name); err != nil || got != "" {
			t.Errorf("Service %s: %q, %v", name, got, err)
		}
	}
	i.mustKubectl("delete", "service", "given", "pending", "ported", "inside")
}
