// SPDX-License-Identifier: Apache-2.0

package balancerplan

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"muster.dev/muster/internal/network/loadbalancer"
)

// Verdict says what becomes of a Service.
type Verdict string

// The verdicts.
const (
	// Serve means that the Service has a balancer as the spec says.
	Serve Verdict = "Serve"
	// Refuse means that it is a balancer's Service that cannot be served as it asks. It keeps its addresses, and
	// nothing listens there.
	Refuse Verdict = "Refuse"
	// Release means that it has no balancer, or no more.
	Release Verdict = "Release"
)

// Notice is the content of an Event about a Service.
type Notice struct {
	// Type is [corev1.EventTypeNormal] or [corev1.EventTypeWarning].
	Type, Reason, Message string
}

// The reasons of notices.
const (
	ReasonRefused       = "LoadBalancerRefused"
	ReasonIgnored       = "LoadBalancerSettingIgnored"
	ReasonHostExcluded  = "HostNotInSourceRanges"
	ReasonNoReadyTarget = "NoReadyTargets"
)

// Decision says what becomes of a Service, and what people must be told.
type Decision struct {
	Verdict Verdict
	Spec    loadbalancer.Spec
	Notices []Notice
}

// classes are the values that Classes returns. They are AWS's, so that manifests for AWS need no change.
var classes = []string{"service.k8s.aws/nlb", "eks.amazonaws.com/nlb"}

// Classes are the values of spec.loadBalancerClass that are served, beside none.
func Classes() []string { return slices.Clone(classes) }

// Ours reports whether a Service is to be served: it is of type LoadBalancer, and of no class or one of AWS's for
// network load balancers.
func Ours(service *corev1.Service) bool {
	class := service.Spec.LoadBalancerClass
	return service.Spec.Type == corev1.ServiceTypeLoadBalancer && (class == nil || slices.Contains(classes, *class))
}

// Decide says what becomes of a Service. The slices are all of that Service; the nodes are all of the cluster.
func Decide(service *corev1.Service, endpoints []discoveryv1.EndpointSlice, nodes []corev1.Node) Decision {
	if !Ours(service) || !service.DeletionTimestamp.IsZero() {
		return Decision{Verdict: Release}
	}
	asked := read(service)
	decision := Decision{Verdict: Serve}
	if len(asked.ignored) > 0 {
		decision.Notices = append(decision.Notices, Notice{corev1.EventTypeWarning, ReasonIgnored, sentence(asked.ignored)})
	}
	if len(asked.refused) > 0 {
		decision.Verdict = Refuse
		decision.Notices = append(decision.Notices, Notice{corev1.EventTypeWarning, ReasonRefused, sentence(asked.refused)})
		return decision
	}
	decision.Spec = loadbalancer.Spec{
		Internal: asked.internal, SourceRanges: asked.ranges, IdleSeconds: asked.idle, ProxyProtocol: asked.proxyProtocol, AffinitySeconds: affinity(service),
	}
	for _, port := range service.Spec.Ports {
		decision.Spec.Listeners = append(decision.Spec.Listeners, listener(service, port, asked.instance, endpoints, nodes))
	}
	slices.SortFunc(decision.Spec.Listeners, func(a, b loadbalancer.Listener) int {
		if a.Port != b.Port {
			return int(a.Port) - int(b.Port)
		}
		return strings.Compare(string(a.Protocol), string(b.Protocol))
	})
	if !asked.internal && !decision.Spec.Allows(netip.AddrFrom4([4]byte{127, 0, 0, 1})) {
		decision.Notices = append(decision.Notices, Notice{
			corev1.EventTypeWarning, ReasonHostExcluded,
			"the source ranges do not contain 127.0.0.1, from which programs of this host connect: they are refused; add 127.0.0.0/8 to let them in",
		})
	}
	if empty := withoutTargets(decision.Spec.Listeners); len(empty) > 0 {
		decision.Notices = append(decision.Notices, Notice{
			corev1.EventTypeWarning, ReasonNoReadyTarget,
			fmt.Sprintf("no pod is ready behind %s: connections are refused until one is", strings.Join(empty, ", ")),
		})
	}
	return decision
}

// maxMessage is less than what the API server takes as an Event's note.
const maxMessage = 1000

func sentence(parts []string) string {
	text := strings.Join(parts, "; ")
	if len(text) > maxMessage {
		return strings.ToValidUTF8(text[:maxMessage], "") + "…" // without a half of a character
	}
	return text
}

// affinity is how long a client address stays with one target.
func affinity(service *corev1.Service) int32 {
	if service.Spec.SessionAffinity != corev1.ServiceAffinityClientIP {
		return 0
	}
	config := service.Spec.SessionAffinityConfig
	if config == nil || config.ClientIP == nil || config.ClientIP.TimeoutSeconds == nil {
		return defaultAffinitySeconds
	}
	return *config.ClientIP.TimeoutSeconds
}

// withoutTargets names the listeners without a target that is not draining.
func withoutTargets(listeners []loadbalancer.Listener) []string {
	var names []string
	for _, l := range listeners {
		if !slices.ContainsFunc(l.Targets, func(t loadbalancer.Target) bool { return !t.Draining }) {
			names = append(names, "port "+l.String())
		}
	}
	return names
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
