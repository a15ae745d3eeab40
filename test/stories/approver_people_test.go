// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"muster.dev/muster/internal/certificates/pki/pkitest"
)

const signerCustom = "beta.eks.amazonaws.com/app-serving"

// withOtherSigners is an installation that also signs what people approve.
func withOtherSigners(t *testing.T) *approver {
	t.Helper()
	a := newApprover(t, "approve-and-sign")
	a.machines(1)
	policy := strings.Replace(a.read(a.policy), "signers:\n", "signers:\n"+
		"- name: kubernetes.io/kube-apiserver-client\n  duration: 24h\n- name: "+signerCustom+"\n  profile: serving\n  duration: 48h\n", 1)
	err := a.plane.Grant(t.Context(), "other-signers", rbacv1.UserKind, "system:serviceaccount:"+approverNamespace+":"+approverName, rbacv1.PolicyRule{
		APIGroups: []string{"certificates.k8s.io"}, Resources: []string{"signers"},
		ResourceNames: []string{certificatesv1.KubeAPIServerClientSignerName, signerCustom}, Verbs: []string{"sign"},
	})
	if err != nil {
		t.Fatal(err)
	}
	a.run("muster", a.writePolicy("others.yaml", policy))
	return a
}

// applyRequest creates a request from a file, as in every guide.
func (a *approver) applyRequest(kubeconfig, name, signer string, raw []byte, usages ...string) {
	a.t.Helper()
	path := filepath.Join(a.plane.Dir(), name+".yaml")
	manifest := fmt.Sprintf(`apiVersion: certificates.k8s.io/v1
kind: CertificateSigningRequest
metadata:
  name: %s
spec:
  signerName: %s
  request: %s
  usages: ["%s"]
`, name, signer, base64.StdEncoding.EncodeToString(raw), strings.Join(usages, `", "`))
	if err := os.WriteFile(path, []byte(manifest), 0o600); err != nil {
		a.t.Fatal(err)
	}
	if _, err := a.kubectlAs(kubeconfig, "create", "-f", path); err != nil {
		a.t.Fatal(err)
	}
}

// TestOtherSigners has people approve requests for signers that are not kubelets'.
//
//story:about certificates
func TestOtherSigners(t *testing.T) {
	t.Parallel()
	a := withOtherSigners(t)
	t.Run("a certificate for a person", func(t *testing.T) { a.in(t).certificateForAPerson() })
	t.Run("a signer of another name", func(t *testing.T) { a.in(t).signerOfAnotherName() })
}

// An administrator makes a certificate for a user: a request with a subject as guides have it, approved by hand.
func (a *approver) certificateForAPerson() {
	t := a.t
	key := pkitest.Key(t)
	template := pkitest.Template("")
	template.Subject.CommonName, template.Subject.Organization = "vip", []string{"newlands"}
	template.Subject.Country, template.Subject.Province = []string{"NZ"}, []string{"Wellington"}
	template.Subject.Locality, template.Subject.OrganizationalUnit = []string{"Wellington"}, []string{"Test"}
	a.applyRequest(a.admin, "vip", certificatesv1.KubeAPIServerClientSignerName, pkitest.Encode(t, key, template),
		"key encipherment", "digital signature", "client auth")
	a.told("vip", "Normal CertificateLeftPending", "manual-approval")
	if state := stateOf(a.get("vip")); state != "" {
		t.Errorf("it is %s", state)
	}
	a.mustKubectl("certificate", "approve", "vip")
	a.becomes("vip", issuedByPerson)
	if life := lifetime(a.certificate("vip", x509.ExtKeyUsageClientAuth)); life != 24*time.Hour {
		t.Errorf("it is good for %s", life)
	}

	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	config := clientcmdapi.NewConfig()
	config.Clusters["plane"] = &clientcmdapi.Cluster{Server: a.plane.Server(), CertificateAuthority: a.plane.CA()}
	config.AuthInfos["vip"] = &clientcmdapi.AuthInfo{
		ClientCertificateData: a.get("vip").Status.Certificate,
		ClientKeyData:         pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}),
	}
	config.Contexts["vip"] = &clientcmdapi.Context{Cluster: "plane", AuthInfo: "vip"}
	config.CurrentContext = "vip"
	vip := filepath.Join(a.plane.Dir(), "vip.kubeconfig")
	if err := clientcmd.WriteToFile(*config, vip); err != nil {
		t.Fatal(err)
	}
	who, err := a.kubectlAs(vip, "auth", "whoami", "-o", "jsonpath={.status.userInfo.username} {.status.userInfo.groups}")
	if err != nil || !strings.HasPrefix(who, "vip ") || !strings.Contains(who, `"newlands"`) {
		t.Errorf("the API server takes the holder for %s, %v", who, err)
	}

	// With upstream's roles the same person may ask for a node's certificate, and upstream's approver would say yes.
	a.mustKubectl("create", "clusterrolebinding", "csr-vip", "--clusterrole=system:node-bootstrapper", "--user=vip")
	a.mustKubectl("create", "clusterrolebinding", "nodeclient-vip", "--clusterrole=system:certificates.k8s.io:certificatesigningrequests:nodeclient", "--user=vip")
	_, node, _ := worker(1)
	a.eventually("the roles are known", func() error {
		_, err := a.kubectlAs(vip, "auth", "can-i", "create", "csr")
		return err
	})
	a.applyRequest(vip, "node-by-vip", signerClient, pkitest.Kubelet(t, node), "digital signature", "client auth")
	a.told("node-by-vip", "Normal CertificateLeftPending", "requester")
	a.mustKubectl("certificate", "approve", "node-by-vip")
	a.becomes("node-by-vip", issuedByPerson)

	// Nobody can approve his way around what a certificate may say.
	template.Subject.CommonName = "system:kube-controller-manager"
	a.applyRequest(a.admin, "climber", certificatesv1.KubeAPIServerClientSignerName, pkitest.Encode(t, pkitest.Key(t), template), "client auth")
	a.mustKubectl("certificate", "approve", "climber")
	a.becomes("climber", "Approved/KubectlApprove Failed/SignerValidationFailure")
}

// A user without a token may ask for nodes' certificates if the policy binds him to their names, and RBAC gives him
// upstream's roles.
//
//story:about certificates
func TestAUserWhomThePolicyBinds(t *testing.T) {
	t.Parallel()
	a := newApprover(t, "approve-and-sign")
	a.machines(2)
	_, mine, _ := worker(1)
	_, other, _ := worker(2)
	binding := fmt.Sprintf("policy:\n  bootstrap:\n    bindings:\n    - {user: vip, nodeNames: [%s]}\n", mine)
	a.run("muster", a.writePolicy("bound.yaml", a.read(a.policy)+binding))
	a.mustKubectl("create", "clusterrolebinding", "csr-vip", "--clusterrole=system:node-bootstrapper", "--user=vip")
	a.mustKubectl("create", "clusterrolebinding", "nodeclient-vip", "--clusterrole=system:certificates.k8s.io:certificatesigningrequests:nodeclient", "--user=vip")
	vip := a.user("vip")
	a.eventually("the roles are known", func() error {
		_, err := vip.CertificatesV1().CertificateSigningRequests().List(t.Context(), metav1.ListOptions{})
		return err
	})
	a.create(vip, request("mine", signerClient, pkitest.Kubelet(t, mine)))
	a.becomes("mine", issuedByRules)
	a.create(vip, request("not-mine", signerClient, pkitest.Kubelet(t, other)))
	a.becomes("not-mine", "Denied/bootstrap-binding")
}

func (a *approver) signerOfAnotherName() {
	t := a.t
	template := pkitest.Template("", "app.apps.example")
	template.Subject.CommonName, template.Subject.Organization = "app.apps.example", nil
	a.applyRequest(a.admin, "app", signerCustom, pkitest.Encode(t, pkitest.Key(t), template), "digital signature", "key encipherment", "server auth")
	a.told("app", "Normal CertificateLeftPending", "manual-approval")
	a.mustKubectl("certificate", "approve", "app")
	a.becomes("app", issuedByPerson)
	c := a.certificate("app", x509.ExtKeyUsageServerAuth)
	if err := c.VerifyHostname("app.apps.example"); err != nil || lifetime(c) != 48*time.Hour {
		t.Errorf("good for %s, %v", lifetime(c), err)
	}
	// The name of a node is not for applications, and another signer's request is not for muster.
	_, node, address := worker(1)
	template = pkitest.Template("", node, address)
	template.Subject.CommonName, template.Subject.Organization = node, nil
	a.applyRequest(a.admin, "impostor", signerCustom, pkitest.Encode(t, pkitest.Key(t), template), "digital signature", "server auth")
	a.applyRequest(a.admin, "foreign", "example.com/another", pkitest.Encode(t, pkitest.Key(t), template), "digital signature", "server auth")
	a.mustKubectl("certificate", "approve", "impostor", "foreign")
	a.becomes("impostor", "Approved/KubectlApprove Failed/SignerValidationFailure")
	if state := stateOf(a.get("foreign")); state != "Approved/KubectlApprove" {
		t.Errorf("another signer's request is %s", state)
	}
	if said := a.events("foreign"); len(said) > 0 {
		t.Errorf("another signer's request is spoken about: %q", said)
	}
}
