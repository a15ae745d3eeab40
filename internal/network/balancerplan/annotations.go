// SPDX-License-Identifier: Apache-2.0

package balancerplan

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"muster.dev/muster/internal/network/loadbalancer"
)

// prefix begins the annotations by which AWS's controllers are told about a balancer.
const prefix = "service.beta.kubernetes.io/aws-load-balancer-"

const (
	// defaultIdleSeconds is an hour. A dead peer is found long before, by keep-alive; this is for connections that a
	// client has forgotten.
	defaultIdleSeconds = 3600
	maxIdleSeconds     = 86400
	// defaultAffinitySeconds is what the API server fills in (ClientIPServiceAffinitySeconds' default).
	defaultAffinitySeconds = 10800
)

// The target types.
const (
	targetIP       = "ip"
	targetInstance = "instance"
)

// request is what a Service asks for.
type request struct {
	internal      bool
	instance      bool
	idle          int32
	proxyProtocol bool
	ranges        []netip.Prefix
	// ignored are annotations and fields without an effect, with the reason; refused is why it cannot be served.
	ignored, refused []string
}

// refusals are annotations that change what a client gets: who is let in, or what is spoken. Serving without them would
// be another service.
var refusals = map[string]string{
	"ssl-cert":                          "the balancer does not end TLS: let the pods or an ingress controller do it",
	"ssl-ports":                         "the balancer does not end TLS: let the pods or an ingress controller do it",
	"ssl-negotiation-policy":            "the balancer does not end TLS: let the pods or an ingress controller do it",
	"alpn-policy":                       "the balancer does not end TLS: let the pods or an ingress controller do it",
	"security-groups":                   "the balancer is in the security groups of its cluster: use spec.loadBalancerSourceRanges",
	"extra-security-groups":             "the balancer is in the security groups of its cluster: use spec.loadBalancerSourceRanges",
	"security-group-prefix-lists":       "there are no prefix lists: use spec.loadBalancerSourceRanges",
	"eip-allocations":                   "the balancer chooses its addresses itself, and keeps them as long as the Service exists",
	"private-ipv4-addresses":            "the balancer chooses its addresses itself, and keeps them as long as the Service exists",
	"target-node-labels":                "instance targets are all nodes: use the target type ip, which has only the Service's pods",
	"enable-prefix-for-ipv6-source-nat": "a VPC has no IPv6",
}

// read reads what a Service asks for by annotations and fields.
func read(service *corev1.Service) request {
	r := request{idle: defaultIdleSeconds}
	var unknown []string
	for _, key := range sortedKeys(service.Annotations) {
		name, ours := strings.CutPrefix(key, prefix)
		if !ours {
			continue
		}
		value := strings.TrimSpace(service.Annotations[key])
		if why, ok := refusals[name]; ok {
			r.refuse("annotation %s: %s", key, why)
			continue
		}
		if known := r.annotation(key, name, value); !known {
			unknown = append(unknown, key)
		}
	}
	if len(unknown) > 0 {
		r.ignored = append(r.ignored, "no effect here: "+strings.Join(unknown, ", "))
	}
	r.fields(service)
	return r
}

func (r *request) refuse(format string, args ...any) {
	r.refused = append(r.refused, fmt.Sprintf(format, args...))
}

// annotation reads one annotation, and reports whether it is one with an effect.
func (r *request) annotation(key, name, value string) bool {
	switch name {
	case "internal": // of the load balancer in Kubernetes' own tree
		on, err := strconv.ParseBool(value)
		if err != nil {
			r.refuse(`annotation %s: invalid value %q: must be "true" or "false"`, key, value)
		}
		r.internal = r.internal || on
	case "scheme":
		if value != "internal" && value != "internet-facing" {
			r.refuse("annotation %s: invalid value %q: must be internal or internet-facing", key, value)
		}
		r.internal = r.internal || value == "internal"
	case "type":
		r.kind(key, value)
	case "nlb-target-type", "target-type":
		if value != targetIP && value != targetInstance {
			r.refuse("annotation %s: invalid value %q: must be ip or instance", key, value)
		}
		r.instance = value == targetInstance
	case "connection-idle-timeout":
		seconds, err := strconv.ParseInt(value, 10, 32)
		if err != nil || seconds < 1 || seconds > maxIdleSeconds {
			r.refuse("annotation %s: invalid value %q: must be seconds from 1 to %d", key, value, maxIdleSeconds)
			return true
		}
		r.idle = int32(seconds)
	case "proxy-protocol":
		if value != "*" {
			r.refuse("annotation %s: invalid value %q: must be *", key, value)
		}
		r.proxyProtocol = true
	case "backend-protocol":
		if value != "tcp" && value != "" {
			r.refuse("annotation %s: invalid value %q: must be tcp, as bytes are passed on as they are", key, value)
		}
	default:
		return false
	}
	return true
}

// kind reads aws-load-balancer-type.
func (r *request) kind(key, value string) {
	switch value {
	case "nlb", "nlb-ip", "external":
	default:
		r.refuse("annotation %s: invalid value %q: must be nlb, nlb-ip or external, as there are only network load balancers", key, value)
	}
}

// fields reads what the spec of a Service says.
func (r *request) fields(service *corev1.Service) {
	spec := service.Spec
	ranges, from := spec.LoadBalancerSourceRanges, "spec.loadBalancerSourceRanges"
	if len(ranges) == 0 {
		if value := service.Annotations[corev1.AnnotationLoadBalancerSourceRangesKey]; strings.TrimSpace(value) != "" {
			ranges, from = strings.Split(value, ","), "annotation "+corev1.AnnotationLoadBalancerSourceRangesKey
		}
	}
	for _, text := range ranges {
		cidr, err := netip.ParsePrefix(strings.TrimSpace(text))
		if err != nil || !cidr.Addr().Is4() {
			r.refuse("%s: invalid range %q: must be one of IPv4 addresses, such as 10.0.0.0/8", from, text)
			continue
		}
		r.ranges = append(r.ranges, cidr.Masked())
	}
	slices.SortFunc(r.ranges, netip.Prefix.Compare)
	r.ranges = slices.Compact(r.ranges)
	if spec.LoadBalancerIP != "" { // deprecated, and so people who use it must be told
		r.ignored = append(r.ignored, "no effect here: spec.loadBalancerIP, as the balancer chooses its addresses itself and keeps them")
	}
	if r.instance && spec.AllocateLoadBalancerNodePorts != nil && !*spec.AllocateLoadBalancerNodePorts && slices.ContainsFunc(spec.Ports, func(p corev1.ServicePort) bool { return p.NodePort == 0 }) {
		r.refuse("the target type instance needs node ports, and spec.allocateLoadBalancerNodePorts is false: use the target type ip, which is the default, or set it to true")
	}
	if len(spec.Ports) > loadbalancer.MaxListeners {
		r.refuse("spec.ports: %d ports are more than a balancer has listeners, which is %d", len(spec.Ports), loadbalancer.MaxListeners)
	}
	for _, port := range spec.Ports {
		if port.Protocol != corev1.ProtocolTCP && port.Protocol != corev1.ProtocolUDP {
			r.refuse("spec.ports: port %d: invalid protocol %s: must be TCP or UDP", port.Port, port.Protocol)
		}
	}
	if r.proxyProtocol && slices.ContainsFunc(spec.Ports, func(p corev1.ServicePort) bool { return p.Protocol == corev1.ProtocolUDP }) {
		r.ignored = append(r.ignored, "the PROXY protocol is for TCP: pods get no header on UDP ports")
	}
}
