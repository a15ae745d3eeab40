// SPDX-License-Identifier: Apache-2.0

package hostjoin

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"muster.dev/muster/internal/certificates/csrview"
	"muster.dev/muster/internal/certificates/pki"
)

// The kubelet may have its certificate before its request was seen to be made, approved or issued.
func TestWhatHappenedBeforeItWasSeenIsToldOf(t *testing.T) {
	request := func(name, user string) *certificatesv1.CertificateSigningRequest {
		return &certificatesv1.CertificateSigningRequest{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec:       certificatesv1.CertificateSigningRequestSpec{SignerName: pki.SignerKubeletClient, Username: user},
			Status: certificatesv1.CertificateSigningRequestStatus{
				Certificate: []byte("some"),
				Conditions:  []certificatesv1.CertificateSigningRequestCondition{{Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Message: "fine"}},
			},
		}
	}
	client := fake.NewClientset(request("csr-other", "somebody"), request("csr-mine", "me"))
	mine := func(csr *certificatesv1.CertificateSigningRequest) bool { return csr.Spec.Username == "me" }
	for _, c := range []struct {
		name  string
		seen  string
		state csrview.State
		want  []string
	}{
		{"nothing was seen", "", "", []string{"csr-mine created", "approved: fine", "issued"}},
		{"it was seen to be made", "csr-mine", csrview.Pending, []string{"approved: fine", "issued"}},
		{"it was seen to be approved", "csr-mine", csrview.Approved, []string{"issued"}},
		{"all was seen", "csr-mine", csrview.Issued, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			var said []string
			h := &Host{Config: Config{Now: time.Now, Show: func(s Step) { said = append(said, s.Text) }}}
			teller := &requestTeller{joining: &joining{Host: h}, step: "client CSR", signer: pki.SignerKubeletClient, name: c.seen, state: c.state}
			teller.arrived(t.Context(), client, mine)
			if diff := cmp.Diff(c.want, said); diff != "" {
				t.Errorf("said (-want +got):\n%s", diff)
			}
		})
	}
}
