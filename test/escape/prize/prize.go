// SPDX-License-Identifier: Apache-2.0

// Package prize plants secrets on a host for test/escape. All of them hold one random token, so an attack that names
// the token has read one of them, whatever it says about the way. A secret that the kernel of this host has no place
// for is not planted, and its place stays empty.
//
// Everything is taken back by Close, and what the kernel holds ends with the process that planted it.
package prize

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"muster.dev/muster/test/escape/places"
)

// Planted is the set of prizes on this host.
type Planted struct {
	// Map says where they are. Shared, Volume, Disk and the sizes are the machine's, so the caller fills them in.
	Map places.Map
	// Token is in each of them.
	Token string
	// Shared is the host's directory for Map.Shared, and Volume that for Map.Volume. Who owns Volume is up to the
	// caller.
	Shared, Volume string

	// undo takes back what was planted, the last one first.
	undo []func() error
}

// Plant makes prizes below a directory of the host, which must be on a disk and root's alone. It needs root.
func Plant(dir string) (*Planted, error) {
	if os.Geteuid() != 0 {
		return nil, errors.New("planting prizes: they are secrets of the host's root: run as root")
	}
	var random [16]byte
	_, _ = rand.Read(random[:]) // it never fails
	p := &Planted{Token: hex.EncodeToString(random[:]), Shared: filepath.Join(dir, "shared"), Volume: filepath.Join(dir, "volume")}
	sum := sha256.Sum256([]byte(p.Token))
	p.Map.TokenHash = hex.EncodeToString(sum[:])
	for _, step := range []struct {
		name  string
		plant func(dir string) error
	}{
		{"files", p.plantFiles},
		{"lock", p.plantLock},
		{"loop device", p.plantLoop},
		{"process", p.plantProcess},
		{"key", p.plantKey},
		{"sockets", p.plantSockets},
		{"shared memory", p.plantMemory},
		{"BPF map", p.plantBPF},
		{"user", p.plantUser},
		{"events", p.plantEvents},
	} {
		if err := step.plant(dir); err != nil {
			return nil, errors.Join(fmt.Errorf("planting prizes: %s: %w", step.name, err), p.Close())
		}
	}
	return p, nil
}

// Close takes everything back that is not a file in the directory.
func (p *Planted) Close() error {
	var errs []error
	for _, undo := range slices.Backward(p.undo) {
		errs = append(errs, undo())
	}
	p.undo = nil
	return errors.Join(errs...)
}

func (p *Planted) later(undo func() error) { p.undo = append(p.undo, undo) }

// text is the token with something around it, as secrets are in files.
func (p *Planted) text() []byte { return []byte("muster-escape=" + p.Token + "\n") }

// Marks are the names of the files that attacks made in the host's directory.
func (p *Planted) Marks() ([]string, error) {
	entries, err := os.ReadDir(p.Map.HostDir)
	if err != nil {
		return nil, fmt.Errorf("looking for marks of attacks: %w", err)
	}
	var names []string
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return names, nil
}

func (p *Planted) plantFiles(dir string) error {
	host := filepath.Join(dir, "host")
	p.Map.HostFile, p.Map.HostDir = filepath.Join(host, "file"), filepath.Join(host, "marks")
	for _, d := range []struct {
		path string
		mode os.FileMode
	}{{host, 0o700}, {p.Map.HostDir, 0o700}, {p.Shared, 0o755}, {p.Volume, 0o755}} {
		if err := os.MkdirAll(d.path, d.mode); err != nil {
			return err
		}
	}
	for _, path := range []string{p.Map.HostFile, filepath.Join(p.Shared, "token")} {
		if err := os.WriteFile(path, p.text(), 0o600); err != nil {
			return err
		}
	}
	setuid := filepath.Join(p.Shared, "setuid")
	if err := os.WriteFile(setuid, []byte("#!/bin/false\n"), 0o600); err != nil {
		return err
	}
	if err := os.Chmod(setuid, os.ModeSetuid|0o755); err != nil {
		return err
	}
	var stat unix.Stat_t
	if err := unix.Stat(p.Map.HostFile, &stat); err != nil {
		return err
	}
	if unix.Major(stat.Dev) != 0 { // not tmpfs, overlay and the like
		p.Map.HostDevice = fmt.Sprintf("%d:%d", unix.Major(stat.Dev), unix.Minor(stat.Dev))
	}
	name, err := os.Hostname()
	p.Map.HostName = name
	return err
}

// plantLock takes a lock in the shared directory, as a store of images has one.
func (p *Planted) plantLock(string) error {
	file, err := os.OpenFile(filepath.Join(p.Shared, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	p.later(file.Close)
	return unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
}
