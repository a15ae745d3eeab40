// SPDX-License-Identifier: Apache-2.0

package hostjoin

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"muster.dev/muster/internal/platform/release"
)

// programs are those that a node needs, from muster's own directory, with Kubernetes of a release. A name there may be
// a link to a program of many names.
func (h *Host) programs(of release.Release, ownContainerd, skipKubeProxy bool) ([]artifact, error) {
	names := []string{"kubelet"}
	if !skipKubeProxy {
		names = append(names, "kube-proxy")
	}
	if ownContainerd {
		names = append(names, "containerd", "containerd-shim-runc-v2", "ctr", "runc")
	}
	plugins, err := filepath.Glob(filepath.Join(h.Programs, "cni", "*"))
	if err != nil {
		return nil, fmt.Errorf("listing network plugins: %w", err)
	}
	for _, plugin := range plugins {
		names = append(names, "cni/"+filepath.Base(plugin))
	}
	names = append(names, "muster") // the last, as it is large and nothing waits for it
	var artifacts []artifact
	seen := map[string]bool{}
	for len(names) > 0 {
		name := names[0]
		names = names[1:]
		if seen[name] {
			continue
		}
		seen[name] = true
		source := of.Program(h.Programs, name)
		info, err := os.Lstat(source)
		if errors.Is(err, os.ErrNotExist) {
			return nil, fmt.Errorf("%s is not beside muster in %s: install all of muster's programs", of.Program("", name), h.Programs)
		}
		if err != nil {
			return nil, fmt.Errorf("looking for programs: %w", err)
		}
		a := artifact{path: h.placeOf(name), mode: 0o755, late: late(name)}
		if info.Mode()&os.ModeSymlink != 0 {
			target, err := os.Readlink(source)
			if err == nil && target == filepath.Base(target) {
				a.linkTo, a.copyOf = target, source
				artifacts = append(artifacts, a)
				if h.needs(a) {
					names = append(names, filepath.Join(filepath.Dir(name), target))
				}
				continue
			}
		}
		a.copyOf = source
		artifacts = append(artifacts, a)
	}
	return artifacts, nil
}

// late are the programs that nobody runs before the node has registered: network plugins, and muster itself for its
// watch.
func late(name string) bool { return name == "muster" || strings.HasPrefix(name, "cni/") }

// needs reports whether a link leads, or will lead, to what stands beside it.
func (h *Host) needs(a artifact) bool {
	target, err := os.Readlink(h.disk.at(a.path))
	return err == nil && target == a.linkTo || !h.disk.exists(a.path)
}

// placeOf is where a program goes.
func (h *Host) placeOf(name string) string {
	if plugin, ok := strings.CutPrefix(name, "cni/"); ok {
		return filepath.Join(h.CNIBinDir, plugin)
	}
	return filepath.Join(h.BinDir, name)
}

// usable reports whether a program that was there can serve instead of muster's: Kubernetes' of the same minor version;
// a containerd that reads configurations of version 3, which came with 2.0; network plugins that know nftables, which
// came with 1.6. Whatever else differs is somebody else's.
func (h *Host) usable(ctx context.Context, a artifact) (ok bool, why string) {
	if a.copyOf == "" && a.linkTo == "" {
		return false, ""
	}
	name := filepath.Base(a.path)
	args := []string{"--version"}
	var oldest [2]int
	switch {
	case filepath.Dir(a.path) == h.CNIBinDir:
		oldest, args = [2]int{1, 6}, nil
	case name == "muster": // it watches over the node, and only that
		return true, ""
	case name == "containerd", name == "ctr":
		oldest = [2]int{2, 0}
	case name == "containerd-shim-runc-v2":
		oldest, args = [2]int{2, 0}, []string{"-v"}
	case name == "runc":
		oldest = [2]int{1, 1}
	case name == "kubelet", name == "kube-proxy":
		ours, err := h.version(ctx, a.copyOf, args...)
		if err != nil {
			return false, " (muster's own does not tell its version)"
		}
		theirs, err := h.version(ctx, h.disk.at(a.path), args...)
		if err != nil || theirs != ours {
			return false, fmt.Sprintf(" (not of version %d.%d, as muster's)", ours[0], ours[1])
		}
		return true, ""
	default:
		return false, ""
	}
	theirs, err := h.version(ctx, h.disk.at(a.path), args...)
	if err != nil || theirs[0] < oldest[0] || theirs[0] == oldest[0] && theirs[1] < oldest[1] {
		return false, fmt.Sprintf(" (not of version %d.%d or newer)", oldest[0], oldest[1])
	}
	return true, ""
}

func (h *Host) version(ctx context.Context, program string, args ...string) (version [2]int, err error) {
	ctx, cancel := context.WithTimeout(ctx, versionPatience)
	defer cancel()
	var said string
	err = h.wait(func() (err error) {
		said, err = h.Run(ctx, program, args...)
		return err
	})
	if err != nil {
		return version, err
	}
	return parseVersion(said)
}

// versionPatience is how long a program may take to tell its version.
const versionPatience = 10 * time.Second

// parseVersion finds the first version in what a program says of itself: "Kubernetes v1.36.3", "containerd github.com/…
// v2.2.1 …", "runc version 1.4.0".
func parseVersion(said string) (version [2]int, err error) {
	for word := range strings.FieldsSeq(said) {
		parts := strings.SplitN(strings.TrimPrefix(word, "v"), ".", 3)
		if len(parts) < 2 {
			continue
		}
		major, err := strconv.ParseUint(parts[0], 10, 16)
		if err != nil {
			continue
		}
		minor, err := strconv.ParseUint(parts[1], 10, 16)
		if err != nil {
			continue
		}
		return [2]int{int(major), int(minor)}, nil
	}
	return version, errors.New("it says no version")
}
