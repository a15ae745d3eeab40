// SPDX-License-Identifier: Apache-2.0

package balancerplan

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"muster.dev/muster/internal/network/loadbalancer"
)

// behind is a pod that is ready, so that nothing is said about that.
func behind() []discoveryv1.EndpointSlice {
	return []discoveryv1.EndpointSlice{slice(endpoint("10.244.1.2", "ready serving"))}
}

func TestWhatIsAskedFor(t *testing.T) {
	ranges := func(all ...string) func(*corev1.Service) {
		return func(s *corev1.Service) { s.Spec.LoadBalancerSourceRanges = all }
	}
	prefixes := func(all ...string) (found []netip.Prefix) {
		for _, text := range all {
			found = append(found, netip.MustParsePrefix(text))
		}
		return found
	}
	for name, c := range map[string]struct {
		change func(*corev1.Service)
		want   loadbalancer.Spec
	}{
		"nothing":                {func(*corev1.Service) {}, loadbalancer.Spec{IdleSeconds: 3600}},
		"scheme":                 {annotated("aws-load-balancer-scheme", "internal"), loadbalancer.Spec{IdleSeconds: 3600, Internal: true}},
		"scheme of the internet": {annotated("aws-load-balancer-scheme", "internet-facing"), loadbalancer.Spec{IdleSeconds: 3600}},
		"internal, as in-tree":   {annotated("aws-load-balancer-internal", "true"), loadbalancer.Spec{IdleSeconds: 3600, Internal: true}},
		"types":                  {annotated("aws-load-balancer-type", "external", "aws-load-balancer-nlb-target-type", "ip"), loadbalancer.Spec{IdleSeconds: 3600}},
		"idle timeout":           {annotated("aws-load-balancer-connection-idle-timeout", "60"), loadbalancer.Spec{IdleSeconds: 60}},
		"PROXY protocol":         {annotated("aws-load-balancer-proxy-protocol", "*"), loadbalancer.Spec{IdleSeconds: 3600, ProxyProtocol: true}},
		"ranges":                 {ranges("127.0.0.0/8", "10.1.2.3/8", " 10.0.0.0/8 "), loadbalancer.Spec{IdleSeconds: 3600, SourceRanges: prefixes("10.0.0.0/8", "127.0.0.0/8")}},
		"ranges by annotation":   {annotated("load-balancer-source-ranges", "127.0.0.1/32, 10.0.0.0/8"), loadbalancer.Spec{IdleSeconds: 3600, SourceRanges: prefixes("10.0.0.0/8", "127.0.0.1/32")}},
		"affinity": {func(s *corev1.Service) {
			s.Spec.SessionAffinity = corev1.ServiceAffinityClientIP
			s.Spec.SessionAffinityConfig = &corev1.SessionAffinityConfig{ClientIP: &corev1.ClientIPConfig{TimeoutSeconds: new(int32(60))}}
		}, loadbalancer.Spec{IdleSeconds: 3600, AffinitySeconds: 60}},
		"without node ports": {func(s *corev1.Service) {
			s.Spec.AllocateLoadBalancerNodePorts, s.Spec.Ports[0].NodePort = new(false), 0
		}, loadbalancer.Spec{IdleSeconds: 3600}},
	} {
		got := Decide(web(c.change), behind(), nil)
		got.Spec.Listeners = nil
		if diff := cmp.Diff(Decision{Verdict: Serve, Spec: c.want}, got, byValue); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestWhatIsRefused(t *testing.T) {
	const key = "annotation service.beta.kubernetes.io/"
	for name, c := range map[string]struct {
		change func(*corev1.Service)
		want   string
	}{
		"TLS":          {annotated("aws-load-balancer-ssl-cert", "arn:aws:acm:x"), key + "aws-load-balancer-ssl-cert: the balancer does not end TLS: let the pods or an ingress controller do it"},
		"groups":       {annotated("aws-load-balancer-security-groups", "sg-1"), key + "aws-load-balancer-security-groups: the balancer is in the security groups of its cluster: use spec.loadBalancerSourceRanges"},
		"a scheme":     {annotated("aws-load-balancer-scheme", "public"), key + `aws-load-balancer-scheme: invalid value "public": must be internal or internet-facing`},
		"internal":     {annotated("aws-load-balancer-internal", "0.0.0.0/0"), key + `aws-load-balancer-internal: invalid value "0.0.0.0/0": must be "true" or "false"`},
		"a type":       {annotated("aws-load-balancer-type", "clb"), key + `aws-load-balancer-type: invalid value "clb": must be nlb, nlb-ip or external, as there are only network load balancers`},
		"a target":     {annotated("aws-load-balancer-target-type", "lambda"), key + `aws-load-balancer-target-type: invalid value "lambda": must be ip or instance`},
		"a timeout":    {annotated("aws-load-balancer-connection-idle-timeout", "1h"), key + `aws-load-balancer-connection-idle-timeout: invalid value "1h": must be seconds from 1 to 86400`},
		"timeout of 0": {annotated("aws-load-balancer-connection-idle-timeout", "0"), key + `aws-load-balancer-connection-idle-timeout: invalid value "0": must be seconds from 1 to 86400`},
		"PROXY":        {annotated("aws-load-balancer-proxy-protocol", "80"), key + `aws-load-balancer-proxy-protocol: invalid value "80": must be *`},
		"backend":      {annotated("aws-load-balancer-backend-protocol", "ssl"), key + `aws-load-balancer-backend-protocol: invalid value "ssl": must be tcp, as bytes are passed on as they are`},
		"a range": {
			func(s *corev1.Service) { s.Spec.LoadBalancerSourceRanges = []string{"fd00::/8"} },
			`spec.loadBalancerSourceRanges: invalid range "fd00::/8": must be one of IPv4 addresses, such as 10.0.0.0/8`,
		},
		"a range by annotation": {
			annotated("load-balancer-source-ranges", "10.0.0.0"),
			key + `load-balancer-source-ranges: invalid range "10.0.0.0": must be one of IPv4 addresses, such as 10.0.0.0/8`,
		},
		"SCTP": {func(s *corev1.Service) { s.Spec.Ports[0].Protocol = corev1.ProtocolSCTP }, "spec.ports: port 80: invalid protocol SCTP: must be TCP or UDP"},
		"too many ports": {func(s *corev1.Service) {
			for i := range int32(50) {
				s.Spec.Ports = append(s.Spec.Ports, corev1.ServicePort{Protocol: corev1.ProtocolTCP, Port: 1000 + i})
			}
		}, "spec.ports: 51 ports are more than a balancer has listeners, which is 50"},
		"no node ports": {func(s *corev1.Service) {
			annotated("aws-load-balancer-nlb-target-type", "instance")(s)
			s.Spec.AllocateLoadBalancerNodePorts, s.Spec.Ports[0].NodePort = new(false), 0
		}, "the target type instance needs node ports, and spec.allocateLoadBalancerNodePorts is false: use the target type ip, which is the default, or set it to true"},
	} {
		want := Decision{Verdict: Refuse, Notices: []Notice{{corev1.EventTypeWarning, ReasonRefused, c.want}}}
		if diff := cmp.Diff(want, Decide(web(c.change), behind(), nil), byValue); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// A long message ends between two characters, wherever it is cut.
func TestSentencesAreCutBetweenCharacters(t *testing.T) {
	for shift := range 4 {
		start := strings.Repeat("x", maxMessage-shift)
		for _, character := range []string{"x", "é", "€", "😀"} {
			got, whole := sentence([]string{start + strings.Repeat(character, 9)}), shift/len(character)
			if want := start + strings.Repeat(character, whole) + "…"; got != want {
				t.Errorf("%d bytes before the end, %s: it ends with %q", shift, character, got[len(start)-1:])
			}
			if got := sentence([]string{character, character}); got != character+"; "+character {
				t.Errorf("a short one is %q", got)
			}
		}
	}
}

func TestWhatPeopleAreTold(t *testing.T) {
	for name, c := range map[string]struct {
		change       func(*corev1.Service)
		reason, want string
	}{
		"no effect": {
			annotated("aws-load-balancer-name", "shop", "aws-load-balancer-attributes", "x=y"), ReasonIgnored,
			"no effect here: service.beta.kubernetes.io/aws-load-balancer-attributes, service.beta.kubernetes.io/aws-load-balancer-name",
		},
		"an address": {
			func(s *corev1.Service) { s.Spec.LoadBalancerIP = "1.2.3.4" }, ReasonIgnored,
			"no effect here: spec.loadBalancerIP, as the balancer chooses its addresses itself and keeps them",
		},
		"the host is out": {
			func(s *corev1.Service) { s.Spec.LoadBalancerSourceRanges = []string{"10.0.0.0/8"} }, ReasonHostExcluded,
			"the source ranges do not contain 127.0.0.1, from which programs of this host connect: they are refused; add 127.0.0.0/8 to let them in",
		},
	} {
		got := Decide(web(c.change), behind(), nil)
		want := []Notice{{corev1.EventTypeWarning, c.reason, c.want}}
		if diff := cmp.Diff(want, got.Notices); diff != "" || got.Verdict != Serve {
			t.Errorf("%s: %s (-want +got):\n%s", name, got.Verdict, diff)
		}
	}
	internal := annotated("aws-load-balancer-scheme", "internal", "load-balancer-source-ranges", "10.0.0.0/8")
	if got := Decide(web(internal), behind(), nil); len(got.Notices) != 0 {
		t.Errorf("the host does not reach an internal one anyway: %+v", got.Notices)
	}
	many := web()
	for range 50 {
		many.Annotations[prefix+strings.Repeat("x", len(many.Annotations)+1)] = ""
	}
	if got := Decide(many, behind(), nil); len(got.Notices) != 1 || len(got.Notices[0].Message) > 1024 { // of the API's validation of notes
		t.Errorf("too long: %+v", got.Notices)
	}
}
