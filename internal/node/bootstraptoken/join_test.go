// SPDX-License-Identifier: Apache-2.0

package bootstraptoken_test

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/pem"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"muster.dev/muster/internal/certificates/pki/pkitest"
	"muster.dev/muster/internal/certificates/token"
	"muster.dev/muster/internal/node/bootstraptoken"
)

func selfSigned(t *testing.T, name string) string {
	t.Helper()
	cert, _ := pkitest.Authority(t, name, noon, time.Hour)
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert.Raw}))
}

func clusterInfo(kubeconfig string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-public", Name: "cluster-info"}, Data: map[string]string{"kubeconfig": kubeconfig}}
}

func kubeconfig(server, ca string) string {
	return "apiVersion: v1\nkind: Config\nclusters:\n- name: ''\n  cluster: {server: '" + server + "', certificate-authority-data: " + base64.StdEncoding.EncodeToString([]byte(ca)) + "}\n"
}

func TestJoinCommand(t *testing.T) {
	one, two := selfSigned(t, "one"), selfSigned(t, "two")
	pin := func(certificate string) string {
		block, _ := pem.Decode([]byte(certificate))
		parsed, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			t.Fatal(err)
		}
		// As docs of kubeadm compute it: openssl x509 -pubkey | openssl rsa -pubin -outform der | sha256sum.
		der, err := x509.MarshalPKIXPublicKey(parsed.PublicKey)
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(der)
		return "sha256:" + hex.EncodeToString(sum[:])
	}
	c := cluster(interceptor.Funcs{}, clusterInfo(kubeconfig("https://192.168.64.2", one+two)))
	door, err := bootstraptoken.ReadDoor(t.Context(), c)
	if diff := cmp.Diff(bootstraptoken.Door{Address: "192.168.64.2:443", Pins: []string{pin(one), pin(two)}}, door); err != nil || diff != "" {
		t.Fatalf("%v (-want +got)\n%s", err, diff)
	}
	l := bootstraptoken.Listed{Bootstrap: bootstrap(t, "abcdef", noon.Add(time.Hour)), Scopes: []token.Scope{{Kind: token.ScopeName, Value: "worker-1"}}}
	for tool, want := range map[bootstraptoken.Tool]string{
		bootstraptoken.Muster:  "muster join 192.168.64.2:443 --token abcdef.zyxwvutsrq987654 --ca-cert-hash " + pin(one) + " --ca-cert-hash " + pin(two) + " --node-name worker-1",
		bootstraptoken.Kubeadm: "kubeadm join 192.168.64.2:443 --token abcdef.zyxwvutsrq987654 --discovery-token-ca-cert-hash " + pin(one) + " --discovery-token-ca-cert-hash " + pin(two) + " --node-name worker-1",
	} {
		if got, err := door.Command(tool, l, noon); err != nil || got != want {
			t.Errorf("got %q, %v", got, err)
		}
	}
	_, err = door.Command("kops", l, noon)
	wantErr(t, err, "there are muster and kubeadm")
	_, err = door.Command(bootstraptoken.Muster, l, noon.Add(time.Hour))
	wantErr(t, err, "it expired at 2026-11-20T13:00:00Z")
	for usage, other := range map[string]string{"signing": "authentication", "authentication": "signing"} {
		l.Usages = []string{other}
		_, err = door.Command(bootstraptoken.Muster, l, noon)
		wantErr(t, err, usage+" is not among its usages")
	}
}

func TestNoDoor(t *testing.T) {
	_, err := bootstraptoken.ReadDoor(t.Context(), cluster(interceptor.Funcs{}))
	wantErr(t, err, "no ConfigMap kube-public/cluster-info")
	for name, text := range map[string]string{
		"nothing": "", "http": kubeconfig("http://a:1", selfSigned(t, "a")), "no authority": kubeconfig("https://a:1", ""), "half a certificate": kubeconfig("https://a:1", selfSigned(t, "a")[:200]+"\n-----END CERTIFICATE-----\n"),
	} {
		if _, err := bootstraptoken.ReadDoor(t.Context(), cluster(interceptor.Funcs{}, clusterInfo(text))); err == nil || !strings.Contains(err.Error(), "not usable") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
