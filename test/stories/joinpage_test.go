// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"regexp"
	"strings"
	"testing"
)

// page runs what docs/join.md shows. Commands on the host read the token, which the page pastes.
func (s *joinStory) page(t *testing.T) {
	s.adminKubeconfig(t)
	_, _, _ = s.installation.try("delete", "host", ownHostName) // earlier steps registered it, if they ran
	s.installation.follow(page{
		name: "join.md", least: 5, pairs: []string{"worker-1", ownHostName, "172.31.0.200", ownHostAddress},
		unsteady: regexp.MustCompile(`(?m)^ +(WARN .*|[\d.]+s .* … .*)\n`),
		there: func(line, token string) (string, error) {
			// This machine may have no program that loads modules of the kernel (see command).
			line = strings.Replace(line, "muster join "+privateServer, "muster join "+privateServer+" --ignore-preflight programs", 1)
			return s.host.RunWith(t.Context(), token+"\n", "sh", "-c", line)
		},
	})
	if out, err := s.host.Run(t.Context(), "rm", "-f", "token", "admin.conf"); err != nil {
		t.Error(err, out)
	}
	s.unchanged(t, "after the page")
}
