// SPDX-License-Identifier: Apache-2.0

package proxyheader_test

import (
	"bytes"
	"errors"
	"net/netip"
	"testing"

	"muster.dev/muster/internal/platform/proxyheader"
)

var (
	machine  = netip.MustParseAddrPort("192.168.64.11:40000")
	endpoint = netip.MustParseAddrPort("192.168.64.3:443")
)

// The bytes are those of the specification's section 2.2, put together by hand.
func TestHeader(t *testing.T) {
	want := append([]byte{0x0d, 0x0a, 0x0d, 0x0a, 0x00, 0x0d, 0x0a, 0x51, 0x55, 0x49, 0x54, 0x0a, 0x21, 0x11, 0, 12},
		192, 168, 64, 11, 192, 168, 64, 3, 0x9c, 0x40, 0x01, 0xbb)
	var got bytes.Buffer
	if err := proxyheader.Write(&got, machine, endpoint); err != nil || !bytes.Equal(got.Bytes(), want) {
		t.Fatalf("%x, want %x: %v", got.Bytes(), want, err)
	}
	got.WriteString("hello")
	source, destination, err := proxyheader.Read(&got)
	if err != nil || source != machine || destination != endpoint || got.String() != "hello" {
		t.Errorf("%s to %s, %q left: %v", source, destination, got.String(), err)
	}
}

func TestNoHeader(t *testing.T) {
	var good bytes.Buffer
	if err := proxyheader.Write(&good, machine, endpoint); err != nil {
		t.Fatal(err)
	}
	for what, change := range map[string]func([]byte) []byte{
		"nothing":             func([]byte) []byte { return nil },
		"half of one":         func(b []byte) []byte { return b[:20] },
		"TLS":                 func([]byte) []byte { return append([]byte{0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3}, make([]byte, 40)...) },
		"version 1":           func([]byte) []byte { return []byte("PROXY TCP4 192.168.64.11 192.168.64.3 40000 443\r\n") },
		"of the proxy itself": func(b []byte) []byte { b[12] = 0x20; return b },
		"of UDP":              func(b []byte) []byte { b[13] = 0x12; return b },
		"of IPv6":             func(b []byte) []byte { b[13] = 0x21; return b },
		"with more in it":     func(b []byte) []byte { b[15] = 15; return append(b, 4, 0, 0) },
	} {
		if source, _, err := proxyheader.Read(bytes.NewReader(change(bytes.Clone(good.Bytes())))); !errors.Is(err, proxyheader.ErrHeader) || source.IsValid() {
			t.Errorf("%s is from %s, %v", what, source, err)
		}
	}
	if err := proxyheader.Write(&good, netip.MustParseAddrPort("[::1]:1"), endpoint); err == nil {
		t.Error("a header for IPv6 was written")
	}
}
