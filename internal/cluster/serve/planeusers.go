// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"strings"

	"muster.dev/muster/internal/cluster/component"
	"muster.dev/muster/internal/cluster/machine/local"
	"muster.dev/muster/internal/cluster/planeid"
	"muster.dev/muster/internal/platform/statedir"
)

// etc is where users of this host are reserved.
const etc = "/etc"

// reserveUsers reserves the users of the host that components of clusters run as. The note says in one line why they run as this user instead.
func reserveUsers(dir statedir.Dir) (note string) {
	if !local.Possible() {
		return "muster does not run as root"
	}
	if err := planeid.Reserve(etc, dir); err != nil {
		return strings.ReplaceAll(err.Error(), "\n", "; ")
	}
	return ""
}

// ownUsers reports whether components of clusters get users of their own when they start.
func (s *Service) ownUsers() bool { return s.usersNote == "" }

// isAuthenticator reports whether a user of the host is that of a cluster's authenticator.
func (s *Service) isAuthenticator(user uint32) bool {
	return planeid.Is(s.cfg.State, user, component.Authenticator)
}
