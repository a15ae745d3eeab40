// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// authorities is a cluster whose certificate authorities are replaced by EKS's API.
type authorities struct{ *operations }

// certificateAuthorities makes an authority of kubelets' certificates, gives it up, makes another one and has it sign.
// The AWS CLI does not know these operations everywhere yet: they are sent as an SDK sends them. The API server reads
// whom to trust every five minutes, or when it starts: it is killed to be quicker. A kubelet looks every minute: there
// is none.
func (o *operations) certificateAuthorities() {
	a := &authorities{o}
	a.mustKubectl("-n", "kube-system", "scale", "deployment", "coredns", "--replicas", "0") // a machine is not taken from under its last pod
	a.muster("scale", "nodegroup", "default", "0", "--wait")
	a.becomes("no node is left", "", func() (string, error) { return a.kubectl("get", "nodes", "-o", "name") })
	for _, step := range []struct {
		name string
		look func(*authorities)
	}{
		{"an authority is made", (*authorities).made},
		{"it is given up", (*authorities).givenUp},
		{"another one signs", (*authorities).activated},
	} {
		if !o.t.Run(step.name, func(t *testing.T) { step.look(&authorities{&operations{a.step(t), ""}}) }) {
			return
		}
	}
}

// shownAuthority is what is looked at of an authority.
type shownAuthority struct {
	ID, SigningStatus, DistributionStatus, Data string
}

const authoritiesPath = "/clusters/muster/certificate-authorities"

func (a *authorities) list() []shownAuthority {
	a.t.Helper()
	var all struct{ CertificateAuthorities []shownAuthority }
	if err := json.Unmarshal([]byte(a.calls("ListCertificateAuthorities", http.MethodGet, authoritiesPath)), &all); err != nil {
		a.t.Fatal(err)
	}
	return all.CertificateAuthorities
}

func (a *authorities) describe(id string) shownAuthority {
	a.t.Helper()
	var one struct{ CertificateAuthority shownAuthority }
	if err := json.Unmarshal([]byte(a.calls("DescribeCertificateAuthority", http.MethodGet, authoritiesPath+"/"+id)), &one); err != nil {
		a.t.Fatal(err)
	}
	return one.CertificateAuthority
}

// change asks for a step.
func (a *authorities) change(action, method, path string) (u shownUpdate, id string) {
	a.t.Helper()
	var out struct {
		Update               shownUpdate
		CertificateAuthority struct{ ID string }
	}
	if err := json.Unmarshal([]byte(a.calls(action, method, path)), &out); err != nil {
		a.t.Fatal(err)
	}
	return out.Update, out.CertificateAuthority.ID
}

// settles waits until an update is Successful. The API server is killed once it is known to lag behind; again if that
// was too early, before the service had seen which API server it was.
func (a *authorities) settles(u shownUpdate) {
	a.t.Helper()
	status := func() string {
		return a.management("get", "update", u.ID, "-o", "jsonpath={.status.phase} {.status.message}")
	}
	a.eventually("it is waited for the API server", func() error {
		if got := status(); !strings.Contains(got, "has not read yet") {
			return errors.New(got)
		}
		return nil
	})
	for range 5 {
		a.pause(10 * time.Second)
		if strings.HasPrefix(status(), "Successful") {
			break
		}
		a.kill("kube-apiserver")
		a.ready()
	}
	a.updated(u, "muster")
}

// published are the authorities that everybody in the cluster may read, PEM.
func (a *authorities) published() string {
	a.t.Helper()
	var pem string
	a.eventually("the API server answers", func() (err error) {
		pem, err = a.kubectl("-n", "kube-system", "get", "configmap", "muster-kubelet-client-ca", "-o", `jsonpath={.data.ca\.crt}`)
		return err
	})
	return pem
}

// isPublished reports whether the certificate of an authority is among them.
func (a *authorities) isPublished(is shownAuthority) bool {
	a.t.Helper()
	pem, err := base64.StdEncoding.DecodeString(is.Data)
	if err != nil || !strings.HasPrefix(string(pem), "-----BEGIN CERTIFICATE-----") {
		a.t.Fatalf("%+v: %v", is, err)
	}
	return strings.Contains(a.published(), strings.TrimSpace(string(pem)))
}

// signs waits until `muster certs` says which authority signs.
func (a *authorities) signs(name string) {
	a.t.Helper()
	a.eventually(name+" signs", func() error {
		listing, _, err := a.try("certs")
		if err == nil && !regexp.MustCompile(name+` +- +signs`).MatchString(listing) {
			err = errors.New(listing)
		}
		return err
	})
}

func (a *authorities) made() {
	before := a.list()
	if len(before) != 1 || before[0].SigningStatus != "IN_USE" || before[0].DistributionStatus != "COMPLETE" || !a.isPublished(a.describe(before[0].ID)) {
		a.t.Fatalf("at first there are %+v", before)
	}
	u, id := a.change("CreateCertificateAuthority", http.MethodPost, authoritiesPath)
	if is := a.describe(id); is.SigningStatus != "NOT_USED" || is.DistributionStatus != "IN_PROGRESS" {
		a.t.Errorf("%+v", is)
	}
	a.settles(u)
	if is := a.describe(id); is.DistributionStatus != "COMPLETE" || is.SigningStatus != "NOT_USED" || !a.isPublished(is) || len(a.list()) != 2 {
		a.t.Errorf("%+v, and all are %+v", is, a.list())
	}
	if got := a.asProbeOf(filepath.Join(a.cluster().PKI(), "kubelet", "kubelet-2.pem")); got != http.StatusOK {
		a.t.Errorf("the API server answers %d to a certificate of the new authority", got)
	}
	a.signs("kubelet-1")
}

func (a *authorities) givenUp() {
	forged := filepath.Join(a.t.TempDir(), "forged.pem")
	a.copyFile(filepath.Join(a.cluster().PKI(), "kubelet", "kubelet-2.pem"), forged)
	var gone shownAuthority
	for _, is := range a.list() {
		if is.SigningStatus == "NOT_USED" {
			gone = a.describe(is.ID)
		}
	}
	u, _ := a.change("DeleteCertificateAuthority", http.MethodDelete, authoritiesPath+"/"+gone.ID)
	a.settles(u)
	if got := a.asProbeOf(forged); got != http.StatusUnauthorized {
		a.t.Errorf("the API server answers %d to a certificate of an authority that is deleted", got)
	}
	if left := a.list(); len(left) != 1 || left[0].SigningStatus != "IN_USE" || a.isPublished(gone) {
		a.t.Errorf("%+v are left", left)
	}
}

func (a *authorities) activated() {
	old := a.list()[0].ID
	u, id := a.change("CreateCertificateAuthority", http.MethodPost, authoritiesPath)
	a.settles(u)
	u, _ = a.change("ActivateCertificateAuthority", http.MethodPost, authoritiesPath+"/"+id+"/activate")
	a.updated(u, "muster")
	a.signs("kubelet-3")
	if is, was := a.describe(id), a.describe(old); is.SigningStatus != "IN_USE" || was.SigningStatus != "NOT_USED" || !a.isPublished(was) {
		a.t.Errorf("%+v signs, and %+v did", is, was)
	}
	// Nobody takes the old one away while a node may still use it.
	answer, err := newAWSClient(a.t, a.iam).send(awsRequest{service: "eks", action: "DeleteCertificateAuthority", method: http.MethodDelete, path: authoritiesPath + "/" + old})
	if err != nil || answer.code() != "InvalidRequestException" || !strings.Contains(answer.body, "cannot be deleted yet") {
		a.t.Errorf("deleting it: %v", errors.Join(err, fmt.Errorf("%d %s", answer.status, answer.body)))
	}
}
