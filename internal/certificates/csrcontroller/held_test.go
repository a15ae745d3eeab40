// SPDX-License-Identifier: Apache-2.0

package csrcontroller

import (
	"bytes"
	"crypto/x509/pkix"
	"encoding/asn1"
	"strings"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"muster.dev/muster/internal/certificates/pki"
	"muster.dev/muster/internal/certificates/pki/pkitest"
)

const huge = 1 << 20

// A requester that may ask for anything must not be able to fill the memory with it: a thousand requests of a MiB live
// for a day where nobody denies them.
func TestHugeRequestsAreNotHeld(t *testing.T) {
	named := func(size int) []byte {
		return pkitest.Raw(t, pkix.RDNSequence{{{Type: asn1.ObjectIdentifier{2, 5, 4, 3}, Value: "system:node:" + strings.Repeat("a", size)}}})
	}
	padded := append(pkitest.Kubelet(t, nodeName(11)), bytes.Repeat([]byte(" "), huge)...)
	w := newWorld(t, nil)
	for name, tc := range map[string]struct {
		request []byte
		want    string
	}{
		"too many bytes": {padded, "Denied/shape"}, "a huge name": {named(huge), "Denied/shape"}, "a name that none can be": {named(8 << 10), "Denied/organization"},
	} {
		t.Run(name, func(t *testing.T) {
			csr := object("a", pki.SignerKubeletClient, tc.request, "system:bootstrap:abcdef", "system:bootstrappers")
			o, err := w.hold(csr.DeepCopy())
			h, ok := o.(*held)
			if err != nil || !ok {
				t.Fatal(err)
			}
			if size := cap(h.csr.Load().Spec.Request); size > 2*pki.MaxRequestSize || h.item.about != "" {
				t.Errorf("%d bytes are held, and %d of the name", size, len(h.item.about))
			}
			w.create(csr)
			w.becomes("a", tc.want)
			if !bytes.Equal(w.get("a").Spec.Request, tc.request) {
				t.Error("the request itself was changed")
			}
			if err := w.store.remove("a", nil); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// A request that is left to people is not held while they think, and is judged when they have decided.
func TestWhatIsLeftToPeopleIsNotHeld(t *testing.T) {
	w := newWorld(t, nil)
	csr := serving(t, "a", 11, address(11))
	csr.Spec.Username = "alice"
	w.create(csr)
	w.until("it is told", func() bool { return len(w.events.all()) == 1 })
	w.until("it is not held any more", func() bool { return w.heldOf(t, "a").csr.Load() == nil })
	w.stays("a", "")
	if _, err := w.client.CertificatesV1().CertificateSigningRequests().UpdateApproval(t.Context(), "a", approved(w.get("a")), metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	w.becomes("a", "Approved/KubectlApprove Issued")
}

// A request that is cut off is not read: it is refused as it was.
func TestWhatIsCutOffIsRefused(t *testing.T) {
	csr := &certificatesv1.CertificateSigningRequest{Spec: certificatesv1.CertificateSigningRequestSpec{
		Request: append(pkitest.Kubelet(t, nodeName(11)), bytes.Repeat([]byte(" "), pki.MaxRequestSize)...),
	}}
	_, want := pki.Parse(csr.Spec.Request)
	shorten(csr)
	if _, err := pki.Parse(csr.Spec.Request); err == nil || err.Error() != want.Error() {
		t.Errorf("whole: %v, short: %v", want, err)
	}
}

func (w *world) heldOf(t *testing.T, name string) *held {
	t.Helper()
	o, _, err := w.informer.GetStore().GetByKey(name)
	h, ok := o.(*held)
	if err != nil || !ok {
		t.Fatalf("%s is not held: %v", name, err)
	}
	return h
}
