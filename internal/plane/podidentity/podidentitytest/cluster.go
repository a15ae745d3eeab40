// SPDX-License-Identifier: Apache-2.0

// Package podidentitytest is a cluster in memory for tests: its pods and service accounts, and tokens that are signed
// as the API server signs them.
package podidentitytest

import (
	"context"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"

	"muster.dev/muster/internal/iam/webidentity"
	"muster.dev/muster/internal/plane/issuer"
	"muster.dev/muster/internal/plane/podidentity"
	"muster.dev/muster/internal/plane/podwatch"
)

// Cluster is a cluster that is called demo, with the namespace demo in the management plane.
type Cluster struct {
	podidentity.Cluster

	Client *fake.Clientset
	key    *rsa.PrivateKey
	kid    string
}

// New makes a cluster with pods.
func New(t testing.TB, pods ...*corev1.Pod) *Cluster {
	t.Helper()
	c := &Cluster{Client: fake.NewClientset()}
	var err error
	if c.key, err = rsa.GenerateKey(rand.Reader, 2048); err != nil {
		t.Fatal(err)
	}
	own, err := issuer.Parse("https://issuer.example/id/0123456789ABCDEF0123456789ABCDEF")
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(c.key)
	if err != nil {
		t.Fatal(err)
	}
	documents, err := issuer.Render(own, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
	if err != nil {
		t.Fatal(err)
	}
	keys, err := webidentity.ParseKeys(documents.Keys)
	if err != nil {
		t.Fatal(err)
	}
	c.kid = keys.IDs()[0]
	for _, p := range pods {
		account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: p.Spec.ServiceAccountName, UID: types.UID("sa-" + p.Spec.ServiceAccountName)}}
		if err := c.Client.Tracker().Add(account); err != nil && !strings.Contains(err.Error(), "exists") {
			t.Fatal(err)
		}
		if err := c.Client.Tracker().Add(p); err != nil {
			t.Fatal(err)
		}
	}
	c.Cluster = podidentity.Cluster{Name: "demo", Namespace: "demo", Issuer: own.String(), Keys: keys, Pods: podwatch.New(c.Client, nil)}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { defer close(ended); c.Pods.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-ended })
	Eventually(t, c.Pods.HasSynced)
	return c
}

// Pod makes a pod whose UID is uid- and its name.
func Pod(namespace, name, account, node string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID("uid-" + name)},
		Spec:       corev1.PodSpec{NodeName: node, ServiceAccountName: account},
	}
}

// Claims are those of a token of a pod for the agent, good for an hour. Change them before they are signed.
func (c *Cluster) Claims(p *corev1.Pod) map[string]any {
	now := time.Now()
	return map[string]any{
		"iss": c.Issuer, "aud": []string{podidentity.Audience}, "sub": "system:serviceaccount:" + p.Namespace + ":" + p.Spec.ServiceAccountName,
		"iat": now.Unix(), "nbf": now.Unix(), "exp": now.Add(time.Hour).Unix(), "jti": "7f0d3c1e",
		"kubernetes.io": map[string]any{
			"namespace": p.Namespace, "serviceaccount": map[string]any{"name": p.Spec.ServiceAccountName, "uid": "sa-" + p.Spec.ServiceAccountName},
			"pod": map[string]any{"name": p.Name, "uid": string(p.UID)}, "node": map[string]any{"name": p.Spec.NodeName, "uid": "uid-of-node"},
		},
	}
}

// Token signs claims.
func (c *Cluster) Token(t testing.TB, claims map[string]any) string {
	t.Helper()
	return sign(t, c.key, c.kid, claims)
}

func sign(t testing.TB, key *rsa.PrivateKey, kid string, claims map[string]any) string {
	t.Helper()
	header, err := json.Marshal(map[string]string{"alg": "RS256", "kid": kid})
	if err != nil {
		t.Fatal(err)
	}
	body, err := json.Marshal(claims)
	if err != nil {
		t.Fatal(err)
	}
	text := base64.RawURLEncoding.EncodeToString(header) + "." + base64.RawURLEncoding.EncodeToString(body)
	sum := sha256.Sum256([]byte(text))
	signature, err := rsa.SignPKCS1v15(rand.Reader, key, crypto.SHA256, sum[:])
	if err != nil {
		t.Fatal(err)
	}
	return text + "." + base64.RawURLEncoding.EncodeToString(signature)
}

// Forged signs claims with another key, which it says is the cluster's.
func (c *Cluster) Forged(t testing.TB, claims map[string]any) string {
	t.Helper()
	other, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	return sign(t, other, c.kid, claims)
}

// Eventually waits up to ten seconds.
func Eventually(t testing.TB, done func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); !done(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it does not come about")
		}
	}
}
