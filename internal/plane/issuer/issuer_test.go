// SPDX-License-Identifier: Apache-2.0

package issuer

import (
	"bytes"
	"net/netip"
	"strings"
	"testing"
)

const someID = "0123456789ABCDEF0123456789ABCDEF"

func TestNew(t *testing.T) {
	random := []byte{0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef, 0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef}
	address := netip.MustParseAddr("127.93.14.201")
	for _, test := range []struct {
		at   Endpoint
		want string
		name string
	}{
		{At(address, 443), "https://127.93.14.201/id/" + someID, "127.93.14.201"},
		{At(address, 20443), "https://127.93.14.201:20443/id/" + someID, "127.93.14.201"},
		{Endpoint{Host: "oidc.example.com", Port: 20443}, "https://oidc.example.com/id/" + someID, "oidc.example.com"},
		{Endpoint{Host: "oidc.example.com:8443", Port: 443}, "https://oidc.example.com:8443/id/" + someID, "oidc.example.com"},
	} {
		i, err := New(test.at, bytes.NewReader(random))
		if err != nil || i.String() != test.want || i.ID != someID || i.Keys() != test.want+"/keys" {
			t.Errorf("%+v: %v, %v; want %s", test.at, i, err, test.want)
		}
		if parsed, err := Parse(i.String()); err != nil || parsed != i {
			t.Errorf("%s is read as %v, %v", i, parsed, err)
		}
		if test.at.Name() != test.name {
			t.Errorf("%+v has the name %s", test.at, test.at.Name())
		}
	}
	if _, err := New(At(address, 443), bytes.NewReader(random[1:])); err == nil {
		t.Error("an id came of too few bytes")
	}
}

func TestParse(t *testing.T) {
	for text, want := range map[string]bool{
		"https://127.93.14.201/id/" + someID:                               true,
		"https://127.93.14.201:20443/id/" + someID:                         true,
		"https://oidc.example.com/id/" + someID:                            true,
		"https://localhost/id/" + someID:                                   true,
		"https://1password.x1/id/" + someID:                                true,
		"":                                                                 false,
		"http://127.93.14.201/id/" + someID:                                false,
		"HTTPS://127.93.14.201/id/" + someID:                               false,
		"https://127.93.14.201/id/" + someID + "/":                         false,
		"https://127.93.14.201/id/" + someID + "?":                         false,
		"https://127.93.14.201/id/" + someID + "\n":                        false,
		"https://127.93.14.201/id/" + strings.ToLower(someID):              false,
		"https://127.93.14.201/id/" + someID[1:]:                           false,
		"https://127.93.14.201/id/" + someID + "0":                         false,
		"https://127.93.14.201/id/G" + someID[1:]:                          false,
		"https://127.93.14.201/" + someID:                                  false,
		"https://127.93.14.201/x/id/" + someID:                             false,
		"https://127.93.14.201:443/id/" + someID:                           false, // two ways to write one issuer
		"https://127.93.14.201:020443/id/" + someID:                        false,
		"https://127.93.14.201:0/id/" + someID:                             false,
		"https://127.93.14.201:65536/id/" + someID:                         false,
		"https://127.93.14.201:+80/id/" + someID:                           false,
		"https://127.93.14.201:/id/" + someID:                              false,
		"https://127.93.14.201:1:2/id/" + someID:                           false,
		"https://127.093.14.201/id/" + someID:                              false,
		"https://127.1/id/" + someID:                                       false, // 127.0.0.1 to many resolvers
		"https://a.0x7f/id/" + someID:                                      false,
		"https://[::1]/id/" + someID:                                       false,
		"https://::1/id/" + someID:                                         false,
		"https://Oidc.example.com/id/" + someID:                            false,
		"https://oidc.example.com./id/" + someID:                           false,
		"https://-a.example.com/id/" + someID:                              false,
		"https://a-.example.com/id/" + someID:                              false,
		"https://a_b.example.com/id/" + someID:                             false,
		"https://user@example.com/id/" + someID:                            false,
		"https://" + strings.Repeat("a", 64) + ".com/id/" + someID:         false,
		"https://" + strings.Repeat("a.", 127) + "com/id/" + someID:        false,
		"https:///id/" + someID:                                            false,
		"https://127.93.14.201/id/" + someID + "/id/" + someID:             false,
		"https://127.93.14.201/id/../id/" + someID:                         false,
		"https://127.93.14.201/id/" + someID[:31] + "\u0660":               false,
		"https://127.93.14.201%2fid/id/" + someID:                          false,
		"https://127.93.14.201\x00/id/" + someID:                           false,
		" https://127.93.14.201/id/" + someID:                              false,
		"https://xn--bcher-kva.example/id/" + someID:                       true,
		"https://" + strings.Repeat("a", 63) + ".example.com/id/" + someID: true,
		"https://" + strings.Repeat("a.", 125) + "com" + "/id/" + someID:   true,
		"https://" + strings.Repeat("a.", 125) + "comm" + "/id/" + someID:  false,
		"https://127.93.14.201:65535/id/" + someID:                         true,
		"https://127.93.14.201:1/id/" + someID:                             true,
		"https://127.93.14.201:99999999999999999999/id/" + someID:          false,
		"https://256.0.0.1/id/" + someID:                                   false,
		"https://127.93.14.201//id/" + someID:                              false,
		"https://::ffff:127.0.0.1/id/" + someID:                            false,
		"https://example.com:8443/id/" + someID:                            true,
		"https://example.com#/id/" + someID:                                false,
		"https://example.com?/id/" + someID:                                false,
		"https://example..com/id/" + someID:                                false,
		"https://127.93.14.201/ID/" + someID:                               false,
		"https://127.93.14.201/id/" + someID + "/keys":                     false,
		"https://127.93.14.201/id/" + someID + "#":                         false,
		"https://127.93.14.201/id/" + someID + " ":                         false,
		"https://127.93.14.201/id/\u00e9" + someID[2:]:                     false,
		"https://b\u00fccher.example/id/" + someID:                         false,
		"ftp://127.93.14.201/id/" + someID:                                 false,
		"//127.93.14.201/id/" + someID:                                     false,
		"https://127.93.14.201/id/" + someID[:16] + "-" + someID[17:]:      false,
		"https://127.93.14.201/id/" + strings.Repeat("A", 32):              true,
		"https://127.93.14.201/id/" + strings.Repeat("A", 31) + "\u212a":   false,
	} {
		i, err := Parse(text)
		if (err == nil) != want {
			t.Errorf("%q: %v, %v", text, i, err)
		}
		if err == nil && i.String() != text {
			t.Errorf("%q is %q when written again", text, i)
		}
		if err != nil && (i != Issuer{} || strings.Contains(err.Error(), "\n")) {
			t.Errorf("%q: %v with %v", text, i, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{"https://127.93.14.201/id/" + someID, "https://oidc.example.com:8443/id/" + someID, "https://127.1/id/" + someID, "https://[::1]/id/x", ""} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		i, err := Parse(text)
		if err != nil {
			return
		}
		if i.String() != text || !strings.HasPrefix(text, "https://") || strings.ContainsAny(text, " %?#@\\\x00\n") {
			t.Errorf("%q is read as %q", text, i)
		}
		if id, path, ok := split(strings.TrimPrefix(i.Keys(), "https://"+i.host)); !ok || id != i.ID || path != keysPath {
			t.Errorf("the keys of %q are at a path that nothing answers: %q", text, i.Keys())
		}
	})
}
