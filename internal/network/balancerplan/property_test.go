// SPDX-License-Identifier: Apache-2.0

package balancerplan

import (
	"fmt"
	"net/netip"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"muster.dev/muster/internal/network/loadbalancer"
)

// Whatever a Service says, what is decided can be kept: it is valid, or it is refused with a reason.
func TestEveryDecisionIsValid(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := web(func(s *corev1.Service) {
			s.Spec.Ports = nil
			seen := map[string]bool{}
			for range rapid.IntRange(1, 60).Draw(t, "ports") {
				p := corev1.ServicePort{
					Name: rapid.SampledFrom([]string{"http", "x"}).Draw(t, "name"), Port: rapid.Int32Range(1, 65535).Draw(t, "port"),
					Protocol: rapid.SampledFrom([]corev1.Protocol{"TCP", "UDP", "SCTP"}).Draw(t, "protocol"), NodePort: rapid.Int32Range(0, 65535).Draw(t, "node port"),
				}
				if key := fmt.Sprint(p.Port, p.Protocol); !seen[key] { // which the API server refuses
					seen[key] = true
					s.Spec.Ports = append(s.Spec.Ports, p)
				}
			}
			for range rapid.IntRange(0, 3).Draw(t, "annotations") {
				name := rapid.SampledFrom([]string{"internal", "scheme", "type", "target-type", "connection-idle-timeout", "proxy-protocol", "name", "ssl-cert"}).Draw(t, "annotation")
				s.Annotations[prefix+name] = rapid.SampledFrom([]string{"true", "internal", "instance", "nlb", "60", "*", "", "\x00"}).Draw(t, "value")
			}
			s.Spec.LoadBalancerSourceRanges = rapid.SliceOfN(rapid.SampledFrom([]string{"10.0.0.0/8", "0.0.0.0/0", "x", "::/0"}), 0, 2).Draw(t, "ranges")
		})
		states := rapid.SampledFrom([]string{"ready serving", "serving terminating", "terminating", ""})
		addresses := rapid.SampledFrom([]string{"10.244.0.1", "10.244.0.2", "169.254.169.254", "::1", "x"})
		sl := slice()
		for range rapid.IntRange(0, 5).Draw(t, "endpoints") {
			sl.Endpoints = append(sl.Endpoints, endpoint(addresses.Draw(t, "address"), states.Draw(t, "state")))
		}
		got := Decide(s, append(behind(), sl), []corev1.Node{node("a", addresses.Draw(t, "node"))})
		b := loadbalancer.Balancer{Cluster: "c", Namespace: "n", Service: "s", UID: "u", DNSName: "d", Address: netip.MustParseAddr("10.0.0.9"), HostAddress: netip.MustParseAddr("127.130.1.2"), Spec: got.Spec}
		switch got.Verdict {
		case Serve:
			if err := b.Validate(); err != nil {
				t.Fatalf("%v: %+v", err, got)
			}
		case Refuse:
			if len(got.Notices) == 0 || got.Notices[len(got.Notices)-1].Message == "" || len(got.Spec.Listeners) > 0 {
				t.Fatalf("%+v", got)
			}
		case Release:
			t.Fatalf("%+v", got)
		}
	})
}
