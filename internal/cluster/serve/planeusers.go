// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"muster.dev/muster/internal/machine/machine/local"
	"muster.dev/muster/internal/plane/component"
	"muster.dev/muster/internal/plane/planeid"
	"muster.dev/muster/internal/platform/seclude"
	"muster.dev/muster/internal/platform/statedir"
)

// etc is where users of this host are reserved.
const etc = "/etc"

// planePrograms are what components run that have users of their own.
var planePrograms = []string{
	"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler",
	"muster", "muster-certificate-controller", "muster-token-signer", "muster-webhook-proxy",
}

// reserveUsers reserves the users of the host that components of clusters run as. The note says in one line why they run as this user instead: an installation
// from before goes on where they cannot have users.
func reserveUsers(dir statedir.Dir, programs string) (note string) {
	if !local.Possible() {
		return "muster does not run as root"
	}
	err := mayRun(programs)
	if err == nil {
		err = seclude.Try()
	}
	if err == nil {
		err = planeid.Reserve(etc, dir)
	}
	if err != nil {
		return strings.ReplaceAll(err.Error(), "\n", "; ")
	}
	return ""
}

// mayRun reports which program other users may not run, whatever directory it is in.
func mayRun(dir string) error {
	const others fs.FileMode = 0o005
	for _, name := range planePrograms {
		path := filepath.Join(dir, name)
		if info, err := os.Stat(path); err == nil && info.Mode()&others != others { // one that is missing is told of by others
			return fmt.Errorf("users may not run %s: `chmod o+rx %s`, then `muster down` and `muster up`", path, path)
		}
	}
	return nil
}

// ensureUsers chooses the users of the cluster's components. Where that cannot be, as on a full disk, they run as this one until the cluster is served again.
func (h *hosted) ensureUsers() {
	note := h.service.usersNote
	if note == "" {
		if err := planeid.Ensure(h.service.cfg.State, h.dir); err != nil {
			note = strings.ReplaceAll(err.Error(), "\n", "; ")
			h.log.Warn("the control plane has no users of its own", "error", err)
		}
	}
	h.mu.Lock()
	h.usersNote = note
	h.mu.Unlock()
}

// ownUsers reports whether components of the cluster get users of their own when they start.
func (h *hosted) ownUsers() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.usersNote == ""
}

// isAuthenticator reports whether a user of the host is that of a cluster's authenticator.
func (s *Service) isAuthenticator(user uint32) bool {
	return planeid.Is(s.cfg.State, user, component.Authenticator)
}
