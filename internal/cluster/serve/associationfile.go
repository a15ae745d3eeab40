// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"
	"errors"
	"time"

	"muster.dev/muster/internal/plane/podidentity"
)

// associationRetry is the pause before the files of clusters that have just begun are looked at, and after a failure.
const associationRetry = 2 * time.Second

// writeAssociations tells the pod identity webhook of each cluster which service accounts have an association, until the context ends.
func (p PodIdentities) writeAssociations(ctx context.Context) {
	told := ""
	for ctx.Err() == nil {
		err := p.writeAll()
		if err != nil && err.Error() != told {
			p.service.cfg.Log.Warn("pod identity webhooks are not told of associations", "error", err, "again", associationRetry)
			told = err.Error()
		}
		select {
		case <-ctx.Done():
		case <-p.associations.Changed():
		case <-time.After(associationRetry): // a cluster may be new
		}
	}
}

func (p PodIdentities) writeAll() error {
	var problems []error
	for _, h := range p.service.clusters() {
		h.mu.Lock()
		name, file := h.specs.Cluster.Spec.Name, h.specs.PodAssociations()
		h.mu.Unlock()
		if name == "" {
			continue // it has not begun
		}
		accounts, err := p.associations.ServiceAccounts(podidentity.Cluster{Name: name, Namespace: h.dir.Namespace()})
		if errors.Is(err, podidentity.ErrNotReady) {
			return nil
		}
		if err == nil {
			err = podidentity.WriteFile(file, accounts)
		}
		problems = append(problems, err)
	}
	return errors.Join(problems...)
}
