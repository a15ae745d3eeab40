// SPDX-License-Identifier: Apache-2.0

package stateconversion

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"muster.dev/muster/internal/platform/atomicfile"
	"muster.dev/muster/internal/platform/statedir"
)

// savedIn is the folder of records that were saved under a name.
func savedIn(dir statedir.Dir, name string) string { return filepath.Join(string(dir), "saved", name) }

// savedName is what records are called that a release left, whose state has a layout.
func savedName(release string, layout int) string {
	name := "layout-" + strconv.Itoa(layout)
	if release != "" {
		name = release + "-" + name
	}
	return name
}

// save copies the records of the account and of its clusters into a directory, whole or not at all. Records of that name
// that were saved before are replaced.
func save(dir statedir.Dir, to string) error {
	made := filepath.Join(filepath.Dir(to), ".new-"+filepath.Base(to))
	if err := os.RemoveAll(made); err != nil {
		return fmt.Errorf("removing records that were saved in part: %w", err)
	}
	if err := saveRecords(string(dir), made); err != nil {
		return err
	}
	clusters, err := dir.ListClusters()
	if err != nil {
		return err
	}
	for _, cluster := range clusters {
		if err := saveRecords(string(cluster), filepath.Join(made, "clusters", cluster.Namespace())); err != nil {
			return err
		}
	}
	if err := os.RemoveAll(to); err != nil {
		return fmt.Errorf("removing records that were saved before: %w", err)
	}
	return atomicfile.Move(made, to)
}

// saveRecords copies the records of one directory, without those of directories in it.
func saveRecords(from, to string) error {
	entries, err := os.ReadDir(from)
	if err == nil {
		err = os.MkdirAll(to, 0o700)
	}
	for _, entry := range entries {
		if err != nil {
			break
		}
		if !entry.Type().IsRegular() || !isRecord(entry.Name()) {
			continue
		}
		var content []byte
		if content, err = os.ReadFile(filepath.Join(from, entry.Name())); err == nil {
			err = atomicfile.Write(filepath.Join(to, entry.Name()), content, 0o600)
		}
	}
	if err != nil {
		return fmt.Errorf("saving the records of %s: %w", from, err)
	}
	return nil
}

// isRecord reports whether a file of the account's or a cluster's directory is a record. A kubeconfig has a key, and can
// be made again.
func isRecord(name string) bool {
	if name == filepath.Base(statedir.Dir("").Layout()) {
		return true
	}
	return slices.Contains([]string{".json", ".yaml"}, filepath.Ext(name)) && name != filepath.Base(statedir.Cluster("").Kubeconfig())
}
