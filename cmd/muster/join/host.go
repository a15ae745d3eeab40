// SPDX-License-Identifier: Apache-2.0

package join

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"muster.dev/muster/cmd/muster/terminal"
	"muster.dev/muster/cmd/muster/thishost"
	"muster.dev/muster/internal/node/agent"
	"muster.dev/muster/internal/node/hostjoin"
	"muster.dev/muster/internal/node/nodeconfig"
	"muster.dev/muster/internal/node/render"
	"muster.dev/muster/internal/platform/release"
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
func NewHost(o *terminal.Options) (*hostjoin.Host, error) {
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
		Programs: programs, Releases: release.All(), BinDir: binDir, CNIBinDir: cniBinDir, Units: units, Runtime: hostjoin.NewCRI(render.ContainerdSocket),
		Render: func(spec nodeconfig.Spec, self hostjoin.Self) ([]render.File, error) {
			r, err := rendering(spec, self, layout)
			if err != nil {
				return nil, err
			}
			files, err := render.Files(r.Spec, r.Instance, r.Facts, r.Layout)
			return files, thishost.ConfigError(err)
		},
		Validate: func(ctx context.Context, spec nodeconfig.Spec, self hostjoin.Self, files []render.File) ([]string, error) {
			r, err := rendering(spec, self, layout)
			if err != nil {
				return nil, err
			}
			r.Files = files
			notes, err := agent.Validate(ctx, r, thishost.KubeletCheck(programs))
			return notes, thishost.ConfigError(err)
		},
		Show: func(s hostjoin.Step) { showStep(o.Err, s) },
	})
}

// rendering is what the files of this host are made of.
func rendering(spec nodeconfig.Spec, self hostjoin.Self, layout render.Layout) (agent.Rendered, error) {
	facts, err := agent.ReadFacts()
	layout.ExistingContainerd = !self.OwnContainerd
	return agent.Rendered{Spec: spec, Instance: render.Instance{PrivateIP: self.IP, PrivateDNSName: self.Name}, Facts: facts, Layout: layout}, err
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
