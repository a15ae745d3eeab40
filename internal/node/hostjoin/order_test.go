// SPDX-License-Identifier: Apache-2.0

package hostjoin

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"muster.dev/muster/internal/platform/systemd"
)

// On a host that is not a node yet the kubelet waits neither for systemd to read all units, nor for programs that it
// does not run at once.
func TestTheKubeletStartsBeforeWhatCanWait(t *testing.T) {
	w := newWorld(t)
	w.units.Started = func(unit string) {
		if _, err := os.Lstat(w.at("/usr/local/bin/muster")); unit == kubeletUnit && err == nil {
			t.Error("the kubelet waited for muster to be installed")
		}
		w.started(unit)
	}
	mustRun(t, w.join)
	calls := w.units.Calls()
	started, reloaded := slices.Index(calls, "restart "+kubeletUnit), slices.Index(calls, "daemon-reload")
	enabled := slices.IndexFunc(calls, func(call string) bool { return strings.HasPrefix(call, "enable ") })
	if started < 0 || enabled < started || reloaded < enabled {
		t.Errorf("calls: %v", calls)
	}
	for _, name := range []string{kubeletUnit, kubeProxyUnit, containerdUnit, watchUnit} {
		if unit, err := w.units.Show(t.Context(), name); err != nil || unit.UnitFileState != "enabled" {
			t.Errorf("unit %+v, error %v", unit, err)
		}
	}
	for _, path := range []string{"/usr/local/bin/muster", "/opt/cni/bin/ptp", "/opt/cni/bin/loopback"} {
		if _, err := os.Lstat(w.at(path)); err != nil {
			t.Error(err)
		}
	}
	ledger, err := ReadLedger(w.root)
	if err != nil || len(ledger.Hashes["/usr/local/bin/muster"]) != 1 {
		t.Errorf("the ledger knows muster by %v, error %v", ledger.Hashes["/usr/local/bin/muster"], err)
	}
}

// Where systemd knows a unit as it was before, it is told first.
func TestUnitsThatHaveChangedAreReadAgainFirst(t *testing.T) {
	w := newWorld(t)
	mustRun(t, w.join)
	w.write(unitDir+"/"+kubeletUnit, "[Service]\n# somebody's")
	mustRun(t, func() error { return w.units.Do(t.Context(), systemd.Reload) })
	if unit, err := w.units.Show(t.Context(), kubeletUnit); err != nil || !unit.Active() {
		t.Fatalf("unit %+v, error %v", unit, err)
	}
	done := len(w.units.Calls())
	mustRun(t, w.join)
	calls := w.units.Calls()[done:]
	started, reloaded := slices.Index(calls, "restart "+kubeletUnit), slices.Index(calls, "daemon-reload")
	if started < 0 || reloaded < 0 || started < reloaded {
		t.Errorf("calls: %v", calls)
	}
}

// The cluster is looked for while it is looked at the host, and no longer than that if the host cannot be a node.
func TestPreflightEndsDiscovery(t *testing.T) {
	w := newWorld(t)
	r := w.request()
	begun, ended := make(chan struct{}), make(chan struct{})
	r.Discover = func(ctx context.Context) (Found, error) {
		defer close(ended)
		close(begun)
		<-ctx.Done()
		return Found{}, ctx.Err()
	}
	r.Preflight = func(context.Context) (string, error) {
		<-begun
		return "", errors.New("swap: on")
	}
	r.Timeout = time.Minute
	if _, err := w.host().Join(t.Context(), r); err == nil || err.Error() != "swap: on" {
		t.Errorf("error %v", err)
	}
	<-ended
	if strings.Contains(w.said(), "discovery") {
		t.Errorf("said:\n%s", w.said())
	}
}
