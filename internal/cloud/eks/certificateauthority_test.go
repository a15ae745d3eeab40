// SPDX-License-Identifier: Apache-2.0

package eks

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
)

const (
	authoritiesPath = "/clusters/Blue_1/certificate-authorities"
	firstAuthority  = "ca-00000000000000001"
)

// tells has the status of the cluster tell of authorities, as its controller does.
func (w *world) tells(all ...v1alpha1.KubeletAuthority) {
	w.t.Helper()
	slug := v1alpha1.ClusterSlug("Blue_1")
	c := &v1alpha1.Cluster{}
	if err := w.api.Get(w.t.Context(), client.ObjectKey{Namespace: slug, Name: slug}, c); err != nil {
		w.t.Fatal(err)
	}
	for i := range all {
		all[i].NotBefore, all[i].NotAfter, all[i].Data = metav1.NewTime(time.Unix(1700000000, 0)), metav1.NewTime(time.Unix(1900000000, 0)), "UEVN"
	}
	c.Status.KubeletAuthorities = all
	if err := w.api.Status().Update(w.t.Context(), c); err != nil {
		w.t.Fatal(err)
	}
}

// changed is the update and the authority in an answer.
func changed(t *testing.T, answer string) (update, id string) {
	t.Helper()
	var out struct {
		Update               struct{ ID string }
		CertificateAuthority struct{ ID string }
	}
	if err := json.Unmarshal([]byte(answer), &out); err != nil || out.Update.ID == "" || out.CertificateAuthority.ID == "" {
		t.Fatalf("%s: %v", answer, err)
	}
	return out.Update.ID, out.CertificateAuthority.ID
}

func TestCertificateAuthorities(t *testing.T) {
	const create = `{"clientRequestToken":"c1"}`
	w := newWorld(t, nil)
	w.ask("GET", authoritiesPath, "", 404, "No cluster found for name: Blue_1.")
	w.ask("POST", "/clusters", makeOne, 200)
	w.ask("GET", authoritiesPath, "", 200, `{"certificateAuthorities":[]}`)
	w.ask("POST", authoritiesPath, create, 400, "InvalidRequestException", "are not known: it is CREATING")
	w.served("Blue_1")
	one := v1alpha1.KubeletAuthority{ID: firstAuthority, Name: "kubelet-1", Signs: true, Distribution: v1alpha1.KubeletAuthorityComplete}
	w.tells(one)
	w.ask("GET", authoritiesPath, "", 200, `"id":"`+firstAuthority+`","createdAt":1700000000,"createdBy":"EKS","signingStatus":"IN_USE","distributionStatus":"COMPLETE"`)
	w.ask("GET", authoritiesPath+"/"+firstAuthority, "", 200, `"validity":{"notBefore":1700000000,"notAfter":1900000000}`, `"rollbackAvailable":false`, `"data":"UEVN"`)
	w.ask("GET", authoritiesPath+"/none", "", 404, "No certificate authority found for ID: none")
	w.ask("DELETE", authoritiesPath+"/"+firstAuthority, "", 400, "is in use: activate another one")
	w.ask("POST", authoritiesPath+"/"+firstAuthority+"/activate", "{}", 400, "is in use already")

	answer := w.ask("POST", authoritiesPath, create, 200, `"type":"CertificateAuthorityUpdate"`, `"type":"CertificateAuthorityId"`, `"createdBy":"CUSTOMER","signingStatus":"NOT_USED","distributionStatus":"IN_PROGRESS"`)
	if again := w.ask("POST", authoritiesPath, create, 200); again != answer {
		t.Errorf("sent twice: %s\nwas %s", again, answer)
	}
	update, id := changed(t, answer)
	w.ask("GET", authoritiesPath+"/"+id, "", 200, `"distributionStatus":"IN_PROGRESS"`) // before it is made
	w.ask("POST", authoritiesPath, `{"clientRequestToken":"c2"}`, 409, "ResourceInUseException", update)
	stored := &v1alpha1.Update{}
	if err := w.api.Get(t.Context(), client.ObjectKey{Namespace: v1alpha1.ClusterSlug("Blue_1"), Name: update}, stored); err != nil || *stored.Spec.Change.KubeletAuthority != (v1alpha1.UpdateKubeletAuthority{Step: v1alpha1.KubeletAuthorityCreate, Authority: id}) {
		t.Errorf("%+v, %v", stored.Spec, err)
	}
	two := v1alpha1.KubeletAuthority{ID: id, Name: "kubelet-2", Asked: true, Removable: true, Distribution: v1alpha1.KubeletAuthorityInProgress, Message: "x has not read"}
	w.tells(one, two)
	w.ends(update, v1alpha1.UpdateStatus{Phase: v1alpha1.UpdateSuccessful})
	w.ask("POST", authoritiesPath, create, 200, `"status":"Successful"`)
	w.ask("POST", authoritiesPath, "{}", 400, "ResourceLimitExceededException", "has two certificate authorities at most")
	w.ask("POST", authoritiesPath+"/"+id+"/activate", "{}", 400, "its distribution is IN_PROGRESS. x has not read")
	two.Distribution, two.Message = v1alpha1.KubeletAuthorityComplete, ""
	w.tells(one, two)
	update, _ = changed(t, w.ask("POST", authoritiesPath+"/"+id+"/activate", "{}", 200, `"signingStatus":"ACTIVATING"`, `"distributionStatus":"COMPLETE"`))
	w.ends(update, v1alpha1.UpdateStatus{Phase: v1alpha1.UpdateSuccessful})
	one.Signs, two.Signs, one.Message = false, true, "of 2 nodes, 1 has a client certificate"
	w.tells(one, two)
	w.ask("GET", authoritiesPath, "", 200, `"signingStatus":"IN_USE"`, `"signingStatus":"NOT_USED"`)
	w.ask("DELETE", authoritiesPath+"/"+firstAuthority, "", 400, "cannot be deleted yet: of 2 nodes")
	one.Removable = true
	w.tells(one, two)
	update, _ = changed(t, w.ask("DELETE", authoritiesPath+"/"+firstAuthority+"?clientRequestToken=d1", "", 200, `"status":"InProgress"`))
	w.ends(update, v1alpha1.UpdateStatus{Phase: v1alpha1.UpdateSuccessful})

	w.gate.Denies = true
	for _, denied := range [][3]string{
		{"POST", authoritiesPath, create},
		{"GET", authoritiesPath},
		{"GET", authoritiesPath + "/" + id},
		{"DELETE", authoritiesPath + "/" + id},
		{"POST", authoritiesPath + "/" + id + "/activate", "{}"},
	} {
		w.ask(denied[0], denied[1], denied[2], 403, "AccessDeniedException")
	}
	if asked := strings.Join(w.gate.Asked, "\n"); !strings.Contains(asked, "eks:ActivateCertificateAuthority arn:aws:eks:eu-west-1:000000000000:cluster/Blue_1 aws:resourcetag/team=a") {
		t.Error(asked)
	}
}
