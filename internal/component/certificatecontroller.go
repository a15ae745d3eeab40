// SPDX-License-Identifier: Apache-2.0

package component

import (
	"fmt"
	"net"
	"net/netip"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// defaultCertificateDuration is how long a kubelet's certificate is good for: short, so that a lost key is soon worthless.
const defaultCertificateDuration = 7 * 24 * time.Hour

// certificateController approves and signs what kubelets ask for. It is the only process with a key of the cluster's
// authority, beside the service itself.
func certificateController(c Config) (Spec, error) {
	clusterPath, inventoryPath := c.file(CertificateController, "kubeconfig"), c.file(CertificateController, "inventory-kubeconfig")
	cluster, err := kubeconfig(clusterPath, c.ServerURL(), c.Authority("cluster"), c.Credential("certificate-controller"))
	if err != nil {
		return Spec{}, err
	}
	inventory, err := kubeconfig(inventoryPath, c.ManagementURL(), c.Authority("management"), c.Credential("certificate-controller-inventory"))
	if err != nil {
		return Spec{}, err
	}
	names, addresses, err := c.ServerNames()
	if err != nil {
		return Spec{}, err
	}
	network := c.Cluster.Spec.Network
	reserved := []string{network.ServiceCIDR, network.PodCIDR}
	for _, own := range addresses {
		reserved = append(reserved, netip.PrefixFrom(own, own.BitLen()).String())
	}
	router, err := c.Router()
	if err != nil {
		return Spec{}, err
	}
	reserved = append(reserved, netip.PrefixFrom(router, router.BitLen()).String())
	address := net.JoinHostPort(Loopback, fmt.Sprint(c.Ports.CertificateController))
	return Spec{
		Name: CertificateController,
		Path: c.program("muster"),
		Args: append([]string{"certificate-controller"}, flags(map[string]string{
			"cluster-domain":       network.ClusterDomain,
			"cluster-name":         c.Cluster.Name,
			"reserved-cidr":        strings.Join(reserved, ","),
			"reserved-name":        strings.Join(names, ","),
			"client-duration":      durationOr(c.Cluster.Spec.Certificates.ClientDuration).String(),
			"inventory-kubeconfig": inventoryPath,
			"kubeconfig":           clusterPath,
			"metrics-bind-address": address,
			"serving-duration":     durationOr(c.Cluster.Spec.Certificates.ServingDuration).String(),
			"signing-cert":         c.Authority("cluster"),
			"signing-key":          c.AuthorityKey("cluster"),
		})...),
		Files: []File{cluster, inventory},
		Probe: &Probe{URL: "http://" + address + "/readyz"},
		After: []string{APIServer, Management},
	}, nil
}

func durationOr(d *metav1.Duration) time.Duration {
	if d == nil {
		return defaultCertificateDuration
	}
	return d.Duration
}
