// SPDX-License-Identifier: Apache-2.0

package hostroot_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"muster.dev/muster/internal/machine/hostroot"
	"muster.dev/muster/internal/platform/statedir"
)

func TestKeep(t *testing.T) {
	t.Parallel()
	dir := statedir.Dir(t.TempDir())
	if is, err := hostroot.Read(dir); err != nil || len(is) != 0 || is.Allow("muster") || is.Allow("") {
		t.Errorf("without a file: %v, %v", is, err)
	}
	for i, c := range []struct {
		keep    hostroot.Clusters
		want    hostroot.Clusters
		changed bool
	}{
		{nil, nil, false},
		{hostroot.Clusters{"b", "a", "b"}, hostroot.Clusters{"a", "b"}, true},
		{hostroot.Of("a", "b"), hostroot.Clusters{"a", "b"}, false},
		{nil, nil, true},
	} {
		changed, err := hostroot.Keep(dir, c.keep)
		is, readErr := hostroot.Read(dir)
		if err != nil || readErr != nil || changed != c.changed || !slices.Equal(is, c.want) {
			t.Errorf("%d: %v changed: %v, %v; then %v, %v", i, c.keep, changed, err, is, readErr)
		}
	}
	if info, err := os.Stat(dir.HostRoot()); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
}

func TestAllow(t *testing.T) {
	t.Parallel()
	list := hostroot.Of("Blue", "")
	for name, want := range map[string]bool{"Blue": true, "blue": false, "": false, "other": false} {
		if list.Allow(name) != want {
			t.Errorf("%q: %v", name, !want)
		}
		if err := (hostroot.Refused{Cluster: name}); !strings.Contains(err.Error(), "leave isolation out") || name != "" && !strings.Contains(err.Error(), "--allow-host-root "+name) {
			t.Error(err)
		}
	}
}

// A file that cannot be understood allows nobody, and can be written anew.
func TestDamaged(t *testing.T) {
	t.Parallel()
	for _, raw := range []string{"", "{}", `{"version": 2, "clusters": ["a"]}`, `{"version": 1, "clusters": ["a"], "more": 1}`, `{"version": 1, "clusters": "a"}`, "[]"} {
		dir := statedir.Dir(t.TempDir())
		if err := os.WriteFile(dir.HostRoot(), []byte(raw), 0o600); err != nil {
			t.Fatal(err)
		}
		if is, err := hostroot.Read(dir); err == nil || is.Allow("a") || !strings.Contains(err.Error(), "is damaged") {
			t.Errorf("%q: %v, %v", raw, is, err)
		}
		if changed, err := hostroot.Keep(dir, hostroot.Of("b")); err != nil || !changed {
			t.Errorf("%q: %v, %v", raw, changed, err)
		}
	}
}
