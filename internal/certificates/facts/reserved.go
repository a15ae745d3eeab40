// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"context"
	"fmt"
	"net/netip"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// ServiceAddresses reads which addresses are Services', and the API server's own above all. Addresses by which API
// servers are reached from outside are not among them: where they run on nodes, those are the nodes' addresses, too.
func ServiceAddresses(ctx context.Context, client kubernetes.Interface) ([]netip.Prefix, error) {
	var all []netip.Prefix
	service, err := client.CoreV1().Services(metav1.NamespaceDefault).Get(ctx, "kubernetes", metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("reading the Service default/kubernetes: %w", err)
	}
	texts := service.Spec.ClusterIPs
	if len(texts) == 0 {
		texts = []string{service.Spec.ClusterIP}
	}
	for _, text := range texts {
		a, err := netip.ParseAddr(text)
		if err != nil {
			return nil, fmt.Errorf("the Service default/kubernetes has the address %q: %w", text, err)
		}
		all = append(all, netip.PrefixFrom(a.Unmap(), a.Unmap().BitLen()))
	}
	ranges, err := client.NetworkingV1().ServiceCIDRs().List(ctx, metav1.ListOptions{})
	if apierrors.IsNotFound(err) { // before Kubernetes v1.33 they are nowhere to be read
		return all, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading ServiceCIDRs: %w", err)
	}
	for _, r := range ranges.Items {
		for _, text := range r.Spec.CIDRs {
			p, err := netip.ParsePrefix(text)
			if err != nil {
				return nil, fmt.Errorf("the ServiceCIDR %s has the range %q: %w", r.Name, text, err)
			}
			all = append(all, p.Masked())
		}
	}
	return all, nil
}
