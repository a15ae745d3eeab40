// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

func overlayAttacks() []attack {
	return []attack{
		{
			"overlay-setuid", "lays an overlay over the shared directory and has a setuid program of the host copied into its own layer",
			"a program with the rights of the host's root whose content the machine chooses", overlaySetuid,
		},
		{
			"overlay-secret", "lays an overlay over the shared directory and reads a secret of the host through it",
			"files of lower layers with the rights of whoever mounted them", overlaySecret,
		},
		{
			"overlay-device", "lays an overlay over memory and makes the host's canary device in it",
			"the host's disks", overlayDevice,
		},
	}
}

// overlay mounts one over a directory and returns where it is and where its upper layer is.
func (w *world) overlay(lower string) (merged, upper string, err error) {
	dir, err := w.scratch()
	if err != nil {
		return "", "", err
	}
	merged, upper = filepath.Join(dir, "merged"), filepath.Join(dir, "upper")
	if lower == "" {
		lower = filepath.Join(dir, "lower")
		if err := os.Mkdir(lower, 0o755); err != nil { //nolint:gosec // G301: as in every overlay
			return "", "", err
		}
	}
	work := filepath.Join(dir, "work")
	for _, d := range []string{merged, upper, work} {
		if err := os.Mkdir(d, 0o755); err != nil { //nolint:gosec // G301: as in every overlay
			return "", "", err
		}
	}
	err = w.mount("overlay", merged, "overlay", 0, fmt.Sprintf("lowerdir=%s,upperdir=%s,workdir=%s", lower, upper, work))
	return merged, upper, err
}

func overlaySetuid(w *world) finding {
	if w.Shared == "" {
		return notHere("-shared is not given")
	}
	merged, upper, err := w.overlay(w.Shared)
	if err != nil {
		return refused("mounting an overlay", err)
	}
	// A change of its times has the program copied with its owner and mode; a change of its content would take the
	// setuid bit.
	if err := unix.UtimesNanoAt(unix.AT_FDCWD, filepath.Join(merged, "setuid"), []unix.Timespec{{Sec: 1}, {Sec: 1}}, 0); err != nil {
		return refused("having it copied up", planted(err))
	}
	var stat unix.Stat_t
	if err := unix.Stat(filepath.Join(upper, "setuid"), &stat); err != nil {
		return refused("looking at the copy", err)
	}
	hosts, err := isHostRoots(stat.Uid)
	if err != nil {
		return refused("comparing owners", err)
	}
	if stat.Mode&unix.S_ISUID != 0 && (hosts || stat.Uid == overflow) {
		return out("the copy in its own layer is setuid and belongs to the host's root (mode %o, owner %d)", stat.Mode&0o7777, stat.Uid)
	}
	return held("the copy has mode %o and owner %d, who is not the host's root", stat.Mode&0o7777, stat.Uid)
}

func overlaySecret(w *world) finding {
	if w.Shared == "" {
		return notHere("-shared is not given")
	}
	merged, _, err := w.overlay(w.Shared)
	if err != nil {
		return refused("mounting an overlay", err)
	}
	raw, err := os.ReadFile(filepath.Join(merged, "token")) //nolint:gosec // G703: the paths are those of whoever runs it
	if err != nil {
		return refused("reading through it", planted(err))
	}
	if token := w.Find(raw); token != "" {
		return outWith(token, "read %s/token through an overlay", w.Shared)
	}
	return notHere("%s/token has no token", w.Shared)
}

func overlayDevice(w *world) finding {
	numbers, ok := device(w.CanaryDevice)
	if !ok {
		return notHere("-canary-device is not given")
	}
	merged, _, err := w.overlay("")
	if err != nil {
		return refused("mounting an overlay", err)
	}
	return w.makeCanary(filepath.Join(merged, "canary"), numbers)
}
