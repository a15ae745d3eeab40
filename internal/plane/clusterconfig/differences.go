// SPDX-License-Identifier: Apache-2.0

package clusterconfig

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"

	"muster.dev/muster/api/v1alpha1"
)

// Differences lists the fields in which a cluster differs from the requested one, by their paths in spec; "" if there
// are none. Fields that the request leaves out are not compared: the service may have chosen them.
func Differences(is, asked *v1alpha1.ClusterSpec) (string, error) {
	there, err := runtime.DefaultUnstructuredConverter.ToUnstructured(is)
	if err != nil {
		return "", fmt.Errorf("comparing clusters: %w", err)
	}
	wanted, err := runtime.DefaultUnstructuredConverter.ToUnstructured(asked)
	if err != nil {
		return "", fmt.Errorf("comparing clusters: %w", err)
	}
	return strings.Join(differences("", there, wanted), "; "), nil
}

func differences(path string, is, asked map[string]any) []string {
	var found []string
	for _, key := range slices.Sorted(maps.Keys(asked)) {
		field, value, wanted := path+key, is[key], asked[key]
		if below, ok := wanted.(map[string]any); ok {
			there, _ := value.(map[string]any)
			found = append(found, differences(field+".", there, below)...)
			continue
		}
		if reflect.DeepEqual(value, wanted) {
			continue
		}
		if value == nil {
			value = "none"
		}
		found = append(found, fmt.Sprintf("%s %v, not %v", field, value, wanted))
	}
	return found
}
