// SPDX-License-Identifier: Apache-2.0

package exposure

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"muster.dev/muster/internal/network/balancerplan"
)

const (
	reasonNoLoadBalancer = "NoLoadBalancer"
	reasonOnlyInVPC      = "OnlyInVPC"

	// patience is how long a load balancer that somebody has installed may take to give an address.
	patience = 10 * time.Second
	// repeat is how long after a notice it is written again; the API server keeps Events for an hour (--event-ttl).
	repeat = 61 * time.Minute
)

// notice is the content of an Event about a Service.
type notice struct{ kind, reason, message string }

func class(service *corev1.Service) string {
	if service.Spec.LoadBalancerClass == nil {
		return ""
	}
	return *service.Spec.LoadBalancerClass
}

// decide returns the notice that is due for a Service, or nil, and when to look again, or 0. The reason why there are
// no load balancers at all, if that is so, is none.
func decide(service *corev1.Service, none string, now time.Time) (*notice, time.Duration) {
	if !service.DeletionTimestamp.IsZero() {
		return nil, 0
	}
	forward := fmt.Sprintf("from the host use `kubectl -n %s port-forward service/%s LOCAL:PORT`", service.Namespace, service.Name)
	ports := nodePorts(service)
	switch service.Spec.Type {
	case corev1.ServiceTypeLoadBalancer:
		if len(service.Status.LoadBalancer.Ingress) > 0 {
			return nil, 0
		}
		why := none
		if why == "" && !balancerplan.Ours(service) {
			why = fmt.Sprintf("its class %s is not one of Muster's, which are none, %s, and nothing else has taken it", class(service), strings.Join(balancerplan.Classes(), " and "))
		}
		if why == "" { // its controller says what becomes of it
			return nil, 0
		}
		if wait := service.CreationTimestamp.Add(patience).Sub(now); wait > 0 {
			return nil, min(wait, patience) // also if the clock was set back
		}
		message := "it has no address from a load balancer: " + why
		if ports != "" && none == "" {
			message += "; inside the VPC it answers at every node's address, on " + ports
		}
		if none != "" {
			return &notice{corev1.EventTypeWarning, reasonNoLoadBalancer, message}, repeat
		}
		return &notice{corev1.EventTypeWarning, reasonNoLoadBalancer, message + "; " + forward}, repeat
	case corev1.ServiceTypeNodePort:
		if ports == "" {
			return nil, 0
		}
		message := fmt.Sprintf("it answers at every node's address, on %s, which only pods and machines of the VPC reach; a Service of type LoadBalancer is reached from the host, too; %s", ports, forward)
		return &notice{corev1.EventTypeNormal, reasonOnlyInVPC, message}, repeat
	case corev1.ServiceTypeClusterIP, corev1.ServiceTypeExternalName:
	}
	return nil, 0
}

// maxPorts is how many ports a notice names.
const maxPorts = 8

// nodePorts are the ports of nodes that lead to a Service, such as "port 30080/TCP" or "ports 30080/TCP, 30053/UDP".
func nodePorts(service *corev1.Service) string {
	var all []string
	for _, port := range service.Spec.Ports {
		if port.NodePort != 0 {
			all = append(all, fmt.Sprintf("%d/%s", port.NodePort, port.Protocol))
		}
	}
	switch {
	case len(all) == 0:
		return ""
	case len(all) == 1:
		return "port " + all[0]
	case len(all) > maxPorts:
		all = append(all[:maxPorts], fmt.Sprintf("and %d more", len(all)-maxPorts))
	}
	return "ports " + strings.Join(all, ", ")
}
