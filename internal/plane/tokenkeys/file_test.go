// SPDX-License-Identifier: Apache-2.0

package tokenkeys

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"muster.dev/muster/internal/plane/issuer"
)

func formatted(t testing.TB, r Ring) []byte {
	t.Helper()
	raw, err := Format(r)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// twoKeys has an old key without its private part, and one that signs.
func twoKeys(t testing.TB) Ring {
	t.Helper()
	r, err := New(noon, ES256, rand.Reader)
	if err == nil {
		r, err = r.Rotate(noon, 0, rand.Reader)
	}
	if err != nil {
		t.Fatal(err)
	}
	r, _ = r.Prune(noon.Add(time.Minute))
	return r
}

func TestParse(t *testing.T) {
	whole := formatted(t, twoKeys(t))
	if r, err := Parse(whole); err != nil || string(formatted(t, r)) != string(whole) {
		t.Fatalf("what was written is not read: %v", err)
	}
	other := formatted(t, newRing(t))
	change := func(what func(*record)) []byte {
		var file record
		if err := json.Unmarshal(whole, &file); err != nil {
			t.Fatal(err)
		}
		what(&file)
		raw, err := json.Marshal(file)
		if err != nil {
			t.Fatal(err)
		}
		return raw
	}
	var stranger record
	if err := json.Unmarshal(other, &stranger); err != nil {
		t.Fatal(err)
	}
	for want, raw := range map[string][]byte{
		"unexpected end":                     whole[:len(whole)/2],
		"unknown field":                      []byte(strings.Replace(string(whole), `"version"`, `"more": 1, "version"`, 1)),
		"duplicate field":                    []byte(strings.Replace(string(whole), `"version": 1`, `"version": 1, "version": 1`, 1)),
		"version is 2":                       change(func(f *record) { f.Version = 2 }),
		"there are 0":                        change(func(f *record) { f.Keys = nil }),
		"there are 65":                       change(func(f *record) { f.Keys = append(make([]keyRecord, maxKeys-1), f.Keys...) }),
		"must be after that":                 change(func(f *record) { f.Keys[1].Created, f.Keys[1].Signs = f.Keys[0].Created, f.Keys[0].Signs }),
		"not after signs":                    change(func(f *record) { f.Keys[0].Signs = f.Keys[0].Signs.Add(-time.Hour) }),
		"is not the other half":              change(func(f *record) { f.Keys[1].Private = stranger.Keys[0].Private }),
		"has no private part":                change(func(f *record) { f.Keys[1].Private = "" }),
		"is of lists of public keys alone":   change(func(f *record) { f.Keys[0].CanSign = true }),
		`must be one PEM block "PUBLIC KEY"`: change(func(f *record) { f.Keys[1].Public = f.Keys[1].Private }),
		"more than 262144 bytes":             make([]byte, MaxList+1),
	} {
		if _, err := Parse(raw); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		} else if strings.Contains(err.Error(), "BEGIN EC") {
			t.Errorf("a key is in the error: %v", err)
		}
	}
}

// TestParsePublic has a list tell all but the private keys.
func TestParsePublic(t *testing.T) {
	r := twoKeys(t)
	whole, err := FormatPublic(r)
	if err != nil || strings.Contains(string(whole), "PRIVATE") {
		t.Fatalf("%s, %v", whole, err)
	}
	got, err := ParsePublic(whole)
	if err != nil || got.Signer(noon.Add(time.Hour)).ID != r.Signer(noon.Add(time.Hour)).ID || len(got.Published(noon)) != 2 {
		t.Fatalf("%v, %v", got, err)
	}
	for _, k := range got.Keys() {
		if k.Private != nil {
			t.Errorf("%s has a private part", k.ID)
		}
	}
	if again, err := FormatPublic(got); err != nil || string(again) != string(whole) {
		t.Errorf("%s, %v", again, err)
	}
	for want, raw := range map[string][]byte{
		"must not have any":            formatted(t, r),
		"the last key cannot sign":     []byte(strings.Replace(string(whole), `"canSign": true`, `"canSign": false`, 1)),
		"unknown field":                []byte(strings.Replace(string(whole), `"version"`, `"more": 1, "version"`, 1)),
		"unexpected end of JSON input": whole[:len(whole)/2],
		"more than 262144 bytes":       make([]byte, MaxList+1),
	} {
		if _, err := ParsePublic(raw); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
}

// FuzzParsePublic asks that what is read is written as something that is read alike.
func FuzzParsePublic(f *testing.F) {
	whole, err := FormatPublic(twoKeys(f))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole)
	f.Add([]byte(`{"version":1,"keys":[{"canSign":true}]}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		r, err := ParsePublic(raw)
		if err != nil {
			return
		}
		first, err := FormatPublic(r)
		if err != nil {
			t.Fatal(err)
		}
		again, err := ParsePublic(first)
		if err != nil || again.Signer(noon).ID != r.Signer(noon).ID {
			t.Fatalf("%v\n%s", err, first)
		}
	})
}

// FuzzParse asks that what is read is written as something that is read alike, and that somebody can sign with it.
func FuzzParse(f *testing.F) {
	f.Add(formatted(f, twoKeys(f)))
	f.Add([]byte(`{"version":1,"keys":[{}]}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		r, err := Parse(raw)
		if err != nil {
			return
		}
		if r.Signer(noon).Private == nil {
			t.Fatal("nobody can sign")
		}
		first := formatted(t, r)
		again, err := Parse(first)
		if err != nil || string(formatted(t, again)) != string(first) {
			t.Fatalf("%v\n%s", err, first)
		}
	})
}

func TestSource(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys.json")
	source := NewSource(path)
	if _, err := source.Ring(); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without a file: %v", err)
	}
	for range 3 {
		r := newRing(t)
		if err := Write(path, r); err != nil {
			t.Fatal(err)
		}
		if got, err := source.Ring(); err != nil || got.Signer(noon).ID != r.Signer(noon).ID {
			t.Fatalf("it does not follow the file: %v", err)
		}
	}
	if err := os.WriteFile(path, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := source.Ring(); err == nil || !strings.Contains(err.Error(), "is damaged") {
		t.Errorf("of a damaged file: %v", err)
	}
}

func TestDocuments(t *testing.T) {
	own, err := issuer.Parse("https://127.93.14.201/id/0123456789ABCDEF0123456789ABCDEF")
	if err != nil {
		t.Fatal(err)
	}
	r := twoKeys(t)
	documents, err := Documents(own, r, noon.Add(time.Hour))
	if err != nil || strings.Count(string(documents.Keys), `"kid"`) != 2 || strings.Contains(string(documents.Keys), `"d"`) {
		t.Errorf("%s, %v", documents.Keys, err)
	}
	documents, err = Documents(own, r, noon.Add(48*time.Hour))
	if err != nil || strings.Count(string(documents.Keys), `"kid"`) != 1 || !strings.Contains(string(documents.Keys), r.keys[1].ID) {
		t.Errorf("two days later: %s, %v", documents.Keys, err)
	}
}
