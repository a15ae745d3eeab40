// SPDX-License-Identifier: Apache-2.0

// Package planeid says as which user of the host a component of a cluster runs: an id of its own, which is no one
// else's on this host (package subid).
//
// A state directory has a range of ids, beside the one of its machines. A cluster has a block of them, by a number that
// is kept in the cluster's directory, so that no other cluster has the block as long as there is a file of the first
// one. A component has its place in the block.
package planeid

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"sync"

	"muster.dev/muster/internal/plane/component"
	"muster.dev/muster/internal/platform/atomicfile"
	"muster.dev/muster/internal/platform/statedir"
	"muster.dev/muster/internal/platform/subid"
)

const (
	// reserved are the ids of a state directory, block those of a cluster.
	reserved = 1 << 16
	block    = 32
)

// places of components in the block of their cluster. A place is never given to another component.
var places = []string{
	component.Etcd, component.APIServer, component.ControllerManager, component.Scheduler, component.CertificateController, component.Authenticator,
	component.TokenSigner, component.PodWebhook, component.Front, component.Karpenter, component.KarpenterProxy,
}

// record is what is kept: of a state directory the first of its ids, of a cluster the number of its block.
type record struct {
	First uint32 `json:"first,omitempty"`
	Block uint32 `json:"block,omitempty"`
}

// choosing is held while a block is chosen.
var choosing sync.Mutex

// owner is the name by which ids are reserved, of no user of the host.
func owner(dir statedir.Dir) string { return "muster-" + statedir.Hash(dir) + "-planes" }

// Reserve reserves ids of this host for a state directory, whose files are in etc, which is /etc. Ids that it already
// has stay.
func Reserve(etc string, dir statedir.Dir) error {
	ids, err := subid.Reserve(etc, owner(dir), reserved)
	if err != nil {
		return err
	}
	return write(dir.IDs(), record{First: ids.First})
}

// Release gives the ids of a state directory up. No file is theirs any more.
func Release(etc string, dir statedir.Dir) error {
	if _, found, err := subid.Find(etc, owner(dir)); err != nil || !found {
		return err
	}
	return subid.Release(etc, owner(dir))
}

// Ensure chooses the ids of a cluster, unless it has some.
func Ensure(dir statedir.Dir, cluster statedir.Cluster) error {
	choosing.Lock()
	defer choosing.Unlock()
	own, err := read(cluster.IDs())
	if err != nil || own.Block != 0 {
		return err
	}
	all, err := dir.ListClusters()
	if err != nil {
		return err
	}
	var taken []uint32
	for _, other := range all {
		other, err := read(other.IDs())
		if err != nil {
			return err // whose ids those are is not known: none may be given twice
		}
		taken = append(taken, other.Block)
	}
	for n := uint32(1); n < reserved/block; n++ { // block 0 is of no cluster
		if !slices.Contains(taken, n) {
			return write(cluster.IDs(), record{Block: n})
		}
	}
	return errors.New("all ids of users for control planes are taken: delete a cluster")
}

// Of returns the user id of a component by the name of its process. found is false for processes that run as the
// service does.
func Of(dir statedir.Dir, process string) (id uint32, found bool) {
	cluster, name := component.SplitProcess(process)
	if component.IsAPIServer(name) { // all of them are one user
		name = component.APIServer
	}
	place := slices.Index(places, name)
	if cluster == "" || place < 0 {
		return 0, false
	}
	account, err := read(dir.IDs())
	if err != nil || account.First == 0 {
		return 0, false
	}
	own, err := read(dir.Cluster(cluster).IDs())
	if err != nil || own.Block == 0 || own.Block >= reserved/block {
		return 0, false
	}
	return account.First + own.Block*block + uint32(place), true //nolint:gosec // G115: one of nine
}

// Range returns the ids of a state directory, from first and before end. Both are 0 if no ids are reserved.
func Range(dir statedir.Dir) (first, end uint32) {
	account, err := read(dir.IDs())
	if err != nil || account.First == 0 {
		return 0, 0
	}
	return account.First, account.First + reserved
}

// Is reports whether an id is that of a component of this name, of any cluster of a state directory.
func Is(dir statedir.Dir, id uint32, name string) bool {
	clusters, err := dir.ListClusters()
	return err == nil && slices.ContainsFunc(clusters, func(c statedir.Cluster) bool {
		own, found := Of(dir, component.ProcessPrefix(c.Namespace())+name)
		return found && own == id
	})
}

func read(path string) (r record, err error) {
	raw, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return record{}, nil
	}
	if err == nil {
		err = json.Unmarshal(raw, &r)
	}
	if err != nil {
		return record{}, fmt.Errorf("reading the ids of a control plane's users: %s (restore it from a backup): %w", path, err)
	}
	return r, nil
}

func write(path string, r record) error {
	raw, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return atomicfile.Write(path, append(raw, '\n'), 0o600)
}
