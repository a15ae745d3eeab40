// SPDX-License-Identifier: Apache-2.0

package pullthroughconfig

import (
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "registries.yaml")
	c, err := Read(path)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"docker.io", "quay.io", "registry.k8s.io", "ghcr.io", "gcr.io", "public.ecr.aws"}
	if diff := cmp.Diff(want, c.Names()); diff != "" || c.MaxSize.Value() != 20<<30 || c.DockerConfig != "" {
		t.Errorf("the default: %+v\n%s", c, diff)
	}
	for _, r := range c.Registries {
		if !isRegistry(r.Name) {
			t.Errorf("%s is in the default and not taken", r.Name)
		}
	}
	text := "registries:\n- {name: 'registry.example.com:5000', certificateAuthority: /etc/ssl/e.pem}\ndockerConfig: /home/you/.docker/config.json\nmaxSize: 1Gi\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if c, err = Read(path); err != nil || c.MaxSize.Value() != 1<<30 || c.DockerConfig != "/home/you/.docker/config.json" {
		t.Errorf("%+v, %v", c, err)
	}
	if r, ok := c.Find("registry.example.com:5000"); !ok || r.CertificateAuthority != "/etc/ssl/e.pem" {
		t.Errorf("%+v", r)
	}
	if _, ok := c.Find("docker.io"); ok {
		t.Error("what the list does not name is found")
	}
	if c, err := Parse([]byte("registries: []\n")); err != nil || len(c.Registries) != 0 {
		t.Errorf("an empty list: %+v, %v", c, err)
	}
}

func TestRefused(t *testing.T) {
	for text, want := range map[string]string{
		"":                              "empty",
		"registry: []\n":                "registry",
		"registries: [{name: ''}]\n":    "registries[0].name",
		"registries: [{name: nginx}]\n": "registries[0].name",
		"registries: [{name: index.docker.io}]\n":                                     "registries[0].name",
		"registries: [{name: 'a.io/b'}]\n":                                            "registries[0].name",
		"registries: [{name: 'https://a.io'}]\n":                                      "registries[0].name",
		"registries: [{name: a.io}, {name: a.io}]":                                    "registries[1].name: Duplicate value",
		"registries: [{name: a.io, certificateAuthority: ca.pem}]\n":                  "registries[0].certificateAuthority",
		"dockerConfig: ~/.docker/config.json\n":                                       "must be an absolute path",
		"maxSize: 1Mi\n":                                                              "must be at least 100Mi",
		"maxSize: much\n":                                                             "maxSize",
		"registries: [" + strings.Repeat("{name: a.io},", maxRegistries+1) + "]\n":    "registries: Too many",
		"registries: [{name: " + strings.Repeat("a", 300) + ".io}]\nmaxSize: 200Mi\n": "registries[0].name",
	} {
		if _, err := Parse([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.80q: %v, want %s", text, err, want)
		}
	}
}

func TestProxy(t *testing.T) {
	path := filepath.Join(t.TempDir(), "proxy.json")
	if p, err := ReadProxy(path); err != nil || p != (Proxy{}) {
		t.Errorf("%+v, %v", p, err)
	}
	t.Setenv("HTTPS_PROXY", "http://me:secret@proxy.example.com:3128")
	t.Setenv("NO_PROXY", "intern.example.com")
	if err := WriteProxy(path, ProxyOfEnvironment()); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	p, err := ReadProxy(path)
	if err != nil {
		t.Fatal(err)
	}
	for to, want := range map[string]string{"https://quay.io/v2/": "proxy.example.com:3128", "https://intern.example.com/": "", "https://127.0.0.1/": ""} {
		u, _ := url.Parse(to)
		proxy, err := p.For(u)
		if got := hostOf(proxy); got != want || err != nil {
			t.Errorf("%s: %q, want %q: %v", to, got, want, err)
		}
	}
	for _, text := range []string{"ftp://secret", "http://", "://secret", "http://secret :80"} {
		if err := WriteProxy(path, Proxy{HTTPS: text}); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", text, err)
		}
	}
	if err := os.WriteFile(path, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadProxy(path); err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("%v", err)
	}
}

func hostOf(u *url.URL) string {
	if u == nil {
		return ""
	}
	return u.Host
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("registries: [{name: docker.io}]\nmaxSize: 1Gi\n"))
	f.Add([]byte("registries: [{name: 'a.io:5000', certificateAuthority: /x}]\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		c, err := Parse(text)
		if err != nil {
			return
		}
		if len(c.check()) > 0 || c.MaxSize == nil {
			t.Errorf("%q gives %+v", text, c)
		}
	})
}
