// SPDX-License-Identifier: Apache-2.0

package render

import (
	"maps"
	"slices"

	"github.com/BurntSushi/toml"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// checkContainerd refuses what containerd would not read, or would leave out without a word.
func checkContainerd(path *field.Path, config string) field.ErrorList {
	var document map[string]any
	if err := toml.Unmarshal([]byte(config), &document); err != nil {
		return nil // it has been told already
	}
	var problems field.ErrorList
	version, given := document["version"]
	if given && version != int64(2) && version != int64(3) {
		problems = append(problems, field.Invalid(path.Child("version"), version, "must be 2 or 3; write it in version 3 (containerd config migrate)"))
	}
	if version != int64(3) {
		return problems // of version 2, which is migrated
	}
	plugins, _ := document["plugins"].(map[string]any)
	old, _ := plugins[pluginCRI].(map[string]any)
	for _, key := range slices.Sorted(maps.Keys(old)) {
		if slices.Contains(movedSettings(), key) {
			problems = append(problems, field.Invalid(path.Child("plugins").Key(pluginCRI).Child(key), "(not shown)",
				"containerd 2 does not read this here any more; it is in io.containerd.cri.v1.images or io.containerd.cri.v1.runtime (containerd config migrate shows where)"))
		}
	}
	return problems
}

// movedSettings are the sections and settings that were the CRI plugin's in containerd 1 and that people set
// (containerd, docs/cri/config.md).
func movedSettings() []string {
	return []string{
		"cni", "containerd", "device_ownership_from_security_context", "disable_apparmor", "discard_unpacked_layers", "enable_cdi",
		"enable_selinux", "enable_unprivileged_icmp", "enable_unprivileged_ports", "image_decryption", "image_pull_progress_timeout",
		"max_concurrent_downloads", "max_container_log_line_size", "registry", "restrict_oom_score_adj", "sandbox_image",
		"stats_collect_period", "tolerate_missing_hugetlb_controller",
	}
}
