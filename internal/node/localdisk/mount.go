// SPDX-License-Identifier: Apache-2.0

package localdisk

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"muster.dev/muster/internal/platform/atomicfile"
)

// mount is a mount that systemd makes at every boot.
type mount struct {
	what, where string
	bind        bool
}

const unitDir = "/etc/systemd/system"

// checkMountPath lets only a path into a unit that systemd reads as it is.
func checkMountPath(path string) error {
	if !filepath.IsAbs(path) || path == "/" || strings.ContainsFunc(path, func(r rune) bool { return r <= ' ' || r >= 0x7f || strings.ContainsRune("%\\\"'$;", r) }) {
		return fmt.Errorf("spec.instance.localStorage.mountPath: %q must be an absolute path of letters, digits and / . _ -", path)
	}
	return nil
}

// mount writes units and has them started. A unit that is unchanged and mounted is left alone.
func (c Config) mount(ctx context.Context, mounts []mount) error {
	for _, m := range mounts {
		name := unitName(m.where)
		content := m.unit()
		path := filepath.Join(c.Root, unitDir, name)
		if raw, err := os.ReadFile(path); err == nil && string(raw) == content && c.mounted(ctx, m.where) {
			continue
		}
		dirs := []string{m.where}
		if m.bind {
			dirs = append(dirs, m.what) // on the disk, which is mounted by now
		}
		for _, dir := range dirs {
			if err := os.MkdirAll(filepath.Join(c.Root, dir), 0o755); err != nil { //nolint:gosec // G301: as these directories are on every node
				return fmt.Errorf("making directory %s: %w", dir, err)
			}
		}
		if err := atomicfile.Write(path, []byte(content), 0o644); err != nil {
			return err
		}
		for _, args := range [][]string{{"daemon-reload"}, {"enable", "--now", "--", name}} {
			if _, err := c.Run(ctx, "systemctl", args...); err != nil {
				return fmt.Errorf("mounting %s: %w", m.where, err)
			}
		}
		c.Say(fmt.Sprintf("%s is mounted at %s", m.what, m.where))
	}
	return nil
}

// mounted asks util-linux, which knows mounts by where they are.
func (c Config) mounted(ctx context.Context, dir string) bool {
	_, err := c.Run(ctx, "mountpoint", "--quiet", dir)
	return err == nil
}

// unit is a mount as systemd.mount(5) has it. It comes before the node's programs; an instance that was stopped comes
// back with empty disks, and boots nevertheless.
func (m mount) unit() string {
	kind, options := "xfs", "defaults,noatime"
	needs := ""
	if m.bind {
		kind, options = "none", "bind"
		needs = "RequiresMountsFor=" + filepath.Dir(m.what) + "\n"
	}
	return `[Unit]
Description=Instance-store disk of this node at ` + m.where + `
` + needs + `Before=containerd.service kubelet.service

[Mount]
What=` + m.what + `
Where=` + m.where + `
Type=` + kind + `
Options=` + options + `

[Install]
WantedBy=multi-user.target
`
}

// unitName is the name that systemd wants the unit of a mount point to have (systemd.unit(5), string escaping).
func unitName(path string) string {
	var b strings.Builder
	for i, r := range []byte(strings.Trim(filepath.Clean(path), "/")) {
		switch {
		case r == '/':
			b.WriteByte('-')
		case r == '.' && i == 0, r != ':' && r != '_' && r != '.' && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z'):
			fmt.Fprintf(&b, `\x%02x`, r)
		default:
			b.WriteByte(r)
		}
	}
	return b.String() + ".mount"
}
