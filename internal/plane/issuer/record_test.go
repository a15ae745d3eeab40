// SPDX-License-Identifier: Apache-2.0

package issuer

import (
	"bytes"
	"crypto/rand"
	"errors"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var somewhere = Endpoint{Host: "127.93.14.201", Port: 443}

func TestEnsure(t *testing.T) {
	path := filepath.Join(t.TempDir(), "issuer.json")
	made, err := Ensure(path, somewhere, false, bytes.NewReader(bytes.Repeat([]byte{0xab}, 16)))
	if err != nil || made.String() != "https://127.93.14.201/id/"+strings.Repeat("AB", 16) {
		t.Fatalf("made %s, %v", made, err)
	}
	raw, err := os.ReadFile(path)
	if want := "{\n  \"version\": 1,\n  \"issuer\": \"" + made.String() + "\"\n}\n"; err != nil || string(raw) != want {
		t.Errorf("the record is %s, %v; want %s", raw, err, want)
	}
	if info, err := os.Stat(path); err != nil || info.Mode() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	// It is fixed, whatever became of the account's endpoint, and whether or not the cluster is in use.
	for _, used := range []bool{false, true} {
		if again, err := Ensure(path, Endpoint{Host: "oidc.example.com", Port: 1}, used, rand.Reader); err != nil || again != made {
			t.Errorf("again: %s, %v; want %s", again, err, made)
		}
	}
	if after, err := os.ReadFile(path); err != nil || !bytes.Equal(raw, after) {
		t.Errorf("the record was changed to %s, %v", after, err)
	}
}

func TestEnsureNever(t *testing.T) {
	path := filepath.Join(t.TempDir(), "issuer.json")
	if i, err := Ensure(path, somewhere, true, rand.Reader); err == nil || i != (Issuer{}) || errors.Is(err, fs.ErrNotExist) ||
		!strings.Contains(err.Error(), path+" is missing, and the cluster is in use: restore the file from a backup") {
		t.Errorf("in the place of one that was lost: %v, %v", i, err)
	}
	if _, err := Ensure(path, somewhere, false, bytes.NewReader(nil)); err == nil {
		t.Error("an issuer came of nothing")
	}
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a record was made: %v", err)
	}
	if _, err := Ensure(filepath.Join(path, "none"), somewhere, false, rand.Reader); err == nil {
		t.Error("a record was made in a directory that there is not")
	}
}

func TestEndpointRecord(t *testing.T) {
	for _, want := range []Endpoint{somewhere, {Host: "oidc.example.com:8443", Port: 20443}, {Host: "127.93.14.201:20443", Port: 20443}, {Host: "vm", Port: 443, Loopback: netip.MustParseAddr("127.0.1.1")}} {
		path := filepath.Join(t.TempDir(), "issuers.json")
		if _, err := ReadEndpoint(path); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("before: %v", err)
		}
		if err := WriteEndpoint(path, want); err != nil {
			t.Fatal(err)
		}
		if got, err := ReadEndpoint(path); err != nil || got != want {
			t.Errorf("%+v, %v; want %+v", got, err, want)
		}
	}
}

// records are what a file may hold, and what is said of it; nothing of those that are right.
var records = []struct{ raw, want string }{
	{`{"version": 1, "issuer": "https://127.93.14.201/id/` + someID + `"}`, ""},
	{``, "is damaged: "},
	{"\x00\x00", "is damaged: "},
	{`null`, "version is 0 and must be 1"},
	{`[]`, "is damaged: "},
	{`{`, "is damaged: "},
	{`{"version": 1, "issuer": "https://127.93.14.201/id/` + someID + `"}{}`, "is damaged: "},
	{`{"version": 1, "version": 1, "issuer": "https://127.93.14.201/id/` + someID + `"}`, `duplicate field "version"`},
	{`{"version": 1, "issuer": "x", "issuer": "https://127.93.14.201/id/` + someID + `"}`, `duplicate field "issuer"`},
	{`{"version": 1, "Issuer": "https://127.93.14.201/id/` + someID + `"}`, `unknown field "Issuer"`},
	{`{"version": 1, "issuer": "https://127.93.14.201/id/` + someID + `", "keys": []}`, `unknown field "keys"`},
	{`{"version": 2, "issuer": {"url": "https://127.93.14.201/id/` + someID + `"}}`, "has version 2, and this Muster knows 1: use the Muster that made it, or a newer one"},
	{`{"version": 2, "issuer": "https://127.93.14.201/id/` + someID + `", "more": 1}`, "has version 2, and"},
	{`{"version": -1, "issuer": "https://127.93.14.201/id/` + someID + `"}`, "version is -1 and must be 1"},
	{`{"issuer": "https://127.93.14.201/id/` + someID + `"}`, "version is 0 and must be 1"},
	{`{"version": "1", "issuer": "https://127.93.14.201/id/` + someID + `"}`, "is damaged: "},
	{`{"version": 1}`, `issuer: "" is not https://HOST/id/ID`},
	{`{"version": 1, "issuer": null}`, `issuer: "" is not`},
	{`{"version": 1, "issuer": "https://127.93.14.201/id/x"}`, `issuer: "https://127.93.14.201/id/x" is not`},
	{`{"version": 1, "issuer": "https://127.1/id/` + someID + `"}`, `issuer: issuer host "127.1" must be a lower-case DNS name or an IPv4 address`},
}

func TestDamagedRecord(t *testing.T) {
	for _, test := range records {
		path := filepath.Join(t.TempDir(), "issuer.json")
		if err := os.WriteFile(path, []byte(test.raw), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := Ensure(path, somewhere, false, rand.Reader)
		if (err == nil) != (test.want == "") || err != nil && (!strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), path) || strings.Contains(err.Error(), "\n")) {
			t.Errorf("%s: %v; want %q", test.raw, err, test.want)
		}
		if left, err := os.ReadFile(path); err != nil || string(left) != test.raw {
			t.Errorf("%s was changed to %s, %v", test.raw, left, err)
		}
	}
}

func TestDamagedEndpoint(t *testing.T) {
	for raw, want := range map[string]string{
		`{"version": 1, "host": "vm", "port": 443, "loopback": "10.0.0.1"}`: `loopback is "10.0.0.1" and must be an IPv4 loopback address`,
		`{"version": 1, "host": "vm", "port": 443, "loopback": "::1"}`:      `loopback is "::1"`,
		`{"version": 1, "host": "vm", "port": 443, "loopback": "vm"}`:       `loopback is "vm"`,
		`{"version": 1, "host": "127.93.14.201", "port": 0}`:                "port is 0 and must be from 1 to 65535",
		`{"version": 1, "host": "127.93.14.201", "port": 65536}`:            "port is 65536",
		`{"version": 1, "host": "127.93.14.201", "port": -1}`:               "port is -1",
		`{"version": 1, "host": "", "port": 443}`:                           `issuer host "" must be`,
		`{"version": 1, "host": "a b", "port": 443}`:                        `issuer host "a b" must be`,
		`{"version": 1, "host": "127.93.14.201", "port": 443, "x": 1}`:      `unknown field "x"`,
		`{"version": 2, "host": "127.93.14.201", "port": 443}`:              "has version 2",
		`{"version": 1, "host": "127.93.14.201", "port": 443.5}`:            "is damaged",
		`{"version": 1, "host": "127.93.14.201:443", "port": 443}`:          `issuer host "127.93.14.201:443" must be`,
		`{"version": 1, "host": "https://127.93.14.201", "port": 443}`:      `issuer host "https://127.93.14.201" must be`,
		`{"version": 1, "host": "oidc.example.com/x", "port": 443}`:         `issuer host "oidc.example.com/x" must be`,
		`{"version": 1, "host": "user@oidc.example.com", "port": 443}`:      `issuer host "user@oidc.example.com" must be`,
		`{"version": 1, "host": "oidc.example.com", "port": "20443"}`:       "is damaged",
		`{"version": 1, "host": "oidc.example.com\u0000", "port": 443}`:     "must be",
	} {
		path := filepath.Join(t.TempDir(), "issuers.json")
		if err := os.WriteFile(path, []byte(raw), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := ReadEndpoint(path); err == nil || got != (Endpoint{}) || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %+v, %v; want %q", raw, got, err, want)
		}
	}
}

// A record that is read is the one that would be written: nothing in a file may pass for something else.
func FuzzRecord(f *testing.F) {
	for _, test := range records {
		f.Add([]byte(test.raw))
	}
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, raw []byte) {
		path := filepath.Join(dir, "issuer.json")
		if err := os.WriteFile(path, raw, 0o600); err != nil {
			t.Fatal(err)
		}
		i, err := Ensure(path, somewhere, false, rand.Reader)
		if err != nil {
			return
		}
		if again, err := Parse(i.String()); err != nil || again != i {
			t.Errorf("%s is read as %v", raw, i)
		}
		if after, err := os.ReadFile(path); err != nil || !bytes.Equal(raw, after) {
			t.Errorf("%s was changed to %s", raw, after)
		}
	})
}
