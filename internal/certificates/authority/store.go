// SPDX-License-Identifier: Apache-2.0

package authority

import (
	"bytes"
	"cmp"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"slices"
	"time"

	"muster.dev/muster/internal/platform/atomicfile"
)

// Store is the directory that the authorities and credentials of a cluster, or those of the account, live in.
type Store struct {
	dir   string
	names []string // of the authorities
	plane string   // whose service account key is here: Cluster or Management
}

// NewStore is the store of a cluster. The directory need not exist yet.
func NewStore(dir string) Store {
	return Store{dir: dir, names: []string{Cluster, Etcd, FrontProxy}, plane: Cluster}
}

// NewAccountStore is the store of the account. The directory need not exist yet.
func NewAccountStore(dir string) Store {
	return Store{dir: dir, names: []string{Account, Management, ManagementEtcd}, plane: Management}
}

// Names lists the authorities of the store, without kubelets'.
func (s Store) Names() []string { return slices.Clone(s.names) }

// ofKubelets reports whether kubelets' authorities are here.
func (s Store) ofKubelets() bool { return s.plane == Cluster }

// Ensure makes what is missing and renews what is due, and says what it wrote. Run again, it writes nothing.
// A file that is there but cannot be read is an error: replacing an authority by surprise would lock every node out.
func (s Store) Ensure(credentials []Credential, now time.Time) (written []string, err error) {
	// Kubelets' authorities come before the cluster's: where that is there and they are not, it has signed for
	// kubelets.
	if s.ofKubelets() {
		if written, err = s.ensureKubelets(now); err != nil {
			return written, err
		}
	}
	authorities := map[string]pair{}
	for _, name := range s.names {
		ca, made, err := s.ensureAuthority(name, now)
		if err != nil {
			return written, err
		}
		authorities[name] = ca
		if made {
			written = append(written, name+" authority")
		}
	}
	if s.ofKubelets() {
		kubelets, err := s.Kubelets()
		if err != nil {
			return written, err
		}
		if err := s.render(kubelets); err != nil { // a crash may have come between the record and what follows from it
			return written, err
		}
	}
	made, err := s.ensureSigningKey(s.plane)
	if err != nil {
		return written, err
	}
	if made {
		written = append(written, s.plane+" service account key")
	}
	if err := os.MkdirAll(filepath.Join(s.dir, "issued"), 0o700); err != nil {
		return written, fmt.Errorf("making directory of certificates: %w", err)
	}
	for _, c := range credentials {
		ca, ok := authorities[c.Authority]
		if !ok {
			return written, fmt.Errorf("issuing %s: there is no authority %q", c.Name, c.Authority)
		}
		made, err := s.ensureCredential(c, ca, now)
		if err != nil {
			return written, err
		}
		if made {
			written = append(written, c.Name)
		}
	}
	return written, nil
}

// pair is a certificate with its key.
type pair struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func (s Store) ensureAuthority(name string, now time.Time) (pair, bool, error) {
	dir := filepath.Join(s.dir, name)
	certPath, keyPath := filepath.Join(dir, "ca.pem"), filepath.Join(dir, "ca-key.pem")
	if _, err := os.Stat(certPath); err == nil {
		ca, err := loadPair(name, certPath, keyPath)
		return ca, false, err
	} else if !errors.Is(err, fs.ErrNotExist) {
		return pair{}, false, fmt.Errorf("looking at the %s authority: %w", name, err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return pair{}, false, fmt.Errorf("making directory of authority: %w", err)
	}
	ca, err := newAuthority(name, now)
	if err != nil {
		return pair{}, false, err
	}
	// The certificate comes last: while it is missing, the authority is not there, and a key alone is made anew.
	if err := writeKey(keyPath, ca.key); err != nil {
		return pair{}, false, err
	}
	return ca, true, atomicfile.Write(certPath, encodeCert(ca.cert), modePublic)
}

// modePublic is that of files without keys, which components of a cluster read that are users of their own. The
// directories above are closed to all others.
const modePublic = 0o644

// newAuthority makes an authority in memory.
func newAuthority(name string, now time.Time) (pair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return pair{}, fmt.Errorf("making key of the %s authority: %w", name, err)
	}
	template := &x509.Certificate{
		Subject:               pkix.Name{CommonName: "muster " + name},
		NotBefore:             now.Add(-backdate),
		NotAfter:              now.Add(authorityLifetime),
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageCRLSign | x509.KeyUsageDigitalSignature,
		IsCA:                  true,
		BasicConstraintsValid: true,
		MaxPathLenZero:        true,
	}
	cert, err := issue(template, pair{template, key}, key)
	if err != nil {
		return pair{}, fmt.Errorf("making the %s authority: %w", name, err)
	}
	return pair{cert, key}, nil
}

func (s Store) ensureSigningKey(plane string) (bool, error) {
	path := filepath.Join(s.dir, "service-account", plane+".pem")
	if raw, err := os.ReadFile(path); err == nil {
		block, _ := pem.Decode(raw)
		if block == nil {
			return false, fmt.Errorf("reading service account key: %s is damaged: restore it from a backup, or remove everything with `muster down --delete`", path)
		}
		if _, err := x509.ParseECPrivateKey(block.Bytes); err != nil {
			return false, fmt.Errorf("reading service account key %s (restore it from a backup, or remove everything with `muster down --delete`): %w", path, err)
		}
		return false, nil
	} else if !errors.Is(err, fs.ErrNotExist) {
		return false, fmt.Errorf("reading service account key: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return false, fmt.Errorf("making directory of service account keys: %w", err)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return false, fmt.Errorf("making service account key: %w", err)
	}
	return true, writeKey(path, key)
}

func (s Store) ensureCredential(c Credential, ca pair, now time.Time) (bool, error) {
	path := cmp.Or(c.Path, s.Path(c.Name))
	if old, err := tls.LoadX509KeyPair(path, path); err == nil &&
		c.fits(old.Leaf) && !ends(old.Leaf, ca.cert, now) && (!early(old.Leaf, now) || early(ca.cert, now)) && old.Leaf.CheckSignatureFrom(ca.cert) == nil {
		return false, nil
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return false, fmt.Errorf("making key of %s: %w", c.Name, err)
	}
	template := &x509.Certificate{
		Subject:     pkix.Name{CommonName: c.CommonName, Organization: c.Organizations},
		DNSNames:    c.DNSNames,
		NotBefore:   now.Add(-backdate),
		NotAfter:    minTime(now.Add(credentialLifetime), ca.cert.NotAfter),
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: c.usages(),
	}
	for _, addr := range c.Addresses {
		template.IPAddresses = append(template.IPAddresses, net.IP(addr.AsSlice()))
	}
	cert, err := issue(template, ca, key)
	if err != nil {
		return false, fmt.Errorf("issuing %s: %w", c.Name, err)
	}
	encoded, err := encodeKey(key)
	if err != nil {
		return false, err
	}
	return true, atomicfile.Write(path, append(encodeCert(cert), encoded...), 0o600)
}

// Path is the file of a credential.
func (s Store) Path(name string) string { return filepath.Join(s.dir, "issued", name+".pem") }

// AuthorityPath is the file with the certificate of an authority.
func (s Store) AuthorityPath(name string) string { return filepath.Join(s.dir, name, "ca.pem") }

// Entry is one certificate of the store.
type Entry struct {
	Name      string    `json:"name"`
	Authority string    `json:"authority"` // empty for an authority itself
	Subject   string    `json:"subject"`
	Names     []string  `json:"names,omitempty"`
	NotBefore time.Time `json:"notBefore"`
	NotAfter  time.Time `json:"notAfter"`
	// Role of an authority: signs, trusted (it does not sign any more, or not yet), or withdrawn.
	Role string `json:"role,omitempty"`
	// Renewal is when the service renews it; zero for an authority.
	Renewal time.Time `json:"renewal,omitzero"`
}

// List reads every certificate of the store, authorities first.
func (s Store) List() ([]Entry, error) {
	var entries []Entry
	issuers := map[string]string{}
	for _, name := range s.names {
		cert, err := readCert(s.AuthorityPath(name))
		if err != nil {
			return nil, err
		}
		issuers[cert.Subject.CommonName] = name
		e := entry(name, "", cert)
		e.Role = roleSigns
		entries = append(entries, e)
	}
	if s.ofKubelets() {
		kubelets, err := s.listKubelets()
		if err != nil {
			return nil, err
		}
		entries = append(entries, kubelets...)
	}
	paths, err := filepath.Glob(filepath.Join(s.dir, "issued", "*.pem"))
	if err != nil {
		return nil, err
	}
	slices.Sort(paths)
	for _, path := range paths {
		cert, err := readCert(path)
		if err != nil {
			return nil, err
		}
		name := filepath.Base(path)
		e := entry(name[:len(name)-len(".pem")], issuers[cert.Issuer.CommonName], cert)
		e.Renewal = due(cert)
		entries = append(entries, e)
	}
	return entries, nil
}

func entry(name, authority string, cert *x509.Certificate) Entry {
	e := Entry{Name: name, Authority: authority, Subject: cert.Subject.String(), NotBefore: cert.NotBefore, NotAfter: cert.NotAfter, Names: slices.Clone(cert.DNSNames)}
	for _, ip := range cert.IPAddresses {
		e.Names = append(e.Names, ip.String())
	}
	return e
}

func readCert(path string) (*x509.Certificate, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading certificate: %w", err)
	}
	block, _ := pem.Decode(raw)
	if block == nil || block.Type != "CERTIFICATE" {
		return nil, fmt.Errorf("reading certificate: %s does not begin with one", path)
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("reading certificate %s: %w", path, err)
	}
	return cert, nil
}

// issue signs a template with a random serial number of 128 bits.
func issue(template *x509.Certificate, ca pair, key *ecdsa.PrivateKey) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, err
	}
	template.SerialNumber = serial.Add(serial, big.NewInt(1))
	der, err := x509.CreateCertificate(rand.Reader, template, ca.cert, key.Public(), ca.key)
	if err != nil {
		return nil, err
	}
	return x509.ParseCertificate(der)
}

func encodeCert(cert *x509.Certificate) []byte {
	var b bytes.Buffer
	_ = pem.Encode(&b, &pem.Block{Type: "CERTIFICATE", Bytes: cert.Raw}) // a buffer takes everything
	return b.Bytes()
}

func encodeKey(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("encoding key: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), nil
}

func writeKey(path string, key *ecdsa.PrivateKey) error {
	encoded, err := encodeKey(key)
	if err != nil {
		return err
	}
	return atomicfile.Write(path, encoded, 0o600)
}

func minTime(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}
