// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"muster.dev/muster/internal/node/nodecerts"
)

// unfinished begins the names of files that have not got their own yet; see package durable.
const unfinished = ".new-"

// overlayTry begins the names of directories that overlays are tried in.
const overlayTry = ".overlay-"

// imageDir is where containerd keeps images and the layers of containers.
const imageDir = "/var/lib/containerd"

// scriptDir is where scripts are while they run, below the agent's data.
const scriptDir = "scripts"

// sweep removes what an agent left half done that was killed: scripts that ran just then, and files that it, or a
// command on the machine, had not finished. There may be a token or a key in them. Nothing else writes there when a
// machine boots. Root is empty but in tests.
func sweep(root string, c Config) error {
	err := os.RemoveAll(filepath.Join(root, c.DataDir, scriptDir))
	for _, tree := range []string{"/etc/cni", "/etc/containerd", "/etc/eks", "/etc/kubernetes", c.DropInDir, c.DataDir, nodecerts.DefaultDir} {
		err = errors.Join(err, removeUnfinished(filepath.Join(root, tree)))
	}
	for _, pattern := range []string{filepath.Dir(nodecerts.DefaultDir) + "/" + unfinished + "*", imageDir + "/" + overlayTry + "*"} {
		found, globbed := filepath.Glob(filepath.Join(root, pattern))
		err = errors.Join(err, globbed)
		for _, path := range found {
			err = errors.Join(err, os.RemoveAll(path))
		}
	}
	if err != nil {
		return fmt.Errorf("removing what was left half done: %w", err)
	}
	return nil
}

// removeUnfinished removes such files from a directory and those below it. It follows no links.
func removeUnfinished(tree string) error {
	err := filepath.WalkDir(tree, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() || !strings.HasPrefix(entry.Name(), unfinished) {
			return err
		}
		return os.Remove(path) //nolint:gosec // G122: nothing else runs when a machine boots
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
