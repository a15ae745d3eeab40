// SPDX-License-Identifier: Apache-2.0

package planerollout

import (
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"muster.dev/muster/internal/plane/component"
	"muster.dev/muster/internal/platform/release"
)

// backDays is how many days after an upgrade a plane can be taken back, as on EKS.
const backDays = 7

// Move is how a plane came to the minor that it runs. From is older after an upgrade, and newer after a rollback.
type Move struct {
	From string `json:"from"`
	To   string `json:"to"`
	// At is when the first API server of a newer minor served, or the last of a newer minor had ended.
	At time.Time `json:"at"`
}

// checkBack refuses to take a plane back to a release, one minor older than the one that it runs: an upgrade is taken back
// once, and soon.
func (m *Move) checkBack(runs, to release.Release, now time.Time) error {
	switch {
	case m == nil || m.To != runs.Minor():
		return fmt.Errorf("spec.version: the control plane runs %s, and is not taken back to %s, as it was not upgraded from there: keep %[1]s", runs.Minor(), to.Minor())
	case m.From != to.Minor():
		return fmt.Errorf("spec.version: the control plane runs %s, and is not taken back to %s, as it was taken back from %s at %s already: keep %[1]s",
			runs.Minor(), to.Minor(), m.From, m.At.Format(time.RFC3339))
	case now.Sub(m.At) >= backDays*24*time.Hour:
		return fmt.Errorf("spec.version: the control plane runs %s, and is not taken back to %s, as that is possible for %d days after an upgrade, which was at %s: keep %[1]s",
			runs.Minor(), to.Minor(), backDays, m.At.Format(time.RFC3339))
	}
	return nil
}

// moved is how a plane came to the minor that it runs after a step that has made other servers of those that there were.
func (m *Move) moved(before, after []Server, now time.Time) *Move {
	from, served := newest(before, release.All())
	to, serves := newest(after, release.All())
	if !served || !serves || from.Minor() == to.Minor() {
		return m
	}
	return &Move{from.Minor(), to.Minor(), now.UTC()}
}

// newest is the newest release of Kubernetes that API servers serve clients with; ok is false if none does. A newcomer
// does not count: until it serves, it has written nothing.
func newest(servers []Server, releases release.List) (found release.Release, ok bool) {
	for _, s := range without(servers, Newcomer) {
		if of := releaseOf(s.Spec, releases); !ok || of.Distance(found) > 0 {
			found, ok = of, true
		}
	}
	return found, ok
}

// newer reports whether a spec of a list is of a newer release than another spec.
func newer(specs []component.Spec, than component.Spec) bool {
	of := releaseOf(than, release.All())
	return slices.ContainsFunc(specs, func(spec component.Spec) bool { return releaseOf(spec, release.All()).Distance(of) > 0 })
}

// releaseOf is the release of a program of the plane, by its folder. Before there were several, programs had none.
func releaseOf(spec component.Spec, releases release.List) release.Release {
	folder := filepath.Base(filepath.Dir(spec.Path))
	i := slices.IndexFunc(releases, func(r release.Release) bool { return r.Folder == folder })
	if i < 0 {
		return releases.First()
	}
	return releases[i]
}
