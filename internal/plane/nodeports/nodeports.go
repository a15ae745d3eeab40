// SPDX-License-Identifier: Apache-2.0

// Package nodeports says which Services keep a cluster from a range of node ports. An API server leaves the node ports
// of Services that are outside of its range as they are, but it gives the port to nobody, takes no other change of the
// Service for one, and complains every three minutes: so a range that leaves Services outside is refused before.
//
// kube-proxy has no range of its own: it serves the ports that Services have.
package nodeports

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
)

// named is how many Services a refusal names.
const named = 10

// RangeOf is the range of a cluster.
func RangeOf(c v1alpha1.ClusterSpec) v1alpha1.NodePortRange {
	if wanted := c.APIServer.ServiceNodePortRange; wanted != nil {
		return *wanted
	}
	return v1alpha1.NodePortRange{MinPort: v1alpha1.DefaultMinNodePort, MaxPort: v1alpha1.DefaultMaxNodePort}
}

// Refusal says which Services of a cluster have node ports outside of a range; "" if none has.
func Refusal(ctx context.Context, cluster client.Reader, wanted v1alpha1.NodePortRange) (string, error) {
	var all corev1.ServiceList
	if err := cluster.List(ctx, &all); err != nil {
		return "", fmt.Errorf("listing the Services of the cluster for their node ports: %w", err)
	}
	outside := outside(all.Items, wanted)
	if len(outside) == 0 {
		return "", nil
	}
	if more := len(outside) - named; more > 0 {
		outside = append(outside[:named:named], fmt.Sprintf("and %d more", more))
	}
	return fmt.Sprintf("Services have node ports outside of %d-%d: %s. Give them others, or choose a range that has these",
		wanted.MinPort, wanted.MaxPort, strings.Join(outside, ", ")), nil
}

// outside are the Services with node ports outside of a range, each with these, as "default/web (30080, 30443)".
func outside(services []corev1.Service, wanted v1alpha1.NodePortRange) (all []string) {
	for i := range services {
		var ports []string
		for _, port := range portsOf(&services[i]) {
			if port < wanted.MinPort || port > wanted.MaxPort {
				ports = append(ports, fmt.Sprint(port))
			}
		}
		if len(ports) > 0 {
			all = append(all, fmt.Sprintf("%s/%s (%s)", services[i].Namespace, services[i].Name, strings.Join(ports, ", ")))
		}
	}
	slices.Sort(all)
	return all
}

// portsOf are the ports of nodes that a Service holds; that of its health checks is one of them.
func portsOf(service *corev1.Service) []int32 {
	var ports []int32
	for _, port := range service.Spec.Ports {
		ports = append(ports, port.NodePort)
	}
	ports = append(ports, service.Spec.HealthCheckNodePort)
	slices.Sort(ports)
	return slices.DeleteFunc(slices.Compact(ports), func(port int32) bool { return port == 0 })
}
