// SPDX-License-Identifier: Apache-2.0

package podwebhook

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"sync"

	"muster.dev/muster/internal/platform/watchfile"
)

// identities is the file of service accounts that have a pod identity association, in the form of the original's.
type identities struct {
	Identities []struct {
		Namespace      string `json:"namespace"`
		ServiceAccount string `json:"serviceAccount"`
	} `json:"identities"`
}

// readIdentities reads the file. An empty one names nobody.
func readIdentities(raw []byte) (map[accountKey]bool, error) {
	named := map[accountKey]bool{}
	if len(raw) == 0 {
		return named, nil
	}
	var file identities
	if err := json.Unmarshal(raw, &file); err != nil {
		return nil, fmt.Errorf("reading the file of pod identity associations: %w", err)
	}
	for _, i := range file.Identities {
		if i.Namespace == "" || i.ServiceAccount == "" {
			return nil, fmt.Errorf("reading the file of pod identity associations: namespace %.80q and service account %.80q must not be empty", i.Namespace, i.ServiceAccount)
		}
		named[accountKey{i.Namespace, i.ServiceAccount}] = true
	}
	return named, nil
}

// associations are the service accounts with a pod identity association.
type associations struct {
	file watchfile.File
	log  *slog.Logger

	mu    sync.Mutex
	named map[accountKey]bool
	told  string
}

// look reads the file again. While the file cannot be read, its last content holds.
func (a *associations) look() {
	raw, err := a.file.Read()
	if errors.Is(err, fs.ErrNotExist) { // nobody has an association yet
		err = nil
	}
	var named map[accountKey]bool
	if err == nil {
		named, err = readIdentities(raw)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if err != nil {
		if a.told != err.Error() {
			a.log.Warn("the file of pod identity associations cannot be read: what it said before holds", "error", err)
		}
		a.told = err.Error()
		return
	}
	a.named, a.told = named, ""
}

func (a *associations) has(namespace, name string) bool {
	if a == nil {
		return false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.named[accountKey{namespace, name}]
}
