// SPDX-License-Identifier: Apache-2.0

package exposure

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
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

// decide returns the notice that is due for a Service, or nil, and when to look again, or 0.
func decide(service *corev1.Service, now time.Time) (*notice, time.Duration) {
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
		if wait := service.CreationTimestamp.Add(patience).Sub(now); wait > 0 {
			return nil, min(wait, patience) // also if the clock was set back
		}
		message := "it has no address from a load balancer, as the cluster has none of its own, and stays pending"
		if ports != "" {
			message += "; inside the VPC it answers at every node's address, on " + ports
		}
		return &notice{corev1.EventTypeWarning, reasonNoLoadBalancer, message + "; " + forward}, repeat
	case corev1.ServiceTypeNodePort:
		if ports == "" {
			return nil, 0
		}
		message := fmt.Sprintf("it answers at every node's address, on %s, which only pods and machines of the VPC reach; %s", ports, forward)
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
