// SPDX-License-Identifier: Apache-2.0

package systemd

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// scripted makes a systemctl of a test: a shell script that notes its arguments, a line for each call.
func scripted(t *testing.T, body string) (manager *Systemctl, calls func() string) {
	t.Helper()
	dir := t.TempDir()
	program, noted := filepath.Join(dir, "systemctl"), filepath.Join(dir, "calls")
	script := "#!/bin/sh\necho \"$*\" >> " + noted + "\n" + body + "\n"
	if err := os.WriteFile(program, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	manager, err := New(Config{Systemctl: program})
	if err != nil {
		t.Fatal(err)
	}
	return manager, func() string {
		raw, err := os.ReadFile(noted)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
		return string(raw)
	}
}

func TestWhatSystemctlIsAsked(t *testing.T) {
	manager, calls := scripted(t, "")
	for _, err := range []error{
		manager.Do(t.Context(), Reload),
		manager.Do(t.Context(), Enable, "kubelet.service", "kube-proxy.service"),
		manager.Do(t.Context(), Stop, "kubepods.slice"),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	want := `--no-pager --no-ask-password daemon-reload --quiet --
--no-pager --no-ask-password enable --quiet --no-reload -- kubelet.service kube-proxy.service
--no-pager --no-ask-password stop --quiet -- kubepods.slice
`
	if diff := cmp.Diff(want, calls()); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
}

func TestNamesThatAreNoUnits(t *testing.T) {
	manager, calls := scripted(t, "")
	for _, name := range []string{"", "--now", "kubelet", "a b.service", "../x.service", "x.service\n", ".service", strings.Repeat("a", 300) + ".service"} {
		if err := manager.Do(t.Context(), Start, name); err == nil {
			t.Errorf("%q was started", name)
		}
		if _, err := manager.Show(t.Context(), name); err == nil {
			t.Errorf("%q was shown", name)
		}
	}
	if got := calls(); got != "" {
		t.Errorf("systemctl was called: %s", got)
	}
}

func TestWhatSystemctlSaysIsTheError(t *testing.T) {
	manager, _ := scripted(t, "echo 'Failed to start kubelet.service:' >&2; echo '  Unit is masked.' >&2; exit 1")
	err := manager.Do(t.Context(), Start, "kubelet.service")
	want := "systemctl start --quiet -- kubelet.service: Failed to start kubelet.service: Unit is masked. (see journalctl -u kubelet.service)"
	if err == nil || err.Error() != want {
		t.Errorf("error %v\nwant %s", err, want)
	}
	silent, _ := scripted(t, "exit 3")
	if err := silent.Do(t.Context(), Reload); err == nil || !strings.Contains(err.Error(), "exit status 3") {
		t.Errorf("error %v does not say how systemctl ended", err)
	}
}

func TestShow(t *testing.T) {
	manager, _ := scripted(t, `cat <<END
NRestarts=7
Result=exit-code
LoadState=loaded
ActiveState=activating
SubState=auto-restart
FragmentPath=/etc/systemd/system/kubelet.service
UnitFileState=enabled
END`)
	got, err := manager.Show(t.Context(), "kubelet.service")
	if err != nil {
		t.Fatal(err)
	}
	want := Unit{
		Name: "kubelet.service", LoadState: "loaded", ActiveState: "activating", SubState: "auto-restart", UnitFileState: "enabled",
		FragmentPath: "/etc/systemd/system/kubelet.service", Result: "exit-code", Restarts: 7,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("unit (-want +got):\n%s", diff)
	}
	if got.Trouble() != "ends again and again (exit-code), started again 7 times" || !got.Exists() || got.Active() {
		t.Errorf("trouble %q, exists %t, active %t", got.Trouble(), got.Exists(), got.Active())
	}
	if parseUnit("x.service", "LoadState=not-found\nActiveState=inactive\n").Exists() {
		t.Error("a unit that was not found exists")
	}
}

func TestShowAll(t *testing.T) {
	manager, calls := scripted(t, `cat <<END
LoadState=loaded
NeedDaemonReload=yes

LoadState=not-found
NeedDaemonReload=no
END`)
	got, err := manager.ShowAll(t.Context(), "a.service", "b.slice")
	want := []Unit{{Name: "a.service", LoadState: "loaded", Outdated: true}, {Name: "b.slice", LoadState: "not-found"}}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("error %v, units (-want +got):\n%s", err, diff)
	}
	if _, err := manager.ShowAll(t.Context(), "a.service"); err == nil || !strings.Contains(err.Error(), "returned 2 units, want 1: a.service") {
		t.Errorf("error %v", err)
	}
	if got := strings.Count(calls(), "show "); got != 2 {
		t.Errorf("systemctl was called %d times", got)
	}
}

func FuzzParseUnit(f *testing.F) {
	f.Add("LoadState=loaded\nNRestarts=x\n=\n\n")
	f.Fuzz(func(t *testing.T, out string) {
		if u := parseUnit("a.service", out); u.Name != "a.service" {
			t.Error("the name is another")
		}
	})
}
