// SPDX-License-Identifier: Apache-2.0

package registryhosts

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Dir is where they are on a machine.
const Dir = "/etc/containerd/certs.d"

const (
	file = "hosts.toml"
	// all is the directory for registries without one of their own.
	all = "_default"
	// mirrorMark begins files that Muster has written about public registries.
	mirrorMark = "# Written by muster at every boot, unless user data has its own. The registry itself is asked if the account's cannot serve.\n"
)

// Own tells containerd the authority of the account's registry.
func Own(dir, name, authority string) error {
	return write(dir, name, "# Written by muster at every boot, before user data runs.\nserver = \"https://"+name+"\"\n\n"+host(name, authority))
}

func host(name, authority string) string {
	return "[host.\"https://" + name + "\"]\n  capabilities = [\"pull\", \"resolve\"]\n  ca = \"" + authority + "\"\n"
}

// Mirror makes the account's registry a mirror of others, in place of those that it was a mirror of before.
func Mirror(dir string, others []string, name, authority string) error {
	if err := remove(dir); err != nil {
		return err
	}
	for _, other := range others {
		if _, err := os.Lstat(filepath.Join(dir, other)); err == nil {
			continue // user data's, of an earlier boot
		}
		if err := write(dir, other, mirrorMark+host(name, authority)); err != nil {
			return err
		}
	}
	return Yield(dir)
}

// Yield takes the mirrors away that Muster has written, if user data has a mirror for all registries.
func Yield(dir string) error {
	if _, err := os.Stat(filepath.Join(dir, all)); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return remove(dir)
}

func write(dir, name, content string) error {
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(path, 0o755); err != nil { //nolint:gosec // G301: everybody on the machine reads it
		return fmt.Errorf("writing what containerd is told about %s: %w", name, err)
	}
	temporary := filepath.Join(path, file+".new")
	err := os.WriteFile(temporary, []byte(content), 0o644) //nolint:gosec // G306: the same
	if err == nil {
		err = os.Rename(temporary, filepath.Join(path, file))
	}
	if err != nil {
		return fmt.Errorf("writing what containerd is told about %s: %w", name, err)
	}
	return nil
}

// remove removes the mirrors that Muster has written. A directory with files of others stays, with them alone.
func remove(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("looking at what containerd is told about registries: %w", err)
	}
	for _, entry := range entries {
		path := filepath.Join(dir, entry.Name(), file)
		content, err := os.ReadFile(path)
		if err != nil || !bytes.HasPrefix(content, []byte(mirrorMark)) {
			continue
		}
		if err := os.Remove(path); err != nil {
			return fmt.Errorf("removing the mirror of a registry: %w", err)
		}
		_ = os.Remove(filepath.Dir(path)) // unless there is more in it
	}
	return nil
}
