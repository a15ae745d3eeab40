// SPDX-License-Identifier: Apache-2.0

package issued

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"muster.dev/muster/internal/certificates/pki"
	"muster.dev/muster/internal/certificates/policy"
)

func known[T ~string](t *testing.T, what string, f policy.Fact[T], want T) {
	t.Helper()
	if f.State != policy.Known || f.Value != want {
		t.Errorf("%s: %+v, want known, %q", what, f, want)
	}
}

func absent[T ~string](t *testing.T, what string, f policy.Fact[T]) {
	t.Helper()
	if f.State != policy.Absent {
		t.Errorf("%s: %+v, want absent", what, f)
	}
}

func unknown[T ~string](t *testing.T, what string, f policy.Fact[T], why string) {
	t.Helper()
	if f.State != policy.Unknown || !strings.Contains(f.Why, why) {
		t.Errorf("%s: %+v, want unknown because %q", what, f, why)
	}
}

func TestRegisterAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		fresh, err := New(config(s))
		if err != nil {
			t.Fatal(err)
		}
		if f := fresh.KeyOwner(key(1)); f.State != policy.Unknown || !f.Soon || fresh.HasSynced() || fresh.Flushed("x") {
			t.Errorf("before it has read anything: %+v", f)
		}
		unknown(t, "a machine before it has read anything", fresh.LastMachine("a"), "not been read yet")

		r := start(t, s)
		if !r.HasSynced() || r.alls() != 1 {
			t.Error("that it has read everything was not told, once")
		}
		absent(t, "a new key", r.KeyOwner(key(1)))
		absent(t, "a new node", r.LastMachine("a"))
		e := entry(1, "a", "i-1")
		r.Add(e)
		r.Add(e)
		known(t, "its owner at once", r.KeyOwner(key(1)), "a")
		known(t, "its machine at once", r.LastMachine("a"), "i-1")
		if r.Flushed(e.UID) {
			t.Error("flushed at once")
		}
		elapse(1900 * time.Millisecond)
		if r.Flushed(e.UID) || s.written() > 0 {
			t.Error("written before it was time")
		}
		elapse(200 * time.Millisecond)
		if !r.Flushed(e.UID) || s.written() != 1 {
			t.Errorf("not flushed in time, or by %d writes", s.written())
		}
		if r.alls() != 0 {
			t.Error("own writes were told as changes")
		}

		again := start(t, s)
		known(t, "read again", again.KeyOwner(key(1)), "a")
		known(t, "read again", again.LastMachine("a"), "i-1")
		for name, list := range map[string][]Entry{"own": r.List(), "read again": again.List()} {
			if diff := cmp.Diff([]Entry{e}, list); diff != "" {
				t.Errorf("list, %s (-want +got):\n%s", name, diff)
			}
		}
		cm := s.get("muster-issued-certificates-000001")
		if cm == nil || cm.Labels["app.kubernetes.io/managed-by"] != "muster" || cm.Labels["certificates.muster.dev/register"] != "true" {
			t.Errorf("the segment is %+v", cm)
		}
	})
}

func TestLastMachineIsThatOfTheNewestClientCertificate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		r := start(t, s)
		first, second, serving, old, nobody := entry(1, "a", "i-1"), entry(2, "a", "i-2"), entry(3, "a", "i-3"), entry(4, "a", "i-4"), entry(5, "a", "")
		second.NotBefore = first.NotBefore.Add(time.Hour)
		serving.NotBefore, serving.Signer = first.NotBefore.Add(2*time.Hour), pki.SignerKubeletServing
		old.NotBefore = first.NotBefore.Add(-time.Hour)
		for _, e := range []Entry{first, second, serving, old} {
			r.Add(e)
		}
		known(t, "the newest", r.LastMachine("a"), "i-2")
		nobody.NotBefore = first.NotBefore.Add(3 * time.Hour)
		r.Add(nobody)
		absent(t, "after one whose machine nobody knew", r.LastMachine("a"))
		person := entry(6, "", "")
		person.Subject, person.Signer = "alice", pki.SignerClient
		r.Add(person)
		known(t, "a person's key", r.KeyOwner(key(6)), "user:alice")
		absent(t, "no node", r.LastMachine(""))
		elapse(3 * time.Second)
		again := start(t, s)
		absent(t, "read again", again.LastMachine("a"))
		known(t, "a person's key, read again", again.KeyOwner(key(6)), "user:alice")
	})
}

// Whether a node can still speak for itself: by any client certificate, not by the last one alone, and also when all
// that is left of them is their keys.
func TestExpired(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		r := start(t, s)
		is := func(what string, want bool) {
			t.Helper()
			for _, r := range []*running{r, start(t, s)} {
				if f := r.Expired("a"); f.State != policy.Known || f.Value != want {
					t.Errorf("%s: %+v, want known, %v", what, f, want)
				}
			}
		}
		if f := r.Expired("a"); f.State != policy.Absent {
			t.Errorf("nothing is on record: %+v", f)
		}
		long, short, serving := entry(1, "a", "i-1"), entry(2, "a", "i-1"), entry(3, "a", "i-1")
		short.NotBefore, short.NotAfter = long.NotBefore.Add(time.Minute), long.NotBefore.Add(time.Hour)
		serving.Signer, serving.NotAfter = pki.SignerKubeletServing, long.NotAfter.AddDate(1, 0, 0)
		for _, e := range []Entry{long, short, serving} {
			r.Add(e)
		}
		elapse(2 * time.Hour)
		is("the last one is over, an earlier one is not", false)
		elapse(time.Until(long.NotAfter) + time.Minute)
		is("all are over", true)
		elapse(afterExpiry)
		is("keys are left", true)
		if f := r.Expired("b"); f.State != policy.Absent {
			t.Errorf("another node: %+v", f)
		}
		again := entry(4, "a", "i-1")
		r.Add(again)
		elapse(3 * time.Second)
		is("it joined again", false)
	})
}

func TestFirstOwnerStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		r := start(t, s)
		mine, theirs := entry(1, "a", "i-1"), entry(2, "b", "i-2")
		theirs.Key = mine.Key
		r.Add(mine)
		r.Add(theirs)
		known(t, "pending", r.KeyOwner(mine.Key), "a")
		elapse(3 * time.Second)
		known(t, "written", r.KeyOwner(mine.Key), "a")
		known(t, "read again", start(t, s).KeyOwner(mine.Key), "a")
	})
}

func TestManyAreOneWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		r := start(t, s)
		for n := range 500 {
			r.Add(entry(n, fmt.Sprintf("node-%d", n%100), "i-1"))
		}
		elapse(3 * time.Second)
		if s.written() != 1 {
			t.Errorf("%d writes", s.written())
		}
		if uids, _ := s.stored(); len(uids) != 500 {
			t.Errorf("%d are stored", len(uids))
		}
	})
}

func TestTheEndWritesTheRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		r := start(t, s)
		r.Add(entry(1, "a", "i-1"))
		r.stop()
		if uids, _ := s.stored(); len(uids) != 1 || !r.Flushed(entry(1, "a", "").UID) {
			t.Errorf("stored: %v", uids)
		}
	})
}

func TestReadOnlyWritesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		r := start(t, s, func(c *Config) { c.ReadOnly, c.MaxPending = true, 10 })
		r.Add(entry(1, "a", "i-1"))
		elapse(time.Minute)
		known(t, "the owner of a key", r.KeyOwner(key(1)), "a")
		if stats := r.Stats(); stats.Pending != 0 || stats.Waiting != 0 {
			t.Errorf("something waits to be written: %+v", stats)
		}
		for n := range 20 { // a year later it still answers, and keeps little
			r.Add(entry(2+n, "b", "i-2"))
			elapse(20 * 24 * time.Hour)
		}
		absent(t, "another key", r.KeyOwner(key(99)))
		known(t, "the owner of a key, a year later", r.KeyOwner(key(1)), "a")
		if stats := r.Stats(); stats.Certificates > 10 || stats.Certificates+stats.Keys != 21 {
			t.Errorf("it keeps %+v", stats)
		}
		r.stop()
		if s.written() != 0 {
			t.Errorf("%d writes", s.written())
		}
	})
}

func TestSegmentsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		foreign := &corev1.ConfigMap{}
		foreign.Namespace, foreign.Name = namespace, nameOf(2) // it has the name of a segment and no label
		if _, err := s.put(foreign, true); err != nil {
			t.Fatal(err)
		}
		r := start(t, s, func(c *Config) { c.SegmentBytes = 4 << 10 })
		for n := range 100 {
			r.Add(entry(n, fmt.Sprintf("ip-192-168-64-%d.ec2.internal", n), "i-0123456789abcdef0"))
			if n%10 == 0 {
				elapse(3 * time.Second)
			}
		}
		elapse(3 * time.Second)
		uids, _ := s.stored()
		for uid, n := range uids {
			if n != 1 {
				t.Errorf("%s is stored %d times", uid, n)
			}
		}
		most := 0
		for _, cm := range s.list(everything).Items {
			most = max(most, size(cm.Data))
		}
		if len(uids) != 100 || most > 4<<10 || most < 3<<10 {
			t.Errorf("%d are stored; the largest segment has %d bytes", len(uids), most)
		}
		if cm := s.get(nameOf(2)); len(cm.Data) > 0 || cm.Labels != nil {
			t.Errorf("a ConfigMap that is not ours was written: %v", cm)
		}
	})
}

func TestSegmentsKeepWhatPeopleAdd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		r := start(t, s)
		r.Add(entry(1, "a", "i-1"))
		elapse(3 * time.Second)
		s.edit(nameOf(1), func(cm *corev1.ConfigMap) {
			cm.Labels["backup"], cm.Annotations = "daily", map[string]string{"note": "do not touch"}
		})
		r.Add(entry(2, "b", "i-2"))
		elapse(3 * time.Second)
		if cm := s.get(nameOf(1)); cm.Labels["backup"] != "daily" || cm.Annotations["note"] == "" || !strings.Contains(cm.Data[certificatesKey], "node=b") {
			t.Errorf("the segment is %+v", cm)
		}
		s.edit(nameOf(1), func(cm *corev1.ConfigMap) { cm.Immutable = new(bool) })
		r.Add(entry(3, "c", "i-3"))
		elapse(3 * time.Second)
		if uids, _ := s.stored(); len(uids) != 3 || s.get(nameOf(2)) == nil {
			t.Errorf("beside an immutable segment: %v\n%s", uids, r.log)
		}
		// A line that a person takes out is out: that is how a key is set free.
		s.edit(nameOf(2), func(cm *corev1.ConfigMap) { cm.Data[certificatesKey] = "" })
		synctest.Wait()
		absent(t, "a key that was set free", r.KeyOwner(key(3)))
	})
}

func TestNewRefuses(t *testing.T) {
	s := newServer(t)
	for name, breakIt := range map[string]func(*Config){
		"a client":  func(c *Config) { c.Client = nil },
		"namespace": func(c *Config) { c.Namespace = "" },
		"signers":   func(c *Config) { c.Signers = nil },
		"a logger":  func(c *Config) { c.Logger = nil },
		"machines":  func(c *Config) { c.MachineOf = nil },
		"512 KiB":   func(c *Config) { c.SegmentBytes = 1 << 20 },
	} {
		c := config(s)
		breakIt(&c)
		if _, err := New(c); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("without %s: %v", name, err)
		}
	}
}

func TestLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		r := start(t, s)
		later, earlier := entry(1, "b", "i-2"), entry(2, "a", "i-1")
		later.NotBefore = later.NotBefore.Add(time.Minute)
		r.Add(later)
		r.Add(earlier)
		r.stop()
		list, err := Load(t.Context(), s.client, namespace)
		if diff := cmp.Diff([]Entry{earlier, later}, list); diff != "" || err != nil {
			t.Errorf("%v (-want +got):\n%s", err, diff)
		}
		s.edit(nameOf(1), func(cm *corev1.ConfigMap) { cm.Data[certificatesKey] += "what?\n" })
		list, err = Load(t.Context(), s.client, namespace)
		if len(list) != 2 || err == nil || err.Error() != "ConfigMap kube-system/muster-issued-certificates-000001 is damaged: data.certificates, line 3: uid is missing" {
			t.Errorf("damaged: %d, %v", len(list), err)
		}
		s.breaks(errors.New("connection refused"))
		if _, err = Load(t.Context(), s.client, namespace); err == nil || !strings.Contains(err.Error(), "in namespace kube-system: connection refused") {
			t.Errorf("without an API server: %v", err)
		}
	})
}
