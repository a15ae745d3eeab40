// SPDX-License-Identifier: Apache-2.0

package insight

// kubeProxies compares the versions of kube-proxies as kubelets compares those of kubelets: they may be as old.
func kubeProxies(f Facts, category Category) Insight {
	i := Insight{
		Name: "kube-proxy version skew", Category: category, Minor: f.Minor,
		Description:    "Compares the versions of kube-proxies with that of the API server, and with the one that comes next",
		Recommendation: "kube-proxy is a program of the machine: replace the machines of node groups, by aws eks update-nodegroup-version",
	}
	return i.skew(f, "kube-proxy", func(n Node) string { return n.KubeProxy })
}
