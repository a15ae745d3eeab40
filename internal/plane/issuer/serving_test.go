// SPDX-License-Identifier: Apache-2.0

package issuer

import (
	"log/slog"
	"strings"
	"testing"

	"muster.dev/muster/internal/plane/component"
)

func TestNote(t *testing.T) {
	s := NewServing(slog.New(slog.DiscardHandler))
	s.strayed = "astray"
	for _, test := range []struct {
		host string
		pods bool
		want string
	}{
		{"127.93.14.201", true, "pods cannot reach the issuer of service account tokens, https://HOST/id/ID. " + WithoutName},
		{"vm", true, "astray"},
		{"127.93.14.201", false, ""},
		{"vm", false, ""},
	} {
		c := component.Config{Issuer: component.Issuer{URL: "https://HOST/id/ID"}}
		c.Issuers.Host = test.host
		if got := s.Note(c, test.pods); (got == "") != (test.want == "") || !strings.HasPrefix(got, test.want) {
			t.Errorf("%s, %v: %q; want %q", test.host, test.pods, got, test.want)
		}
	}
}
