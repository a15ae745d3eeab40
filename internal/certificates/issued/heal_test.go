// SPDX-License-Identifier: Apache-2.0

package issued

import (
	"encoding/hex"
	"fmt"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"

	"muster.dev/muster/internal/certificates/pki"
	"muster.dev/muster/internal/certificates/policy"
)

const (
	fleet = "system:bootstrap:fleet0"
	old   = "test|c-old"
	fresh = "test|c-new"
)

// nodesAre lets the inventory name these machines, by the names of their nodes; of others it knows nothing.
func nodesAre(machines map[string]string) func(*Config) {
	return func(c *Config) {
		c.MachineOfNode = func(node string) policy.Fact[policy.Machine] {
			inventoryMu.Lock()
			machine := machines[node]
			inventoryMu.Unlock()
			if machine == "" {
				return policy.None[policy.Machine]("test", time.Now())
			}
			return policy.Know(policy.Machine{ID: strings.TrimPrefix(machine, "test|"), NodeName: node}, "test", time.Now())
		}
	}
}

// inventoryMu guards the maps that nodesAre was given.
var inventoryMu sync.Mutex

// nodeIs changes such a map while a register asks it.
func nodeIs(machines map[string]string, node, machine string) {
	inventoryMu.Lock()
	defer inventoryMu.Unlock()
	machines[node] = machine
}

// selfServing is the serving certificate that a node asked for.
func selfServing(n int, node, machine string) Entry {
	e := entry(n, node, machine)
	e.Signer, e.Requester = pki.SignerKubeletServing, nodePrefix+node
	return e
}

// forget takes the machines out of what is stored of the first certificates, as versions did that forgot them.
func (s *server) forget() {
	machine := regexp.MustCompile(`( node=\S+) machine=\S+( requester=system:bootstrap:)`)
	for _, cm := range s.list(everything).Items {
		s.edit(cm.Name, func(cm *corev1.ConfigMap) {
			cm.Data[certificatesKey] = machine.ReplaceAllString(cm.Data[certificatesKey], "$1$2")
		})
	}
}

// machines are those that are stored, by the names of requests.
func (s *server) machines() map[string]string {
	found := map[string]string{}
	for _, cm := range s.list(everything).Items {
		c, problems := read(&cm)
		if len(problems) > 0 {
			s.t.Errorf("%s: %v", cm.Name, problems)
		}
		for _, e := range c.entries {
			found[e.CSR] = e.Machine
		}
	}
	return found
}

// A register that has lost machines is completed, in memory and where it is stored, and from then on a certificate is
// good for that machine.
func TestLostMachinesAreFoundAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		r := start(t, s)
		r.Add(of(1, "a", old, fleet))
		r.Add(of(2, "b", old, fleet))
		r.Add(of(3, "c", "test|i-3", fleet))
		elapse(time.Second)
		r.Add(selfServing(4, "b", old)) // it tells which machine b was, whatever the inventory says by now
		elapse(10 * time.Second)
		r.stop()
		s.forget()
		inventory := map[string]string{"a": old, "b": fresh}
		r = start(t, s, nodesAre(inventory))
		credentialIs(t, "before", r.Credential("a", certificate(1)), "", false)
		elapse(11 * time.Second)
		nodeIs(inventory, "a", fresh)
		nodeIs(inventory, "c", "test|i-4")
		again := func(r *running) {
			t.Helper()
			credentialIs(t, "by the inventory", r.Credential("a", certificate(1)), old, false)
			credentialIs(t, "by a later certificate", r.Credential("b", certificate(2)), old, false)
			known(t, "the node's", r.LastMachine("a"), old)
		}
		again(r)
		credentialIs(t, "unknown to the inventory", r.Credential("c", certificate(3)), "", false)
		want := map[string]string{"csr-00001": old, "csr-00002": old, "csr-00003": "", "csr-00004": old}
		if got := s.machines(); !maps.Equal(got, want) {
			t.Errorf("stored are %v", got)
		}
		if !strings.Contains(r.log.String(), "nodes=2") {
			t.Errorf("the log says\n%s", r.log)
		}
		elapse(10 * time.Second)
		credentialIs(t, "known to the inventory later", r.Credential("c", certificate(3)), "test|i-4", false)
		elapse(10 * time.Second)
		writes := s.written()
		elapse(30 * time.Minute)
		if s.written() != writes {
			t.Errorf("%d more writes", s.written()-writes)
		}
		r.stop()
		again(start(t, s, nodesAre(nil)))
	})
}

// The inventory gave the name to a machine that was made after the certificate was issued: it went to another one.
func TestLostMachinesFromBeforeTheMachineWasMade(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		r := start(t, s)
		r.Add(of(1, "a", old, fleet))
		elapse(time.Hour)
		r.stop()
		s.forget()
		created := time.Now()
		r = start(t, s, func(c *Config) {
			c.MachineOfNode = func(node string) policy.Fact[policy.Machine] {
				return policy.Know(policy.Machine{ID: "c-new", NodeName: node, Created: created}, "test", time.Now())
			}
		})
		elapse(time.Minute)
		f := r.Credential("a", certificate(1))
		credentialIs(t, "older than the machine", f, "", false)
		if f.Value.Since.IsZero() || created.Sub(f.Value.Since) < time.Hour {
			t.Errorf("it became good at %s", f.Value.Since)
		}
		if got := s.machines(); got["csr-00001"] != "" {
			t.Errorf("stored are %v", got)
		}
		if strings.Contains(r.log.String(), "put down") {
			t.Errorf("the log says\n%s", r.log)
		}
		r.Add(of(2, "a", "", nodePrefix+"a")) // others signed it: it is put down to the machine, and the old one is not
		elapse(time.Minute)
		credentialIs(t, "of the machine", r.Credential("a", certificate(2)), fresh, false)
		credentialIs(t, "still older than the machine", r.Credential("a", certificate(1)), "", false)
	})
}

// The machine that joined last is the one that the inventory names. An earlier certificate may be any machine's, and
// stays unknown.
func TestLostMachinesFromBeforeTheLastJoin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		r := start(t, s)
		r.Add(of(1, "a", old, fleet))
		elapse(time.Hour)
		r.Add(of(2, "a", fresh, fleet))
		elapse(10 * time.Second)
		r.stop()
		s.forget()
		r = start(t, s, nodesAre(map[string]string{"a": fresh}))
		elapse(11 * time.Second)
		credentialIs(t, "the last", r.Credential("a", certificate(2)), fresh, false)
		f := r.Credential("a", certificate(1))
		credentialIs(t, "the one before", f, "", false)
		if !f.Value.Rejoined {
			t.Error("nobody joined since")
		}
	})
}

// A node that was two machines since somebody joined as it: nobody can tell which of them got the first certificate.
func TestLostMachinesOfANodeThatWasTwo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		r := start(t, s)
		r.Add(of(1, "a", old, fleet))
		for n, machine := range []string{old, fresh} {
			elapse(time.Hour)
			r.Add(selfServing(2+n, "a", machine))
		}
		elapse(10 * time.Second)
		r.stop()
		s.forget()
		r = start(t, s, nodesAre(map[string]string{"a": fresh}))
		elapse(time.Minute)
		credentialIs(t, "the first", r.Credential("a", certificate(1)), "", true)
	})
}

// An entry that could not be written yet is written with its machine.
func TestLostMachinesBeforeTheyAreWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		var broken atomic.Bool
		broken.Store(true)
		s.before = func(verb string) error {
			if broken.Load() && verb == "create" {
				return fmt.Errorf("no quota")
			}
			return nil
		}
		r := start(t, s, nodesAre(map[string]string{"a": old}))
		r.Add(of(1, "a", "", fleet))
		elapse(20 * time.Minute)
		credentialIs(t, "in memory", r.Credential("a", certificate(1)), old, false)
		broken.Store(false)
		elapse(time.Minute)
		if got := s.machines(); got["csr-00001"] != old {
			t.Errorf("stored are %v", got)
		}
	})
}

// Somebody else writes the segment, or it cannot be written: it is tried again.
func TestLostMachinesWhileTheRegisterIsWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		r := start(t, s)
		r.Add(of(1, "a", old, fleet))
		elapse(10 * time.Second)
		r.stop()
		s.forget()
		failed := 0
		s.before = func(verb string) error {
			if verb != "update" || failed > 1 {
				return nil
			}
			if failed++; failed == 1 {
				return fmt.Errorf("no quota")
			}
			s.edit(nameOf(1), func(cm *corev1.ConfigMap) { cm.Data[certificatesKey] += of(7, "b", old, fleet).line() + "\n" })
			return nil
		}
		r = start(t, s, nodesAre(map[string]string{"a": old}))
		elapse(11 * time.Second)
		credentialIs(t, "not stored", r.Credential("a", certificate(1)), "", false)
		if !strings.Contains(r.log.String(), "no quota") {
			t.Errorf("the log says\n%s", r.log)
		}
		elapse(30 * time.Second)
		credentialIs(t, "stored", r.Credential("a", certificate(1)), old, false)
		if got := s.machines(); got["csr-00001"] != old || got["csr-00007"] != old {
			t.Errorf("stored are %v", got)
		}
	})
}

// That a node joined stays known when the certificate that it got is a key alone, also to a register that was started
// since.
func TestThatSomebodyJoinedIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		r := start(t, s)
		unseen := func(r *running, want bool) {
			t.Helper()
			if f := r.Credential("a", certificate(99)); f.State != policy.Known || f.Value.Rejoined != want {
				t.Errorf("a certificate on no record: %+v, want %t", f, want)
			}
		}
		unseen(r, false)
		r.Add(of(1, "a", old, nodePrefix+"a")) // it has one from before
		unseen(r, false)
		r.Add(of(2, "a", old, "system:serviceaccount:x:bootstrapper"))
		if f := r.Credential("a", certificate(2)); f.Value.Rejoined {
			t.Errorf("the certificate itself: %+v", f)
		}
		for _, d := range []time.Duration{time.Minute, 169 * time.Hour, keepExpired + 2*time.Hour} {
			elapse(d)
			unseen(r, true)
			unseen(start(t, s), true)
		}
		if _, keys := s.stored(); keys[joinOf("a")] != 1 {
			t.Errorf("the keys are %v", keys)
		}
	})
}

// A serving certificate tells which machine a node was. It does not tell that the node's client certificate has
// expired.
func TestServingCertificatesTellTheMachine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		r := start(t, s)
		r.Add(selfServing(1, "a", old))
		for _, d := range []time.Duration{time.Minute, 169 * time.Hour, keepExpired + 2*time.Hour} {
			elapse(d)
			for _, r := range []*running{r, start(t, s)} {
				known(t, "its machine", r.LastMachine("a"), old)
				if f := r.Expired("a"); f.State != policy.Absent {
					t.Errorf("no client certificate is on record: %+v", f)
				}
			}
		}
		r = start(t, s)
		r.Add(of(2, "a", fresh, fleet))
		credentialIs(t, "on no record", r.Credential("a", certificate(99)), "", true)
		for _, r := range []*running{r, start(t, s)} {
			if f := r.Expired("a"); f.State != policy.Known || f.Value {
				t.Errorf("it is good: %+v", f)
			}
			elapse(10 * time.Second)
		}
	})
}

// A machine of one source was replaced, and one of another source was on record in between.
func TestReplacedAcrossSources(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t, newServer(t))
		for n, machine := range []string{"test|i-1", "other|x", "test|i-2"} {
			r.Add(of(n, "a", machine, fleet))
			elapse(time.Second)
		}
		credentialIs(t, "the first", r.Credential("a", certificate(0)), "test|i-1", true)
	})
}

// A renewal that others approve and sign is that of the machine whose certificate asked, not of the one that has the
// name by now.
func TestRenewalsThatOthersSignedStayWithTheirCertificate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		r := start(t, s)
		r.Add(of(1, "a", old, fleet))
		elapse(time.Second)
		r.Add(of(2, "a", fresh, fleet))
		asked := func(name string, id pki.Fingerprint) Entry {
			csr, k := issued(t, name, pki.SignerKubeletClient, nodePrefix+"a", nodePrefix+"a", "system:nodes")
			csr.Spec.Extra = map[string]certificatesv1.ExtraValue{"authentication.kubernetes.io/credential-id": {"X509SHA256=" + hex.EncodeToString(id[:])}}
			r.Observe(csr)
			return r.List()[slices.IndexFunc(r.List(), func(e Entry) bool { return e.Key == k })]
		}
		for name, tc := range map[string]struct {
			with pki.Fingerprint
			want string
		}{"old": {certificate(1), old}, "new": {certificate(2), fresh}, "none": {certificate(3), ""}} {
			if got := asked(name, tc.with).Machine; got != tc.want {
				t.Errorf("%s: machine %q, want %q", name, got, tc.want)
			}
		}
	})
}

// Whatever was issued, lost, flushed and read again, and however the inventory changed meanwhile: what the register
// says of a certificate is the machine that it went to, or that it does not know; and if a machine was another before,
// it does not say otherwise of what it does not know.
func TestNoCertificateIsTakenForAnotherMachines(t *testing.T) {
	for range 40 {
		seed := rand.Uint64()
		synctest.Test(t, func(t *testing.T) {
			chance := rand.New(rand.NewPCG(seed, 0))
			s := newServer(t)
			inventory := map[string]string{"a": "test|i-0"}
			r := start(t, s, nodesAre(inventory))
			went, replaced, number := map[int]string{}, false, 0
			for step := range 60 {
				switch chance.IntN(8) {
				case 0: // another machine takes the name over, and joins
					number++
					nodeIs(inventory, "a", fmt.Sprintf("test|i-%d", number))
					replaced = len(went) > 0
					fallthrough
				case 1, 2: // a machine joins
					went[step] = inventory["a"]
					r.Add(of(step, "a", inventory["a"], fleet))
				case 3: // it renews
					if len(went) > 0 {
						went[step] = inventory["a"]
						r.Add(of(step, "a", inventory["a"], nodePrefix+"a"))
					}
				case 4:
					r.Add(selfServing(1000+step, "a", inventory["a"]))
				case 5:
					r.stop()
					r = start(t, s, nodesAre(inventory))
				case 6:
					r.stop()
					s.forget()
					r = start(t, s, nodesAre(inventory))
				case 7:
					elapse(time.Duration(chance.Int64N(int64(40 * time.Hour))))
				}
				elapse(time.Duration(1+chance.Int64N(20)) * time.Second)
				for n, machine := range went {
					f := r.Credential("a", certificate(n)).Value
					unknown := f.Machine == "" && (f.Replaced || f.Rejoined)
					if string(f.Machine) != machine && !unknown && (machine != inventory["a"] || f.Machine != "") {
						t.Fatalf("seed %d, step %d: certificate %d went to %s, the node is %s (replaced: %t), and it says %+v", seed, step, n, machine, inventory["a"], replaced, f)
					}
				}
			}
		})
	}
}
