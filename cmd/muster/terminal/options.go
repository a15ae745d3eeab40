// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/platform/statedir"
)

// Streams are what a command reads and writes.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
}

// StandardStreams returns the process's own standard input, output and error.
func StandardStreams() Streams { return Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr} }

// Options are the flags that every command has.
type Options struct {
	Streams
	StateDir string
	// Cluster is the name of the cluster that a command is about; empty where there is only one.
	Cluster string
}

// Open checks the state directory that the command line chose. A variable that was never set names none, and not the
// working directory.
func (o *Options) Open() (statedir.Dir, error) {
	if o.StateDir == "" {
		return "", UsageError{Err: errors.New("--state-dir is empty: name a directory, or leave it out")}
	}
	return statedir.Open(o.StateDir)
}

// Named reports whether somebody chose the state directory.
func (o *Options) Named() bool {
	return os.Getenv(statedir.Env) != "" || o.StateDir != statedir.Default()
}

// OpenExisting opens a state directory in which a cluster was set up.
func (o *Options) OpenExisting() (statedir.Dir, error) {
	dir, err := o.Open()
	if err != nil {
		return "", err
	}
	if !dir.Exists() {
		return "", fmt.Errorf("nothing is set up in %s: run `muster up` first, or name another directory with --state-dir", dir)
	}
	return dir, nil
}

// OpenCluster opens the directory of the cluster that --cluster names, or of the only one there is.
func (o *Options) OpenCluster() (statedir.Cluster, error) {
	dir, err := o.OpenExisting()
	if err != nil {
		return "", err
	}
	clusters, err := dir.ListClusters()
	if err != nil {
		return "", err
	}
	if o.Cluster != "" {
		if cluster := dir.Cluster(v1alpha1.ClusterSlug(o.Cluster)); slices.Contains(clusters, cluster) {
			return cluster, nil
		}
		return "", fmt.Errorf("--cluster: there is no cluster %q in %s; muster get clusters lists those that there are", o.Cluster, dir)
	}
	names := make([]string, 0, len(clusters))
	for _, cluster := range clusters {
		names = append(names, cluster.Namespace())
	}
	switch len(clusters) {
	case 0:
		return "", fmt.Errorf("there is no cluster in %s: `muster up` makes one", dir)
	case 1:
		return clusters[0], nil
	}
	return "", UsageError{Err: fmt.Errorf("there are several clusters: choose one with --cluster: %s", strings.Join(names, ", "))}
}
