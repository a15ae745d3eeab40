// SPDX-License-Identifier: Apache-2.0

package podwebhookcert

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"muster.dev/muster/internal/iam/podwebhookconfig"
)

const serverName = "hook.iam.svc"

// cluster has what the manifests make, and replicas of the webhook.
type cluster struct {
	*fake.Clientset
	t *testing.T
}

func newCluster(t *testing.T) cluster {
	t.Helper()
	of := func(service string) admissionregistrationv1.MutatingWebhook {
		return admissionregistrationv1.MutatingWebhook{Name: service + ".example.com", ClientConfig: admissionregistrationv1.WebhookClientConfig{
			Service: &admissionregistrationv1.ServiceReference{Namespace: "iam", Name: service}, CABundle: []byte(service),
		}}
	}
	return cluster{fake.NewClientset(
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "iam", Name: "authority"}, Type: corev1.SecretTypeOpaque},
		&admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "hooks"}, Webhooks: []admissionregistrationv1.MutatingWebhook{of("other"), of("hook")}},
	), t}
}

func (c cluster) replica() *Keeper {
	return &Keeper{
		Client: c, Path: filepath.Join(c.t.TempDir(), "tls.pem"), Logger: slog.New(slog.DiscardHandler),
		Config: podwebhookconfig.Authority{Namespace: "iam", Secret: "authority", Service: "hook", WebhookConfiguration: "hooks"},
	}
}

// round has replicas do one each, which must succeed.
func (c cluster) round(now time.Time, replicas ...*Keeper) {
	c.t.Helper()
	for _, k := range replicas {
		if err := k.round(c.t.Context(), now); err != nil {
			c.t.Fatal(err)
		}
	}
}

// bundle is what the API server believes; the webhook of another has kept its own.
func (c cluster) bundle() []byte {
	c.t.Helper()
	w, err := c.AdmissionregistrationV1().MutatingWebhookConfigurations().Get(c.t.Context(), "hooks", metav1.GetOptions{})
	if err != nil || string(w.Webhooks[0].ClientConfig.CABundle) != "other" {
		c.t.Fatal(w, err)
	}
	return w.Webhooks[1].ClientConfig.CABundle
}

func (c cluster) secret() *corev1.Secret {
	c.t.Helper()
	s, err := c.CoreV1().Secrets("iam").Get(c.t.Context(), "authority", metav1.GetOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	return s
}

func (c cluster) setSecret(change func(*corev1.Secret)) {
	c.t.Helper()
	s := c.secret()
	change(s)
	if _, err := c.CoreV1().Secrets("iam").Update(c.t.Context(), s, metav1.UpdateOptions{}); err != nil {
		c.t.Fatal(err)
	}
}

// believed verifies a replica's file as the API server does, and returns the certificate.
func (c cluster) believed(k *Keeper, now time.Time) *x509.Certificate {
	c.t.Helper()
	pair, err := tls.LoadX509KeyPair(k.Path, k.Path)
	if err != nil {
		c.t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(c.bundle())
	if _, err := pair.Leaf.Verify(x509.VerifyOptions{Roots: roots, DNSName: serverName, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}); err != nil {
		c.t.Errorf("at %s the API server does not believe it: %v", now, err)
	}
	return pair.Leaf
}

func TestReplicasShareAnAuthority(t *testing.T) {
	c, now := newCluster(t), time.Now()
	first, second := c.replica(), c.replica()
	c.round(now, first, second)
	bundle := string(c.bundle())
	if c.believed(first, now).Equal(c.believed(second, now)) || strings.Count(bundle, "BEGIN") != 1 || string(c.secret().Data["ca.crt"]) != bundle {
		t.Errorf("the bundle is\n%s", bundle)
	}
	before := c.believed(first, now)
	c.ClearActions()
	c.round(now.Add(every), first)
	for _, a := range c.Actions() {
		if a.GetVerb() != "get" {
			t.Errorf("with nothing to do: %s %s", a.GetVerb(), a.GetResource().Resource)
		}
	}
	later := now.Add(certificateLife * 3 / 4)
	c.round(later, first)
	if after := c.believed(first, later); after.Equal(before) || string(c.bundle()) != bundle {
		t.Error("the certificate is not renewed by the same authority")
	}
}

// While an authority is replaced, each replica's certificate is believed at each moment.
func TestAnAuthorityGrowsOld(t *testing.T) {
	c, now := newCluster(t), time.Now()
	first, second := c.replica(), c.replica()
	c.round(now, first, second)
	old := string(c.bundle())
	now = now.Add(authorityLife * 9 / 10)
	c.round(now, first, second) // certificates are over: nothing is better than the new
	if got := string(c.bundle()); strings.Count(got, "BEGIN") != 2 || !strings.HasSuffix(got, old) {
		t.Fatalf("the bundle is\n%s", got)
	}
	c.believed(first, now)
	c.believed(second, now)

	c, now = newCluster(t), time.Now()
	first = c.replica()
	c.round(now, first)
	now = now.Add(authorityLife*4/5 - certificateLife/3)
	c.round(now, first)
	kept := c.believed(first, now)
	now = now.Add(certificateLife / 2)
	c.round(now, first)
	if got := c.believed(first, now); !got.Equal(kept) || strings.Count(string(c.bundle()), "BEGIN") != 2 {
		t.Error("it takes a certificate that API servers may not have heard of")
	}
	now = now.Add(every)
	c.round(now, first)
	if got := c.believed(first, now); got.Equal(kept) {
		t.Error("it keeps a certificate of the authority before")
	}
}

func TestSecretsThatSomebodyChanged(t *testing.T) {
	for name, change := range map[string]func(*corev1.Secret){
		"emptied":          func(s *corev1.Secret) { s.Data = nil },
		"half":             func(s *corev1.Secret) { s.Data["ca.crt"] = s.Data["ca.crt"][:40] },
		"another key":      func(s *corev1.Secret) { s.Data["ca.key"] = otherKey(t) },
		"a key of no kind": func(s *corev1.Secret) { s.Data["ca.key"] = []byte("secret") },
		"no authority":     func(s *corev1.Secret) { s.Data["ca.crt"] = leaf(t) },
	} {
		t.Run(name, func(t *testing.T) {
			c, now := newCluster(t), time.Now()
			k := c.replica()
			c.round(now, k)
			before := c.believed(k, now)
			c.setSecret(change)
			c.round(now, k)
			c.round(now.Add(2*every), k)
			if c.believed(k, now).Equal(before) {
				t.Error("the certificate is that of before")
			}
		})
	}
}

func otherKey(t *testing.T) []byte {
	t.Helper()
	a, err := newAuthority(time.Now(), nil)
	if err != nil {
		t.Fatal(err)
	}
	key, err := a.keyPEM()
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func leaf(t *testing.T) []byte {
	t.Helper()
	a, err := newAuthority(time.Now(), nil)
	if err != nil {
		t.Fatal(err)
	}
	c, _, err := a.issue("x", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return encode(typeCert, c.Raw)
}

// A failed read or write changes nothing, and is tried again.
func TestRoundsThatFail(t *testing.T) {
	conflict := apierrors.NewConflict(schema.GroupResource{Resource: "secrets"}, "authority", errors.New("another was first"))
	for verb, resource := range map[string]string{"get": "secrets", "update": "secrets", "patch": "mutatingwebhookconfigurations"} {
		c, now := newCluster(t), time.Now()
		k, fails := c.replica(), true
		c.PrependReactor(verb, resource, func(clienttesting.Action) (bool, runtime.Object, error) { return fails, nil, conflict })
		if err := k.round(t.Context(), now); !apierrors.IsConflict(err) || k.issued != nil {
			t.Errorf("%s %s: %v", verb, resource, err)
		}
		fails = false
		c.round(now, k)
		c.believed(k, now)
	}
	c := newCluster(t)
	c.setSecret(func(s *corev1.Secret) { s.Type = corev1.SecretTypeServiceAccountToken })
	if err := c.replica().round(t.Context(), time.Now()); err == nil || !strings.Contains(err.Error(), "must be Opaque") {
		t.Errorf("a Secret of another type: %v", err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := c.replica().First(ended); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func FuzzReadAuthority(f *testing.F) {
	a, err := newAuthority(time.Now(), nil)
	if err != nil {
		f.Fatal(err)
	}
	key, err := a.keyPEM()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(a.bundle(), key)
	f.Add([]byte("-----BEGIN CERTIFICATE-----\n"), []byte("-----BEGIN PRIVATE KEY-----\n"))
	f.Fuzz(func(t *testing.T, certificates, key []byte) {
		a, err := readAuthority(certificates, key)
		if len(a.believed) > maxAuthorities {
			t.Fatalf("%d authorities", len(a.believed))
		}
		if err == nil && (a.key == nil || !a.key.PublicKey.Equal(a.certificate.PublicKey) || !a.certificate.IsCA) {
			t.Fatal("an authority that cannot sign")
		}
	})
}
