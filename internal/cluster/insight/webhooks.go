// SPDX-License-Identifier: Apache-2.0

package insight

import (
	"fmt"
	"slices"
	"strings"
)

// startup are resources that an API server writes when it starts, as group/resource; while it cannot, it is not Ready.
var startup = []string{
	"/namespaces", "/services", "apiregistration.k8s.io/apiservices", "coordination.k8s.io/leases", "flowcontrol.apiserver.k8s.io/flowschemas",
	"flowcontrol.apiserver.k8s.io/prioritylevelconfigurations", "rbac.authorization.k8s.io/clusterroles", "rbac.authorization.k8s.io/clusterrolebindings",
	"rbac.authorization.k8s.io/roles", "rbac.authorization.k8s.io/rolebindings", "scheduling.k8s.io/priorityclasses",
}

// webhooks looks for webhooks that fail closed and that nobody answers: ERROR if an API server writes what they are asked
// about when it starts. Whether labels and conditions choose what it writes is not known: that is a WARNING.
func webhooks(f Facts, minor string, category Category) Insight {
	i := Insight{
		Name: "Webhooks that nobody answers", Category: category, Minor: minor,
		Description:    "Looks for webhooks with failurePolicy Fail whose Service has no endpoint that is ready",
		Recommendation: "Have the Service's pods run, or delete the webhook's configuration",
	}
	if f.Webhooks.Unknown != "" {
		return i.unknown(f.Webhooks.Unknown)
	}
	var resources []Resource
	for _, w := range f.Webhooks.Is {
		if w.Ready {
			continue
		}
		found := Finding{Warning, fmt.Sprintf("Webhook %s fails closed, and Service %s has no endpoint that is ready", w.Name, w.Service)}
		if at := slices.IndexFunc(startup, w.about); at >= 0 && !w.Some {
			found = Finding{Error, found.Reason + ": it is asked about " + strings.TrimPrefix(startup[at], "/") + ", which an API server writes when it starts"}
		}
		resources = append(resources, Resource{found, w.URI})
	}
	return i.of(resources, "Each webhook that fails closed has an endpoint that is ready", fmt.Sprintf("%d webhooks fail closed, and nobody answers", len(resources)))
}

// about reports whether a webhook is asked about a resource.
func (w Webhook) about(resource string) bool {
	group, name, _ := strings.Cut(resource, "/")
	return slices.ContainsFunc(w.Resources, func(asked string) bool {
		askedGroup, askedName, _ := strings.Cut(asked, "/")
		return (askedGroup == "*" || askedGroup == group) && (askedName == "*" || askedName == "*/*" || askedName == name)
	})
}
