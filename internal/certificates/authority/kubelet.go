// SPDX-License-Identifier: Apache-2.0

package authority

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"muster.dev/muster/internal/certificates/bundle"
	"muster.dev/muster/internal/certificates/rotation"
	"muster.dev/muster/internal/platform/atomicfile"
)

// Kubelet is the name of the authority of kubelets' certificates. A rotation replaces it by the next one: the first is
// called kubelet-1.
const Kubelet = "kubelet"

// The files of it. The record says which authority signs and which are trusted; the other three follow from it and are
// written after it.
const (
	recordFile = "record.json"
	signerFile = "signing.pem"
	// clientFile and servingFile are bundles for the verifiers of kubelets' client and serving certificates.
	clientFile  = "client-ca.pem"
	servingFile = "serving-ca.pem"
)

// Kubelets is the record of kubelets' authorities.
type Kubelets struct {
	// Current is the authority that signs, or that did when the rotation began.
	Current string `json:"current"`
	// Rotation is the one under way.
	Rotation *rotation.Rotation `json:"rotation,omitempty"`
	// Last is the one before.
	Last *Rotated `json:"last,omitempty"`
	// IDs are those of authorities that a request asked for, by their name.
	IDs map[string]string `json:"ids,omitempty"`
	// Asked is the request that was answered last.
	Asked *Answered `json:"asked,omitempty"`
}

// Rotated is a rotation that is over.
type Rotated struct {
	Old      string    `json:"old"`
	New      string    `json:"new"`
	Started  time.Time `json:"started"`
	Finished time.Time `json:"finished"`
}

// Signs is the authority that signs.
func (k Kubelets) Signs() string {
	if k.Rotation != nil {
		return k.Rotation.Signs()
	}
	return k.Current
}

// Trusts are the authorities whose certificates are accepted.
func (k Kubelets) Trusts() []string {
	if k.Rotation != nil {
		return k.Rotation.Trusts()
	}
	return []string{k.Current}
}

// next is the name of the authority after the current one.
func (k Kubelets) next() string {
	names, last := []string{k.Current}, 0
	if k.Last != nil {
		names = append(names, k.Last.Old, k.Last.New) // also of a rotation that was given up: a name is used once
	}
	for _, name := range names {
		if n, err := strconv.Atoi(strings.TrimPrefix(name, Kubelet+"-")); err == nil { // the cluster's has no number
			last = max(last, n)
		}
	}
	return fmt.Sprintf("%s-%d", Kubelet, last+1)
}

func (s Store) kubelet(name string) string { return filepath.Join(s.dir, Kubelet, name) }

// Kubelets reads the record.
func (s Store) Kubelets() (Kubelets, error) {
	var k Kubelets
	raw, err := os.ReadFile(s.kubelet(recordFile))
	if err == nil {
		err = json.Unmarshal(raw, &k)
	}
	if err == nil && k.Current == "" {
		err = errors.New("it names no authority")
	}
	if err != nil {
		return k, fmt.Errorf("reading the record of kubelets' authorities (restore %s from a backup, or remove everything with `muster down --delete`): %w", s.kubelet(""), err)
	}
	return k, nil
}

// ensureKubelets makes the first authority of kubelets, or, where the cluster's has signed for them until now, begins
// to rotate from that.
func (s Store) ensureKubelets(now time.Time) (written []string, err error) {
	if _, err := s.Kubelets(); err == nil || !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if err := os.MkdirAll(s.kubelet(""), 0o700); err != nil {
		return nil, fmt.Errorf("making directory of kubelets' authorities: %w", err)
	}
	const first = Kubelet + "-1"
	k := Kubelets{Current: first}
	if _, err := os.Stat(s.AuthorityPath(Cluster)); err == nil {
		k = Kubelets{Current: Cluster, Rotation: new(rotation.Start(Cluster, first, now))}
	}
	if err := s.makeKubelet(first, now); err != nil {
		return nil, err
	}
	return []string{first + " authority"}, s.keep(k)
}

// StartRotation begins to replace the authority of kubelets' certificates. A rotation that is under way and held is
// released: it goes on by itself.
func (s Store) StartRotation(now time.Time) error {
	k, err := s.Kubelets()
	switch {
	case err != nil, k.Rotation != nil && k.Rotation.Hold == "":
		return err
	case k.Rotation != nil:
		k.Rotation.Hold = ""
		return s.change(k)
	}
	next := k.next()
	if err := s.makeKubelet(next, now); err != nil {
		return err
	}
	k.Rotation = new(rotation.Start(k.Current, next, now))
	return s.change(k)
}

// Advance keeps what a rotation has become, unless somebody has changed it meanwhile. The old authority's key is
// destroyed when the rotation is over.
func (s Store) Advance(before, r rotation.Rotation, now time.Time) error {
	k, err := s.Kubelets()
	if err != nil || k.Rotation == nil || *k.Rotation != before {
		return err
	}
	k.Rotation = &r
	if r.Phase == rotation.Done {
		delete(k.IDs, r.Old)
		k.Current, k.Rotation, k.Last = r.New, nil, &Rotated{Old: r.Old, New: r.New, Started: r.Started, Finished: now.UTC()}
	}
	return s.change(k)
}

func (s Store) change(k Kubelets) error {
	if err := s.keep(k); err != nil {
		return err
	}
	return s.render(k)
}

// keep writes the record.
func (s Store) keep(k Kubelets) error {
	raw, err := json.MarshalIndent(k, "", "  ")
	if err != nil {
		return fmt.Errorf("encoding the record of kubelets' authorities: %w", err)
	}
	return atomicfile.Write(s.kubelet(recordFile), append(raw, '\n'), 0o600)
}

// render writes what follows from the record; files that are right already are left alone. Trust comes before use: a
// verifier must never learn of an authority later than its signer does.
func (s Store) render(k Kubelets) error {
	var trusted []*x509.Certificate
	for _, name := range k.Trusts() {
		ca, err := s.kubeletAuthority(name)
		if err != nil {
			return err
		}
		trusted = append(trusted, ca.cert)
	}
	serving := bundle.PEM(trusted...)
	// Components and administrators, which are clients too, have their certificates from the cluster's authority.
	cluster, err := readCert(s.AuthorityPath(Cluster))
	if err != nil {
		return err
	}
	trusted = append(trusted, cluster)
	if err := atomicfile.Write(s.kubelet(clientFile), bundle.PEM(trusted...), modePublic); err != nil {
		return err
	}
	if err := atomicfile.Write(s.kubelet(servingFile), serving, modePublic); err != nil {
		return err
	}
	signing, err := s.kubeletAuthority(k.Signs())
	if err != nil {
		return err
	}
	if err := s.writePair(signerFile, signing); err != nil {
		return err
	}
	return s.forget(k)
}

// forget removes authorities that are neither trusted nor needed to see that they are trusted no more.
func (s Store) forget(k Kubelets) error {
	keep := k.Trusts()
	if k.Rotation != nil {
		keep = append(keep, k.Rotation.Old)
	}
	paths, err := filepath.Glob(s.kubelet(Kubelet + "-*.pem"))
	if err != nil {
		return err
	}
	for _, path := range paths {
		if slices.Contains(keep, strings.TrimSuffix(filepath.Base(path), ".pem")) {
			continue
		}
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("removing an authority that has been replaced: %w", err)
		}
	}
	return nil
}

// makeKubelet makes an authority of kubelets, or takes one that a crash kept from the record.
func (s Store) makeKubelet(name string, now time.Time) error {
	if _, err := s.kubeletAuthority(name); err == nil || !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	ca, err := newAuthority(name, now)
	if err != nil {
		return err
	}
	return s.writePair(name+".pem", ca)
}

// writePair keeps certificate and key in one file: a reader never pairs the certificate of one with the key of another.
func (s Store) writePair(name string, ca pair) error {
	encoded, err := encodeKey(ca.key)
	if err != nil {
		return err
	}
	return atomicfile.Write(s.kubelet(name), append(encodeCert(ca.cert), encoded...), 0o600)
}

// kubeletAuthority reads one of the authorities that kubelets' certificates are signed by.
func (s Store) kubeletAuthority(name string) (pair, error) {
	if name == Cluster {
		return loadPair(name, s.AuthorityPath(Cluster), filepath.Join(s.dir, Cluster, "ca-key.pem"))
	}
	path := s.kubelet(name + ".pem")
	return loadPair(name, path, path)
}

func loadPair(name, cert, key string) (pair, error) {
	loaded, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		return pair{}, fmt.Errorf("reading the %s authority (restore %s from a backup, or remove everything with `muster down --delete`): %w", name, filepath.Dir(cert), err)
	}
	ecdsaKey, ok := loaded.PrivateKey.(*ecdsa.PrivateKey)
	if !ok {
		return pair{}, fmt.Errorf("the key of the %s authority is not an ECDSA key: %s", name, key)
	}
	return pair{loaded.Leaf, ecdsaKey}, nil
}

// KubeletAuthority is the certificate of one of the authorities that kubelets' certificates are signed by.
func (s Store) KubeletAuthority(name string) (*x509.Certificate, error) {
	ca, err := s.kubeletAuthority(name)
	return ca.cert, err
}

// The roles of an authority.
const (
	roleSigns     = "signs"
	roleTrusted   = "trusted"
	roleWithdrawn = "withdrawn"
)

// listKubelets lists kubelets' authorities, without the cluster's where that is one of them.
func (s Store) listKubelets() ([]Entry, error) {
	k, err := s.Kubelets()
	if errors.Is(err, fs.ErrNotExist) { // of a version from before kubelets had one; the next start makes it
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	names := k.Trusts()
	if k.Rotation != nil && !slices.Contains(names, k.Rotation.Old) {
		names = append(names, k.Rotation.Old)
	}
	slices.Sort(names)
	var entries []Entry
	for _, name := range names {
		if name == Cluster {
			continue
		}
		ca, err := s.kubeletAuthority(name)
		if err != nil {
			return nil, err
		}
		e := entry(name, "", ca.cert)
		switch {
		case name == k.Signs():
			e.Role = roleSigns
		case slices.Contains(k.Trusts(), name):
			e.Role = roleTrusted
		default:
			e.Role = roleWithdrawn
		}
		entries = append(entries, e)
	}
	return entries, nil
}

// probeUser is nobody: a certificate in this name shows only whether its authority is trusted.
const probeUser = "muster:probe"

// Probe issues a client certificate of one of kubelets' authorities, in memory, to see which components trust it.
func (s Store) Probe(name string, now time.Time) (tls.Certificate, error) {
	ca, err := s.kubeletAuthority(name)
	if err != nil {
		return tls.Certificate{}, err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("making key of the probe: %w", err)
	}
	cert, err := issue(&x509.Certificate{
		Subject:     pkix.Name{CommonName: probeUser},
		NotBefore:   now.Add(-backdate),
		NotAfter:    minTime(now.Add(backdate), ca.cert.NotAfter),
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}, ca, key)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("issuing probe: %w", err)
	}
	return tls.Certificate{Certificate: [][]byte{cert.Raw}, PrivateKey: key, Leaf: cert}, nil
}
