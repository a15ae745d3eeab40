// SPDX-License-Identifier: Apache-2.0

package serviceunit

import (
	"errors"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"muster.dev/muster/internal/platform/statedir"
	"muster.dev/muster/internal/platform/systemd"
	"muster.dev/muster/internal/platform/systemd/systemdtest"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func example() Unit { return Unit{State: "/var/lib/muster", Program: "/opt/muster/bin/muster"} }

func TestRender(t *testing.T) {
	for name, unit := range map[string]Unit{
		"default": example(),
		"blanks":  {State: "/srv/my clusters/100%", Program: "/opt/muster 0.2/bin/muster"},
	} {
		got, err := unit.Render()
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join("testdata", name+".service")
		if *update {
			if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if diff := cmp.Diff(string(want), got); err != nil || diff != "" {
			t.Errorf("%s: error %v, unit (-want +got; -update rewrites it):\n%s", name, err, diff)
		}
	}
}

func TestNames(t *testing.T) {
	seen := map[string]statedir.Dir{}
	for _, dir := range []statedir.Dir{"/var/lib/muster", "/var/lib-muster", "/var/lib/Muster", "/srv/ü", "/" + statedir.Dir(strings.Repeat("a/", 39)), "/srv/my clusters/100%"} {
		name := Unit{State: dir}.Name()
		if other, taken := seen[name]; taken {
			t.Errorf("%s and %s are both %s", dir, other, name)
		}
		seen[name] = dir
		if err := systemd.CheckNames([]string{name}); err != nil {
			t.Errorf("%s: %v", dir, err)
		}
	}
	if got := example().Name(); !strings.HasPrefix(got, "muster-var-lib-muster-") {
		t.Errorf("the name is %s", got)
	}
}

func TestPathsThatNoUnitCanHave(t *testing.T) {
	for _, path := range []string{"state", "/a\"b", "/a'b", "/a\\b", "/a$b", "/a\nExecStart=/bin/sh", "/a*", "/a?", "/a[b", "/a;b", "/a\tb", "/\xff"} {
		for _, unit := range []Unit{{State: statedir.Dir(path), Program: "/bin/muster"}, {State: "/s", Program: path}} {
			if content, err := unit.Render(); err == nil {
				t.Errorf("%q stands in\n%s", path, content)
			}
		}
	}
}

// systemd itself has nothing to say about the unit, and does notice a fault.
func TestUnitIsSound(t *testing.T) {
	dir, err := os.MkdirTemp("", "unit 100%") //nolint:usetesting // with what has to be quoted
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	unit := Unit{State: statedir.Dir(filepath.Join(dir, "state")), Program: filepath.Join(dir, "muster")}
	if err := os.WriteFile(unit.Program, nil, 0o700); err != nil {
		t.Fatal(err)
	}
	content, err := unit.Render()
	if err != nil {
		t.Fatal(err)
	}
	if said := verify(t, unit, content); said != "" {
		t.Errorf("systemd-analyze says:\n%s", said)
	}
	if said := verify(t, unit, strings.Replace(content, "KillMode=process", "KillMode=nobody", 1)); !strings.Contains(said, "kill mode") {
		t.Errorf("systemd-analyze says of a wrong KillMode: %q", said)
	}
}

// verify has systemd read a unit, and returns what it says.
func verify(t *testing.T, unit Unit, content string) string {
	t.Helper()
	program, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Fatal("systemd-analyze, which checks the unit, is missing; install systemd (tools/testneeds.sh does)")
	}
	dir := t.TempDir()
	path := filepath.Join(dir, unit.Name())
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	command := exec.Command(program, "verify", "--man=no", "--recursive-errors=no", path)
	command.Env = append(os.Environ(), "SYSTEMD_UNIT_PATH="+dir+":", "SYSTEMD_LOG_LEVEL=info")
	out, err := command.CombinedOutput()
	if err != nil {
		return string(out) + err.Error()
	}
	return string(out)
}

func TestInstallAndUninstall(t *testing.T) {
	root := t.TempDir()
	fake := &systemdtest.Fake{Root: root}
	host := Host{Root: root, IsRoot: true, Systemd: fake}
	unit, beside := example(), Unit{State: "/srv/muster", Program: "/opt/muster/bin/muster"}
	install := func(of Unit, wantChanged bool) {
		t.Helper()
		if changed, err := host.Install(t.Context(), of); err != nil || changed != wantChanged {
			t.Errorf("changed %t, want %t; error %v", changed, wantChanged, err)
		}
		if shown, err := fake.Show(t.Context(), of.Name()); err != nil || !shown.Active() || shown.UnitFileState != "enabled" {
			t.Errorf("unit %+v, error %v", shown, err)
		}
	}
	install(unit, true)
	install(unit, false)
	install(beside, true)
	unit.Program = "/opt/muster-0.3/bin/muster"
	install(unit, true)
	content, err := os.ReadFile(host.Path(unit))
	if err != nil || !strings.Contains(string(content), "ExecStart=/opt/muster-0.3/bin/muster service start ") {
		t.Errorf("error %v, unit\n%s", err, content)
	}

	for _, want := range []bool{true, false} {
		if removed, err := host.Uninstall(t.Context(), unit); err != nil || removed != want {
			t.Errorf("removed %t, want %t; error %v", removed, want, err)
		}
	}
	if installed, err := host.Installed(beside); err != nil || !installed {
		t.Errorf("the other installation's unit is there: %t, error %v", installed, err)
	}
}

func TestForeignFilesAreKept(t *testing.T) {
	for name, content := range map[string]string{
		"somebody's":             "[Service]\nExecStart=/bin/true\n",
		"empty":                  "",
		"another installation's": Unit{State: "/srv/muster"}.mark(),
	} {
		host := Host{Root: t.TempDir(), IsRoot: true}
		path := host.Path(example())
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		_, installing := host.Install(t.Context(), example())
		_, uninstalling := host.Uninstall(t.Context(), example())
		for _, err := range []error{installing, uninstalling} {
			if !errors.Is(err, ErrForeign) || !strings.Contains(err.Error(), path) {
				t.Errorf("%s: error %v", name, err)
			}
		}
		if now, err := os.ReadFile(path); err != nil || string(now) != content {
			t.Errorf("%s: the file is now %q, error %v", name, now, err)
		}
	}
}

func TestOnlyRootChangesUnits(t *testing.T) {
	root := t.TempDir()
	other := Host{Root: root}
	if _, err := other.Install(t.Context(), example()); !errors.Is(err, ErrNotRoot) {
		t.Errorf("installing: %v", err)
	}
	if removed, err := other.Uninstall(t.Context(), example()); removed || err != nil { // nothing is there
		t.Errorf("removed %t, error %v", removed, err)
	}
	if _, err := (Host{Root: root, IsRoot: true}).Install(t.Context(), example()); err != nil {
		t.Fatal(err)
	}
	if _, err := other.Uninstall(t.Context(), example()); !errors.Is(err, ErrNotRoot) {
		t.Errorf("uninstalling: %v", err)
	}
}

// Where systemd does not run, only files are written, and a link of an earlier boot goes with the unit.
func TestWithoutSystemd(t *testing.T) {
	host := Host{Root: t.TempDir(), IsRoot: true}
	if _, err := host.Install(t.Context(), example()); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(filepath.Dir(host.Path(example())), wants, example().Name())
	if err := os.MkdirAll(filepath.Dir(link), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(host.Path(example()), link); err != nil {
		t.Fatal(err)
	}
	if _, err := host.Uninstall(t.Context(), example()); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{link, host.Path(example())} {
		if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s is there: %v", path, err)
		}
	}
}

// A unit that systemd does not start is an error, and the file stays for the next try.
func TestSystemdRefuses(t *testing.T) {
	root, refused := t.TempDir(), errors.New("refused")
	host := Host{Root: root, IsRoot: true, Systemd: &systemdtest.Fake{Root: root, Before: func(what string) error {
		if strings.HasPrefix(what, "restart") {
			return refused
		}
		return nil
	}}}
	if changed, err := host.Install(t.Context(), example()); !changed || !errors.Is(err, refused) {
		t.Errorf("changed %t, error %v", changed, err)
	}
	if installed, err := host.Installed(example()); !installed || err != nil {
		t.Errorf("installed %t, error %v", installed, err)
	}
}

// An installation that was stopped by hand is not active any more, and its unit stays enabled. Foreign files are left alone.
func TestStopped(t *testing.T) {
	root := t.TempDir()
	fake := &systemdtest.Fake{Root: root}
	host := Host{Root: root, IsRoot: true, Systemd: fake}
	if err := host.Stopped(t.Context(), example()); err != nil {
		t.Errorf("without a unit: %v", err)
	}
	if _, err := host.Install(t.Context(), example()); err != nil {
		t.Fatal(err)
	}
	if err := host.Stopped(t.Context(), example()); err != nil {
		t.Error(err)
	}
	if shown, err := fake.Show(t.Context(), example().Name()); err != nil || shown.Active() || shown.UnitFileState != "enabled" {
		t.Errorf("unit %+v, error %v", shown, err)
	}
	if err := os.WriteFile(host.Path(example()), []byte("[Service]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := host.Stopped(t.Context(), example()); err != nil {
		t.Errorf("with a foreign file: %v", err)
	}
}
