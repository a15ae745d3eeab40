// SPDX-License-Identifier: Apache-2.0

package issued

import (
	"maps"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"muster.dev/muster/internal/certificates/policy"
)

// damages are what may have happened to a segment with requests 0 to 2. After each of them request 0 can still be read.
func damages() map[string]func(*corev1.ConfigMap) {
	lines := func(cm *corev1.ConfigMap, change func([]string) []string) {
		cm.Data[certificatesKey] = strings.Join(change(strings.SplitAfter(cm.Data[certificatesKey], "\n")), "")
	}
	return map[string]func(*corev1.ConfigMap){
		"a line cut short": func(cm *corev1.ConfigMap) {
			cm.Data[certificatesKey] = cm.Data[certificatesKey][:len(cm.Data[certificatesKey])-20]
		},
		"a line of nonsense": func(cm *corev1.ConfigMap) { lines(cm, func(l []string) []string { l[1] = "nonsense\n"; return l }) },
		"a line twice":       func(cm *corev1.ConfigMap) { lines(cm, func(l []string) []string { return append(l, l[0]) }) },
		"a wrong key": func(cm *corev1.ConfigMap) {
			lines(cm, func(l []string) []string { l[2] = strings.Replace(l[2], " key=", " key=x", 1); return l })
		},
		"no version":    func(cm *corev1.ConfigMap) { delete(cm.Data, versionKey) },
		"another field": func(cm *corev1.ConfigMap) { cm.Data["more"] = "" },
		"binary data":   func(cm *corev1.ConfigMap) { cm.BinaryData = map[string][]byte{"x": nil} },
	}
}

func TestDamageWhileNobodyLooks(t *testing.T) {
	for name, damage := range damages() {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newServer(t)
				first := start(t, s)
				for n := range 3 {
					first.Add(entry(n, "a", "i-1"))
				}
				first.stop()
				healthy := s.get(nameOf(1))
				s.edit(nameOf(1), damage)
				damaged := s.get(nameOf(1))

				r := start(t, s)
				known(t, "a line that can be read", r.KeyOwner(key(0)), "a")
				unknown(t, "what may have been lost", r.KeyOwner(key(99)), "ConfigMap muster-issued-certificates-000001 is damaged: repair it, or delete it")
				unknown(t, "a machine that may not be the last", r.LastMachine("a"), "is damaged")
				if f := r.Expired("a"); f.State != policy.Unknown {
					t.Errorf("whether none is good any more, where one may have been lost: %+v", f)
				}
				if strings.Count(r.log.String(), "damaged") != 1 || r.Stats().Damaged != 1 {
					t.Errorf("%+v; the log says\n%s", r.Stats(), r.log)
				}
				r.Add(entry(3, "b", "i-2"))
				elapse(3 * time.Second)
				if now := s.get(nameOf(1)); !maps.Equal(now.Data, damaged.Data) {
					t.Errorf("the damaged segment was written:\n%v", now.Data)
				}
				if !r.Flushed(entry(3, "", "").UID) || s.get(nameOf(2)) == nil {
					t.Error("nothing is recorded any more")
				}
				r.alls()

				s.edit(nameOf(1), func(cm *corev1.ConfigMap) { cm.Data, cm.BinaryData = healthy.Data, nil })
				if r.alls() != 1 {
					t.Error("nobody was told that it is repaired")
				}
				absent(t, "what was never there", r.KeyOwner(key(99)))
				known(t, "a repaired line", r.KeyOwner(key(1)), "a")
				known(t, "a machine", r.LastMachine("a"), "i-1")
			})
		})
	}
}

func TestDeletingADamagedSegmentAcceptsTheLoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		first := start(t, s)
		for n := range 3 {
			first.Add(entry(n, "a", "i-1"))
		}
		first.stop()
		s.edit(nameOf(1), damages()["a line of nonsense"])
		r := start(t, s)
		r.alls()
		if err := s.remove(nameOf(1), nil); err != nil {
			t.Fatal(err)
		}
		if r.alls() != 1 {
			t.Error("nobody was told")
		}
		absent(t, "what was lost", r.KeyOwner(key(1)))
		known(t, "what was readable", r.KeyOwner(key(0)), "a")
		elapse(3 * time.Second)
		if uids, _ := s.stored(); len(uids) != 2 {
			t.Errorf("stored: %v", uids)
		}
	})
}

// A running register knows what a segment held: it writes that elsewhere, and nothing is in doubt.
func TestDamageUnderARunningRegister(t *testing.T) {
	for name, damage := range damages() {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newServer(t)
				r := start(t, s)
				for n := range 3 {
					r.Add(entry(n, "a", "i-1"))
				}
				elapse(3 * time.Second)
				s.edit(nameOf(1), damage)
				damaged := s.get(nameOf(1))
				elapse(3 * time.Second)
				for n := range 3 {
					known(t, "nothing is lost", r.KeyOwner(key(n)), "a")
				}
				absent(t, "and nothing is in doubt", r.KeyOwner(key(99)))
				if now := s.get(nameOf(1)); !maps.Equal(now.Data, damaged.Data) {
					t.Errorf("the damaged segment was written:\n%v", now.Data)
				}
				if !strings.Contains(r.log.String(), "damaged") {
					t.Errorf("the log says\n%s", r.log)
				}
				uids, _ := s.stored()
				if len(uids) != 3 {
					t.Errorf("stored: %v", uids)
				}
			})
		})
	}
}

func TestSegmentsOfAnotherVersionAreLeftAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		first := start(t, s)
		first.Add(entry(1, "a", "i-1"))
		first.stop()
		s.edit(nameOf(1), func(cm *corev1.ConfigMap) { cm.Data[versionKey] = "2" })
		r := start(t, s)
		unknown(t, "a key in it", r.KeyOwner(key(1)), `it has version "2"`)
		s.edit(nameOf(1), func(cm *corev1.ConfigMap) {
			cm.Data[versionKey] = "1"
			cm.Data[keysKey] = strings.Repeat("x", maxData)
		})
		synctest.Wait()
		unknown(t, "a key in one that is too large", r.KeyOwner(key(1)), "at most 1048576 are read")
	})
}
