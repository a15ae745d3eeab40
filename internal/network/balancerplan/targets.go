// SPDX-License-Identifier: Apache-2.0

package balancerplan

import (
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/network/loadbalancer"
)

const (
	// taintToBeDeleted is on a node that the Cluster Autoscaler drains before it removes it.
	taintToBeDeleted = "ToBeDeletedByClusterAutoscaler"
	localHealthPath  = "/healthz"
)

// listener is the listener of one port of a Service.
func listener(service *corev1.Service, port corev1.ServicePort, instance bool, endpoints []discoveryv1.EndpointSlice, nodes []corev1.Node) loadbalancer.Listener {
	l := loadbalancer.Listener{Protocol: loadbalancer.Protocol(port.Protocol), Port: portNumber(port.Port)}
	if port.Protocol == corev1.ProtocolTCP {
		l.Check.Protocol = loadbalancer.CheckTCP
	}
	if !instance {
		l.Targets = podTargets(port, endpoints)
		return l
	}
	if service.Spec.ExternalTrafficPolicy == corev1.ServiceExternalTrafficPolicyLocal && service.Spec.HealthCheckNodePort != 0 {
		// kube-proxy answers whether the node has a pod of the Service; the others drop what they get.
		l.Check = loadbalancer.Check{Protocol: loadbalancer.CheckHTTP, Port: portNumber(service.Spec.HealthCheckNodePort), Path: localHealthPath}
	}
	l.Targets = nodeTargets(port, nodes)
	return l
}

// portNumber is a port as the API server has checked it; 0 for what is not one.
func portNumber(port int32) uint16 {
	if port < 1 || port > 65535 {
		return 0
	}
	return uint16(port)
}

// podTargets are the pods behind a port. An endpoint's conditions mean what the API's documentation says: an unknown
// "ready" is taken for true, and an unknown "serving" for "ready".
func podTargets(port corev1.ServicePort, endpoints []discoveryv1.EndpointSlice) []loadbalancer.Target {
	found := map[netip.AddrPort]bool{} // → draining
	for _, slice := range endpoints {
		if slice.AddressType != discoveryv1.AddressTypeIPv4 {
			continue
		}
		number := slicePort(port, slice.Ports)
		if number == 0 {
			continue
		}
		for _, endpoint := range slice.Endpoints {
			ready := endpoint.Conditions.Ready == nil || *endpoint.Conditions.Ready
			serving := ready
			if endpoint.Conditions.Serving != nil {
				serving = *endpoint.Conditions.Serving
			}
			terminating := endpoint.Conditions.Terminating != nil && *endpoint.Conditions.Terminating
			if !ready && (!serving || !terminating) || len(endpoint.Addresses) == 0 {
				continue
			}
			address, err := netip.ParseAddr(endpoint.Addresses[0]) // the others mean the same endpoint, and are not used by anybody
			if err != nil || !address.Is4() {
				continue
			}
			at := netip.AddrPortFrom(address, number)
			if draining, twice := found[at]; !twice || draining {
				found[at] = terminating
			}
		}
	}
	return sorted(found)
}

// slicePort is the number of a Service's port in a slice, 0 if the slice does not have it.
func slicePort(port corev1.ServicePort, ports []discoveryv1.EndpointPort) uint16 {
	for _, p := range ports {
		name, protocol := "", corev1.ProtocolTCP
		if p.Name != nil {
			name = *p.Name
		}
		if p.Protocol != nil {
			protocol = *p.Protocol
		}
		if name == port.Name && protocol == port.Protocol && p.Port != nil {
			return portNumber(*p.Port)
		}
	}
	return 0
}

// nodeTargets are the nodes, at the port that kube-proxy opens on each. Whether a node is Ready does not matter: a
// kubelet that does not answer says nothing about the pods (KEP-3458). Checks find out. A node of a zone that a zonal
// shift moves the cluster away from gets no new connections.
func nodeTargets(port corev1.ServicePort, nodes []corev1.Node) []loadbalancer.Target {
	found := map[netip.AddrPort]bool{}
	number := portNumber(port.NodePort)
	if number == 0 {
		return nil
	}
	for _, node := range nodes {
		_, excluded := node.Labels[corev1.LabelNodeExcludeBalancers]
		if _, shifted := node.Annotations[v1alpha1.AnnotationZonalShift]; shifted || excluded {
			continue
		}
		leaving := !node.DeletionTimestamp.IsZero() ||
			slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.Key == taintToBeDeleted })
		for _, a := range node.Status.Addresses {
			address, err := netip.ParseAddr(a.Address)
			if a.Type != corev1.NodeInternalIP || err != nil || !address.Is4() {
				continue
			}
			at := netip.AddrPortFrom(address, number)
			if draining, twice := found[at]; !twice || draining {
				found[at] = leaving
			}
			break
		}
	}
	return sorted(found)
}

func sorted(found map[netip.AddrPort]bool) []loadbalancer.Target {
	targets := make([]loadbalancer.Target, 0, len(found))
	for at, draining := range found {
		targets = append(targets, loadbalancer.Target{Address: at, Draining: draining})
	}
	slices.SortFunc(targets, func(a, b loadbalancer.Target) int { return a.Address.Compare(b.Address) })
	return targets
}
