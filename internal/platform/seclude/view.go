// SPDX-License-Identifier: Apache-2.0

// Package seclude starts programs as a user of their own who sees little of the host: no capability, no way to get one,
// a /tmp of its own, and a root directory that has what the program needs, at the same paths, and nothing else.
package seclude

import (
	"cmp"
	"path/filepath"
	"slices"
	"strings"
)

// View is what a program sees of the host besides what all do: programs and libraries, /etc, /proc, /sys and the
// devices that anybody may use. All of it is shown at its own path, and what is replaced in a directory on the host is
// replaced in the view. Who may read a file is for its mode to say.
type View struct {
	// Reads are directories.
	Reads []string
	// Writes are directories that the program may change, as far as it owns what is in them.
	Writes []string
	// Files are single files as they are when the program starts: one that is replaced later stays as it was.
	Files []string
	// Links are symbolic links: a path, and where it leads.
	Links map[string]string
	// OwnNetwork gives the program a network namespace of its own, which has the loopback interface alone. Unix sockets in
	// the view lead out of it.
	OwnNetwork bool
}

// system are the parts of the host that every program sees, where the host has them.
var system = []string{"/bin", "/etc", "/lib", "/lib32", "/lib64", "/libx32", "/sbin", "/sys", "/usr"}

// devices are those that no program can do harm with.
var devices = []string{"/dev/full", "/dev/null", "/dev/random", "/dev/urandom", "/dev/zero"}

// shown is one part of the host in a view.
type shown struct {
	path             string
	writable, device bool
	optional         bool // left out where the host has none
}

// parts are the parts of a view, outer directories before those in them. A directory that is written need not be
// readable besides.
func (v View) parts() []shown {
	var all []shown
	add := func(paths []string, like shown) {
		for _, path := range paths {
			like.path = filepath.Clean(path)
			all = append(all, like)
		}
	}
	add(v.Writes, shown{writable: true}) // first: of two with the same path it is the one that stays
	add(v.Reads, shown{})
	add(v.Files, shown{})
	add(system, shown{optional: true})
	add(devices, shown{device: true, optional: true})
	slices.SortStableFunc(all, func(a, b shown) int { return cmp.Compare(a.path, b.path) })
	all = slices.CompactFunc(all, func(a, b shown) bool { return a.path == b.path })
	// A part that is in another one of the same kind is shown by that.
	return slices.DeleteFunc(slices.Clone(all), func(p shown) bool {
		return slices.ContainsFunc(all, func(outer shown) bool { return !p.writable && !p.device && within(p.path, outer.path) })
	})
}

// within reports whether a path is below a directory.
func within(path, dir string) bool { return strings.HasPrefix(path, dir+"/") }
