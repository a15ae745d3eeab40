// SPDX-License-Identifier: Apache-2.0

package render

import (
	_ "embed" // for the specification that containers begin with
	"encoding/json"
	"fmt"
	"maps"
	"slices"
)

// defaultRuntimeSpec is what containerd gives a container that nothing is said about (ctr oci spec). A file of one's
// own must be a whole specification (containerd, docs/cri/config.md), while people write the few lines that they want
// different. The limit of open files is EKS's (nodeadm, internal/containerd/base-runtime-spec.json), and the reason why
// every node has the file.
//
//go:embed runtimespec.json
var defaultRuntimeSpec []byte

// runtimeSpec merges the user's specification over containerd's, as nodeadm does.
func runtimeSpec(wishes map[string]any, facts Facts) ([]byte, error) {
	var base map[string]any
	if err := json.Unmarshal(defaultRuntimeSpec, &base); err != nil {
		return nil, fmt.Errorf("reading containerd's own: %w", err)
	}
	if facts.OpenFiles > 0 {
		inheritOpenFiles(base)
	}
	return indented(merge(base, wishes))
}

// inheritOpenFiles leaves out the limits of open files, where they cannot be raised above those of the machine:
// containers have the machine's then. Lowering them would do for most pods, but not for those with hostUsers: false.
// Who sets a limit of another process, as runc does, needs CAP_SYS_RESOURCE in its user namespace (prlimit(2)), which
// the creator of that namespace has without having it elsewhere; and containerd creates those of pods as the pod's own
// user, so that they count against its limits (pkg/sys/unshare_linux.go). No container of such a pod would start:
// "error setting rlimit type 7: operation not permitted".
func inheritOpenFiles(spec map[string]any) {
	process := table(spec, "process")
	limits, _ := process["rlimits"].([]any)
	process["rlimits"] = slices.DeleteFunc(limits, func(l any) bool {
		limit, ok := l.(map[string]any)
		return ok && limit["type"] == "RLIMIT_NOFILE"
	})
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
