// SPDX-License-Identifier: Apache-2.0

package nodecerts

import (
	"context"
	"errors"
	"fmt"
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// ErrNotAssigned is an address that the cluster gives a node no certificate for.
var ErrNotAssigned = errors.New("the cluster issues no certificate for that address to this node")

// Assigned asks the cluster whether a node may have an address in place of another, in the way in which its kubelet
// will: by a request for a serving certificate. Whether the address is the machine's is known by the approver of that
// request, and by nobody on the machine. The certificate is thrown away: the kubelet asks for its own.
func Assigned(ctx context.Context, c RotateConfig, old, address netip.Addr) error {
	config, name, err := Connection(ctx, c.Kubeconfig, c.Dir, c.Now())
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("making a client to have an address confirmed: %w", err)
	}
	node, err := client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("asking %s for node %s: %w", config.Host, name, err)
	}
	node = node.DeepCopy()
	node.Status.Addresses = readdressed(node.Status.Addresses, old, address)
	waiting, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	if _, err := c.obtain(waiting, client, config, Serving, node); err != nil {
		return fmt.Errorf("%w: %w", ErrNotAssigned, err)
	}
	return nil
}

// readdressed are a node's addresses when one has taken another's place.
func readdressed(addresses []corev1.NodeAddress, old, address netip.Addr) []corev1.NodeAddress {
	all := []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: address.String()}}
	for _, a := range addresses {
		if a.Address != old.String() && a.Address != address.String() {
			all = append(all, a)
		}
	}
	return all
}
