// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"muster.dev/muster/internal/host"
	"muster.dev/muster/internal/hostnode"
	"muster.dev/muster/internal/nodeconfig"
	"muster.dev/muster/internal/render"
	"muster.dev/muster/internal/systemd"
	"muster.dev/muster/internal/termsafe"
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

// newHost is this host, with the steps shown as they happen.
func newHost(o *options) (*hostnode.Host, error) {
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
	return hostnode.New(hostnode.Config{
		Programs: programs, BinDir: binDir, CNIBinDir: cniBinDir, Units: units, Runtime: hostnode.NewCRI(render.ContainerdSocket),
		Render: func(spec nodeconfig.Spec, self hostnode.Self) ([]render.File, error) {
			facts, err := hostFacts()
			if err != nil {
				return nil, err
			}
			layout.ExistingContainerd = !self.OwnContainerd
			files, err := render.Files(spec, render.Instance{PrivateIP: self.IP, PrivateDNSName: self.Name}, facts, layout)
			return files, refused(err)
		},
		Show: func(s hostnode.Step) { showStep(o.err, s) },
	})
}

// showStep prints a line for each step, as muster up does where nothing can move.
func showStep(w io.Writer, s hostnode.Step) {
	text := termsafe.Line(s.Text)
	switch s.State {
	case hostnode.Waiting:
		text = "… " + text
	case hostnode.Warning:
		text = "Warning: " + text
	}
	fmt.Fprintf(w, "%7.2fs  %-14s %s\n", s.At.Seconds(), s.Name, text)
}

// hostFacts is what this host is.
func hostFacts() (render.Facts, error) {
	own, err := thisMachine()
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
	facts := render.Facts{CPUs: own.cpus, MemoryBytes: own.memoryBytes, CgroupVersion: own.cgroupVersion, Kernel: kernel, SysResource: resource}
	// /var/lib/containerd is not there yet; what is on an overlay itself, as in a container, can hold none.
	var disk unix.Statfs_t
	facts.OverlayFS = unix.Statfs("/var/lib", &disk) == nil && disk.Type != unix.OVERLAYFS_SUPER_MAGIC && disk.Type != unix.NFS_SUPER_MAGIC
	const resolved = "/run/systemd/resolve/resolv.conf"
	if raw, err := os.ReadFile("/etc/resolv.conf"); err == nil && strings.Contains(string(raw), "127.0.0.53") && exists(resolved) {
		facts.ResolverConfig = resolved
	}
	return facts, nil
}
