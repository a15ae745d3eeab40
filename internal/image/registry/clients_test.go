// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/pem"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"
)

// serve has the registry answer by TLS, and returns its name, and a directory with its certificate as ca.crt.
func (w *world) serve() (name, certificates string) {
	w.Helper()
	server := httptest.NewUnstartedServer(w.handler)
	server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError) // docker tries without TLS first
	server.StartTLS()
	w.Cleanup(server.Close)
	certificates = w.TempDir()
	if err := os.WriteFile(filepath.Join(certificates, "ca.crt"), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o600); err != nil {
		w.Fatal(err)
	}
	return strings.TrimPrefix(server.URL, "https://"), certificates
}

// saved writes what docker save writes.
func (w *world) saved() string {
	w.Helper()
	pack := func(files ...string) []byte {
		var out bytes.Buffer
		archive := tar.NewWriter(&out)
		for i := 0; i < len(files); i += 2 {
			if err := archive.WriteHeader(&tar.Header{Name: files[i], Mode: 0o644, Size: int64(len(files[i+1]))}); err != nil {
				w.Fatal(err)
			}
			if _, err := archive.Write([]byte(files[i+1])); err != nil {
				w.Fatal(err)
			}
		}
		if err := archive.Close(); err != nil {
			w.Fatal(err)
		}
		return out.Bytes()
	}
	layer := string(pack("greeting", strings.Repeat("hello ", 100<<10)))
	config := fmt.Sprintf(`{"architecture":"amd64","os":"linux","rootfs":{"type":"layers","diff_ids":[%q]}}`, digest.FromString(layer))
	path := filepath.Join(w.TempDir(), "image.tar")
	content := pack("layer.tar", layer, "config.json", config, "manifest.json", `[{"Config":"config.json","RepoTags":["greet:v1"],"Layers":["layer.tar"]}]`)
	if err := os.WriteFile(path, content, 0o600); err != nil {
		w.Fatal(err)
	}
	return path
}

// runner calls a program of the host's, which must be there.
func (w *world) runner(program string) func(stdin string, args ...string) (string, error) {
	w.Helper()
	path, err := exec.LookPath(program)
	if err != nil {
		w.Skipf("this host has no %s", program)
	}
	home := w.TempDir()
	return func(stdin string, args ...string) (string, error) {
		ctx, cancel := context.WithTimeout(w.Context(), time.Minute)
		defer cancel()
		cmd := exec.CommandContext(ctx, path, args...)
		cmd.Env = append(os.Environ(), "HOME="+home, "DOCKER_CONFIG="+home, "REGISTRY_AUTH_FILE="+filepath.Join(home, "auth.json"), "XDG_RUNTIME_DIR="+home)
		cmd.Stdin = strings.NewReader(stdin)
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
}

func TestSkopeo(t *testing.T) {
	w := newWorld(t)
	skopeo := w.runner("skopeo")
	name, certificates := w.serve()
	image := "docker://" + name + "/team/greet:v1"
	run := func(args ...string) string {
		t.Helper()
		out, err := skopeo("", append([]string{"--insecure-policy"}, args...)...)
		if err != nil {
			t.Fatalf("skopeo %v: %v\n%s", args, err, out)
		}
		return out
	}
	archive := "docker-archive:" + w.saved()
	if out, err := skopeo("", "--insecure-policy", "copy", "--dest-cert-dir", certificates, archive, image); err == nil {
		t.Errorf("a stranger pushes: %s", out)
	}
	if out, err := skopeo("good", "login", "--cert-dir", certificates, "--username", "AWS", "--password-stdin", name); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	run("copy", "--dest-cert-dir", certificates, archive, image)
	run("copy", "--dest-cert-dir", certificates, archive, image) // nothing is sent twice
	run("copy", "--src-cert-dir", certificates, "--dest-cert-dir", certificates, image, "docker://"+name+"/team/other:v2")
	if out := run("list-tags", "--cert-dir", certificates, "docker://"+name+"/team/other"); !strings.Contains(out, `"v2"`) {
		t.Errorf("tags %s", out)
	}
	if out := run("inspect", "--cert-dir", certificates, image); !strings.Contains(out, `"Name": "`+name+`/team/greet"`) {
		t.Errorf("%s", out)
	}
	layout := t.TempDir()
	run("copy", "--src-cert-dir", certificates, image, "oci:"+layout+":v1")
	if _, err := os.Stat(filepath.Join(layout, "index.json")); err != nil {
		t.Error(err)
	}
	w.account.deny["ecr:BatchGetImage"] = true
	if out, err := skopeo("", "inspect", "--cert-dir", certificates, image); err == nil || !strings.Contains(out, "not authorized to perform: ecr:BatchGetImage") {
		t.Errorf("without the right: %v\n%s", err, out)
	}
}

// docker logs in without its daemon, which pushes and pulls need.
func TestDockerLogin(t *testing.T) {
	w := newWorld(t)
	docker := w.runner("docker")
	name, _ := w.serve()
	if out, err := docker("bad", "login", "--username", "AWS", "--password-stdin", name); err == nil {
		t.Errorf("another password: %s", out)
	}
	if out, err := docker("good", "login", "--username", "AWS", "--password-stdin", name); err != nil || !strings.Contains(out, "Login Succeeded") {
		t.Errorf("%v\n%s", err, out)
	}
}
