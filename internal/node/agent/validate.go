// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"time"

	"golang.org/x/sys/unix"

	"muster.dev/muster/internal/node/kubeletcheck"
	"muster.dev/muster/internal/node/nodeconfig"
	"muster.dev/muster/internal/node/render"
)

// Rendered is the files of a node, and the inputs that they were made from.
type Rendered struct {
	Spec     nodeconfig.Spec
	Instance render.Instance
	Facts    render.Facts
	Layout   render.Layout
	Files    []render.File
}

// checkPatience is how long the check of the kubelet's configuration may take.
const checkPatience = time.Minute

// Validate has the kubelet's own validation judge what the kubelet is to run with, before any of it is written. Its
// notes say what is done in another way than the NodeConfig says. Run is nil where the program is not; that is a note,
// and then the kubelet judges itself.
func Validate(ctx context.Context, r Rendered, run kubeletcheck.Run) (notes []string, err error) {
	notes = render.Notes(r.Spec, r.Layout)
	if !kubeletcheck.Needed(r.Spec) {
		return notes, nil
	}
	if run == nil {
		return append(notes, "spec.kubelet is not validated before the kubelet starts: "+kubeletcheck.Program+" is not beside this program"), nil
	}
	machine := kubeletcheck.Machine{CPUs: r.Facts.CPUs, MemoryBytes: r.Facts.MemoryBytes}
	var disk unix.Statfs_t
	if err := unix.Statfs("/var/lib", &disk); err == nil {
		machine.DiskBytes = int64(disk.Blocks) * disk.Bsize //nolint:gosec // G115: no disk is that large
	}
	ctx, cancel := context.WithTimeout(ctx, checkPatience)
	defer cancel()
	return notes, kubeletcheck.Check(ctx, run, r.Files, render.KubeletArgs(r.Spec, r.Instance, r.Layout, false), machine)
}
