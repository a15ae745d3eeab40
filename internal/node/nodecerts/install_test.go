// SPDX-License-Identifier: Apache-2.0

package nodecerts

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/util/certificate"

	"muster.dev/muster/internal/certificates/bundle"
)

// The bytes are those that upstream's own store writes for the same pair.
func TestInstallWritesWhatUpstreamDoes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r, err := newRequest(Client, node())
	if err != nil {
		t.Fatal(err)
	}
	issued := w.sign(Client, &r.template, r.key.Public(), nil)
	chain, err := bundle.Parse(issued)
	if err != nil {
		t.Fatal(err)
	}
	ours, err := encode(chain, r.key)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	store, err := certificate.NewFileStore(Client.prefix(), dir, dir, "", "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := store.Update(issued, ours[len(issued):]); err != nil {
		t.Fatal(err)
	}
	theirs, err := os.ReadFile(store.CurrentPath())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(theirs), string(ours)); diff != "" {
		t.Errorf("upstream (-) and we (+):\n%s", diff)
	}
	path, err := (installer{dir: w.dir, now: time.Now, step: func(string) {}}).install(Client, ours)
	if err != nil {
		t.Fatal(err)
	}
	target, err := os.Readlink(store.CurrentPath())
	if err != nil {
		t.Fatal(err)
	}
	layout := regexp.MustCompile(`\d+`)
	if a, b := layout.ReplaceAllString(filepath.Base(target), "0"), layout.ReplaceAllString(filepath.Base(path), "0"); a != b {
		t.Errorf("upstream names it %s, and we %s", a, b)
	}
	a, errA := os.Stat(target)
	b, errB := os.Stat(path)
	if errA != nil || errB != nil || a.Mode() != b.Mode() {
		t.Errorf("modes %v and %v (%v, %v)", a.Mode(), b.Mode(), errA, errB)
	}
}

// A kubelet that was killed between removing its link and renaming the next one.
func TestRecover(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if got, err := Recover(t.Context(), w.dir); err != nil || len(got) != 0 {
		t.Errorf("where nothing is amiss: %v, %v", got, err)
	}
	if err := os.Rename(filepath.Join(w.dir, Client.link()), filepath.Join(w.dir, Client.updated())); err != nil {
		t.Fatal(err)
	}
	if r := read(w.dir, Client, time.Now()); !r.Has(Missing) || !strings.Contains(r.Problems[0].String(), "a rotation was interrupted; mv ") {
		t.Errorf("problems: %v", r.Problems)
	}
	if got, err := Recover(t.Context(), w.dir); err != nil || !cmp.Equal(got, []Kind{Client}) {
		t.Errorf("recovered %v, %v", got, err)
	}
	if r := read(w.dir, Client, time.Now()); len(r.Problems) > 0 {
		t.Errorf("after that: %v", r.Problems)
	}
}

// A kubelet that is replacing its link at this very moment is not disturbed.
func TestRecoverWaits(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	link, next := filepath.Join(w.dir, Client.link()), filepath.Join(w.dir, Client.updated())
	if err := os.Rename(link, next); err != nil {
		t.Fatal(err)
	}
	type result struct {
		recovered []Kind
		err       error
	}
	done := make(chan result, 1)
	go func() {
		recovered, err := Recover(t.Context(), w.dir)
		done <- result{recovered, err}
	}()
	if err := os.Rename(next, link); err != nil {
		t.Errorf("it was taken from the kubelet: %v", err)
	}
	if got := <-done; got.err != nil || len(got.recovered) != 0 {
		t.Errorf("recovered %v, %v", got.recovered, got.err)
	}
}
