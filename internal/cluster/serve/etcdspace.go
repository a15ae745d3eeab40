// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"

	"muster.dev/muster/internal/cluster/updatecontroller"
	"muster.dev/muster/internal/plane/etcdspace"
)

// warnOfSpace tells by an Event that etcd takes no writes.
func (h *hosted) warnOfSpace(message string) {
	h.log.Error("etcd", "problem", message)
	h.news.Warn("EtcdNoSpace", message)
}

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
