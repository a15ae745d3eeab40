// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"path/filepath"
	"testing"
	"time"

	"muster.dev/muster/internal/certificates/authority"
	"muster.dev/muster/internal/plane/component"
	"muster.dev/muster/internal/platform/atomicfile"
)

// TestCertificatesThatEnded has all certificates of an installation's components end, as when a clock jumps ahead or a host
// has slept: they are issued anew within two minutes, everything is Ready by itself, and nothing was deleted.
//
//story:about certificates/authority cluster/serve plane/planeclient
func TestCertificatesThatEnded(t *testing.T) {
	t.Parallel()
	i := newInstallation(t)
	i.muster("up", "--provider", "simulated", "--nodes", "1", "--timeout", "3m")
	node := func() string { return i.mustKubectl("get", "nodes", "-o", "jsonpath={.items[*].metadata.uid}") }
	before, nodes := i.processes(), node()

	ends := time.Now().Add(5 * time.Second) // a look that comes before renews them while they are good
	stores := map[string]authority.Store{i.dir.PKI(): authority.NewAccountStore(i.dir.PKI()), i.cluster().PKI(): authority.NewStore(i.cluster().PKI())}
	ended := map[string]*x509.Certificate{}
	for dir, store := range stores {
		entries, err := store.List()
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			switch path := store.Path(e.Name); {
			case e.Renewal.IsZero(): // an authority
			case e.Authority == "": // the cluster's, by which the account knows it
				ended[path] = endSoon(t, filepath.Join(i.dir.PKI(), authority.Account), path, ends)
			default:
				ended[path] = endSoon(t, filepath.Join(dir, e.Authority), path, ends)
			}
		}
	}
	<-time.After(time.Until(ends))
	took := i.eventually("every certificate is issued anew", func() error {
		for path, old := range ended {
			if pair, err := tls.LoadX509KeyPair(path, path); err != nil || pair.Leaf.SerialNumber.Cmp(old.SerialNumber) == 0 {
				return fmt.Errorf("%s: %w", path, errors.Join(err, errors.New("it is the one that ended")))
			}
		}
		return nil
	})
	t.Logf("%d certificates ended, and were issued anew %s later", len(ended), took)
	i.ready()
	i.mustKubectl("wait", "--for=condition=Ready", "nodes", "--all", "--timeout=120s")
	i.mustKubectl("create", "namespace", "since")
	if now := node(); now != nodes {
		t.Errorf("the nodes were %s and are %s", nodes, now)
	}
	for _, name := range []string{component.Etcd, component.APIServer, component.Front, component.ManagementEtcd, component.ManagementFront, component.Management} {
		if now := i.processes()[name]; now.PID != before[name].PID {
			t.Errorf("%s was process %d and is %d", name, before[name].PID, now.PID)
		}
	}
}

// endSoon puts a certificate in the place of another one that differs in when it ends, and is due already.
func endSoon(t *testing.T, ca, path string, ends time.Time) *x509.Certificate {
	t.Helper()
	old, err := tls.LoadX509KeyPair(path, path)
	if err != nil {
		t.Fatal(err)
	}
	issuer, err := tls.LoadX509KeyPair(filepath.Join(ca, "ca.pem"), filepath.Join(ca, "ca-key.pem"))
	if err != nil {
		t.Fatal(err)
	}
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	if err != nil {
		t.Fatal(err)
	}
	template := *old.Leaf
	template.SerialNumber, template.NotBefore, template.NotAfter = serial, ends.Add(-10*time.Minute), ends
	key, ok := old.PrivateKey.(*ecdsa.PrivateKey)
	if !ok {
		t.Fatalf("%s has a key of type %T", path, old.PrivateKey)
	}
	der, err := x509.CreateCertificate(rand.Reader, &template, issuer.Leaf, key.Public(), issuer.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	content := append(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: encoded})...)
	if err := atomicfile.Write(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return &template
}
