// SPDX-License-Identifier: Apache-2.0

package insight

import "fmt"

// storedVersions looks for CustomResourceDefinitions with objects in versions that are not served: WARNING while the version
// is still defined, ERROR if it is not, as such objects cannot be read.
func storedVersions(f Facts) Insight {
	i := Insight{
		Name: "Stored versions of custom resources", Category: UpgradeReadiness, Minor: f.Next,
		Description:    "Compares status.storedVersions of CustomResourceDefinitions with the versions that they serve",
		Recommendation: "Write all objects of the kind again, then take the version out of status.storedVersions",
	}
	if f.Kinds.Unknown != "" {
		return i.unknown(f.Kinds.Unknown)
	}
	var resources []Resource
	for _, kind := range f.Kinds.Is {
		for _, version := range kind.Stored {
			switch served, defined := kind.Served[version]; {
			case !defined:
				resources = append(resources, Resource{Finding{Error, fmt.Sprintf("Objects may be stored in version %s, which is not defined", version)}, kind.URI})
			case !served:
				resources = append(resources, Resource{Finding{Warning, fmt.Sprintf("Objects may be stored in version %s, which is not served", version)}, kind.URI})
			}
		}
	}
	return i.of(resources, "All versions that objects are stored in are served", fmt.Sprintf("%d versions that objects are stored in are not served", len(resources)))
}
