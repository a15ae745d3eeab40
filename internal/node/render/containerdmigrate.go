// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"maps"
	"slices"

	"muster.dev/muster/internal/node/nodeconfig"
)

// The plugins of containerd that the CRI is made of: one in version 2 of its configuration, more in version 3.
const (
	pluginCRI     = "io.containerd.grpc.v1.cri"
	pluginImages  = "io.containerd.cri.v1.images"
	pluginRuntime = "io.containerd.cri.v1.runtime"
)

// Settings that move with others and are looked at by themselves.
const (
	sectionCNI        = "cni"
	sectionContainerd = "containerd"
	sectionRegistry   = "registry"
	systemdCgroup     = "SystemdCgroup"
)

// containerdWishes are a user's configuration of containerd in version 3, and its parts that are left out, with why.
// Version 2, which user data for EKS's nodes is written in, is migrated as containerd 2 does when it reads such a file
// (plugins/cri/images/plugin.go and plugins/cri/runtime/plugin.go, configMigration).
func containerdWishes(config string, layout Layout) (wishes map[string]any, notes []string, err error) {
	wishes, err = nodeconfig.ReadTOML(config)
	if err != nil {
		return nil, nil, err
	}
	leaveOut := func(table map[string]any, key, where, why string) {
		if _, there := table[key]; there {
			delete(table, key)
			notes = append(notes, fmt.Sprintf("spec.containerd.config: %s is left out: %s", where, why))
		}
	}
	version, given := wishes["version"]
	delete(wishes, "version") // muster's own part says it
	plugins := table(wishes, "plugins")
	if old, ok := plugins[pluginCRI].(map[string]any); ok && (!given || version == int64(2)) {
		leaveOut(old, "sandbox_image", "sandbox_image", "the image of pods' sandboxes is on the machine")
		leaveOut(table(old, sectionCNI), "bin_dir", "cni.bin_dir", "the network plugins are muster's")
		migrateCRI(plugins, old)
		notes = append(notes, "spec.containerd.config: it is migrated from version 2 to version 3, as containerd does with a file of its own")
	}
	if grpc := table(wishes, "grpc"); grpc["address"] != ContainerdSocket {
		leaveOut(grpc, "address", "grpc.address", "the kubelet and muster look for containerd at "+ContainerdSocket)
	}
	runtimes := table(table(table(plugins, pluginRuntime), sectionContainerd), "runtimes")
	for _, name := range slices.Sorted(maps.Keys(runtimes)) {
		if options := table(table(runtimes, name), "options"); options[systemdCgroup] != layout.Systemd {
			leaveOut(options, systemdCgroup, name+".options."+systemdCgroup, fmt.Sprintf("it is %t, as the kubelet's cgroup driver is %s", layout.Systemd, layout.cgroupDriver()))
		}
	}
	return wishes, notes, nil
}

// table returns the table under key in a table. If there is no such table, it returns a new one, which in does not
// hold.
func table(in map[string]any, key string) map[string]any {
	if found, ok := in[key].(map[string]any); ok {
		return found
	}
	return map[string]any{}
}

// migrateCRI moves the settings of the one plugin to those that have them now. Settings of the new ones win.
func migrateCRI(plugins, old map[string]any) {
	images, runtime, server := maps.Clone(table(plugins, pluginImages)), maps.Clone(table(plugins, pluginRuntime)), map[string]any{}
	for key, value := range old {
		switch {
		case slices.Contains([]string{
			sectionRegistry, "image_decryption", "max_concurrent_downloads", "image_pull_progress_timeout", "image_pull_with_sync_fs", "stats_collect_period",
		}, key):
			put(images, key, value)
		case slices.Contains([]string{
			"disable_tcp_service", "stream_server_address", "stream_server_port", "stream_idle_timeout", "enable_tls_streaming", "x509_key_pair_streaming",
		}, key):
			server[key] = value
		case key == "enable_cdi": // it always is
		case key == sectionContainerd:
			put(runtime, key, migrateContainerdSection(images, table(old, key)))
		default:
			put(runtime, key, value)
		}
	}
	delete(plugins, pluginCRI)
	for name, settings := range map[string]map[string]any{pluginImages: images, pluginRuntime: runtime, pluginCRI: server} {
		if len(settings) > 0 {
			plugins[name] = settings
		}
	}
}

// migrateContainerdSection moves what concerns images to them, and returns the rest.
func migrateContainerdSection(images, old map[string]any) map[string]any {
	rest := map[string]any{}
	for key, value := range old {
		if slices.Contains([]string{"snapshotter", "disable_snapshot_annotations", "discard_unpacked_layers"}, key) {
			put(images, key, value)
			continue
		}
		rest[key] = value
	}
	for _, runtime := range table(rest, "runtimes") {
		settings, ok := runtime.(map[string]any)
		if !ok {
			continue
		}
		if mode, there := settings["sandbox_mode"]; there {
			put(settings, "sandboxer", mode)
			delete(settings, "sandbox_mode")
		}
	}
	return rest
}

// put sets what is not set; tables are merged.
func put(into map[string]any, key string, value any) {
	above, isTable := into[key].(map[string]any)
	if below, ok := value.(map[string]any); ok && isTable {
		into[key] = merge(below, above)
		return
	}
	if _, there := into[key]; !there {
		into[key] = value
	}
}

// mirrors reports whether wishes name mirrors of registries, or how to reach them, by themselves: containerd refuses
// that beside a directory that says so (internal/cri/config/config.go, ValidateImageConfig).
func mirrors(wishes map[string]any) bool {
	registry := table(table(table(wishes, "plugins"), pluginImages), sectionRegistry)
	return len(table(registry, "mirrors")) > 0 || len(table(registry, "configs")) > 0
}

// Notes say what of a NodeConfig is done in another way than it says, for people.
func Notes(spec nodeconfig.Spec, layout Layout) []string {
	if spec.Containerd.Config == "" || layout.ExistingContainerd {
		return nil
	}
	_, notes, err := containerdWishes(spec.Containerd.Config, layout.complete())
	if err != nil {
		return nil // which is refused
	}
	return notes
}
