// SPDX-License-Identifier: Apache-2.0

package render

import (
	"bytes"
	"fmt"
	"text/template"

	"muster.dev/muster/internal/node/nodeconfig"
)

// containerdTemplate is containerd's configuration. Plugins that no machine needs are left out: each costs time at
// start.
const containerdTemplate = `version = 3
root = "/var/lib/containerd"
state = "/run/containerd"
disabled_plugins = [
  "io.containerd.differ.v1.erofs",
  "io.containerd.image-verifier.v1.bindir",
  "io.containerd.internal.v1.tracing",
  "io.containerd.mount-handler.v1.erofs",
  "io.containerd.nri.v1.nri",
  "io.containerd.snapshotter.v1.blockfile",
  "io.containerd.snapshotter.v1.btrfs",
  "io.containerd.snapshotter.v1.devmapper",
  "io.containerd.snapshotter.v1.erofs",
  "io.containerd.snapshotter.v1.zfs",
  "io.containerd.tracing.processor.v1.otlp",
]

[grpc]
  address = "{{.Socket}}"

[plugins."io.containerd.cri.v1.images"]
  snapshotter = "{{.Snapshotter}}"

[plugins."io.containerd.cri.v1.images".pinned_images]
  sandbox = "{{.PauseImage}}"
{{- if .RegistryHosts}}

[plugins."io.containerd.cri.v1.images".registry]
  # A directory for each registry, with the mirrors and certificates that it has (containerd, docs/hosts.md).
  config_path = "{{.RegistryHosts}}"
{{- end}}

[plugins."io.containerd.cri.v1.runtime"]
{{- if not .Systemd}}
  # The profiles of AppArmor are global to the kernel, which is not the machine's to change.
  disable_apparmor = true
{{- end}}
  # Without CAP_SYS_RESOURCE no process may be made less likely to be killed than the one that starts it.
  restrict_oom_score_adj = {{.RestrictOOMScoreAdj}}

[plugins."io.containerd.cri.v1.runtime".containerd]
  default_runtime_name = "runc"

[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
  runtime_type = "io.containerd.runc.v2"
  base_runtime_spec = "{{.RuntimeSpec}}"

[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc.options]
  BinaryName = "{{.BinDir}}/runc"
  SystemdCgroup = {{.Systemd}}

[plugins."io.containerd.cri.v1.runtime".cni]
  bin_dirs = ["{{.CNIBinDir}}"]
  conf_dir = "/etc/cni/net.d"
  conf_template = "{{.CNITemplate}}"
{{- if .FastImagePull}}

[plugins."io.containerd.transfer.v1.local"]
  max_concurrent_downloads = 20
  concurrent_layer_fetch_buffer = 16777216
{{- end}}
`

// registryHosts is where user data puts mirrors of registries and their certificates, as on EKS.
const registryHosts = "/etc/containerd/certs.d"

// containerdFiles are none for a host that has a containerd of its own.
func containerdFiles(spec nodeconfig.Spec, facts Facts, layout Layout) ([]File, error) {
	if layout.ExistingContainerd {
		return nil, nil
	}
	config, err := containerdConfig(spec, facts, layout)
	if err != nil {
		return nil, fmt.Errorf("writing containerd's configuration: %w", err)
	}
	cni, err := indented(newCNITemplate())
	if err != nil {
		return nil, fmt.Errorf("writing template of network configuration: %w", err)
	}
	files := []File{
		{Path: pathCNITemplate, Mode: 0o644, Content: cni},
		{Path: PathContainerdConfig, Mode: 0o600, Content: config}, // a user's part of it may hold a registry's password
	}
	content, err := runtimeSpec(spec.Containerd.BaseRuntimeSpec, facts)
	if err != nil {
		return nil, fmt.Errorf("NodeConfig: spec.containerd.baseRuntimeSpec: %w", err)
	}
	return append(files, File{Path: pathRuntimeSpec, Mode: 0o644, Content: content}), nil
}

func containerdConfig(spec nodeconfig.Spec, facts Facts, layout Layout) ([]byte, error) {
	snapshotter := "overlayfs"
	if !facts.OverlayFS { // it copies whole images instead of layering them: slow, but works on any disk
		snapshotter = "native"
	}
	wishes, _, err := containerdWishes(spec.Containerd.Config, layout)
	if err != nil {
		return nil, err
	}
	hosts := registryHosts
	if mirrors(wishes) {
		hosts = ""
	}
	parsed, err := template.New("containerd").Option("missingkey=error").Parse(containerdTemplate)
	if err != nil {
		return nil, err
	}
	var buffer bytes.Buffer
	err = parsed.Execute(&buffer, map[string]any{
		"BinDir":              layout.BinDir,
		"CNIBinDir":           layout.CNIBinDir,
		"CNITemplate":         pathCNITemplate,
		"FastImagePull":       fastImagePull(spec, facts),
		"PauseImage":          PauseImage,
		"RestrictOOMScoreAdj": !facts.SysResource,
		"RegistryHosts":       hosts,
		"RuntimeSpec":         pathRuntimeSpec,
		"Snapshotter":         snapshotter,
		"Socket":              ContainerdSocket,
		"Systemd":             layout.Systemd,
	})
	if err != nil || spec.Containerd.Config == "" {
		return buffer.Bytes(), err
	}
	over, err := nodeconfig.WriteTOML(wishes)
	if err != nil {
		return nil, err
	}
	merged, err := nodeconfig.MergeTOML(buffer.String(), over)
	return []byte(merged), err
}

// fastImagePull fetches several parts of one layer at a time, with the figures of EKS (nodeadm,
// internal/containerd/snapshotter/soci-snapshotter.config.toml), which has another program, SOCI, do it. As there a
// machine must be large enough for it, or nothing changes: 4 processors and 7 GiB.
func fastImagePull(spec nodeconfig.Spec, facts Facts) bool {
	return spec.FeatureGates[nodeconfig.GateFastImagePull] && facts.CPUs >= 4 && facts.MemoryBytes >= 7<<30
}
