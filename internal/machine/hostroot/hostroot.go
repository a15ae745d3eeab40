// SPDX-License-Identifier: Apache-2.0

package hostroot

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	kjson "sigs.k8s.io/json"

	"muster.dev/muster/internal/platform/atomicfile"
	"muster.dev/muster/internal/platform/statedir"
)

// version is that of the file's form.
const version = 1

// file is the form on disk.
type file struct {
	Version  int      `json:"version"`
	Clusters []string `json:"clusters"`
}

// Clusters are the names of the clusters that may have it, sorted.
type Clusters []string

// Of returns a list of clusters, each once.
func Of(names ...string) Clusters { return slices.Compact(slices.Sorted(slices.Values(names))) }

// Allow reports whether a cluster may have it. A machine of no cluster, "", never may.
func (c Clusters) Allow(name string) bool { return name != "" && slices.Contains(c, name) }

// Read returns the list of a state directory; without a file nobody is on it.
func Read(dir statedir.Dir) (Clusters, error) {
	raw, err := os.ReadFile(dir.HostRoot())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading which clusters may have root of this host: %w", err)
	}
	var is file
	strict, err := kjson.UnmarshalStrict(raw, &is)
	if err == nil {
		err = errors.Join(strict...)
	}
	if err == nil && is.Version != version {
		err = fmt.Errorf("version is %d and must be %d", is.Version, version)
	}
	if err != nil {
		return nil, fmt.Errorf("%s is damaged: %w; write it anew by `muster up --allow-host-root CLUSTER`", dir.HostRoot(), err)
	}
	return Of(is.Clusters...), nil
}

// Keep makes a list that of a state directory, and reports whether it was another one before.
func Keep(dir statedir.Dir, clusters Clusters) (changed bool, err error) {
	clusters = Of(clusters...)
	if is, err := Read(dir); err == nil && slices.Equal(is, clusters) {
		return false, nil
	}
	raw, err := json.MarshalIndent(file{version, slices.Concat([]string{}, clusters)}, "", "  ")
	if err != nil {
		return false, fmt.Errorf("encoding which clusters may have root of this host: %w", err)
	}
	return true, atomicfile.Write(dir.HostRoot(), append(raw, '\n'), 0o600)
}

// Refused is what a node group or a machine is told that may not have it.
type Refused struct{ Cluster string }

func (r Refused) Error() string {
	if r.Cluster == "" {
		return "isolation none makes root on a machine root on this host, which no machine without a cluster may have: leave isolation out"
	}
	return fmt.Sprintf("isolation none makes root on a machine root on this host, which cluster %s may not have: leave isolation out, or allow it by `muster up --allow-host-root %[1]s`", r.Cluster)
}
