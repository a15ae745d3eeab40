// SPDX-License-Identifier: Apache-2.0

package render_test

import (
	"bytes"
	"encoding/base64"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"muster.dev/muster/internal/node/bootstrapsh"
	"muster.dev/muster/internal/node/nodeconfig"
	"muster.dev/muster/internal/node/render"
	"muster.dev/muster/internal/node/userdata"
)

var update = flag.Bool("update", false, "write the golden files anew")

// scene is a folder below testdata/cases: nodeconfig.yaml, or user-data, is what the machine was told and machine.yaml
// what it is. The files that follow are below want, their modes and the kubelet's arguments in want.txt; error.txt is
// why there are none.
type scene struct {
	dir      string
	spec     nodeconfig.Spec
	instance render.Instance
	facts    render.Facts
	layout   render.Layout
}

func authority(t testing.TB) []byte {
	t.Helper()
	raw, err := os.ReadFile("testdata/ca.crt")
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func scenes(t testing.TB) []scene {
	t.Helper()
	dirs, err := filepath.Glob("testdata/cases/*")
	if err != nil || len(dirs) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	all := make([]scene, 0, len(dirs))
	for _, dir := range dirs {
		all = append(all, readScene(t, dir))
	}
	return all
}

func readScene(t testing.TB, dir string) scene {
	t.Helper()
	merged, err := nodeconfig.Read(documents(t, dir), false)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(filepath.Join(dir, "machine.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var machine struct {
		Instance render.Instance
		Facts    render.Facts
		Layout   string
	}
	if err := yaml.UnmarshalStrict(raw, &machine); err != nil {
		t.Fatalf("%s: %v", dir, err)
	}
	layout, ok := map[string]render.Layout{
		"machine":                     render.MachineLayout(),
		"host":                        render.HostLayout(),
		"host with containerd":        {Systemd: true, ExistingContainerd: true},
		"host in /opt/kubernetes/bin": {Systemd: true, BinDir: "/opt/kubernetes/bin", CNIBinDir: "/opt/kubernetes/cni"},
	}[machine.Layout]
	if !ok {
		t.Fatalf("%s: unknown layout %q", dir, machine.Layout)
	}
	return scene{dir: dir, spec: merged.Spec, instance: machine.Instance, facts: machine.Facts, layout: layout}
}

// documents are what a machine was told, as its agent gathers it.
func documents(t testing.TB, dir string) []nodeconfig.Source {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(dir, "user-data"))
	if errors.Is(err, fs.ErrNotExist) {
		raw, err = os.ReadFile(filepath.Join(dir, "nodeconfig.yaml"))
	}
	if err != nil {
		t.Fatal(err)
	}
	parts, err := userdata.Read(bytes.ReplaceAll(raw, []byte("AUTHORITY"), []byte(base64.StdEncoding.EncodeToString(authority(t)))))
	if err != nil {
		t.Fatal(err)
	}
	all, doubts := userdata.NodeConfigs(parts)
	if len(doubts) > 0 {
		t.Errorf("%s: %q", dir, doubts)
	}
	for _, part := range parts {
		if part.MediaType == userdata.TypeShellScript && bytes.Contains(part.Content, []byte("/etc/eks/bootstrap.sh")) {
			all = append(all, nodeconfig.Source{Name: "40-bootstrap.yaml", Content: dropIn(t, part.Content)})
		}
	}
	return all
}

// dropIn is what bootstrap.sh writes when a script calls it: bash runs the script, and a function goes by that name.
func dropIn(t testing.TB, script []byte) []byte {
	t.Helper()
	file := filepath.Join(t.TempDir(), "args")
	bash := exec.CommandContext(t.Context(), "bash")
	bash.Env = []string{"ARGS=" + file}
	bash.Stdin = io.MultiReader(strings.NewReader("function /etc/eks/bootstrap.sh { printf '%s\\0' \"$@\" >\"$ARGS\"; }\n"), bytes.NewReader(script))
	if out, err := bash.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	result, err := bootstrapsh.Parse(strings.Split(strings.TrimSuffix(string(raw), "\x00"), "\x00"))
	if err != nil {
		t.Fatal(err)
	}
	document, err := nodeconfig.Marshal(result.Spec)
	if err != nil {
		t.Fatal(err)
	}
	return document
}

// TestFiles pins every file, its mode and the kubelet's arguments, for both layouts.
func TestFiles(t *testing.T) {
	for _, s := range scenes(t) {
		t.Run(filepath.Base(s.dir), func(t *testing.T) {
			files, err := render.Files(s.spec, s.instance, s.facts, s.layout)
			got := map[string]string{}
			if err != nil {
				got["error.txt"] = err.Error() + "\n"
			} else {
				var summary strings.Builder
				for _, file := range files {
					fmt.Fprintf(&summary, "%v %s\n", file.Mode, file.Path)
					got["want"+file.Path] = string(bytes.ReplaceAll(file.Content, authority(t), []byte("(the certificate authority)\n")))
				}
				for _, arg := range render.KubeletArgs(s.spec, s.instance, s.layout, s.spec.Join.Token != "") {
					fmt.Fprintln(&summary, "kubelet", arg)
				}
				got["want.txt"] = summary.String()
			}
			compare(t, s.dir, got)
		})
	}
}

// compare compares files with those of a case: the same ones, with the same content.
func compare(t *testing.T, dir string, got map[string]string) {
	t.Helper()
	if *update {
		for _, old := range []string{"want", "want.txt", "error.txt"} {
			if err := os.RemoveAll(filepath.Join(dir, old)); err != nil {
				t.Fatal(err)
			}
		}
		for name, content := range got {
			path := filepath.Join(dir, name)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	want := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		name, _ := filepath.Rel(dir, path)
		if err != nil || entry.IsDir() || slices.Contains([]string{"nodeconfig.yaml", "user-data", "machine.yaml"}, name) {
			return err
		}
		raw, err := os.ReadFile(path)
		want[name] = string(raw)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("differs from %s; run go test ./internal/node/render -update if that is meant (-want +got):\n%s", dir, diff)
	}
}

func TestCNIConfig(t *testing.T) {
	got, err := render.CNIConfig(netip.MustParsePrefix("10.244.3.0/24"))
	if err != nil {
		t.Fatal(err)
	}
	path := "testdata/cni.golden"
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Whatever is asked for, nobody but root reads the token or what may hold passwords, and no other file has them.
func TestSecretsAreRootsAlone(t *testing.T) {
	const token, password = "abcdef.0123456789abcdef", "geheim"
	for _, layout := range []render.Layout{render.MachineLayout(), render.HostLayout()} {
		spec := readScene(t, "testdata/cases/machine-plain").spec
		spec.Join.Token = token
		spec.Instance.Environment = map[string]map[string]string{"default": {"HTTPS_PROXY": "http://u:" + password + "@192.168.64.2"}}
		files, err := render.Files(spec, render.Instance{PrivateDNSName: "worker-1"}, render.Facts{CPUs: 1, MemoryBytes: 1 << 30}, layout)
		if err != nil {
			t.Fatal(err)
		}
		found := 0
		for _, file := range files {
			if secret := bytes.Contains(file.Content, []byte(token)) || bytes.Contains(file.Content, []byte(password)); secret {
				found++
				if file.Mode != 0o600 {
					t.Errorf("%s holds a secret and has mode %v", file.Path, file.Mode)
				}
			}
		}
		if want := map[bool]int{false: 1, true: 4}[layout.Systemd]; found != want {
			t.Errorf("systemd %t: %d files hold secrets, want %d", layout.Systemd, found, want)
		}
		if args := strings.Join(render.KubeletArgs(spec, render.Instance{}, layout, true), " "); strings.Contains(args, token) {
			t.Errorf("the token is an argument: %s", args)
		}
	}
}

// A range that EC2 delegated to a host is its network plugin's, not ours.
func TestPrefixOfAHost(t *testing.T) {
	host := readScene(t, "testdata/cases/host-plain")
	want, err := render.Files(host.spec, host.instance, host.facts, host.layout)
	if err != nil {
		t.Fatal(err)
	}
	host.instance.PodRange = netip.MustParsePrefix("10.0.1.16/28")
	got, err := render.Files(host.spec, host.instance, host.facts, host.layout)
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

// A refusal never repeats a secret.
func TestRefusalsKeepSecrets(t *testing.T) {
	spec := readScene(t, "testdata/cases/machine-plain").spec
	spec.Join.Token = "secret.butwrong"
	spec.Instance.Environment = map[string]map[string]string{"kubelet": {"X": "geheim\n"}}
	spec.Containerd.Config = "version = 2\n[registry]\npassword = 'geheim'"
	_, err := render.Files(spec, render.Instance{PrivateDNSName: "worker-1"}, render.Facts{CPUs: 1, MemoryBytes: 1 << 30}, render.HostLayout())
	if err == nil {
		t.Fatal("accepted")
	}
	if text := err.Error(); strings.Contains(text, "butwrong") || strings.Contains(text, "geheim") {
		t.Errorf("a secret is shown: %s", text)
	}
}

func TestEnvironment(t *testing.T) {
	spec := nodeconfig.Spec{Instance: nodeconfig.Instance{Environment: map[string]map[string]string{
		"default": {"B": "1", "A": "2"}, "kubelet": {"B": "3", "C": "4"},
	}}}
	for service, want := range map[string]string{"kubelet": "A=2 B=3 C=4", "containerd": "A=2 B=1"} {
		if got := strings.Join(render.Environment(spec, service), " "); got != want {
			t.Errorf("%s has %s, want %s", service, got, want)
		}
	}
}

func TestBinDirIsAPath(t *testing.T) {
	s := readScene(t, "testdata/cases/host-plain")
	for _, dir := range []string{"bin", "/opt/a b", "/opt/%n", "/opt/$x", "/opt/a\nExecStartPre=/bin/x", `/opt/"x`} {
		if _, err := render.Files(s.spec, s.instance, s.facts, render.Layout{Systemd: true, BinDir: dir}); err == nil {
			t.Errorf("%q: accepted", dir)
		}
	}
}

// A valid NodeConfig is rendered or refused, and never half: two runs say the same.
func FuzzFiles(f *testing.F) {
	for _, s := range scenes(f) {
		raw, err := nodeconfig.Marshal(s.spec)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(raw, s.layout.Systemd)
	}
	f.Fuzz(func(t *testing.T, document []byte, systemd bool) {
		merged, err := nodeconfig.Read([]nodeconfig.Source{{Name: "fuzz", Content: document}}, true)
		if err != nil {
			return
		}
		instance := render.Instance{ID: "i-0123456789abcdef0", PrivateIP: netip.MustParseAddr("192.168.64.11"), PrivateDNSName: "worker-1"}
		facts := render.Facts{CPUs: 8, MemoryBytes: 32 << 30, CgroupVersion: 2}
		first, err := render.Files(merged.Spec, instance, facts, render.Layout{Systemd: systemd})
		again, errAgain := render.Files(merged.Spec, instance, facts, render.Layout{Systemd: systemd})
		if diff := cmp.Diff(first, again); diff != "" || fmt.Sprint(err) != fmt.Sprint(errAgain) {
			t.Errorf("not the same twice: %v, %v\n%s", err, errAgain, diff)
		}
		if err != nil && len(first) > 0 {
			t.Error("there are files, and an error")
		}
		seen := map[string]bool{}
		for _, file := range first {
			if seen[file.Path] || !filepath.IsAbs(file.Path) || filepath.Clean(file.Path) != file.Path {
				t.Errorf("path %q is there twice, or is not clean", file.Path)
			}
			seen[file.Path] = true
			if filepath.Ext(file.Path) == ".service" && bytes.Count(file.Content, []byte("\n[")) != 2 {
				t.Errorf("%s does not have three sections:\n%s", file.Path, file.Content)
			}
		}
		if errors.Is(err, fs.ErrNotExist) {
			t.Error("it looked at a disk")
		}
	})
}
