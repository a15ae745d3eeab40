// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"slices"
	"sync"

	"muster.dev/muster/internal/cluster/takedown"
	"muster.dev/muster/internal/machine/nodegroup"
	"muster.dev/muster/internal/plane/component"
	"muster.dev/muster/internal/platform/statedir"
)

// runClusters runs the clusters that have a record, and those that get one later, until the context ends.
func (s *Service) runClusters(ctx context.Context, account component.Account) {
	var group sync.WaitGroup
	defer group.Wait()
	for {
		_ = retry(ctx, "looking for clusters", s.say, func(ctx context.Context) error {
			dirs, err := s.cfg.State.ListClusters()
			if err != nil {
				return err
			}
			for _, dir := range dirs {
				if _, err := os.Stat(dir.Record()); errors.Is(err, fs.ErrNotExist) {
					continue // not asked for yet, or being removed
				}
				if h := s.host(ctx, dir); h != nil {
					group.Go(func() { h.run(account) })
				}
			}
			s.mu.Lock()
			s.found = true
			s.mu.Unlock()
			return nil
		})
		select {
		case <-ctx.Done():
			return
		case <-s.look:
		}
	}
}

// host makes the cluster of a directory one that is run; nil if it is one already, or is being removed.
func (s *Service) host(ctx context.Context, dir statedir.Cluster) *hosted {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.hosted[dir] != nil || dir.BeingRemoved() {
		return nil
	}
	h := newHosted(ctx, s, dir)
	s.hosted[dir] = h
	return h
}

// clusters are those that run here, by namespace.
func (s *Service) clusters() []*hosted {
	s.mu.Lock()
	defer s.mu.Unlock()
	clusters := make([]*hosted, 0, len(s.hosted))
	for _, h := range s.hosted {
		clusters = append(clusters, h)
	}
	slices.SortFunc(clusters, func(a, b *hosted) int { return cmp.Compare(a.dir, b.dir) })
	return clusters
}

// byCluster is what the clusters that run here say, by namespace.
func byCluster[T any](s *Service, say func(*hosted) T) map[string]T {
	said := map[string]T{}
	for _, h := range s.clusters() {
		said[h.dir.Namespace()] = say(h)
	}
	return said
}

// cluster is the one with a namespace; the only one if the namespace is empty; nil if there is none.
func (s *Service) cluster(namespace string) *hosted {
	clusters := s.clusters()
	for _, h := range clusters {
		if h.dir.Namespace() == namespace || namespace == "" && len(clusters) == 1 {
			return h
		}
	}
	return nil
}

// lookForNew has directories of clusters looked at.
func (s *Service) lookForNew() {
	select {
	case s.look <- struct{}{}:
	default: // it is about to look
	}
}

// lookAgain has directories of clusters looked at, and the records of those that run read again.
func (s *Service) lookAgain() {
	s.lookForNew()
	for _, h := range s.clusters() {
		h.requestReload()
	}
}

// refuse tells the controllers of all clusters that a token with the session of a machine was refused; it is a machine
// of one of them.
func (s *Service) refuse(heard nodegroup.Heard) {
	for _, h := range s.clusters() {
		select {
		case h.refused <- heard:
		default: // it comes again
		}
	}
}

// removeCluster ends one cluster and removes everything of it on this host. It can be cut short at any point and called
// again.
func (s *Service) removeCluster(ctx context.Context, account component.Account, name string, dir statedir.Cluster) error {
	return takedown.Cluster{
		Account: account, Name: name, Dir: dir, Balancers: s.balancers, Runner: s.accountRunner(), Log: s.cfg.Log,
		End: func(ctx context.Context) error { return s.endHosted(ctx, dir) },
	}.Remove(ctx)
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
