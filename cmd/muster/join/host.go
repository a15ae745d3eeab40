// SPDX-License-Identifier: Apache-2.0

package join

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"muster.dev/muster/cmd/muster/console"
	"muster.dev/muster/cmd/muster/thishost"
	"muster.dev/muster/internal/node/hostjoin"
	"muster.dev/muster/internal/node/nodeconfig"
	"muster.dev/muster/internal/node/render"
	"muster.dev/muster/internal/platform/host"
	"muster.dev/muster/internal/platform/systemd"
	"muster.dev/muster/internal/platform/termsafe"
)

// programsDir is where this program is, and the others beside it.
func programsDir() (string, error) {
	self, err := os.Executable()
	if err == nil {
		self, err = filepath.EvalSymlinks(self)
	}
	if err != nil {
		return "", fmt.Errorf("finding muster's programs: %w", err)
	}
	return filepath.Dir(self), nil
}

// NewHost is this host, with the steps shown as they happen.
func NewHost(o *console.Options) (*hostjoin.Host, error) {
	programs, err := programsDir()
	if err != nil {
		return nil, err
	}
	units, err := systemd.New(systemd.Config{})
	if err != nil {
		return nil, err
	}
	const binDir, cniBinDir = "/usr/local/bin", "/opt/cni/bin"
	layout := render.Layout{BinDir: binDir, CNIBinDir: cniBinDir, Systemd: true}
	return hostjoin.New(hostjoin.Config{
		Programs: programs, BinDir: binDir, CNIBinDir: cniBinDir, Units: units, Runtime: hostjoin.NewCRI(render.ContainerdSocket),
		Render: func(spec nodeconfig.Spec, self hostjoin.Self) ([]render.File, error) {
			facts, err := hostFacts()
			if err != nil {
				return nil, err
			}
			layout.ExistingContainerd = !self.OwnContainerd
			files, err := render.Files(spec, render.Instance{PrivateIP: self.IP, PrivateDNSName: self.Name}, facts, layout)
			return files, thishost.Refused(err)
		},
		Show: func(s hostjoin.Step) { showStep(o.Err, s) },
	})
}

// showStep prints a line for each step, as muster up does where nothing can move.
func showStep(w io.Writer, s hostjoin.Step) {
	text := termsafe.Line(s.Text)
	switch s.State {
	case hostjoin.Waiting:
		text = "… " + text
	case hostjoin.Warning:
		text = "Warning: " + text
	}
	fmt.Fprintf(w, "%7.2fs  %-14s %s\n", s.At.Seconds(), s.Name, text)
}

// hostFacts is what this host is.
func hostFacts() (render.Facts, error) {
	own, err := thishost.ThisMachine()
	if err != nil {
		return render.Facts{}, err
	}
	kernel, err := host.Kernel()
	if err != nil {
		return render.Facts{}, err
	}
	resource, err := host.Capable(unix.CAP_SYS_RESOURCE)
	if err != nil {
		return render.Facts{}, err
	}
	facts := render.Facts{CPUs: own.Cpus, MemoryBytes: own.MemoryBytes, CgroupVersion: own.CgroupVersion, Kernel: kernel, SysResource: resource}
	// /var/lib/containerd is not there yet; what is on an overlay itself, as in a container, can hold none.
	var disk unix.Statfs_t
	facts.OverlayFS = unix.Statfs("/var/lib", &disk) == nil && disk.Type != unix.OVERLAYFS_SUPER_MAGIC && disk.Type != unix.NFS_SUPER_MAGIC
	const resolved = "/run/systemd/resolve/resolv.conf"
	if raw, err := os.ReadFile("/etc/resolv.conf"); err == nil && strings.Contains(string(raw), "127.0.0.53") && console.Exists(resolved) {
		facts.ResolverConfig = resolved
	}
	return facts, nil
}
