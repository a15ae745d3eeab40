// SPDX-License-Identifier: Apache-2.0

package insightfacts

import (
	"errors"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"muster.dev/muster/internal/certificates/authority"
	"muster.dev/muster/internal/cluster/insight"
	"muster.dev/muster/internal/plane/component"
	"muster.dev/muster/internal/plane/planerollout"
)

// Host looks at what the host has: the file system of the state directory, the data directory of the cluster's etcd, the
// certificates of its control plane, and the memory that new programs can have.
func Host(state, etcd string, certificates authority.Store, memory func() (int64, error)) insight.Host {
	return insight.Host{Memory: fact(room(memory)), Disk: fact(disk(state)), Etcd: fact(database(etcd)), Certificates: fact(ends(certificates))}
}

func room(memory func() (int64, error)) (insight.Amount, error) {
	available, err := memory()
	if err != nil {
		return insight.Amount{}, errors.New("the memory of the host is not known")
	}
	return insight.Amount{Is: available, Of: planerollout.NewcomerMemory}, nil
}

func disk(path string) (insight.Amount, error) {
	var stat unix.Statfs_t
	if err := unix.Statfs(path, &stat); err != nil {
		return insight.Amount{}, errors.New("the file system of the state directory cannot be looked at")
	}
	return insight.Amount{Is: int64(stat.Bavail) * stat.Bsize, Of: int64(stat.Blocks) * stat.Bsize}, nil //nolint:gosec // G115: no disk has 2^63 bytes
}

// database is the size of etcd's file and its quota.
func database(dir string) (insight.Amount, error) {
	info, err := os.Stat(filepath.Join(dir, "member", "snap", "db"))
	if err != nil {
		return insight.Amount{}, errors.New("the file of etcd cannot be looked at")
	}
	return insight.Amount{Is: info.Size(), Of: component.EtcdQuota}, nil
}

func ends(store authority.Store) (found []insight.Certificate, err error) {
	entries, err := store.List()
	if err != nil {
		return nil, errors.New("the certificates of the control plane cannot be read")
	}
	for _, e := range entries {
		found = append(found, insight.Certificate{Name: e.Name, Ends: e.NotAfter, Renews: !e.Renewal.IsZero()})
	}
	return found, nil
}
