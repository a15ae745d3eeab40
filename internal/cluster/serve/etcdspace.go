// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"
	"errors"
	"log/slog"

	"muster.dev/muster/internal/cluster/updatecontroller"
	"muster.dev/muster/internal/plane/diskreserve"
	"muster.dev/muster/internal/plane/etcdspace"
)

// warnOfSpace tells by an Event that etcd takes no writes.
func (h *hosted) warnOfSpace(s etcdspace.Space) {
	message := s.Problem()
	h.log.Error("etcd", "problem", message)
	h.news.Warn("EtcdNoSpace", message)
}

// warnOfManagementSpace tells that the management plane's etcd takes no writes. An Event would be such a write.
func warnOfManagementSpace(log *slog.Logger) func(etcdspace.Space) {
	return func(s etcdspace.Space) {
		log.Error("etcd of the management plane", "problem", s.ManagementProblem())
	}
}

// FreeManagementEtcd implements [controlsocket.Service]. A second call waits for the first one.
func (c commands) FreeManagementEtcd(ctx context.Context) (string, error) {
	c.mu.Lock()
	upkeep := c.managementEtcd
	c.mu.Unlock()
	if upkeep == nil {
		return "", errNoAccount
	}
	c.freeing.Lock()
	defer c.freeing.Unlock()
	freed, err := free(ctx, c.disk, *upkeep)
	if err != nil {
		return "", err
	}
	c.cfg.Log.Info("gave back space of the management plane's etcd", "done", freed.String())
	return freed.String(), nil
}

// free gives back the space of an etcd, if the disk has room for it.
func free(ctx context.Context, disk *diskreserve.Reserve, u etcdspace.Upkeep) (etcdspace.Freed, error) {
	if state, _ := disk.State(); state == diskreserve.Full {
		return etcdspace.Freed{}, errDiskFull
	}
	return u.Free(ctx, disk.Room)
}

var errDiskFull = errors.New("the disk of the state directory is full: free space there first")

// errNoAccount means that the account's own processes do not run yet.
var errNoAccount = errors.New("the management plane does not run yet: see muster status")

// freeEtcd gives back the space of the etcd of a cluster, by its namespace, and says what was done.
func freeEtcd(s *Service) updatecontroller.FreeEtcd {
	return func(ctx context.Context, namespace string) (string, error) {
		specs, err := s.specsOf(namespace)
		if err != nil {
			return "", err
		}
		freed, err := free(ctx, s.disk, etcdspace.Of(specs))
		if err != nil {
			return "", err
		}
		s.cfg.Log.Info("gave back space of etcd", "cluster", namespace, "done", freed.String())
		return freed.String(), nil
	}
}
