// SPDX-License-Identifier: Apache-2.0

package issuer

import (
	"errors"
	"net/netip"
	"strings"
	"testing"

	"muster.dev/muster/internal/plane/component"
)

func TestStrayed(t *testing.T) {
	at := component.Issuers{Host: "vm", Loopback: netip.MustParseAddr("127.0.1.1")}
	for _, test := range []struct {
		found string
		err   error
		want  string
	}{
		{"127.0.1.1", nil, ""},
		{"::1 127.0.1.1", nil, ""},
		{"192.0.2.1 192.0.2.2", nil, "vm leads to [192.0.2.1 192.0.2.2] here; put the line `127.0.1.1 vm` into /etc/hosts"},
		{"127.0.0.1", nil, "vm leads to [127.0.0.1] here"},
		{"", errors.New("no such host"), "vm is not found (no such host) here"},
	} {
		var found []netip.Addr
		for text := range strings.FieldsSeq(test.found) {
			found = append(found, netip.MustParseAddr(text))
		}
		if got := Strayed(at, found, test.err); (got == "") != (test.want == "") || !strings.Contains(got, test.want) {
			t.Errorf("%s, %v: %q; want %q", test.found, test.err, got, test.want)
		}
	}
}

// The advice does not delete the account.
func TestAdviceAboutIssuersKeepsTheAccount(t *testing.T) {
	t.Parallel()
	if strings.Contains(WithoutName, "--delete") || !strings.Contains(WithoutName, "/openid/v1/jwks") {
		t.Errorf("advice: %s", WithoutName)
	}
}
