// SPDX-License-Identifier: Apache-2.0

package render

import (
	_ "embed" // for the specification that containers begin with
	"encoding/json"
	"fmt"
	"maps"
)

// defaultRuntimeSpec is what containerd gives a container that nothing is said about (ctr oci spec). A file of one's own must be
// a whole specification (containerd, docs/cri/config.md), while people write the few lines that they want different. The limit
// of open files is EKS's (nodeadm, internal/containerd/base-runtime-spec.json), and the reason why every node has the file.
//
//go:embed runtimespec.json
var defaultRuntimeSpec []byte

// runtimeSpec merges the user's specification over containerd's, as nodeadm does.
func runtimeSpec(wishes map[string]any, facts Facts) ([]byte, error) {
	var base map[string]any
	if err := json.Unmarshal(defaultRuntimeSpec, &base); err != nil {
		return nil, fmt.Errorf("reading containerd's own: %w", err)
	}
	if most := facts.OpenFiles; most > 0 {
		lowerLimits(base, float64(most))
	}
	return indented(merge(base, wishes))
}

// lowerLimits sees to it that the limits of open files are not above that of the machine, which nobody there may raise: no container
// would start.
func lowerLimits(spec map[string]any, most float64) {
	limits, _ := table(spec, "process")["rlimits"].([]any)
	for _, limit := range limits {
		limit, ok := limit.(map[string]any)
		if !ok || limit["type"] != "RLIMIT_NOFILE" {
			continue
		}
		for _, bound := range []string{"hard", "soft"} {
			if value, ok := limit[bound].(float64); ok {
				limit[bound] = min(value, most)
			}
		}
	}
}

// merge puts one tree of values over another. Neither is changed.
func merge(below, above map[string]any) map[string]any {
	merged := maps.Clone(below)
	if merged == nil {
		merged = map[string]any{}
	}
	for key, value := range above {
		lower, isTable := merged[key].(map[string]any)
		if upper, ok := value.(map[string]any); ok && isTable {
			merged[key] = merge(lower, upper)
			continue
		}
		merged[key] = value
	}
	return merged
}
