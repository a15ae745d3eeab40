// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"maps"
	"strings"
	"testing"
)

func TestParseChallenge(t *testing.T) {
	for text, want := range map[string]challenge{
		`Bearer realm="https://auth.docker.io/token",service="registry.docker.io",scope="repository:library/nginx:pull"`: {"bearer", map[string]string{
			"realm": "https://auth.docker.io/token", "service": "registry.docker.io", "scope": "repository:library/nginx:pull",
		}},
		`Bearer realm="https://quay.io/v2/auth", service=quay.io`: {"bearer", map[string]string{"realm": "https://quay.io/v2/auth", "service": "quay.io"}},
		`BASIC Realm="a \"b\", c=d"`:                              {"basic", map[string]string{"realm": `a "b", c=d`}},
		`Negotiate`:                                               {"negotiate", map[string]string{}},
	} {
		got, err := parseChallenge(text)
		if err != nil || got.scheme != want.scheme || !maps.Equal(got.parameters, want.parameters) {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", `Bearer realm="x`, `Bearer realm`, `Bearer realm="a"service="b"`, `Bearer realm="a",realm="b"`, `Bearer ="a"`, `Bearer realm="a\`, `B"r realm="a"`, "Bearer realm=" + strings.Repeat("a", maxChallenge)} {
		if got, err := parseChallenge(text); err == nil {
			t.Errorf("%.80s is taken for %+v", text, got)
		}
	}
}

func FuzzParseChallenge(f *testing.F) {
	f.Add(`Bearer realm="https://auth.docker.io/token",service="registry.docker.io",scope="repository:library/nginx:pull"`)
	f.Add(`Basic realm="a \"b\""`)
	f.Fuzz(func(t *testing.T, text string) {
		c, err := parseChallenge(text)
		if err != nil {
			return
		}
		if !isToken(c.scheme) || c.scheme != strings.ToLower(c.scheme) {
			t.Errorf("%q has the scheme %q", text, c.scheme)
		}
		for key := range c.parameters {
			if !isToken(key) {
				t.Errorf("%q has the parameter %q", text, key)
			}
		}
	})
}
