// SPDX-License-Identifier: Apache-2.0

package cause_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"muster.dev/muster/internal/explain/cause"
)

// Parts write into conditions no other cause than explain would name: a single cause, and after its patience.
func TestNamed(t *testing.T) {
	t.Parallel()
	c := catalogue(t)
	const timeout = "its last error: dial tcp 172.31.0.4:443: i/o timeout"
	for _, test := range []struct {
		source     cause.Source
		code, text string
		still      time.Duration
		want       cause.ID
	}{
		{cause.FromReport, "UserDataFailed", "exit status 4", 0, "M-NODE-47"},
		{cause.FromGroup, "Ready/IamNodeRoleNotFound", "no role", 0, "M-GROUP-91"},
		{cause.FromGroup, "Repair/TooManyUnhealthy", "3 of 4", 0, "M-GROUP-72"},
		{cause.FromGroup, "Ready/NodeCreationFailure", "exit status 4", time.Hour, ""},
		{cause.FromMachine, "Ready/InsufficientInstanceCapacity", "the host has no room", 0, "M-CAP-67"},
		{cause.FromMachine, "Ready/Late", "no space left on device", time.Hour, ""},
		{cause.FromReport, "NotRegistered", timeout, time.Second, ""},
		{cause.FromReport, "NotRegistered", timeout, time.Minute, "M-NET-23"},
		{cause.FromReport, "NotRegistered", timeout + "; running with swap on is not supported", time.Minute, ""},
	} {
		if got := c.Named(test.source, test.code, test.text, test.still); got != test.want {
			t.Errorf("%s %s %q after %s: %q, want %q", test.source, test.code, test.text, test.still, got, test.want)
		}
	}
}

// A cause that another one excludes or implies does not keep that one from being named.
func TestNamedBesideItsConsequence(t *testing.T) {
	t.Parallel()
	one := func(id cause.ID) cause.Cause {
		return cause.Cause{ID: id, State: cause.Named, Signals: []cause.Signal{{Source: cause.FromReport, Code: "x"}}}
	}
	first, second := one("M-NODE-01"), one("M-NODE-02")
	for name, change := range map[string]func(*cause.Cause){
		"excludes": func(c *cause.Cause) { c.Excludes = []cause.ID{"M-NODE-02"} },
		"implies":  func(c *cause.Cause) { c.Implies = []cause.ID{"M-NODE-02"} },
	} {
		changed := first
		change(&changed)
		c, err := cause.New([]cause.Cause{changed, second})
		if err != nil {
			t.Fatal(err)
		}
		if got := c.Named(cause.FromReport, "x", "", 0); got != first.ID {
			t.Errorf("%s: %q", name, got)
		}
	}
	c, err := cause.New([]cause.Cause{first, second})
	if err != nil {
		t.Fatal(err)
	}
	if got := c.Named(cause.FromReport, "x", "", 0); got != "" {
		t.Errorf("of two: %q", got)
	}
}

// A cause that can be seen on a node has a fix for any node, without commands about an installation of Muster's.
func TestFixesOnNodes(t *testing.T) {
	t.Parallel()
	seen := 0
	for _, c := range catalogue(t).All() {
		if !slices.ContainsFunc(c.Signals, func(s cause.Signal) bool {
			return s.Source == cause.FromKubelet || s.Source == cause.FromUnit || s.Source == cause.FromHost
		}) {
			continue
		}
		seen++
		for _, word := range []string{"$MACHINE", "$GROUP", "muster logs", "muster exec", "muster status", "muster drill"} {
			if strings.Contains(c.FixFor(true), word) {
				t.Errorf("%s: on a node the fix has %s: %s", c.ID, word, c.FixFor(true))
			}
		}
		if c.FixFor(false) != c.Fix {
			t.Errorf("%s: from outside the fix is %q", c.ID, c.FixFor(false))
		}
	}
	if seen < 20 {
		t.Errorf("%d causes were looked at", seen)
	}
}

// The last words of a kubelet that ended are lines of its log, and those of another unit are not.
func TestLastWordsOfTheKubelet(t *testing.T) {
	t.Parallel()
	const words = "running with swap on is not supported"
	for unit, want := range map[string]int{"kubelet.service/failed": 1, "kubelet.service/auto-restart": 1, "containers.service/failed": 0} {
		if got := catalogue(t).Matching(cause.FromUnit, unit, words); len(got) != want {
			t.Errorf("%s: %d causes", unit, len(got))
		}
	}
}
