// SPDX-License-Identifier: Apache-2.0

package hostjoin

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"os"
	"strings"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"muster.dev/muster/internal/certificates/pki"
	"muster.dev/muster/internal/node/render"
)

// closeWait is how long the kernel remembers a connection that one side has closed.
const closeWait = "/proc/sys/net/netfilter/nf_conntrack_tcp_timeout_close_wait"

// kubelet joins as one does, or begins to.
func (w *world) kubelet() {
	w.write(render.PathKubeconfig, "kubeconfig") // that names the files of the certificate, which it has yet to get
	if _, err := os.Stat(w.at(clientCertificate)); err != nil {
		if _, err := os.Stat(w.at(render.PathBootstrapKubeconfig)); err != nil {
			w.t.Error("the kubelet was started without any credential")
			return
		}
		key := w.key(pendingKey)
		issued := w.ask("node-csr-"+fmt.Sprint(key.X), pki.SignerKubeletClient, "system:bootstrap:abcdef", key) // as one that does not rotate
		if issued == nil {
			return
		}
		w.store(clientCertificate, issued, key)
		_ = os.Remove(w.at(pendingKey))
	}
	w.register()
	if _, err := os.Stat(w.at(servingCertificate)); err != nil {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			w.t.Fatal(err)
		}
		if issued := w.ask(fmt.Sprintf("csr-%x", key.X.Bytes()[:4]), pki.SignerKubeletServing, "system:node:"+nodeName, key); issued != nil {
			w.store(servingCertificate, issued, key)
		}
	}
	if w.pods == 0 {
		w.pods = 1
	}
}

// key is the one in a file, which is made if there is none.
func (w *world) key(path string) *ecdsa.PrivateKey {
	if raw, err := os.ReadFile(w.at(path)); err == nil {
		block, _ := pem.Decode(raw)
		key, err := x509.ParseECPrivateKey(block.Bytes)
		if err != nil {
			w.t.Fatal(err)
		}
		return key
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		w.t.Fatal(err)
	}
	w.write(path, string(w.pemKey(key)))
	return key
}

func (w *world) pemKey(key *ecdsa.PrivateKey) []byte {
	raw, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		w.t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: raw})
}

// ask makes a request and returns the certificate, if one is issued.
func (w *world) ask(name, signer, username string, key *ecdsa.PrivateKey) []byte {
	raw, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: "system:node:" + nodeName, Organization: []string{"system:nodes"}}}, key)
	if err != nil {
		w.t.Fatal(err)
	}
	requests := w.cluster.CertificatesV1().CertificateSigningRequests()
	csr, err := requests.Get(w.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		csr = &certificatesv1.CertificateSigningRequest{
			ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.Now()},
			Spec: certificatesv1.CertificateSigningRequestSpec{
				SignerName: signer, Username: username, Request: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: raw}),
			},
		}
		if w.decide == nil {
			csr.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{Type: certificatesv1.CertificateApproved, Reason: "AutoApproved", Message: "all rules passed"}}
			csr.Status.Certificate = w.issue(key)
		} else {
			w.decide(csr)
		}
		if _, err := requests.Create(w.t.Context(), csr, metav1.CreateOptions{}); err != nil {
			w.t.Fatal(err)
		}
	}
	return csr.Status.Certificate
}

func (w *world) issue(key *ecdsa.PrivateKey) []byte {
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "system:node:" + nodeName, Organization: []string{"system:nodes"}},
		NotBefore: time.Now().Add(-time.Minute), NotAfter: time.Now().Add(time.Hour),
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, w.ca, key.Public(), w.caKey)
	if err != nil {
		w.t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw})
}

// store keeps a certificate as the kubelet does.
func (w *world) store(current string, certificate []byte, key *ecdsa.PrivateKey) {
	dated := strings.Replace(current, "current", "2026-11-20-18-55-12", 1)
	w.write(dated, string(certificate)+string(w.pemKey(key)))
	_ = os.Remove(w.at(current))
	if err := os.Symlink(w.at(dated), w.at(current)); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) register() {
	status := corev1.ConditionTrue
	if w.notReady {
		status = corev1.ConditionFalse
	}
	condition := corev1.NodeCondition{Type: corev1.NodeReady, Status: status, LastHeartbeatTime: metav1.Now(), Reason: "KubeletNotReady", Message: "cni plugin not initialized"}
	nodes := w.cluster.CoreV1().Nodes()
	node, err := nodes.Get(w.t.Context(), nodeName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		node = &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: nodeName, UID: types.UID(fmt.Sprint("uid-", time.Now().UnixNano()))}, Spec: corev1.NodeSpec{PodCIDR: "10.244.3.0/24"}}
		node.Status.Conditions = []corev1.NodeCondition{condition}
		_, err = nodes.Create(w.t.Context(), node, metav1.CreateOptions{})
	} else if err == nil {
		node.Status.Conditions = []corev1.NodeCondition{condition}
		_, err = nodes.Update(w.t.Context(), node, metav1.UpdateOptions{})
	}
	if err != nil {
		w.t.Fatal(err)
	}
}
