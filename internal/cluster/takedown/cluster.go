// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"muster.dev/muster/internal/addons/addonfiles"
	"muster.dev/muster/internal/machine/machine/local"
	"muster.dev/muster/internal/machine/networkrecord"
	"muster.dev/muster/internal/plane/component"
	"muster.dev/muster/internal/plane/supervise"
	"muster.dev/muster/internal/platform/atomicfile"
	"muster.dev/muster/internal/platform/removetree"
	"muster.dev/muster/internal/platform/socketdir"
	"muster.dev/muster/internal/platform/statedir"
)

// beingRemoved reports whether the removal of a cluster has begun. From then on the cluster is not run any more,
// whatever is left of it.
func beingRemoved(dir statedir.Cluster) bool {
	_, err := os.Stat(dir.Deleting())
	return err == nil
}

// removeCluster ends one cluster and removes everything of it on this host. It can be cut short at any point and called
// again.
func (s *Service) removeCluster(ctx context.Context, account component.Account, name string, dir statedir.Cluster) error {
	if _, err := os.Stat(string(dir)); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err := atomicfile.Write(dir.Deleting(), nil, 0o600); err != nil {
		return fmt.Errorf("beginning the removal of cluster %s: %w", name, err)
	}
	if err := s.endHosted(ctx, dir); err != nil {
		return err
	}
	prefix := component.ProcessPrefix(dir.Namespace())
	for _, step := range stopOrder {
		_, err := supervise.Stop(ctx, account.State, step.grace, func(p supervise.Process) bool { return strings.HasPrefix(p.Name, prefix) && step.choose(p.Name) })
		if err != nil {
			return fmt.Errorf("stopping %s of cluster %s: %w", step.what, name, err)
		}
	}
	if err := supervise.RemoveMemoryGroups(account.State, prefix); err != nil {
		return fmt.Errorf("removing control groups of cluster %s: %w", name, err)
	}
	if err := local.DiscardCluster(ctx, account.State, name); err != nil {
		return err
	}
	if err := s.balancers.RemoveCluster(ctx, account, name); err != nil {
		return err
	}
	if err := networkrecord.RemoveEndpoints(account.State, name); err != nil {
		return err
	}
	for _, socket := range []string{
		account.State.EgressSocket(dir.Namespace()), account.State.WebhookSocket(dir.Namespace()), account.State.ControlPlaneSocket(dir.Namespace()), account.State.TokenSocket(dir.Namespace()),
	} {
		if err := socketdir.Remove(socket); err != nil {
			return fmt.Errorf("removing a socket of cluster %s: %w", name, err)
		}
	}
	if err := addonfiles.New(account.State, dir, account.BinDir).UnloadAll(ctx); err != nil {
		return fmt.Errorf("removing images of the add-ons of cluster %s: %w", name, err)
	}
	if err := removeFiles(dir); err != nil {
		return fmt.Errorf("removing the files of cluster %s: %w", name, err)
	}
	s.cfg.Log.Info("a cluster was removed", "cluster", dir.Namespace())
	return nil
}

// endHosted ends what this process does for a cluster. Its processes go on.
func (s *Service) endHosted(ctx context.Context, dir statedir.Cluster) error {
	s.mu.Lock()
	h := s.hosted[dir]
	s.mu.Unlock()
	if h == nil {
		return nil
	}
	h.end()
	select {
	case <-h.ended:
	case <-ctx.Done():
		return ctx.Err()
	}
	s.mu.Lock()
	delete(s.hosted, dir)
	s.mu.Unlock()
	return nil
}

// removeFiles removes a cluster's directory. The record goes first, and the file that says so last: at no moment is
// there a part of a cluster that would be run, nor a file of users that another cluster could get.
func removeFiles(dir statedir.Cluster) error {
	if err := os.Remove(dir.Record()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	entries, err := os.ReadDir(string(dir))
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if path := filepath.Join(string(dir), entry.Name()); path != dir.Deleting() && path != dir.IDs() {
			if err := removetree.RemoveAll(path); err != nil {
				return err
			}
		}
	}
	return os.RemoveAll(string(dir))
}
