// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509/pkix"
	"encoding/asn1"
	"fmt"
	"strings"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"muster.dev/muster/internal/certificates/csrview"
	"muster.dev/muster/internal/certificates/pki/pkitest"
)

// wrong is a request that no honest kubelet makes.
type wrong struct {
	rule   string
	signer string
	raw    []byte
	change func(*certificatesv1.CertificateSigningRequestSpec)
}

// Wrong requests are denied, with the rule's name and its reason where people look. Client certificates are asked for
// with a bootstrap token that is good for machine 1, serving certificates by machine 1.
//
//story:about certificates
func TestApproverRefuses(t *testing.T) {
	t.Parallel()
	a := newApprover(t, "approve-and-sign")
	a.machines(2)
	a.run("muster", a.policy)
	node, token := a.join(1, "right"), a.bootstrap(1)
	for name, w := range wrongs(t) {
		t.Run(name, func(t *testing.T) {
			a := a.in(t)
			object := "csr-" + strings.ReplaceAll(name, " ", "-")
			csr := request(object, w.signer, w.raw)
			if w.change != nil {
				w.change(&csr.Spec)
			}
			as := token
			if w.signer == signerServing {
				as = node
			}
			a.create(as, csr)
			a.becomes(object, "Denied/"+w.rule)
			denied := a.get(object)
			message := denied.Status.Conditions[0].Message
			if len(message) < 20 || strings.Contains(message, "\n") {
				t.Errorf("the message is %q", message)
			}
			a.told(object, "Warning CertificateDenied", w.rule+": "+message)
			if decision, _, ok := csrview.Decided(denied); !ok || decision.Verdict != "Deny" || string(decision.Rule) != w.rule {
				t.Errorf("the decision in the request is %+v", decision)
			}
			t.Logf("%s: %s", w.rule, message)
		})
	}
	// The API server itself keeps a node from asking for another's name.
	_, other, address := worker(2)
	_, err := node.CertificatesV1().CertificateSigningRequests().Create(t.Context(), request("foreign", signerServing, pkitest.Kubelet(t, other, address)), metav1.CreateOptions{})
	if !apierrors.IsForbidden(err) {
		t.Errorf("a node asks for another's name: %v", err)
	}
	// Requests that may yet become right wait, and so do requests that a host's name makes a kubelet send.
	_, own, _ := worker(1)
	for name, wait := range map[string]struct{ asked, rule string }{
		"nobodys": {"192.0.2.7", "address-assigned"}, "dotted": {own + ".", "name-canonical"},
	} {
		a.create(node, request(name, signerServing, pkitest.Kubelet(t, own, wait.asked)))
		a.told(name, "Normal CertificateWaiting", wait.rule)
		if state := stateOf(a.get(name)); state != "" {
			t.Errorf("it is %s", state)
		}
	}
	// Names are compared as clients compare them.
	a.create(node, request("shouted", signerServing, pkitest.Kubelet(t, own, strings.ToUpper(own))))
	a.becomes("shouted", issuedByRules)
	// Requests of those nobody here can vouch for are for people.
	a.create(a.person("alice"), request("person", signerClient, pkitest.Kubelet(t, own)))
	a.told("person", "Normal CertificateLeftPending", "requester")
	if state := stateOf(a.get("person")); state != "" {
		t.Errorf("it is %s", state)
	}
}

func (a *approver) in(t *testing.T) *approver {
	t.Helper()
	step := *a
	step.t = t
	return &step
}

func wrongs(t *testing.T) map[string]wrong {
	t.Helper()
	_, node, address := worker(1)
	_, other, foreign := worker(2)
	attribute := func(value string, oid ...int) pkix.RelativeDistinguishedNameSET {
		return pkix.RelativeDistinguishedNameSET{{Type: asn1.ObjectIdentifier(oid), Value: value}}
	}
	template := func(names ...string) []byte { return pkitest.Kubelet(t, node, names...) }
	_, edwards, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	large, err := rsa.GenerateKey(rand.Reader, 1024)
	if err != nil {
		t.Fatal(err)
	}
	mail := pkitest.Template(node, node)
	mail.EmailAddresses = []string{"root@example"}
	masters := pkitest.Template(node)
	masters.Subject.Organization = append(masters.Subject.Organization, "system:masters")
	long := int32(10 * 365 * 24 * 3600)
	return map[string]wrong{
		"another machine":          {rule: "bootstrap-machine", signer: signerClient, raw: pkitest.Kubelet(t, other)},
		"bytes after the PEM":      {rule: "shape", signer: signerClient, raw: append(template(), "more\n"...)},
		"two requests in one":      {rule: "shape", signer: signerClient, raw: append(template(), template()...)},
		"e-mail address":           {rule: "shape", signer: signerServing, raw: pkitest.Encode(t, pkitest.Key(t), mail)},
		"another group":            {rule: "organization", signer: signerClient, raw: pkitest.Encode(t, pkitest.Key(t), masters)},
		"no node":                  {rule: "common-name", signer: signerClient, raw: pkitest.Kubelet(t, "")},
		"names of a client":        {rule: "name-count", signer: signerClient, raw: template(node)},
		"serving nothing":          {rule: "name-count", signer: signerServing, raw: template()},
		"wildcard":                 {rule: "name-canonical", signer: signerServing, raw: template("*.example")},
		"upper case of another":    {rule: "name-assigned", signer: signerServing, raw: template(strings.ToUpper(other))},
		"Punycode that is none":    {rule: "name-canonical", signer: signerServing, raw: template("xn--a.example")},
		"name of the API server":   {rule: "name-reserved", signer: signerServing, raw: template(node, "kubernetes.default.svc")},
		"loopback":                 {rule: "address-reserved", signer: signerServing, raw: template(address, "127.0.0.1")},
		"name of another machine":  {rule: "name-assigned", signer: signerServing, raw: template(other)},
		"address of another":       {rule: "address-assigned", signer: signerServing, raw: template(address, foreign)},
		"address of another in v6": {rule: "address-assigned", signer: signerServing, raw: template("::ffff:" + foreign)},
		"unusual key":              {rule: "key", signer: signerClient, raw: pkitest.Encode(t, edwards, pkitest.Template(node))},
		"short key":                {rule: "shape", signer: signerClient, raw: pkitest.Encode(t, large, pkitest.Template(node))},
		"ten years":                {rule: "expiration", signer: signerClient, raw: template(), change: func(s *certificatesv1.CertificateSigningRequestSpec) { s.ExpirationSeconds = &long }},
		"client that serves":       {rule: "usages", signer: signerClient, raw: template(), change: use(certificatesv1.UsageServerAuth)},
		"server that signs":        {rule: "usages", signer: signerServing, raw: template(node), change: use(certificatesv1.UsageCertSign)},
		"two common names": {rule: "shape", signer: signerClient, raw: pkitest.Raw(t, pkix.RDNSequence{
			attribute("system:node:"+other, 2, 5, 4, 3), attribute("system:node:"+node, 2, 5, 4, 3), attribute("system:nodes", 2, 5, 4, 10),
		})},
		"user ID in the subject": {rule: "shape", signer: signerClient, raw: pkitest.Raw(t, pkix.RDNSequence{
			attribute("system:nodes", 2, 5, 4, 10), attribute("system:node:"+node, 2, 5, 4, 3), attribute(fmt.Sprint(0), 1, 3, 6, 1, 4, 1, 57683, 2),
		})},
	}
}

// use adds a usage to those that are right.
func use(usage certificatesv1.KeyUsage) func(*certificatesv1.CertificateSigningRequestSpec) {
	return func(s *certificatesv1.CertificateSigningRequestSpec) { s.Usages = append(s.Usages, usage) }
}
