// SPDX-License-Identifier: Apache-2.0

package proxyheader_test

import (
	"bytes"
	"errors"
	"net/netip"
	"strings"
	"testing"

	"muster.dev/muster/internal/platform/proxyheader"
)

var (
	machine  = netip.MustParseAddrPort("192.168.64.11:40000")
	endpoint = netip.MustParseAddrPort("192.168.64.3:443")
)

const vpc = "vpc-0123456789abcdef0"

var header = proxyheader.Header{Source: machine, Destination: endpoint, VPC: vpc}

// The bytes are those of the specification's sections 2.2 and 2.2.7, put together by hand.
func TestHeader(t *testing.T) {
	want := append([]byte{0x0d, 0x0a, 0x0d, 0x0a, 0x00, 0x0d, 0x0a, 0x51, 0x55, 0x49, 0x54, 0x0a, 0x21, 0x11, 0, 36},
		192, 168, 64, 11, 192, 168, 64, 3, 0x9c, 0x40, 0x01, 0xbb, 0xe0, 0, 21)
	want = append(want, "vpc-0123456789abcdef0"...)
	var got bytes.Buffer
	if err := proxyheader.Write(&got, header); err != nil || !bytes.Equal(got.Bytes(), want) {
		t.Fatalf("%x, want %x: %v", got.Bytes(), want, err)
	}
	got.WriteString("hello")
	if read, err := proxyheader.Read(&got); err != nil || read != header || got.String() != "hello" {
		t.Errorf("%+v, %q left: %v", read, got.String(), err)
	}
}

func TestNoHeader(t *testing.T) {
	var good bytes.Buffer
	if err := proxyheader.Write(&good, header); err != nil {
		t.Fatal(err)
	}
	for what, change := range map[string]func([]byte) []byte{
		"nothing":              func([]byte) []byte { return nil },
		"half of one":          func(b []byte) []byte { return b[:20] },
		"TLS":                  func([]byte) []byte { return append([]byte{0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3}, make([]byte, 40)...) },
		"version 1":            func([]byte) []byte { return []byte("PROXY TCP4 192.168.64.11 192.168.64.3 40000 443\r\n") },
		"of the proxy itself":  func(b []byte) []byte { b[12] = 0x20; return b },
		"of UDP":               func(b []byte) []byte { b[13] = 0x12; return b },
		"of IPv6":              func(b []byte) []byte { b[13] = 0x21; return b },
		"with more in it":      func(b []byte) []byte { b[15] += 3; return append(b, 4, 0, 0) },
		"very long":            func(b []byte) []byte { b[14] = 255; return append(b, make([]byte, 1<<16)...) },
		"without a VPC":        func(b []byte) []byte { b[15] = 12; return b[:28] },
		"with an empty VPC":    func(b []byte) []byte { b[15], b[30] = 15, 0; return b[:31] },
		"with another field":   func(b []byte) []byte { b[28] = 0xe1; return b },
		"with a VPC cut short": func(b []byte) []byte { b[30]--; return b },
		"with a bad VPC":       func(b []byte) []byte { b[len(b)-1] = '/'; return b },
	} {
		if read, err := proxyheader.Read(bytes.NewReader(change(bytes.Clone(good.Bytes())))); !errors.Is(err, proxyheader.ErrHeader) || read != (proxyheader.Header{}) {
			t.Errorf("%s is from %+v, %v", what, read, err)
		}
	}
	for what, bad := range map[string]proxyheader.Header{
		"IPv6":     {Source: netip.MustParseAddrPort("[::1]:1"), Destination: endpoint, VPC: vpc},
		"no VPC":   {Source: machine, Destination: endpoint},
		"long VPC": {Source: machine, Destination: endpoint, VPC: "vpc-" + strings.Repeat("0", 61)},
	} {
		if err := proxyheader.Write(&good, bad); err == nil {
			t.Errorf("a header was written with %s", what)
		}
	}
}

// A header that is read is written again as it was, and bytes behind it are not read.
func FuzzRead(f *testing.F) {
	var good bytes.Buffer
	if err := proxyheader.Write(&good, header); err != nil {
		f.Fatal(err)
	}
	f.Add(good.Bytes())
	f.Add(append(good.Bytes(), "GET / HTTP/1.1"...))
	f.Add([]byte("PROXY TCP4 192.168.64.11 192.168.64.3 40000 443\r\n"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		from := bytes.NewReader(raw)
		h, err := proxyheader.Read(from)
		if err != nil {
			return
		}
		var again bytes.Buffer
		if err := proxyheader.Write(&again, h); err != nil || !bytes.Equal(again.Bytes(), raw[:len(raw)-from.Len()]) {
			t.Errorf("%+v is written as %x, not %x: %v", h, again.Bytes(), raw, err)
		}
	})
}
