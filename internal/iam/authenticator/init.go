// SPDX-License-Identifier: Apache-2.0

package authenticator

import (
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
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"muster.dev/muster/internal/iam/authenticatorconfig"
	"muster.dev/muster/internal/platform/atomicfile"
)

// InitConfig says what Init makes.
type InitConfig struct {
	StateDir   string // for the authenticator alone
	Kubeconfig string // for API servers: what --authentication-token-webhook-config-file names
	Address    string // where the authenticator answers
	Now        time.Time
}

// The rest of a state directory: the certificates of API servers.
const (
	clientCertificateFile = "client.pem"
	clientKeyFile         = "client-key.pem"
)

// How long certificates are good for. An API server reads its webhook's kubeconfig when it starts and never again, so
// they last as long as a control plane without care might run; to replace them, remove the directory, run init and
// start API servers again.
const (
	certificateYears = 10
	renewBefore      = 30 * 24 * time.Hour
)

// Init makes certificates for the authenticator and for API servers, and the kubeconfig by which those ask. Files that
// are good for another month are kept, so that it may be run before each start. It tells which files it wrote.
//
// Each of the two certificates is trusted by itself, with no authority behind it: there is no key left that could make
// another.
func Init(c InitConfig) (written []string, err error) {
	at, err := netip.ParseAddrPort(c.Address)
	if err != nil {
		return nil, fmt.Errorf("the address %q is not an IP address and a port, such as 127.0.0.1:21362", c.Address)
	}
	if !filepath.IsAbs(c.StateDir) || !filepath.IsAbs(c.Kubeconfig) {
		return nil, errors.New("the state directory and the kubeconfig must be absolute paths")
	}
	if err := os.MkdirAll(c.StateDir, 0o700); err != nil {
		return nil, fmt.Errorf("making the state directory: %w", err)
	}
	server := pair{filepath.Join(c.StateDir, authenticatorconfig.CertificateFile), filepath.Join(c.StateDir, authenticatorconfig.KeyFile)}
	client := pair{filepath.Join(c.StateDir, clientCertificateFile), filepath.Join(c.StateDir, clientKeyFile)}
	if !server.good(c.Now, at.Addr()) {
		if err := server.make(template("muster-authenticator", c.Now, x509.ExtKeyUsageServerAuth, at.Addr())); err != nil {
			return written, err
		}
		written = append(written, server.certificate, server.key)
	}
	if !client.good(c.Now, netip.Addr{}) {
		if err := client.make(template("kube-apiserver", c.Now, x509.ExtKeyUsageClientAuth, netip.Addr{})); err != nil {
			return written, err
		}
		written = append(written, client.certificate, client.key)
	}
	trusted, err := os.ReadFile(client.certificate)
	if err != nil {
		return written, err
	}
	for _, f := range []struct {
		path    string
		content func() ([]byte, error)
	}{
		{filepath.Join(c.StateDir, authenticatorconfig.ClientCAFile), func() ([]byte, error) { return trusted, nil }},
		{c.Kubeconfig, func() ([]byte, error) { return webhookConfig(c.Address, server, client) }},
	} {
		content, err := f.content()
		if err != nil {
			return written, err
		}
		if have, err := os.ReadFile(f.path); err == nil && string(have) == string(content) {
			continue
		}
		if err := os.MkdirAll(filepath.Dir(f.path), 0o700); err != nil {
			return written, fmt.Errorf("making a directory: %w", err)
		}
		if err := atomicfile.Write(f.path, content, 0o600); err != nil {
			return written, err
		}
		written = append(written, f.path)
	}
	return written, nil
}

// pair are the files of a certificate and its key.
type pair struct{ certificate, key string }

// good reports whether the files fit each other, are good for long enough, and for the address if there is one.
func (p pair) good(now time.Time, address netip.Addr) bool {
	loaded, err := tls.LoadX509KeyPair(p.certificate, p.key)
	if err != nil {
		return false
	}
	leaf := loaded.Leaf
	if leaf == nil || now.Before(leaf.NotBefore) || leaf.NotAfter.Sub(now) < renewBefore {
		return false
	}
	return !address.IsValid() || leaf.VerifyHostname(address.String()) == nil
}

func (p pair) make(t *x509.Certificate) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fmt.Errorf("making a key: %w", err)
	}
	der, err := x509.CreateCertificate(rand.Reader, t, t, key.Public(), key)
	if err != nil {
		return fmt.Errorf("making a certificate: %w", err)
	}
	raw, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return fmt.Errorf("writing a key: %w", err)
	}
	if err := os.Remove(p.certificate); err != nil && !errors.Is(err, fs.ErrNotExist) { // no other key fits it
		return err
	}
	if err := atomicfile.Write(p.key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: raw}), 0o600); err != nil {
		return err
	}
	return atomicfile.Write(p.certificate, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600)
}

func template(name string, now time.Time, usage x509.ExtKeyUsage, address netip.Addr) *x509.Certificate {
	t := &x509.Certificate{
		Subject: pkix.Name{CommonName: name}, NotBefore: now.Add(-time.Hour), NotAfter: now.AddDate(certificateYears, 0, 0),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{usage}, BasicConstraintsValid: true,
	}
	if address.IsValid() {
		t.IPAddresses = []net.IP{address.AsSlice()}
		t.DNSNames = []string{"localhost"}
	}
	return t
}

// webhookConfig is the kubeconfig for --authentication-token-webhook-config-file. Everything is in it, so that an API
// server in a pod needs one file mounted.
func webhookConfig(address string, server, client pair) ([]byte, error) {
	read := map[string][]byte{}
	for _, name := range []string{server.certificate, client.certificate, client.key} {
		raw, err := os.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("reading what goes into the kubeconfig: %w", err)
		}
		read[name] = raw
	}
	const name = "muster-authenticator"
	config := clientcmdapi.NewConfig()
	config.Clusters[name] = &clientcmdapi.Cluster{Server: "https://" + address + "/authenticate", CertificateAuthorityData: read[server.certificate]}
	config.AuthInfos["kube-apiserver"] = &clientcmdapi.AuthInfo{ClientCertificateData: read[client.certificate], ClientKeyData: read[client.key]}
	config.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: "kube-apiserver"}
	config.CurrentContext = name
	return clientcmd.Write(*config)
}
