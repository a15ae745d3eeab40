// SPDX-License-Identifier: Apache-2.0

package signer_test

import (
	"context"
	"crypto"
	"crypto/x509"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"muster.dev/muster/internal/certificates/pki"
	"muster.dev/muster/internal/certificates/pki/pkitest"
	"muster.dev/muster/internal/certificates/signer"
)

// keys is a source that tests change.
type keys struct {
	mu  sync.Mutex
	key signer.Key
	err error
}

func (k *keys) get(context.Context) (signer.Key, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.key, k.err
}

func (k *keys) set(key signer.Key, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.key, k.err = key, err
}

// remote is a key that is somewhere else.
type remote struct {
	crypto.Signer
	before func(context.Context) error
}

func (r remote) Sign(ctx context.Context, digest []byte, opts crypto.SignerOpts) ([]byte, error) {
	if err := r.before(ctx); err != nil {
		return nil, err
	}
	return r.Signer.Sign(nil, digest, opts)
}

func atOnce(context.Context) error { return nil }

func newCA(t *testing.T, d *disk, source signer.Source) *signer.CA {
	t.Helper()
	s, err := signer.New(t.Context(), signer.Config{Certificate: d.cert, Key: source, Logger: discard()})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// kubelet puts the files of a Secret below a directory that a link, ..data, names, and replaces that link.
func TestFilesOfASecretVolume(t *testing.T) {
	a, aKey := pkitest.Authority(t, "a", now, time.Hour)
	b, bKey := pkitest.Authority(t, "b", now, time.Hour)
	d := newDisk(t)
	dir := filepath.Dir(d.cert)
	publish := func(version string, c *x509.Certificate, k crypto.Signer) {
		t.Helper()
		if err := os.Mkdir(filepath.Join(dir, version), 0o700); err != nil {
			t.Fatal(err)
		}
		d.replace(filepath.Join(dir, version, "ca.crt"), certPEM(c))
		d.replace(filepath.Join(dir, version, "ca.key"), keyPEM(t, k))
		if err := errors.Join(os.Symlink(version, filepath.Join(dir, "..data_tmp")), os.Rename(filepath.Join(dir, "..data_tmp"), filepath.Join(dir, "..data"))); err != nil {
			t.Fatal(err)
		}
	}
	publish("..1", a, aKey)
	for _, name := range []string{"ca.crt", "ca.key"} {
		if err := os.Symlink(filepath.Join("..data", name), filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	s := d.mustOpen()
	signsAs(t, s, a)
	publish("..2", b, bKey)
	signsAs(t, s, b)
	if err := os.RemoveAll(filepath.Join(dir, "..1")); err != nil {
		t.Fatal(err)
	}
	signsAs(t, s, b)
}

// Two signatures that wait for each other: nothing but the key may stand between them.
func TestSignaturesDoNotWaitForEachOther(t *testing.T) {
	ca, key := pkitest.Authority(t, "a", now, time.Hour)
	d := newDisk(t)
	d.write(ca, key)
	var both sync.WaitGroup
	both.Add(2)
	s := newCA(t, d, fixed(remote{key, func(ctx context.Context) error {
		both.Done()
		met := make(chan struct{})
		go func() { both.Wait(); close(met) }()
		select {
		case <-met:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}}))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var group sync.WaitGroup
	for range 2 {
		group.Go(func() {
			if _, err := s.Sign(ctx, prepare(t, ca)); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
}

func TestSignHandsItsContextOn(t *testing.T) {
	ca, key := pkitest.Authority(t, "a", now, time.Hour)
	d := newDisk(t)
	d.write(ca, key)
	s := newCA(t, d, fixed(remote{key, context.Cause}))
	why := errors.New("no more time")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	if _, err := s.Sign(ctx, prepare(t, ca)); !errors.Is(err, why) {
		t.Errorf("got %v", err)
	}
}

func TestAKeyThatBecomesAnotherOrUnavailable(t *testing.T) {
	a, aKey := pkitest.Authority(t, "a", now, time.Hour)
	b, bKey := pkitest.Authority(t, "b", now, time.Hour)
	d := newDisk(t)
	d.replace(d.cert, certPEM(a))
	source := &keys{err: signer.ErrUnavailable}
	s := newCA(t, d, source.get)
	if _, err := s.Issuer(t.Context()); !errors.Is(err, signer.ErrUnavailable) {
		t.Errorf("issuer: %v", err)
	}
	if _, err := s.Sign(t.Context(), prepare(t, a)); !errors.Is(err, signer.ErrUnavailable) {
		t.Errorf("signature: %v", err)
	}
	source.set(remote{bKey, atOnce}, nil)
	if _, err := s.Sign(t.Context(), prepare(t, a)); err == nil || errors.Is(err, signer.ErrUnavailable) {
		t.Errorf("another's key: %v", err)
	}
	source.set(remote{aKey, atOnce}, nil)
	signsAs(t, s, a)

	// The old pair goes on until there is a new one.
	prepared := prepare(t, a)
	source.set(remote{bKey, atOnce}, nil)
	signsAs(t, s, a)
	d.replace(d.cert, certPEM(b))
	signsAs(t, s, b)
	if _, err := s.Sign(t.Context(), prepared); !errors.Is(err, pki.ErrIssuerChanged) {
		t.Errorf("signed what was prepared for the old authority: %v", err)
	}
	source.set(nil, signer.ErrUnavailable)
	signsAs(t, s, b)
}

// A source that lies about a key does not get a certificate below it.
func TestASignatureOfAnotherKeyIsRefused(t *testing.T) {
	ca, key := pkitest.Authority(t, "a", now, time.Hour)
	d := newDisk(t)
	d.write(ca, key)
	s := newCA(t, d, fixed(liar{remote{pkitest.Key(t), atOnce}, key.Public()}))
	if out, err := s.Sign(t.Context(), prepare(t, ca)); err == nil {
		t.Errorf("got %s", out)
	}
}

type liar struct {
	signer.Key
	public crypto.PublicKey
}

func (l liar) Public() crypto.PublicKey { return l.public }

func TestNewRefuses(t *testing.T) {
	ca, key := pkitest.Authority(t, "a", now, time.Hour)
	d := newDisk(t)
	d.write(ca, key)
	fails := errors.New("no such key")
	good := signer.Config{Certificate: d.cert, Key: (&keys{key: remote{key, atOnce}}).get, Logger: discard()}
	for name, change := range map[string]func(*signer.Config){
		"no certificate": func(c *signer.Config) { c.Certificate = "" },
		"no key":         func(c *signer.Config) { c.Key = nil },
		"no logger":      func(c *signer.Config) { c.Logger = nil },
		"no such file":   func(c *signer.Config) { c.Certificate = d.cert + ".not" },
		"no such key":    func(c *signer.Config) { c.Key = (&keys{err: fails}).get },
		"a broken certificate of a key that comes later": func(c *signer.Config) {
			c.Certificate, c.Key = d.key, (&keys{err: signer.ErrUnavailable}).get
		},
	} {
		c := good
		change(&c)
		if _, err := signer.New(t.Context(), c); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	if _, err := signer.New(t.Context(), good); err != nil {
		t.Error(err)
	}
}

// fixed is the source of one key.
func fixed(k signer.Key) signer.Source {
	return func(context.Context) (signer.Key, error) { return k, nil }
}
