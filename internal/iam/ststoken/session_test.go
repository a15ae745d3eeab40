// SPDX-License-Identifier: Apache-2.0

package ststoken_test

import (
	"strings"
	"testing"
	"time"

	"muster.dev/muster/internal/iam/ststoken"
	"muster.dev/muster/internal/iam/tokenverify/ststest"
)

func TestSession(t *testing.T) {
	session := ststest.Session("node", "i-0123456789abcdef0", 1)
	const url = "https://sts.example.internal/?X-Amz-Credential=ASIA1%2F20261122%2Flocal-1%2Fsts%2Faws4_request"
	for _, test := range []struct{ name, token, key, session string }{
		{"a token", ststest.Token(t, session, "demo", time.Now()), session.ID, session.Session},
		{"for a host that is none", ststest.TokenFor(t, session, "demo", "sts.example.internal", "x", time.Now()), session.ID, session.Session},
		{"of a user", ststest.Token(t, ststest.User("alice", 1), "demo", time.Now()), "", ""},
		{"two sessions", ststoken.Encode(url + "&X-Amz-Security-Token=a&X-Amz-Security-Token=b"), "", ""},
		{"two keys", ststoken.Encode(url + "&X-Amz-Credential=ASIA2/x&X-Amz-Security-Token=a"), "", ""},
		{"no key", ststoken.Encode("https://sts.example.internal/?X-Amz-Credential=%2Fx&X-Amz-Security-Token=a"), "", ""},
		{"no query that can be read", ststoken.Encode(url + "&X-Amz-Security-Token=%zz"), "", ""},
		{"no URL", ststoken.Encode("https://[::1/?X-Amz-Credential=A/x&X-Amz-Security-Token=a"), "", ""},
		{"too long", ststoken.Encode(url + "&X-Amz-Security-Token=" + strings.Repeat("a", ststoken.MaxSize)), "", ""},
		{"something else", "eyJhbGciOi", "", ""},
	} {
		key, token, ok := ststoken.Session(test.token)
		if key != test.key || token != test.session || ok != (test.key != "") {
			t.Errorf("%s: %q %q %v", test.name, key, token, ok)
		}
	}
}
