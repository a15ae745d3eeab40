// SPDX-License-Identifier: Apache-2.0

package tokenkeys

import (
	"crypto"
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/util/keyutil"

	"muster.dev/muster/internal/certificates/authority"
	"muster.dev/muster/internal/certificates/rotator"
	"muster.dev/muster/internal/plane/component"
	"muster.dev/muster/internal/platform/statedir"
)

// says fails unless the error says it.
func says(t *testing.T, err error, want string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error is %v, want one with %q", err, want)
	}
}

func put(t *testing.T, path, content string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(content), 0o600)); err != nil {
		t.Fatal(err)
	}
}

// idOf is the id of the key that signs, as a signer has it that is started in the directory of a cluster.
func idOf(t *testing.T, c component.Config, now time.Time) string {
	t.Helper()
	k, err := Open(c.Dir.TokenSigner(), now)
	if err != nil {
		t.Fatal(err)
	}
	r, err := k.Ring()
	if err != nil {
		t.Fatal(err)
	}
	return r.Signer(now).ID
}

func TestIssuingWithoutKeys(t *testing.T) {
	unknown := errors.New("nothing is known")
	none := func() (Ring, error) { return Ring{}, unknown }
	_, err := NewIssuing("", none)
	says(t, err, `"" is not https://HOST/id/ID`)
	i, err := NewIssuing("https://127.93.14.201/id/0123456789ABCDEF0123456789ABCDEF", none)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := i.At(time.Now()); !errors.Is(err, unknown) {
		t.Errorf("without keys: %v", err)
	}
}

// newCluster has the keys that each cluster has before its components run.
func newCluster(t *testing.T, now time.Time) component.Config {
	t.Helper()
	c := component.Config{Dir: statedir.Dir(t.TempDir()).Cluster("blue")}
	if err := os.MkdirAll(c.Dir.PKI(), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := rotator.NewKeys(authority.NewStore(c.Dir.PKI())).Ensure(nil, now); err != nil {
		t.Fatal(err)
	}
	return c
}

// use leaves what a cluster leaves that has run.
func use(t *testing.T, c component.Config) {
	t.Helper()
	put(t, filepath.Join(c.Dir.Etcd(), "member"), "")
	if err := os.MkdirAll(c.Dir.Component(component.TokenSigner), 0o700); err != nil {
		t.Fatal(err)
	}
}

// handOver is what a cluster of before, or a new one, gets when its service starts.
func handOver(c component.Config, now time.Time) error {
	convert, err := Convert(c, now)
	if err == nil && convert != nil {
		err = convert()
	}
	if err != nil {
		return err
	}
	return Begin(c)
}

// TestHandOver has a cluster of each kind get its keys, and keep them.
func TestHandOver(t *testing.T) {
	now := time.Now()
	for name, tc := range map[string]struct {
		used   bool
		legacy bool // the first key is that of tokens in Secrets
	}{
		"new":                        {},
		"of before there was a file": {used: true, legacy: true},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, now)
			if tc.used {
				put(t, filepath.Join(c.Dir.Etcd(), "member"), "")
			}
			if err := handOver(c, now); err != nil {
				t.Fatal(err)
			}
			signer := idOf(t, c, now)
			ring, err := Read(filepath.Join(c.Dir.TokenSigner(), keysName))
			if err != nil {
				t.Fatal(err)
			}
			// A new cluster signs as EKS does. A cluster of before keeps the algorithm that its verifiers know.
			if got := ring.Signer(now).Algorithm; got != map[bool]Algorithm{true: ES256, false: RS256}[tc.legacy] {
				t.Errorf("it signs by %s", got)
			}
			parsed, err := keyutil.PrivateKeyFromFile(c.SigningKey())
			if err != nil {
				t.Fatal(err)
			}
			legacy, err := Of(now, parsed.(crypto.Signer))
			if err != nil {
				t.Fatal(err)
			}
			if got := legacy.Signer(now).ID == signer; got != tc.legacy {
				t.Errorf("the key of tokens in Secrets signs: %v", got)
			}
			use(t, c)
			if err := handOver(c, now); err != nil || idOf(t, c, now) != signer {
				t.Errorf("the second time it is another: %v", err)
			}
			if info, err := os.Stat(filepath.Join(c.Dir.TokenSigner(), keysName)); err != nil || info.Mode().Perm() != 0o600 {
				t.Errorf("%v, %v", info.Mode(), err)
			}
		})
	}
}

// TestLostKeysAreNotMadeAnew loses the file, and then the directory.
func TestLostKeysAreNotMadeAnew(t *testing.T) {
	now := time.Now()
	c := newCluster(t, now)
	if err := handOver(c, now); err != nil {
		t.Fatal(err)
	}
	idOf(t, c, now)
	use(t, c)
	if err := os.Remove(filepath.Join(c.Dir.TokenSigner(), keysName)); err != nil {
		t.Fatal(err)
	}
	if err := handOver(c, now); err != nil {
		t.Fatal(err)
	}
	_, err := Open(c.Dir.TokenSigner(), now)
	says(t, err, "is missing, and the cluster is in use")
	if err := os.Remove(c.Dir.TokenSigner()); err != nil {
		t.Fatal(err)
	}
	says(t, handOver(c, now), "is missing, and the cluster is in use")
	_, err = Open(c.Dir.TokenSigner(), now)
	says(t, err, "is missing, and the cluster is in use")
}

// TestKeysOfBefore is a cluster whose service kept the keys. They are moved, whatever crashes between two steps, and
// are never made anew.
func TestKeysOfBefore(t *testing.T) {
	now := time.Now()
	old, err := New(now.Add(-48*time.Hour), RS256, rand.Reader)
	if err == nil {
		old, err = old.Rotate(now.Add(-24*time.Hour), 0, rand.Reader)
	}
	if err == nil {
		old, err = old.Rotate(now, time.Hour, rand.Reader)
	}
	if err != nil {
		t.Fatal(err)
	}
	for name, crash := range map[string]func(*testing.T, component.Config){
		"no crash": func(*testing.T, component.Config) {},
		"before anything was copied": func(t *testing.T, c component.Config) {
			t.Helper()
			if err := os.MkdirAll(c.Dir.TokenSigner()+".new", 0o700); err != nil {
				t.Fatal(err)
			}
		},
		"in the copy": func(t *testing.T, c component.Config) {
			t.Helper()
			put(t, filepath.Join(c.Dir.TokenSigner()+".new", ".new-"+keysName+"-1"), `{"version":`)
		},
		"after the copy": func(t *testing.T, c component.Config) {
			t.Helper()
			if err := errors.Join(os.MkdirAll(c.Dir.TokenSigner()+".new", 0o700), Write(filepath.Join(c.Dir.TokenSigner()+".new", keysName), old)); err != nil {
				t.Fatal(err)
			}
		},
		"before the file is removed": func(t *testing.T, c component.Config) {
			t.Helper()
			if err := handOver(c, now); err != nil {
				t.Fatal(err)
			}
			idOf(t, c, now)
		},
		"after the file was removed": func(t *testing.T, c component.Config) {
			t.Helper()
			if err := errors.Join(handOver(c, now), Forget(c, old, now)); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, now)
			use(t, c)
			if err := Write(c.TokenKeysBefore(), old); err != nil {
				t.Fatal(err)
			}
			crash(t, c)
			if err := handOver(c, now); err != nil {
				t.Fatal(err)
			}
			k, err := Open(c.Dir.TokenSigner(), now)
			if err != nil {
				t.Fatal(err)
			}
			got, err := k.Ring()
			if err != nil || string(formatted(t, got)) != string(formatted(t, old)) {
				t.Fatalf("the keys are others: %v", err)
			}
			if known, err := ReadPublic(c.Dir.TokenKeys()); err != nil || len(known.Keys()) != 3 {
				t.Errorf("what the account knows: %v, %v", known, err)
			}
			if err := Forget(c, got, now); err != nil {
				t.Fatal(err)
			}
			if _, err := os.Stat(c.TokenKeysBefore()); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("the service has the keys still: %v", err)
			}
			if err := Forget(c, got, now); err != nil {
				t.Error(err)
			}
		})
	}
	t.Run("a signer with others", func(t *testing.T) {
		c := newCluster(t, now)
		if err := Write(c.TokenKeysBefore(), old); err != nil {
			t.Fatal(err)
		}
		says(t, Forget(c, newRing(t), now), "does not have the key")
		if _, err := os.Stat(c.TokenKeysBefore()); err != nil {
			t.Errorf("the file is gone: %v", err)
		}
	})
	t.Run("a key that nobody trusts any more", func(t *testing.T) {
		c := newCluster(t, now)
		if err := Write(c.TokenKeysBefore(), old); err != nil {
			t.Fatal(err)
		}
		late := now.Add(MaxExtended + Skew + time.Minute)
		pruned, _ := old.Prune(late) // as the signer does when it begins
		if len(pruned.Keys()) == len(old.Keys()) {
			t.Fatal("no key is out of use")
		}
		if err := Forget(c, pruned, late); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(c.TokenKeysBefore()); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("the service has the keys still: %v", err)
		}
	})
	t.Run("a damaged file", func(t *testing.T) {
		c := newCluster(t, now)
		put(t, c.TokenKeysBefore(), "{")
		says(t, handOver(c, now), "is damaged")
		if _, err := os.Stat(c.Dir.TokenSigner()); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("it was handed over: %v", err)
		}
	})
}

// TestASignerThatDiesAsItMakesItsKeys has them made once.
func TestASignerThatDiesAsItMakesItsKeys(t *testing.T) {
	now := time.Now()
	c := newCluster(t, now)
	if err := handOver(c, now); err != nil {
		t.Fatal(err)
	}
	signer := idOf(t, c, now)
	put(t, filepath.Join(c.Dir.TokenSigner(), newName), "") // it died before this was removed
	if idOf(t, c, now) != signer {
		t.Error("keys were made anew")
	}
	if _, err := os.Stat(filepath.Join(c.Dir.TokenSigner(), newName)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("keys may be made anew still: %v", err)
	}
}

// TestASignerThatDiesAsItWrites leaves a file with private keys, which goes once nobody can be writing it any more.
func TestASignerThatDiesAsItWrites(t *testing.T) {
	now := time.Now()
	c := newCluster(t, now)
	if err := handOver(c, now); err != nil {
		t.Fatal(err)
	}
	k, err := Open(c.Dir.TokenSigner(), now)
	if err != nil {
		t.Fatal(err)
	}
	put(t, filepath.Join(c.Dir.TokenSigner(), ".new-"+keysName+"-1234"), "PRIVATE KEY") // as atomicfile calls it
	for _, tc := range []struct {
		after time.Duration
		files int
	}{{time.Minute, 2}, {2 * time.Hour, 1}} {
		if changed, err := k.Prune(now.Add(tc.after)); changed || err != nil {
			t.Error(changed, err)
		}
		if entries, err := os.ReadDir(c.Dir.TokenSigner()); err != nil || len(entries) != tc.files {
			t.Errorf("after %s there are %v, %v; want %d files", tc.after, entries, err, tc.files)
		}
	}
	if _, err := k.Ring(); err != nil {
		t.Error(err)
	}
}

// TestKeeperRotates gives each order twice, as after an answer that was lost.
func TestKeeperRotates(t *testing.T) {
	now := time.Now()
	c := newCluster(t, now)
	if err := handOver(c, now); err != nil {
		t.Fatal(err)
	}
	k, err := Open(c.Dir.TokenSigner(), now)
	if err != nil {
		t.Fatal(err)
	}
	first, err := k.Ring()
	if err != nil {
		t.Fatal(err)
	}
	order := Order{After: first.Last().ID}
	next, added, err := k.Rotate(order, now)
	if err != nil || !added || len(next.Keys()) != 2 {
		t.Fatalf("%v, %v", next, err)
	}
	late := now.Add(time.Minute)
	if again, added, err := k.Rotate(order, late); err != nil || added || len(again.Keys()) != 2 || again.Last().ID != next.Last().ID {
		t.Errorf("the second time: %v, %v", again, err)
	}
	// A key that does not sign yet is waited for.
	if next, added, err = k.Rotate(Order{After: next.Last().ID, Notice: time.Hour}, late); err != nil || !added || len(next.Keys()) != 3 {
		t.Fatalf("%v, %v", next, err)
	}
	if again, added, err := k.Rotate(Order{After: next.Last().ID}, late); err != nil || added || len(again.Keys()) != 3 {
		t.Errorf("while a rotation is under way: %v, %v", again, err)
	}
	_, _, err = k.Rotate(Order{After: next.Last().ID, Notice: -time.Second}, late.Add(2*time.Hour))
	if refused, ok := errors.AsType[*Refused](err); !ok || !strings.Contains(refused.Reason, "from 0s to") {
		t.Errorf("before now: %v", err)
	}
	// It is pruned once.
	for _, want := range []bool{true, false} {
		if changed, err := k.Prune(late.Add(2 * time.Hour)); err != nil || changed != want {
			t.Errorf("%v, %v; want %v", changed, err, want)
		}
	}
}

func TestParseOrder(t *testing.T) {
	want := Order{After: "a", Notice: 90 * time.Minute}
	raw, err := FormatOrder(want)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := ParseOrder(raw); err != nil || got != want {
		t.Errorf("%+v, %v", got, err)
	}
	for text, want := range map[string]string{
		`{"after":"a","notice":"1h","more":1}`:         "unknown field",
		`{"after":"a","after":"b","notice":"1h"}`:      "duplicate field",
		`{"notice":"1h"}`:                              "after: must be",
		`{"after":"a"}`:                                "notice: ",
		`{"after":"a","notice":3600}`:                  "cannot unmarshal",
		`{"after":"a"`:                                 "unexpected end",
		`{"after":"` + strings.Repeat("a", 1024) + `"`: "more than 1024 bytes",
	} {
		if _, err := ParseOrder([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want %s", text, err, want)
		}
	}
}

func FuzzParseOrder(f *testing.F) {
	f.Add([]byte(`{"after":"a","notice":"1h5m0s"}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		o, err := ParseOrder(raw)
		if err != nil {
			return
		}
		again, err := FormatOrder(o)
		if err != nil {
			t.Fatal(err)
		}
		if len(again) > MaxOrder {
			return // letters that JSON writes in six bytes
		}
		if got, err := ParseOrder(again); err != nil || got != o {
			t.Fatalf("%+v, %v", got, err)
		}
	})
}
