// SPDX-License-Identifier: Apache-2.0

package authority_test

import (
	"crypto/x509"
	"errors"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"muster.dev/muster/internal/certificates/authority"
	"muster.dev/muster/internal/certificates/bundle"
	"muster.dev/muster/internal/certificates/rotation"
	"muster.dev/muster/internal/certificates/signer"
)

// kubelets is what the files say, by the names of the authorities.
type kubelets struct{ Signs, Client, Serving, Files string }

func (s store) kubelets() kubelets {
	s.Helper()
	names := func(file string) string {
		raw, err := os.ReadFile(filepath.Join(s.dir, "kubelet", file))
		if err != nil {
			s.Fatal(err)
		}
		authorities, err := bundle.Parse(raw)
		if err != nil {
			s.Fatal(err)
		}
		var names []string
		for _, ca := range authorities {
			names = append(names, strings.TrimPrefix(ca.Subject.CommonName, "muster "))
		}
		return strings.Join(names, " ")
	}
	found, err := filepath.Glob(filepath.Join(s.dir, "kubelet", "kubelet-*.pem"))
	if err != nil {
		s.Fatal(err)
	}
	for i := range found {
		found[i] = strings.TrimSuffix(filepath.Base(found[i]), ".pem")
	}
	return kubelets{names("signing.pem"), names("client-ca.pem"), names("serving-ca.pem"), strings.Join(found, " ")}
}

func (s store) expect(want kubelets) {
	s.Helper()
	if diff := cmp.Diff(want, s.kubelets()); diff != "" {
		s.Errorf("(-want +got):\n%s", diff)
	}
	if got := s.kubelets(); !slices.Contains(strings.Fields(got.Client), got.Signs) || !slices.Contains(strings.Fields(got.Serving), got.Signs) {
		s.Errorf("%s signs and is not trusted: %+v", got.Signs, got)
	}
	// The certificate controller reads the pair from one file.
	file := filepath.Join(s.dir, "kubelet", "signing.pem")
	if _, err := signer.NewFile(signer.FileConfig{CertFile: file, KeyFile: file, Logger: slog.New(slog.DiscardHandler)}); err != nil {
		s.Error(err)
	}
}

// advance moves the rotation to a phase, as the service does.
func (s store) advance(phase rotation.Phase) {
	s.Helper()
	k, err := s.Kubelets()
	if err != nil || k.Rotation == nil {
		s.Fatalf("no rotation is under way (%v)", err)
	}
	next := *k.Rotation
	next.Phase = phase
	if err := s.Advance(*k.Rotation, next, start); err != nil {
		s.Fatal(err)
	}
}

func (s store) rotate() {
	s.Helper()
	if err := s.StartRotation(start); err != nil {
		s.Fatal(err)
	}
}

var idle = kubelets{"kubelet-1", "cluster kubelet-1", "kubelet-1", "kubelet-1"}

// phases are what a rotation of the first authority leads through.
var phases = []struct {
	phase rotation.Phase
	want  kubelets
}{
	{rotation.Trust, kubelets{"kubelet-1", "cluster kubelet-1 kubelet-2", "kubelet-1 kubelet-2", "kubelet-1 kubelet-2"}},
	{rotation.Replace, kubelets{"kubelet-2", "cluster kubelet-1 kubelet-2", "kubelet-1 kubelet-2", "kubelet-1 kubelet-2"}},
	{rotation.Withdraw, kubelets{"kubelet-2", "cluster kubelet-2", "kubelet-2", "kubelet-1 kubelet-2"}},
	{rotation.Done, kubelets{"kubelet-2", "cluster kubelet-2", "kubelet-2", "kubelet-2"}},
}

func TestRotation(t *testing.T) {
	s := newStore(t)
	if err := s.StartRotation(start); err == nil {
		t.Error("a rotation of nothing: no error")
	}
	s.ensure(start, nil, everything()[:5]...)
	s.expect(idle)
	s.rotate()
	for _, p := range phases {
		if p.phase != rotation.Trust {
			s.advance(p.phase)
		}
		s.expect(p.want)
		before := s.files()
		s.ensure(start.Add(day), nil)
		if p.phase != rotation.Done {
			s.rotate() // joins the one under way
		}
		if diff := cmp.Diff(before, s.files()); diff != "" {
			t.Errorf("in %s something was written:\n%s", p.phase, diff)
		}
	}
	k, err := s.Kubelets()
	if err != nil {
		t.Fatal(err)
	}
	want := authority.Kubelets{Current: "kubelet-2", Last: &authority.Rotated{Old: "kubelet-1", New: "kubelet-2", Started: start, Finished: start}}
	if diff := cmp.Diff(want, k); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	s.rotate()
	s.expect(kubelets{"kubelet-2", "cluster kubelet-2 kubelet-3", "kubelet-2 kubelet-3", "kubelet-2 kubelet-3"})
	for _, wrong := range []string{"{}", "{"} {
		if err := os.WriteFile(filepath.Join(s.dir, "kubelet", "record.json"), []byte(wrong), 0o600); err != nil {
			t.Fatal(err)
		}
		s.refuse("restore")
	}
}

// TestKilledAtEachWrite makes each file in turn one that cannot be written, which is where a kill leaves the files, and
// sees that the signing authority is trusted nevertheless, and that the next start puts everything right.
func TestKilledAtEachWrite(t *testing.T) {
	for i, p := range phases {
		for _, file := range []string{"kubelet-2.pem", "record.json", "client-ca.pem", "serving-ca.pem", "signing.pem"} {
			t.Run(string(p.phase)+" "+file, func(t *testing.T) {
				s := newStore(t)
				s.ensure(start, nil, everything()[:5]...)
				for _, before := range phases[:i] {
					if before.phase == rotation.Trust {
						s.rotate()
						continue
					}
					s.advance(before.phase)
				}
				before := s.kubelets()
				free := obstruct(t, filepath.Join(s.dir, "kubelet", file))
				k, err := s.Kubelets()
				switch {
				case p.phase == rotation.Trust:
					err = s.StartRotation(start)
				case err == nil:
					next := *k.Rotation
					next.Phase = p.phase
					err = s.Advance(*k.Rotation, next, start)
				}
				// The next authority's file, and the old one's later, is not written in every phase.
				if err == nil && file != "kubelet-2.pem" {
					t.Fatal("nothing was in the way")
				}
				free()
				trusted := s.kubelets()
				if !slices.Contains(strings.Fields(trusted.Client), trusted.Signs) || !slices.Contains(strings.Fields(trusted.Serving), trusted.Signs) {
					t.Errorf("%s signs and is not trusted: %+v", trusted.Signs, trusted)
				}
				if _, err := s.Ensure(nil, start); err != nil {
					t.Fatal(err)
				}
				switch got := s.kubelets(); {
				case file == "record.json" || file == "kubelet-2.pem" && p.phase == rotation.Trust: // it has not happened
					before.Files = got.Files
					s.expect(before)
				default:
					s.expect(p.want)
				}
			})
		}
	}
}

// obstruct puts a directory where a file is to be, until free puts it back.
func obstruct(t *testing.T, path string) (free func()) {
	t.Helper()
	aside := path + ".aside"
	err := os.Rename(path, aside)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	had := err == nil
	if err := os.MkdirAll(filepath.Join(path, "x"), 0o700); err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := os.RemoveAll(path); err != nil {
			t.Fatal(err)
		}
		if !had {
			return
		}
		if err := os.Rename(aside, path); err != nil {
			t.Fatal(err)
		}
	}
}

// TestKubeletsOfTheClustersAuthority is a state directory from before kubelets had an authority of their own.
func TestKubeletsOfTheClustersAuthority(t *testing.T) {
	s := newStore(t)
	s.ensure(start, credentials(), everything()...)
	if err := os.RemoveAll(filepath.Join(s.dir, "kubelet")); err != nil {
		t.Fatal(err)
	}
	s.ensure(start, credentials(), "kubelet-1 authority")
	s.expect(kubelets{"cluster", "cluster kubelet-1", "cluster kubelet-1", "kubelet-1"})
	s.advance(rotation.Replace)
	s.expect(kubelets{"kubelet-1", "cluster kubelet-1", "cluster kubelet-1", "kubelet-1"})
	s.advance(rotation.Withdraw)
	s.expect(idle)
	s.advance(rotation.Done)
	s.expect(idle)
	s.ensure(start, credentials()) // the cluster's authority goes on to sign for components
}

func TestRoles(t *testing.T) {
	s := newStore(t)
	s.ensure(start, nil, everything()[:5]...)
	roles := func(want map[string]string) {
		t.Helper()
		entries, err := s.List()
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]string{}
		for _, e := range entries {
			if strings.HasPrefix(e.Name, "kubelet-") {
				got[e.Name] = e.Role
			}
		}
		if !maps.Equal(got, want) {
			t.Errorf("roles are %v, want %v", got, want)
		}
	}
	s.rotate()
	roles(map[string]string{"kubelet-1": "signs", "kubelet-2": "trusted"})
	s.advance(rotation.Replace)
	roles(map[string]string{"kubelet-1": "trusted", "kubelet-2": "signs"})
	s.advance(rotation.Withdraw)
	roles(map[string]string{"kubelet-1": "withdrawn", "kubelet-2": "signs"})
	if err := os.RemoveAll(filepath.Join(s.dir, "kubelet")); err != nil {
		t.Fatal(err)
	}
	roles(map[string]string{}) // before the first start of this version
}

func TestProbe(t *testing.T) {
	s := newStore(t)
	s.ensure(start, nil, everything()[:5]...)
	probe, err := s.Probe("kubelet-1", start)
	if err != nil {
		t.Fatal(err)
	}
	ca, err := s.KubeletAuthority("kubelet-1")
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(ca)
	if _, err := probe.Leaf.Verify(x509.VerifyOptions{Roots: roots, CurrentTime: start, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}); err != nil {
		t.Error(err)
	}
	if s := probe.Leaf.Subject.String(); s != "CN=muster:probe" || probe.Leaf.NotAfter.Sub(start) > time.Hour {
		t.Errorf("it is %s until %s", s, probe.Leaf.NotAfter)
	}
	if _, err := s.Probe("kubelet-9", start); err == nil {
		t.Error("an authority that is not there: no error")
	}
}
