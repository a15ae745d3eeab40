// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"

	"muster.dev/muster/internal/plane/etcdspace"
)

// EtcdSpace is what the etcd of a cluster that is served, by its namespace, said last of its space; the Quota is 0 if it
// has said nothing yet.
func (s *Service) EtcdSpace(namespace string) etcdspace.Space {
	if h := s.cluster(namespace); h != nil {
		return h.etcd.Last()
	}
	return etcdspace.Space{}
}

// warnOfSpace tells by an Event that etcd takes no writes.
func (h *hosted) warnOfSpace(message string) {
	h.log.Error("etcd", "problem", message)
	h.news.Warn("EtcdNoSpace", message)
}

// freeEtcd gives back the space of the etcd of a cluster, by its namespace, and says what was done.
func (s *Service) freeEtcd(ctx context.Context, namespace string) (string, error) {
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
