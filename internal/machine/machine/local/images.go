// SPDX-License-Identifier: Apache-2.0

package local

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/image/imagestore"
	"muster.dev/muster/internal/image/pullthroughconfig"
	"muster.dev/muster/internal/machine/machine"
	"muster.dev/muster/internal/node/loadedimages"
	"muster.dev/muster/internal/platform/statedir"
)

// images is the directory with the images of a machine's cluster. If they cannot be brought up to date, the machine
// boots with those that were there before, or with none: most pods need none of them.
func (p *Provider) images(ctx context.Context, record machine.Record) string {
	if record.Cluster == "" {
		return ""
	}
	dir, err := imagestore.New(p.config.State).Show(ctx, p.config.State.Cluster(v1alpha1.ClusterSlug(record.Cluster)))
	if err != nil {
		p.config.Log.Error("a machine may not have the images that were loaded", "machine", record.ID, "error", err)
		if _, err := os.Stat(dir); err != nil { //nolint:gosec // G703: the directory is of a slug
			return ""
		}
	}
	return dir
}

// mirrored are the public registries whose images a machine pulls by the account's registry. A list that cannot be read
// is none: machines ask registries themselves.
func mirrored(dir statedir.Dir, log *slog.Logger) []string {
	list, err := pullthroughconfig.Read(dir.Registries())
	if err != nil {
		log.Error("machines do not pull images of public registries by the account's registry", "error", err)
	}
	return list.Names()
}

// LoadedImages is how far a machine is with the images of its cluster.
type LoadedImages struct {
	Machine, Cluster string
	// Reported is false for a machine that boots: it takes the images over before its kubelet starts.
	Reported bool
	loadedimages.Report
}

// ReadLoadedImages reads how far the machines are that run and that were launched for a cluster.
func ReadLoadedImages(dir statedir.Dir) ([]LoadedImages, error) {
	running, err := Running(dir)
	if err != nil {
		return nil, err
	}
	var all []LoadedImages
	for id := range running {
		record, err := machine.ReadRecord(filepath.Join(dir.Machine(id), machine.RecordFile))
		if errors.Is(err, os.ErrNotExist) || err == nil && record.Cluster == "" {
			continue
		}
		if err != nil {
			return nil, err
		}
		one := LoadedImages{Machine: id, Cluster: record.Cluster}
		disk, err := os.OpenRoot(filepath.Join(dir.Machine(id), rootDir))
		if err != nil {
			return nil, fmt.Errorf("opening the disk of machine %s: %w", id, err)
		}
		one.Report, one.Reported = loadedimages.ReadReport(disk)
		_ = disk.Close()
		all = append(all, one)
	}
	return all, nil
}
