// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"
	"errors"
	"log/slog"

	"muster.dev/muster/internal/cluster/updatecontroller"
	"muster.dev/muster/internal/plane/etcdspace"
)

// warnOfSpace tells by an Event that etcd takes no writes.
func (h *hosted) warnOfSpace(s etcdspace.Space) {
	message := etcdspace.NoSpace + ": " + s.String()
	h.log.Error("etcd", "problem", message)
	h.news.Warn("EtcdNoSpace", message)
}

// warnOfManagementSpace tells that the management plane's etcd takes no writes. An Event would be such a write.
func warnOfManagementSpace(log *slog.Logger) func(etcdspace.Space) {
	return func(s etcdspace.Space) {
		log.Error("etcd of the management plane", "problem", etcdspace.NoManagementSpace+": "+s.String())
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
	freed, err := upkeep.Free(ctx)
	if err != nil {
		return "", err
	}
	c.cfg.Log.Info("gave back space of the management plane's etcd", "done", freed.String())
	return freed.String(), nil
}

// errNoAccount means that the account's own processes do not run yet.
var errNoAccount = errors.New("the management plane does not run yet: see muster status")

// freeEtcd gives back the space of the etcd of a cluster, by its namespace, and says what was done.
func freeEtcd(s *Service) updatecontroller.FreeEtcd {
	return func(ctx context.Context, namespace string) (string, error) {
		specs, err := s.specsOf(namespace)
		if err != nil {
			return "", err
		}
		freed, err := etcdspace.Of(specs).Free(ctx)
		if err != nil {
			return "", err
		}
		s.cfg.Log.Info("gave back space of etcd", "cluster", namespace, "done", freed.String())
		return freed.String(), nil
	}
}
