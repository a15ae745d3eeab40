// SPDX-License-Identifier: Apache-2.0

package ami

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Parameter is a public parameter of Systems Manager, by which images are found.
type Parameter struct {
	Name, Value string
	Modified    time.Time
}

// Root is what the names of all parameters begin with.
const Root = "/aws/service/eks/optimized-ami/"

// Parameters are those that EKS publishes about its images, sorted by name: of each image by its name, and of the
// recommended one of each minor.
func Parameters() []Parameter {
	var all []Parameter
	for _, i := range All() {
		path := Root + i.Kubernetes + "/amazon-linux-2023/" + Architecture + "/standard/"
		kinds := []string{i.Name}
		if newest, _ := Recommended(i.Kubernetes); newest == i {
			kinds = append(kinds, "recommended")
		}
		for _, kind := range kinds {
			whole, err := json.Marshal(map[string]string{"schema_version": "2", "image_id": i.ID, "image_name": i.Name, "release_version": i.ReleaseVersion})
			if err != nil {
				panic(fmt.Sprintf("image: strings cannot be written: %v", err))
			}
			for name, value := range map[string]string{"": string(whole), "/image_id": i.ID, "/image_name": i.Name, "/release_version": i.ReleaseVersion} {
				all = append(all, Parameter{Name: path + kind + name, Value: value, Modified: i.Created})
			}
		}
	}
	slices.SortFunc(all, func(a, b Parameter) int { return strings.Compare(a.Name, b.Name) })
	return all
}
