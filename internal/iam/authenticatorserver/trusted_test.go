// SPDX-License-Identifier: Apache-2.0

package authenticatorserver

import (
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"muster.dev/muster/internal/iam/tokenverify/ststest"
)

// hybridTrusted is what the authenticator's configuration says of a role of hybrid nodes.
const hybridTrusted = "trustedSessionNames: [{role: 'arn:aws:iam::111122223333:role/edge/hybrid', names: ['mi-*']}]"

// From the file to the API server's answer: the trusted roles count, and a line says so when it starts.
func TestAnAuthenticatorTrustsNamesOfSessions(t *testing.T) {
	node, person := ststest.Session("hybrid", "mi-0123456789abcdef0", 1), ststest.Session("hybrid", "anna", 2)
	mappings := filepath.Join(t.TempDir(), "mappings.yaml")
	if err := os.WriteFile(mappings, []byte("mapRoles:\n- {rolearn: 'arn:aws:iam::111122223333:role/hybrid', username: 'system:node:{{SessionName}}', groups: [system:nodes]}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		more   string
		status int
		user   string
		lines  int
	}{
		"trusted": {", " + hybridTrusted, http.StatusOK, "system:node:mi-0123456789abcdef0", 1},
		"not":     {"", http.StatusForbidden, "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			log := &lines{}
			c, state := authenticatorConfigOf(t, stsOf(t, ststest.New(t, node, person))+"mapping: {file: "+mappings+", fileOnly: true"+tc.more+"}\n")
			c.Logger = slog.New(slog.NewTextHandler(log, nil))
			s := runningAuthenticator(t, c)
			eventually(t, "it is ready", func() bool { status, _ := health(t, s, "/readyz"); return status == http.StatusOK })
			if status, user := reviewOf(t, s, state, ststest.Token(t, node, "demo", time.Now())); status != tc.status || user != tc.user {
				t.Errorf("the node: %d %q, want %d %q", status, user, tc.status, tc.user)
			}
			if status, user := reviewOf(t, s, state, ststest.Token(t, person, "demo", time.Now())); status != http.StatusForbidden || user != "" {
				t.Errorf("a person: %d %q", status, user)
			}
			if got := Summarize(c.File); strings.HasSuffix(got, "; sessions of arn:aws:iam::111122223333:role/edge/hybrid are trusted to be the nodes mi-*") != (tc.lines == 1) {
				t.Errorf("--check says %q", got)
			}
			log.mu.Lock()
			defer log.mu.Unlock()
			const line = `msg="sessions of a role become the nodes that they are named after" role=arn:aws:iam::111122223333:role/edge/hybrid names=[mi-*]`
			if got := strings.Count(log.text.String(), line); got != tc.lines {
				t.Errorf("it is said %d times at the start, want %d:\n%s", got, tc.lines, log.text.String())
			}
		})
	}
}
