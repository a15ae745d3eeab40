// SPDX-License-Identifier: Apache-2.0

package render

import (
	"bytes"
	"text/template"
)

// containerdTemplate is containerd's configuration. Plugins that no machine needs are left out: each costs time at start.
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

[plugins."io.containerd.cri.v1.runtime"]
  # The profiles of AppArmor are global to the kernel, which is not the machine's to change.
  disable_apparmor = true
  # Without CAP_SYS_RESOURCE no process may be made less likely to be killed than the one that starts it.
  restrict_oom_score_adj = {{.RestrictOOMScoreAdj}}

[plugins."io.containerd.cri.v1.runtime".containerd]
  default_runtime_name = "runc"

[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
  runtime_type = "io.containerd.runc.v2"

[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc.options]
  BinaryName = "{{.BinDir}}/runc"
  SystemdCgroup = false

[plugins."io.containerd.cri.v1.runtime".cni]
  bin_dirs = ["{{.BinDir}}/cni"]
  conf_dir = "/etc/cni/net.d"
  conf_template = "{{.CNITemplate}}"
`

func containerdConfig(facts Facts) ([]byte, error) {
	snapshotter := "overlayfs"
	if !facts.OverlayFS { // it copies whole images instead of layering them: slow, but works on any disk
		snapshotter = "native"
	}
	parsed, err := template.New("containerd").Option("missingkey=error").Parse(containerdTemplate)
	if err != nil {
		return nil, err
	}
	var buffer bytes.Buffer
	err = parsed.Execute(&buffer, map[string]any{
		"BinDir":              BinDir,
		"CNITemplate":         pathCNITemplate,
		"PauseImage":          PauseImage,
		"RestrictOOMScoreAdj": !facts.SysResource,
		"Snapshotter":         snapshotter,
		"Socket":              ContainerdSocket,
	})
	return buffer.Bytes(), err
}
