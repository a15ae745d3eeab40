// SPDX-License-Identifier: Apache-2.0

package component

import (
	"fmt"
	"maps"
)

// controllerManager runs as on EKS: it neither approves nor signs CSRs, which is the certificate controller's work, but
// it signs cluster-info for tokens that ask for it and removes tokens that have expired.
func controllerManager(c Config) (Spec, error) {
	credential := c.Credential("kube-controller-manager")
	path := c.file(ControllerManager, "kubeconfig")
	config, err := kubeconfig(path, c.Places.Published.URL(), c.Authority("cluster"), credential)
	if err != nil {
		return Spec{}, err
	}
	args := map[string]string{
		"authentication-kubeconfig":        path,
		"authorization-kubeconfig":         path,
		"bind-address":                     c.Places.ControllerManager.Listen.Addr().String(),
		"controllers":                      "*,-csrsigning,-csrapproving,bootstrapsigner,tokencleaner",
		"kube-api-burst":                   "200",
		"kube-api-qps":                     "100", // the default of 20 makes 500 nodes wait for their pod CIDRs
		"kubeconfig":                       path,
		"leader-elect":                     "false", // no other one runs; after a crash it need not wait for its own lease to end
		"profiling":                        "false",
		"requestheader-client-ca-file":     c.Authority("front-proxy"),
		"client-ca-file":                   c.Authority("cluster"),
		"root-ca-file":                     c.Authority("cluster"),
		"secure-port":                      fmt.Sprint(c.Places.ControllerManager.Listen.Port()),
		"service-account-private-key-file": c.SigningKey(),
		"service-cluster-ip-range":         c.Cluster.Spec.Network.ServiceCIDR,
		"tls-cert-file":                    credential,
		"tls-min-version":                  "VersionTLS12",
		"tls-private-key-file":             credential,
		"use-service-account-credentials":  "true",
	}
	maps.Copy(args, podRanges(c))
	maps.Copy(args, controllerManagerSettings(c.Cluster.Spec.ControllerManager))
	return Spec{
		Name:        ControllerManager,
		Path:        c.kubernetes("kube-controller-manager"),
		Args:        c.kubernetesFlags("kube-controller-manager", args),
		NextArgs:    printFlags(c.Cluster.Spec.ControllerManager.LogLevel),
		Files:       []File{config},
		Address:     c.Places.ControllerManager.Listen.String(),
		Credentials: sorted(credential, c.SigningKey()),
		View: &View{
			Reads: []string{credential}, Shared: []string{c.SigningKey()}, Public: sorted(c.Authority("cluster"), c.Authority("front-proxy")),
		},
		Probe: &Probe{URL: c.Places.ControllerManager.URL() + "/healthz", CAFile: c.Authority("cluster")},
		After: []string{Front, APIServer},
	}, nil
}

// podRanges say who gives Nodes their ranges of pods' addresses: the controller manager, or the service where machines
// have ranges of their subnets.
func podRanges(c Config) map[string]string {
	if c.Network.PodsInSubnets {
		return map[string]string{"allocate-node-cidrs": "false"}
	}
	return map[string]string{"allocate-node-cidrs": "true", "cluster-cidr": c.Network.PodCIDR.String(), "node-cidr-mask-size": "24"}
}
