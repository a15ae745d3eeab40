// SPDX-License-Identifier: Apache-2.0

package authority_test

import (
	"crypto/ecdsa"
	"crypto/tls"
	"crypto/x509"
	"io/fs"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"muster.dev/muster/internal/certificates/authority"
)

var start = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

const day = 24 * time.Hour

func credentials() []authority.Credential {
	return []authority.Credential{
		{Name: "server", Authority: authority.Cluster, CommonName: "server", DNSNames: []string{"localhost", "api"}, Addresses: []netip.Addr{netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("fd00::1")}},
		{Name: "client", Authority: authority.Cluster, CommonName: "alice", Organizations: []string{"writers", "readers"}, Client: true},
		{Name: "both", Authority: authority.Etcd, CommonName: "etcd", DNSNames: []string{"localhost"}, Client: true},
	}
}

// everything is what the first Ensure makes.
func everything() []string {
	return []string{
		"kubelet-1 authority", "cluster authority", "etcd authority", "front-proxy authority",
		"cluster service account key", "server", "client", "both",
	}
}

type store struct {
	*testing.T
	authority.Store
	dir string
}

func newStore(t *testing.T) store {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "pki")
	return store{t, authority.NewStore(dir), dir}
}

// ensure checks what is written, too.
func (s store) ensure(now time.Time, wanted []authority.Credential, want ...string) {
	s.Helper()
	written, err := s.Ensure(wanted, now)
	if err != nil {
		s.Fatal(err)
	}
	if diff := cmp.Diff(want, written); diff != "" {
		s.Fatalf("written (-want +got):\n%s", diff)
	}
}

// refuse checks that there is a clear error, and that nothing was written.
func (s store) refuse(want string) {
	s.Helper()
	before := s.files()
	written, err := s.Ensure(credentials(), start)
	if err == nil || !strings.Contains(err.Error(), want) || len(written) > 0 {
		s.Errorf("wrote %v, %v; want an error with %q", written, err, want)
	}
	if diff := cmp.Diff(before, s.files()); diff != "" {
		s.Errorf("something was replaced:\n%s", diff)
	}
}

// files are all files with their modes and content.
func (s store) files() map[string]string {
	s.Helper()
	files := map[string]string{}
	if err := filepath.WalkDir(s.dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		content := []byte{}
		if !entry.IsDir() {
			if content, err = os.ReadFile(path); err != nil {
				return err
			}
		}
		name, err := filepath.Rel(s.dir, path)
		files[name] = info.Mode().String() + info.ModTime().String() + string(content)
		return err
	}); err != nil {
		s.Fatal(err)
	}
	return files
}

func (s store) pair(name string) tls.Certificate {
	s.Helper()
	pair, err := tls.LoadX509KeyPair(s.Path(name), s.Path(name))
	if err != nil {
		s.Fatal(err)
	}
	return pair
}

func (s store) pool(names ...string) *x509.CertPool {
	s.Helper()
	pool := x509.NewCertPool()
	for _, name := range names {
		raw, err := os.ReadFile(s.AuthorityPath(name))
		if err != nil || !pool.AppendCertsFromPEM(raw) {
			s.Fatalf("authority %s: %v", name, err)
		}
	}
	return pool
}

func TestMakesEverythingOnce(t *testing.T) {
	s := newStore(t)
	s.ensure(start, credentials(), everything()...)
	before := s.files()
	s.ensure(start.Add(day), credentials())
	if diff := cmp.Diff(before, s.files()); diff != "" {
		t.Errorf("the second time something was written:\n%s", diff)
	}
	want := []string{
		".", "cluster", "cluster/ca-key.pem", "cluster/ca.pem", "etcd", "etcd/ca-key.pem", "etcd/ca.pem",
		"front-proxy", "front-proxy/ca-key.pem", "front-proxy/ca.pem", "issued", "issued/both.pem", "issued/client.pem", "issued/server.pem",
		"kubelet", "kubelet/client-ca.pem", "kubelet/kubelet-1.pem", "kubelet/record.json", "kubelet/serving-ca.pem", "kubelet/signing.pem",
		"service-account", "service-account/cluster.pem",
	}
	if diff := cmp.Diff(want, slices.Sorted(maps.Keys(before))); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	for name, file := range before {
		mode := "-rw-------"
		if strings.HasSuffix(name, "ca.pem") { // certificates without keys
			mode = "-rw-r--r--"
		}
		if !strings.HasPrefix(file, mode) && !strings.HasPrefix(file, "drwx------") {
			t.Errorf("%s has mode %.10s", name, file)
		}
	}
}

func TestRenewedWhenDue(t *testing.T) {
	s := newStore(t)
	s.ensure(start, credentials(), everything()...)
	first := s.pair("server").Leaf
	// Two thirds of 90 days and 5 minutes, counted from 5 minutes before the start.
	due := first.NotBefore.Add(2 * first.NotAfter.Sub(first.NotBefore) / 3)
	if got := due.Sub(start).Round(time.Hour); got != 60*day {
		t.Errorf("due after %s", got)
	}
	s.ensure(due.Add(-2*time.Second), credentials())
	s.ensure(due.Add(2*time.Second), credentials(), "server", "client", "both")
	s.ensure(due.Add(2*time.Second), credentials())
	second := s.pair("server").Leaf
	if !second.NotAfter.Equal(due.Add(2*time.Second + 90*day).Truncate(time.Second)) {
		t.Errorf("renewed at %s, it ends at %s", due, second.NotAfter)
	}
	if first.SerialNumber.Cmp(second.SerialNumber) == 0 || first.PublicKey.(*ecdsa.PublicKey).Equal(second.PublicKey) {
		t.Error("renewal keeps the serial number or the key")
	}
	// The authority has ended, as after a year without running.
	s.ensure(start.Add(365*day), credentials(), "server", "client", "both")
}

// Certificates that were issued while the clock was ahead are not valid once it is set back. Where the authority is not
// valid either, certificates stay as they are.
func TestClockSetBack(t *testing.T) {
	s := newStore(t)
	s.ensure(start, credentials(), everything()...)
	s.ensure(start.Add(70*day), credentials(), "server", "client", "both")
	s.ensure(start.Add(40*day), credentials(), "server", "client", "both")
	s.ensure(start.Add(40*day), credentials())
	if from := s.pair("server").Leaf.NotBefore; from.After(start.Add(40 * day)) {
		t.Errorf("it is valid from %s", from)
	}
	s.ensure(start.Add(-30*day), credentials())
}

// A certificate that outlives its authority would be refused in the end, and nobody would know why.
func TestNoLongerThanItsAuthority(t *testing.T) {
	s := newStore(t)
	s.ensure(start, nil, everything()[:5]...)
	late := start.Add(10*365*day - 20*day)
	s.ensure(late, credentials(), "server", "client", "both")
	entries, err := s.List()
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if want := start.Add(10 * 365 * day); !e.NotAfter.Equal(want) {
			t.Errorf("%s ends %s, its authority %s", e.Name, e.NotAfter, want)
		}
	}
	for _, days := range []int{1, 19, 20, 400} { // nor is it renewed in vain, every time, as when the clock is years ahead
		s.ensure(late.Add(time.Duration(days)*day), credentials())
	}
	s.ensure(start.Add(day), credentials(), "server", "client", "both") // the clock is right again
}

func TestMadeAnewWhenItDoesNotFit(t *testing.T) {
	for name, change := range map[string]func(*authority.Credential){
		"another name":         func(c *authority.Credential) { c.CommonName = "other" },
		"an organization":      func(c *authority.Credential) { c.Organizations = []string{"writers"} },
		"a DNS name":           func(c *authority.Credential) { c.DNSNames = append(c.DNSNames, "more") },
		"an address":           func(c *authority.Credential) { c.Addresses = c.Addresses[:1] },
		"another address":      func(c *authority.Credential) { c.Addresses[0] = netip.MustParseAddr("127.0.0.2") },
		"client as well":       func(c *authority.Credential) { c.Client = true },
		"serving no more":      func(c *authority.Credential) { c.DNSNames, c.Addresses, c.Client = nil, nil, true },
		"of another authority": func(c *authority.Credential) { c.Authority = authority.FrontProxy },
	} {
		t.Run(name, func(t *testing.T) {
			s := newStore(t)
			s.ensure(start, credentials(), everything()...)
			changed := credentials()
			change(&changed[0])
			s.ensure(start, changed, "server")
			s.ensure(start, changed)
		})
	}
	t.Run("damaged, or gone", func(t *testing.T) {
		s := newStore(t)
		s.ensure(start, credentials(), everything()...)
		if err := os.WriteFile(s.Path("server"), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(s.Path("both")); err != nil {
			t.Fatal(err)
		}
		s.ensure(start, credentials(), "server", "both")
	})
	t.Run("no such authority", func(t *testing.T) {
		s := newStore(t)
		if _, err := s.Ensure([]authority.Credential{{Name: "x", Authority: "y"}}, start); err == nil || !strings.Contains(err.Error(), `there is no authority "y"`) {
			t.Errorf("error is %v", err)
		}
	})
}

func TestDamagedAuthorityIsNotReplaced(t *testing.T) {
	for _, test := range []struct {
		name, file string
		content    []byte // nil removes the file
		want       string
	}{
		{"certificate", "cluster/ca.pem", []byte("damaged"), "reading the cluster authority (restore "},
		{"empty certificate", "cluster/ca.pem", []byte{}, "or remove everything with `muster down --delete`"},
		{"key", "etcd/ca-key.pem", []byte("damaged"), "reading the etcd authority"},
		{"no key", "front-proxy/ca-key.pem", nil, "reading the front-proxy authority"},
		{"service account key", "service-account/cluster.pem", []byte("damaged"), "service-account/cluster.pem is damaged"},
		{"half a service account key", "service-account/cluster.pem", []byte("-----BEGIN EC PRIVATE KEY-----\nAAAA\n-----END EC PRIVATE KEY-----\n"), "reading service account key"},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := newStore(t)
			s.ensure(start, credentials(), everything()...)
			path := filepath.Join(s.dir, test.file)
			var err error
			if test.content == nil {
				err = os.Remove(path)
			} else {
				err = os.WriteFile(path, test.content, 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
			s.refuse(test.want)
		})
	}
	t.Run("another's key", func(t *testing.T) {
		s := newStore(t)
		s.ensure(start, credentials(), everything()...)
		raw, err := os.ReadFile(filepath.Join(s.dir, "etcd/ca-key.pem"))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(s.dir, "cluster/ca-key.pem"), raw, 0o600); err != nil {
			t.Fatal(err)
		}
		s.refuse("private key does not match public key")
	})
}

// After a crash between a new authority's key and its certificate there is only the key. Nothing has been issued yet.
func TestMadeAfterACrash(t *testing.T) {
	s := newStore(t)
	s.ensure(start, nil, everything()[:5]...)
	if err := os.Remove(s.AuthorityPath(authority.Etcd)); err != nil {
		t.Fatal(err)
	}
	s.ensure(start, credentials(), "etcd authority", "server", "client", "both")
	s.ensure(start, credentials())
}

// If an authority is made anew on purpose, what it issued is, too.
func TestIssuedAgainByANewAuthority(t *testing.T) {
	s := newStore(t)
	s.ensure(start, credentials(), everything()...)
	if err := os.RemoveAll(filepath.Join(s.dir, authority.Etcd)); err != nil {
		t.Fatal(err)
	}
	s.ensure(start, credentials(), "etcd authority", "both")
}

func TestList(t *testing.T) {
	s := newStore(t)
	if _, err := s.List(); err == nil {
		t.Error("nothing there, no error")
	}
	s.ensure(start, credentials(), everything()...)
	got, err := s.List()
	if err != nil {
		t.Fatal(err)
	}
	from, ca, leaf, renewal := start.Add(-5*time.Minute), start.Add(10*365*day), start.Add(90*day), start.Add(90*day-(90*day+5*time.Minute)/3)
	want := []authority.Entry{
		{Name: "cluster", Subject: "CN=muster cluster", NotBefore: from, NotAfter: ca, Role: "signs"},
		{Name: "etcd", Subject: "CN=muster etcd", NotBefore: from, NotAfter: ca, Role: "signs"},
		{Name: "front-proxy", Subject: "CN=muster front-proxy", NotBefore: from, NotAfter: ca, Role: "signs"},
		{Name: "kubelet-1", Subject: "CN=muster kubelet-1", NotBefore: from, NotAfter: ca, Role: "signs"},
		{Name: "both", Authority: "etcd", Subject: "CN=etcd", Names: []string{"localhost"}, NotBefore: from, NotAfter: leaf, Renewal: renewal},
		{Name: "client", Authority: "cluster", Subject: "CN=alice,O=readers+O=writers", NotBefore: from, NotAfter: leaf, Renewal: renewal},
		{Name: "server", Authority: "cluster", Subject: "CN=server", Names: []string{"localhost", "api", "127.0.0.1", "fd00::1"}, NotBefore: from, NotAfter: leaf, Renewal: renewal},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if err := os.WriteFile(s.Path("client"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := s.List(); err == nil || !strings.Contains(err.Error(), "client.pem does not begin with one") {
		t.Errorf("a damaged certificate: %v", err)
	}
}

// The account has authorities of its own, and none that a cluster has; kubelets' are a cluster's alone.
func TestAccountStore(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "pki")
	account := store{t, authority.NewAccountStore(dir), dir}
	account.ensure(start, nil, "account authority", "management authority", "management-etcd authority", "management service account key")
	account.ensure(start, nil)
	if _, err := account.Ensure([]authority.Credential{{Name: "x", Authority: authority.Cluster, CommonName: "x", Client: true}}, start); err == nil {
		t.Error("the account issued a certificate of a cluster's authority")
	}
	if _, err := os.Stat(filepath.Join(dir, authority.Kubelet)); !os.IsNotExist(err) {
		t.Errorf("the account has an authority of kubelets: %v", err)
	}
	entries, err := account.List()
	if err != nil || len(entries) != 3 {
		t.Errorf("entries %v, %v", entries, err)
	}
	for _, name := range newStore(t).Names() {
		if slices.Contains(account.Names(), name) {
			t.Errorf("both have an authority %s", name)
		}
	}
}
