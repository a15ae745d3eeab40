// SPDX-License-Identifier: Apache-2.0

package simulated

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"net"
	"path/filepath"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	certificatesclient "k8s.io/client-go/kubernetes/typed/certificates/v1"

	"muster.dev/muster/internal/machine/machine"
	"muster.dev/muster/internal/platform/atomicfile"
)

// credential is one of a node's certificates with its key, in a file that outlives the process.
type credential struct {
	path   string
	signer string
	usage  certificatesv1.KeyUsage
	// serving certificates have the machine's name and address in them.
	serving bool

	current  *tls.Certificate
	rotateAt time.Time
	// rotating is set when its successor has been requested.
	rotating bool
}

func clientCredential(dir string) *credential {
	return &credential{
		path:   filepath.Join(dir, "kubelet-client.pem"),
		signer: certificatesv1.KubeAPIServerClientKubeletSignerName, usage: certificatesv1.UsageClientAuth,
	}
}

func servingCredential(dir string) *credential {
	return &credential{
		path:   filepath.Join(dir, "kubelet-server.pem"),
		signer: certificatesv1.KubeletServingSignerName, usage: certificatesv1.UsageServerAuth, serving: true,
	}
}

// load reads the certificate of an earlier life, if there is one and it is still good.
func (c *credential) load(now time.Time) bool {
	certificate, err := tls.LoadX509KeyPair(c.path, c.path)
	if err != nil || certificate.Leaf == nil || !now.Before(certificate.Leaf.NotAfter) {
		return false
	}
	c.set(&certificate)
	return true
}

// use takes a new certificate into use. Signers date certificates back: one of which most has passed already is renewed
// half way through the rest, not at once.
func (c *credential) use(certificate *tls.Certificate, now time.Time) {
	c.set(certificate)
	if c.rotateAt.Before(now) {
		c.rotateAt = now.Add(certificate.Leaf.NotAfter.Sub(now) / 2)
	}
}

// set makes a certificate the current one, to be renewed after 70 to 90 per cent of its life, as the kubelet does
// (client-go, util/certificate/certificate_manager.go, jitteryDuration).
func (c *credential) set(certificate *tls.Certificate) {
	life := certificate.Leaf.NotAfter.Sub(certificate.Leaf.NotBefore)
	share := 0.7 + 0.2*mathrand.Float64() //nolint:gosec // G404: jitter is no secret
	c.current = certificate
	c.rotateAt = certificate.Leaf.NotBefore.Add(time.Duration(float64(life) * share))
}

// obtain asks for a certificate, waits for it, and takes it into use.
func (c *credential) obtain(ctx context.Context, client certificatesclient.CertificateSigningRequestInterface, record machine.Record) error {
	certificate, err := c.request(ctx, client, record)
	if err != nil {
		return err
	}
	c.use(certificate, time.Now())
	return nil
}

// request asks for a certificate with a new key, waits for it, and keeps both in the file. It changes nothing else.
func (c *credential) request(ctx context.Context, client certificatesclient.CertificateSigningRequestInterface, record machine.Record) (*tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("making key: %w", err)
	}
	template := &x509.CertificateRequest{Subject: pkix.Name{CommonName: "system:node:" + record.PrivateDNSName, Organization: []string{"system:nodes"}}}
	if c.serving {
		template.DNSNames = []string{record.PrivateDNSName}
		template.IPAddresses = []net.IP{record.PrivateIP.AsSlice()}
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, template, key)
	if err != nil {
		return nil, fmt.Errorf("making certificate request: %w", err)
	}
	created, err := client.Create(ctx, &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "csr-"},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request:    pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}),
			SignerName: c.signer,
			Usages:     []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, c.usage},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("creating certificate request: %w", err)
	}
	issued, err := waitForCertificate(ctx, client, created)
	if err != nil {
		return nil, err
	}
	return c.store(issued, key)
}

// store keeps a certificate and its key, in one file so that they always belong together.
func (c *credential) store(chain []byte, key *ecdsa.PrivateKey) (*tls.Certificate, error) {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("writing key: %w", err)
	}
	content := bytes.Join([][]byte{bytes.TrimSpace(chain), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})}, []byte("\n"))
	certificate, err := tls.X509KeyPair(content, content)
	if err != nil {
		return nil, fmt.Errorf("reading issued certificate: %w", err)
	}
	return &certificate, atomicfile.Replace(c.path, content, 0o600)
}

// certificatePatience is how long a node waits for one request before it makes another, as the kubelet does
// (client-go, util/certificate/certificate_manager.go, certificateWaitTimeout).
const certificatePatience = 15 * time.Minute

// waitForCertificate watches a request until its certificate is there, or it is refused.
func waitForCertificate(ctx context.Context, client certificatesclient.CertificateSigningRequestInterface, request *certificatesv1.CertificateSigningRequest) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, certificatePatience)
	defer cancel()
	version := request.ResourceVersion
	for {
		chain, err := watchCertificate(ctx, client, request.Name, version)
		if chain != nil || err != nil {
			return chain, err
		}
		// The watch ended, as they do. The object has the changes that the watch missed.
		if !sleep(ctx, time.Second) {
			return nil, fmt.Errorf("waiting for certificate %s: %w", request.Name, context.Cause(ctx))
		}
		request, err := client.Get(ctx, request.Name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			return nil, errors.New("certificate request was deleted")
		case apierrors.IsUnauthorized(err): // the token or certificate is good no more; perhaps there is another
			return nil, fmt.Errorf("waiting for certificate: %w", err)
		case err != nil:
			continue
		}
		if chain, err := verdict(request); chain != nil || err != nil {
			return chain, err
		}
		version = request.ResourceVersion
	}
}

// watchCertificate watches until the certificate is there or the watch ends, in which case it returns nothing.
func watchCertificate(ctx context.Context, client certificatesclient.CertificateSigningRequestInterface, name, version string) ([]byte, error) {
	watcher, err := client.Watch(ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector("metadata.name", name).String(), ResourceVersion: version,
	})
	if err != nil {
		return nil, nil
	}
	defer watcher.Stop()
	for event := range watcher.ResultChan() {
		request, ok := event.Object.(*certificatesv1.CertificateSigningRequest)
		if !ok {
			break
		}
		if chain, err := verdict(request); chain != nil || err != nil {
			return chain, err
		}
	}
	return nil, nil
}

// verdict is the certificate of a request that is approved, or why there will be none.
func verdict(request *certificatesv1.CertificateSigningRequest) ([]byte, error) {
	approved := false
	for _, condition := range request.Status.Conditions {
		switch condition.Type {
		case certificatesv1.CertificateDenied, certificatesv1.CertificateFailed:
			return nil, fmt.Errorf("certificate request %s: %s: %s: %s", request.Name, condition.Type, condition.Reason, condition.Message)
		case certificatesv1.CertificateApproved:
			approved = condition.Status != corev1.ConditionFalse
		}
	}
	if !approved || len(request.Status.Certificate) == 0 {
		return nil, nil
	}
	return request.Status.Certificate, nil
}

// sleep waits, and reports whether it did so to the end.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
