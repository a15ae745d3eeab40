// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"muster.dev/muster/internal/sts/ststest"
)

// hybridTrusted is what the authenticator's configuration says of a role of hybrid nodes.
const hybridTrusted = "trustedSessionNames: [{role: 'arn:aws:iam::111122223333:role/edge/hybrid', names: ['mi-*']}]"

// From the file to the API server's answer: what is trusted counts, and a line says so when it starts.
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
			c.logger = slog.New(slog.NewTextHandler(log, nil))
			s := runningAuthenticator(t, c)
			eventually(t, "it is ready", func() bool { status, _ := health(t, s, "/readyz"); return status == http.StatusOK })
			if status, user := reviewOf(t, s, state, ststest.Token(t, node, "demo", time.Now())); status != tc.status || user != tc.user {
				t.Errorf("the node: %d %q, want %d %q", status, user, tc.status, tc.user)
			}
			if status, user := reviewOf(t, s, state, ststest.Token(t, person, "demo", time.Now())); status != http.StatusForbidden || user != "" {
				t.Errorf("a person: %d %q", status, user)
			}
			if got := describeAuthenticator(c.file); strings.HasSuffix(got, "; sessions of arn:aws:iam::111122223333:role/edge/hybrid are trusted to be the nodes mi-*") != (tc.lines == 1) {
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

func TestAuthCheckOfTrustedNames(t *testing.T) {
	t.Parallel()
	const hybrid = "arn:aws:iam::111122223333:role/hybrid"
	manifest := written(t, `apiVersion: access.muster.dev/v1alpha1
kind: AccessEntry
metadata: {name: hybrid}
spec: {principalARN: "`+hybrid+`", type: HYBRID_LINUX}
`)
	head := "apiVersion: authenticator.muster.dev/v1alpha1\nkind: AuthenticatorConfiguration\nclusterID: demo\nserver: {stateDir: /a}\n"
	config, without := written(t, head+"mapping: {"+hybridTrusted+"}\n"), written(t, head)
	for _, tc := range []struct {
		name   string
		args   []string
		status int
		want   []string // each in the output
	}{
		{"nothing is wrong", []string{"--config", config}, 0, []string{
			"AccessEntry hybrid: nodes are named after the sessions of arn:aws:iam::111122223333:role/edge/hybrid: the authenticator's configuration trusts the names mi-*.\nNothing is wrong with 1 entry.\n",
		}},
		{"as data", []string{"--config", config, "-o", "json"}, 0, []string{`"problems": []`, `"trusts": [`, `"mi-*"`}},
		{"a node", []string{"--config", config, hybrid, "--session-name", "mi-0123456789abcdef0"}, 0, []string{
			"becomes the user system:node:mi-0123456789abcdef0\nin the groups system:nodes\nby AccessEntry hybrid.\nNothing proves that it is this node: the authenticator's configuration trusts the names of that role's sessions.\n",
			"matches", "the authenticator's configuration trusts this name of a session of " + hybrid,
		}},
		{"a node, as data", []string{"--config", config, hybrid, "--session-name", "mi-0123456789abcdef0", "-o", "yaml"}, 0, []string{"trusted: true\n", "rule: trusted-name\n"}},
		{"a person", []string{"--config", config, hybrid, "--session-name", "anna"}, 1, []string{
			"is not let in: the authenticator's configuration trusts the sessions of arn:aws:iam::111122223333:role/edge/hybrid that are named mi-*, and this one is named \"anna\".\n" +
				"Add it to mapping.trustedSessionNames there if a service sets it.\n",
		}},
		{"an instance that is not proven", []string{"--config", config, hybrid, "--session-name", "i-0123456789abcdef0"}, 1, []string{"is not proven to be an instance's"}},
		{"nothing is trusted", []string{"--config", without}, 1, []string{"AccessEntry   hybrid   spec.type   yes    it names nodes after their sessions", "(mapping.trustedSessionNames); otherwise let such nodes join with bootstrap tokens"}},
		{"a node of which nothing is trusted", []string{"--config", without, hybrid, "--session-name", "mi-0123456789abcdef0"}, 1, []string{
			"is not let in: the session \"mi-0123456789abcdef0\" is not proven to be an instance's", "trust them in the authenticator's configuration (mapping.trustedSessionNames)",
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b, check := authBench(t, interceptor.Funcs{})
			err := check(append([]string{"-f", manifest}, tc.args...)...)
			var status exitStatus
			if errors.As(err, &status); int(status) != tc.status || err != nil && status == 0 {
				t.Fatalf("%v, want status %d\n%s", err, tc.status, b.err.String())
			}
			for _, want := range tc.want {
				if !strings.Contains(b.out.String(), want) {
					t.Errorf("no %q in:\n%s", want, b.out.String())
				}
			}
		})
	}
}
