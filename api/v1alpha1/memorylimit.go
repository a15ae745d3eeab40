// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"regexp"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// DefaultAPIServerMemoryLimit is the memory in bytes that a kube-apiserver may have where the spec of its cluster says nothing and the host is large:
// twice what one took with 500 nodes and 1,000 ConfigMaps of 1 MB. `make bench ARGS="-only memorylimit"` measures that as the most that was resident at
// a time while 500 simulated nodes join, eight clients write the ConfigMaps, and two at a time list them all: 2,948 MiB.
const DefaultAPIServerMemoryLimit int64 = 6 << 30

// The bounds of a limit, in bytes. A kube-apiserver without any objects has some 300 MiB; below the least it would be ended while it starts.
const (
	minAPIServerMemoryLimit int64 = 512 << 20
	maxAPIServerMemoryLimit int64 = 1 << 40
)

var memoryLimitPattern = regexp.MustCompile(`^[1-9][0-9]{0,8}(Mi|Gi)$`)

// hostShare is the part of a host's memory that an API server may have where the spec of its cluster says nothing: one in so many.
const hostShare = 4

// MemoryBytes returns the memory in bytes that the API server may have. host is the memory of the host in bytes; 0 is not
// known.
func (a ClusterAPIServer) MemoryBytes(host int64) int64 {
	if bytes, ok := memoryLimit(a.MemoryLimit); ok {
		return bytes
	}
	if host == 0 {
		return DefaultAPIServerMemoryLimit
	}
	return max(minAPIServerMemoryLimit, min(DefaultAPIServerMemoryLimit, host/hostShare))
}

func memoryLimit(text string) (bytes int64, ok bool) {
	if !memoryLimitPattern.MatchString(text) {
		return 0, false
	}
	quantity, err := resource.ParseQuantity(text)
	bytes = quantity.Value()
	return bytes, err == nil && bytes >= minAPIServerMemoryLimit && bytes <= maxAPIServerMemoryLimit
}

func validateMemoryLimit(path *field.Path, text string) field.ErrorList {
	if _, ok := memoryLimit(text); ok || text == "" {
		return nil
	}
	return field.ErrorList{field.Invalid(path, text, "must be from 512Mi to 1024Gi, in whole Mi or Gi, as 4Gi; or left out")}
}
