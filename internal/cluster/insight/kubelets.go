// SPDX-License-Identifier: Apache-2.0

package insight

import (
	"fmt"

	"muster.dev/muster/internal/platform/release"
)

// kubelets compares the versions of kubelets with that of the API server, and with the one that it is to have.
func kubelets(f Facts, category Category) Insight {
	i := Insight{
		Name: "Kubelet version skew", Category: category, Minor: f.Minor,
		Description:    "Compares the versions of kubelets with that of the API server, and with the one that comes next",
		Recommendation: "Replace the machines of node groups with old kubelets before the cluster is upgraded: aws eks update-nodegroup-version",
	}
	if category == RollbackReadiness {
		i.Description = "Compares the versions of kubelets with the version that the cluster can be taken back to"
		i.Recommendation = "Take the node groups back before the cluster: aws eks update-nodegroup-version --kubernetes-version " + f.Back
	}
	return i.skew(f, "kubelet", func(n Node) string { return n.Kubelet })
}

// skew fills in what is found about the versions of a program of nodes.
func (i Insight) skew(f Facts, program string, version func(Node) string) Insight {
	server, ok := minorNumber(f.Server)
	switch {
	case f.Nodes.Unknown != "":
		return i.unknown(f.Nodes.Unknown)
	case !ok:
		return i.unknown("The version of the API server is not known yet")
	}
	back, _ := minorNumber(f.Back)
	var resources []Resource
	for _, node := range f.Nodes.Is {
		found := skewOf(server, program, version(node))
		switch {
		case i.Category == RollbackReadiness && node.GoesBack:
			continue
		case i.Category == RollbackReadiness:
			found = newerThan(back, program, version(node))
		}
		if found.Status != Passing {
			resources = append(resources, Resource{found, "/api/v1/nodes/" + node.Name})
		}
	}
	plural := map[string]string{"kubelet": "kubelets", "kube-proxy": "kube-proxies"}[program]
	return i.of(resources, fmt.Sprintf("No %s is too old or too new", program), fmt.Sprintf("%d of %d %s are too old, too new or of an unknown version", len(resources), len(f.Nodes.Is), plural))
}

// skewOf judges a program by the minor version of its API server: ERROR if it does not fit now or not after the next
// upgrade.
func skewOf(server int, program, version string) Finding {
	is, ok := minorNumber(version)
	switch behind := server - is; {
	case !ok:
		return Finding{Unknown, fmt.Sprintf("The %s's version %.40q cannot be read", program, version)}
	case behind < 0:
		return Finding{Error, fmt.Sprintf("The %s %s is newer than the API server", program, version)}
	case behind >= release.MaxSkew:
		return Finding{Error, fmt.Sprintf("The %s %s would be too old after the next upgrade of the cluster", program, version)}
	case behind == release.MaxSkew-1:
		return Finding{Warning, fmt.Sprintf("The %s %s would be as old as is supported after the next upgrade of the cluster", program, version)}
	}
	return Finding{Status: Passing}
}

// newerThan judges a program by the minor version that its API server can be taken back to.
func newerThan(back int, program, version string) Finding {
	is, ok := minorNumber(version)
	switch {
	case !ok:
		return Finding{Unknown, fmt.Sprintf("The %s's version %.40q cannot be read", program, version)}
	case is > back:
		return Finding{Error, fmt.Sprintf("The %s %s would be newer than the API server of 1.%d", program, version, back)}
	}
	return Finding{Status: Passing}
}
