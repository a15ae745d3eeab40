// SPDX-License-Identifier: Apache-2.0

package insight

import "fmt"

// newResources looks for objects of resources that the minor before does not serve: they would stay in etcd, where nobody
// sees them, and come back with the next upgrade.
func newResources(f Facts) Insight {
	i := Insight{
		Name: "Objects that the minor before does not serve", Category: RollbackReadiness, Minor: f.Back,
		Description:    "Looks for objects of resources that Kubernetes v" + f.Back + " does not serve",
		Recommendation: "Delete the objects before the cluster is taken back",
	}
	if f.Stored.Unknown != "" {
		return i.unknown(f.Stored.Unknown)
	}
	var resources []Resource
	for _, s := range f.Stored.Is {
		if s.Objects > 0 {
			resources = append(resources, Resource{Finding{Error, fmt.Sprintf("There are objects, at least %d, and Kubernetes v%s does not serve them", s.Objects, f.Back)}, s.URI})
		}
	}
	return i.of(resources, "There are no such objects", fmt.Sprintf("%d resources have objects that Kubernetes v%s does not serve", len(resources), f.Back))
}
