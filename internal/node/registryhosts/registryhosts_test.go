// SPDX-License-Identifier: Apache-2.0

package registryhosts_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/BurntSushi/toml"

	"muster.dev/muster/internal/node/registryhosts"
)

const own = "000000000000.dkr.ecr.us-east-1.amazonaws.com"

// hosts are the servers that containerd is told of a registry; empty if it is told nothing.
func hosts(t *testing.T, dir, name string) string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(dir, name, "hosts.toml"))
	if err != nil {
		return ""
	}
	var file struct {
		Server string `toml:"server"`
		Host   map[string]struct {
			Capabilities []string
			CA           string
		} `toml:"host"`
	}
	if err := toml.Unmarshal(raw, &file); err != nil {
		t.Fatal(err)
	}
	text := file.Server
	for name, host := range file.Host {
		text += "|" + name + " " + strings.Join(host.Capabilities, ",") + " " + host.CA
	}
	return text
}

func put(t *testing.T, dir, name, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Join(dir, name), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name, "hosts.toml"), []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestMirrors(t *testing.T) {
	dir := t.TempDir()
	ok := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	expect := func(when string, want map[string]string) {
		t.Helper()
		for name, want := range want {
			if got := hosts(t, dir, name); got != want {
				t.Errorf("%s: %s is %q, want %q", when, name, got, want)
			}
		}
	}
	const us, mine = "|https://" + own + " pull,resolve /ca.pem", "https://mirror.example.com"
	ok(registryhosts.Own(dir, own, "/ca.pem"))
	put(t, dir, "quay.io", "server = '"+mine+"'\n")
	ok(registryhosts.Mirror(dir, []string{"docker.io", "quay.io", "a.io:5000"}, own, "/ca.pem"))
	expect("at first", map[string]string{own: "https://" + own + us, "docker.io": us, "quay.io": mine, "a.io:5000": us})

	put(t, dir, "docker.io", "server = '"+mine+"'\n") // as user data does
	ok(registryhosts.Yield(dir))
	ok(registryhosts.Mirror(dir, []string{"docker.io", "ghcr.io"}, own, "/ca.pem"))
	expect("with another list", map[string]string{"docker.io": mine, "quay.io": mine, "ghcr.io": us, "a.io:5000": ""})
	if _, err := os.Stat(filepath.Join(dir, "a.io:5000")); err == nil {
		t.Error("an empty directory keeps containerd from _default")
	}

	put(t, dir, "_default", "server = '"+mine+"'\n")
	ok(registryhosts.Yield(dir))
	expect("with a mirror of all", map[string]string{own: "https://" + own + us, "docker.io": mine, "ghcr.io": "", "_default": mine})
	ok(registryhosts.Mirror(dir, []string{"ghcr.io"}, own, "/ca.pem"))
	expect("at the next boot", map[string]string{own: "https://" + own + us, "ghcr.io": ""})
}
