// SPDX-License-Identifier: Apache-2.0

package issued

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
)

const afterExpiry = 168*time.Hour + keepExpired + 2*time.Hour

func TestExpiredCertificatesBecomeKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		r := start(t, s, func(c *Config) { c.SegmentBytes = 8 << 10 })
		for n := range 100 {
			r.Add(entry(n, fmt.Sprint("node-", n%10), fmt.Sprint("i-", n%10)))
		}
		elapse(3 * time.Second)
		full := len(s.list(everything).Items)
		elapse(170 * time.Hour)
		if uids, _ := s.stored(); len(uids) != 100 || len(r.List()) != 0 {
			t.Errorf("just expired: %d stored, %d listed", len(uids), len(r.List()))
		}
		elapse(keepExpired)
		uids, keys := s.stored()
		if small := len(s.list(everything).Items); len(uids) != 0 || len(keys) != 100 || small != 1 || full < 4 {
			t.Errorf("%d are whole, %d keys, in %d segments that were %d", len(uids), len(keys), small, full)
		}
		for _, r := range []*running{r, start(t, s)} {
			for n := range 100 {
				known(t, "a key", r.KeyOwner(key(n)), fmt.Sprint("node-", n%10))
			}
			absent(t, "another key", r.KeyOwner(key(100)))
			known(t, "a machine", r.LastMachine("node-7"), "i-7")
		}
		writes := s.written()
		elapse(10 * time.Hour)
		if s.written() != writes {
			t.Errorf("%d writes for nothing", s.written()-writes)
		}
	})
}

// A segment is not written for each of its certificates that expires.
func TestCompactionIsWorthItsWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		r := start(t, s)
		for n := range 40 {
			r.Add(entry(n, fmt.Sprint("node-", n), "i-1"))
			elapse(2 * time.Hour)
		}
		writes := s.written()
		elapse(afterExpiry)
		if _, keys := s.stored(); len(keys) != 40 || s.written()-writes > 15 {
			t.Errorf("%d writes for %d keys", s.written()-writes, len(keys))
		}
	})
}

func TestKeysOfSegmentsThatWereDeletedAreWrittenAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		r := start(t, s, func(c *Config) { c.SegmentBytes = 4 << 10 })
		for n := range 300 {
			r.Add(entry(n, fmt.Sprint("node-", n%50), fmt.Sprint("i-", n%50)))
		}
		elapse(afterExpiry)
		list := s.list(everything).Items
		if len(list) < 2 {
			t.Fatalf("%d segments are too few for this test", len(list))
		}
		for _, cm := range list {
			if err := s.remove(cm.Name, nil); err != nil {
				t.Fatal(err)
			}
		}
		elapse(10 * time.Second)
		if _, keys := s.stored(); len(keys) != 300 {
			t.Errorf("%d keys are stored", len(keys))
		}
		for _, cm := range s.list(everything).Items {
			if n := size(cm.Data); n > 4<<10 {
				t.Errorf("%s has %d bytes", cm.Name, n)
			}
		}
		known(t, "a machine", start(t, s).LastMachine("node-7"), "i-7")
	})
}

// Compaction dies between writing the one segment and deleting the other: all is there twice, and nothing else is
// wrong.
func TestCompactionThatDies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		r := start(t, s, func(c *Config) { c.SegmentBytes = 4 << 10 })
		for n := range 30 {
			r.Add(entry(n, fmt.Sprint("node-", n), "i-1"))
		}
		elapse(3 * time.Second)
		s.fail(func(verb string) error {
			if verb == "delete" {
				return errors.New("killed")
			}
			return nil
		})
		elapse(afterExpiry)
		if _, keys := s.stored(); len(keys) != 30 || keys[shorten(key(20))] < 2 {
			t.Fatalf("it did not die where it should: %d keys", len(keys))
		}
		s.fail(nil)
		r.stop()
		again := start(t, s)
		for n := range 30 {
			known(t, "meanwhile", again.KeyOwner(key(n)), fmt.Sprint("node-", n))
		}
		elapse(2 * time.Hour)
		_, keys := s.stored()
		for n := range 30 {
			if keys[shorten(key(n))] != 1 {
				t.Errorf("key %d is stored %d times", n, keys[shorten(key(n))])
			}
		}
	})
}

// A node that asks for certificates as fast as it can pushes out its own, and nobody else's.
func TestAFloodingNodeIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		r := start(t, s)
		r.Add(entry(100_000, "quiet", "i-2"))
		for n := range 6000 {
			r.Add(entry(n, "loud", "i-1"))
			if n%100 == 99 {
				elapse(2 * time.Second)
			}
		}
		elapse(2 * time.Hour)
		uids, keys := s.stored()
		if len(uids) != maxEntries+1 || len(keys) > maxKeys {
			t.Errorf("%d are whole, and %d keys are kept", len(uids), len(keys))
		}
		known(t, "its newest", r.KeyOwner(key(5999)), "loud")
		known(t, "another node's", r.KeyOwner(key(100_000)), "quiet")
		if st := r.Stats(); st.Keys != len(keys) || st.Certificates != len(uids) {
			t.Errorf("stats %+v", st)
		}
	})
}

func TestSegmentsThatAreThereTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		first := start(t, s)
		for n := range 10 {
			first.Add(entry(n, "a", "i-1"))
		}
		first.stop()
		for _, name := range []string{nameOf(2), "restored-from-backup"} {
			cm := s.get(nameOf(1))
			cm.Name = name
			if _, err := s.put(cm, true); err != nil {
				t.Fatal(err)
			}
		}
		r := start(t, s, func(c *Config) { c.SegmentBytes = 4 << 10 }) // two do not fit into one
		if len(r.List()) != 10 {
			t.Errorf("%d are listed", len(r.List()))
		}
		elapse(2 * time.Hour)
		if err := s.remove("restored-from-backup", nil); err != nil {
			t.Fatal(err)
		}
		elapse(time.Minute)
		exactly(t, s, 10)
	})
}

func TestConfigMapsWithOtherNamesAreOnlyRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		backup := newSegment()
		backup.name = "backup"
		backup.add(entry(0, "a", "i-1"))
		if _, err := s.put(backup.configMap(namespace, backup.content(&groups{}).data()), true); err != nil {
			t.Fatal(err)
		}
		r := start(t, s)
		known(t, "what is in it", r.KeyOwner(key(0)), "a")
		r.Add(entry(1, "b", "i-2"))
		elapse(afterExpiry)
		if cm := s.get("backup"); cm == nil || cm.ResourceVersion != "1" || s.get(nameOf(1)) == nil {
			t.Errorf("it was written: %v", cm)
		}
	})
}

func TestDamagedSegmentsAreNotCompacted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		r := start(t, s)
		r.Add(entry(1, "a", "i-1"))
		elapse(3 * time.Second)
		s.edit(nameOf(1), func(cm *corev1.ConfigMap) { cm.Data["note"] = "x" })
		damaged := s.get(nameOf(1)).ResourceVersion
		elapse(afterExpiry)
		if cm := s.get(nameOf(1)); cm == nil || cm.ResourceVersion != damaged {
			t.Errorf("it was written: %v", cm)
		}
	})
}
