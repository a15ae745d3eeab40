// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"muster.dev/muster/internal/plane/podidentity"
	"muster.dev/muster/internal/platform/atomicfile"
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
			err = writeAssociations(file, accounts)
		}
		problems = append(problems, err)
	}
	return errors.Join(problems...)
}

// writeAssociations writes a file that says something else than it did.
func writeAssociations(path string, accounts []podidentity.ServiceAccount) error {
	if accounts == nil {
		accounts = []podidentity.ServiceAccount{}
	}
	raw, err := json.Marshal(map[string]any{"identities": accounts})
	if err != nil {
		return fmt.Errorf("encoding associations: %w", err)
	}
	raw = append(raw, '\n')
	if has, err := os.ReadFile(path); err == nil && bytes.Equal(has, raw) {
		return nil
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("reading associations: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("making directory of associations: %w", err)
	}
	return atomicfile.Write(path, raw, 0o640) // the group is the webhook's, where it has a user of its own
}
