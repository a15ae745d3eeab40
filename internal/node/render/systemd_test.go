// SPDX-License-Identifier: Apache-2.0

package render_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"muster.dev/muster/internal/node/render"
)

// units writes the units of a case, with their drop-ins, to a directory, and stands in for the programs that they
// start.
func units(t *testing.T, name string, layout render.Layout) string {
	t.Helper()
	s := readScene(t, filepath.Join("testdata/cases", name))
	layout.BinDir = t.TempDir()
	for _, program := range []string{"containerd", "kubelet", "kube-proxy"} {
		if err := os.WriteFile(filepath.Join(layout.BinDir, program), []byte("#!/bin/sh\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	files, err := render.Files(s.spec, s.instance, s.facts, layout)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, file := range files {
		below, ok := strings.CutPrefix(file.Path, "/etc/systemd/system/")
		if !ok {
			continue
		}
		path := filepath.Join(dir, below)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, file.Content, file.Mode); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// verify has systemd read units, and returns what it says of them.
func verify(t *testing.T, dir string) string {
	t.Helper()
	program, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Fatal("systemd-analyze, which checks the units, is missing; install systemd (tools/testneeds.sh does)")
	}
	paths, err := filepath.Glob(filepath.Join(dir, "*.service"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no units in %s: %v", dir, err)
	}
	command := exec.Command(program, append([]string{"verify", "--man=no", "--recursive-errors=no"}, paths...)...)
	command.Env = append(os.Environ(), "SYSTEMD_UNIT_PATH="+dir+":", "SYSTEMD_LOG_LEVEL=info") // the colon: and where units are anyway
	out, err := command.CombinedOutput()
	if err != nil {
		return string(out) + err.Error()
	}
	return string(out)
}

// systemd itself has nothing to say about the units.
func TestUnitsAreSound(t *testing.T) {
	for name, layout := range map[string]render.Layout{
		"host-plain":  render.HostLayout(),
		"host-wishes": render.HostLayout(),
	} {
		if said := verify(t, units(t, name, layout)); said != "" {
			t.Errorf("%s: systemd-analyze says:\n%s", name, said)
		}
	}
}

// Their verifier notices faults, of units and of drop-ins.
func TestVerifyNotices(t *testing.T) {
	for _, fault := range []struct{ file, old, other string }{
		{"kubelet.service", "/kubelet $", "/no-such-program $"},
		{"containerd.service", "Restart=", "Restrat="},
		{"kube-proxy.service", "After=", "Aftre="},
		{"kubelet.service.d/environment.conf", "EnvironmentFile=", "EnvironmentFail="},
	} {
		dir := units(t, "host-wishes", render.HostLayout())
		path := filepath.Join(dir, fault.file)
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(raw), fault.old) {
			t.Fatalf("%s does not hold %q", path, fault.old)
		}
		if err := os.WriteFile(path, []byte(strings.ReplaceAll(string(raw), fault.old, fault.other)), 0o644); err != nil {
			t.Fatal(err)
		}
		if said := verify(t, dir); !strings.Contains(said, strings.Trim(fault.other, "/ $=")) {
			t.Errorf("%s in %s was not noticed: %s", fault.other, fault.file, said)
		}
	}
}
