// SPDX-License-Identifier: Apache-2.0

package hostjoin

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"muster.dev/muster/internal/certificates/csrview"
	"muster.dev/muster/internal/certificates/pki"
	"muster.dev/muster/internal/platform/systemd"
)

// errOnDisk ends the watching of requests: the kubelet has what it asked for.
var errOnDisk = errors.New("the certificate is on the disk")

// requests are those that there are before the kubelet is started.
func (j *joining) requests(ctx context.Context) []certificatesv1.CertificateSigningRequest {
	config := byToken(j.Endpoint, j.ca, j.request.Token)
	if j.joined {
		own, err := j.disk.byNode(j.Endpoint)
		if err != nil {
			return nil
		}
		config = own
	}
	client, err := j.Connect(config)
	if err != nil {
		return nil
	}
	var all []certificatesv1.CertificateSigningRequest
	for _, signer := range []string{pki.SignerKubeletClient, pki.SignerKubeletServing} {
		found, err := client.CertificatesV1().CertificateSigningRequests().List(ctx, metav1.ListOptions{FieldSelector: "spec.signerName=" + signer})
		if err == nil { // else an old one may be told of; nothing depends on it
			all = append(all, found.Items...)
		}
	}
	return all
}

// notOwn returns the names of earlier requests that are not to be taken for the kubelet's own. If the kubelet already
// runs, pending and approved requests are its own. Times of creation do not help, since the server's clock is another
// one.
func notOwn(before []certificatesv1.CertificateSigningRequest, runs bool) map[string]bool {
	names := map[string]bool{}
	for i := range before {
		state, _ := outcome(&before[i])
		if !runs || state != csrview.Pending && state != csrview.Approved {
			names[before[i].Name] = true
		}
	}
	return names
}

// firstCertificate watches the request that the kubelet makes with the token, until the certificate is on the disk.
func (j *joining) firstCertificate(ctx context.Context) error {
	client, err := j.Connect(byToken(j.Endpoint, j.ca, j.request.Token))
	if err != nil {
		return fmt.Errorf("making a client for the node's first request: %w", err)
	}
	got := func() bool { return j.disk.joined(j.ledger.NodeName, j.Now()) }
	mine := func(csr *certificatesv1.CertificateSigningRequest) bool {
		return !j.over[csr.Name] && csr.Spec.Username == "system:bootstrap:"+j.request.Token.ID && asksFor(csr, j.ledger.NodeName)
	}
	err = j.certificate(ctx, client, "client CSR", pki.SignerKubeletClient, mine, got)
	var denied *deniedError
	switch {
	case errors.As(err, &denied):
		// It would ask again and again, a hundred times an hour.
		if err := j.do(ctx, systemd.Stop, kubeletUnit); err != nil {
			return errors.Join(denied, err)
		}
		return fmt.Errorf("%w; the kubelet was stopped. Put right what was refused, then run muster join again with a token for this node (muster token create --node-name %s --address %s), or muster leave",
			denied, j.ledger.NodeName, j.Self.IP)
	case errors.Is(err, errRefused):
		return fmt.Errorf("the API server does not take token %s any more: it has expired or was deleted meanwhile; make another (muster token create) and run muster join with it again", j.request.Token)
	case err != nil:
		return err
	}
	j.done("certificate", "client certificate on disk: %s", clientCertificate)
	return nil
}

// certificate watches one request for a certificate until that is on the disk.
func (j *joining) certificate(ctx context.Context, client kubernetes.Interface, step, signer string, mine func(*certificatesv1.CertificateSigningRequest) bool, got func() bool) error {
	watching, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var poller sync.WaitGroup
	poller.Go(func() {
		for !got() {
			if !sleep(watching, pollInterval) {
				return
			}
		}
		cancel(errOnDisk)
	})
	defer poller.Wait()
	defer cancel(nil)
	teller := &requestTeller{joining: j, step: step, signer: signer}
	defer teller.stop()
	err := followRequests(watching, client, signer, func(csr *certificatesv1.CertificateSigningRequest) (bool, error) {
		if csr.Spec.SignerName != signer || !mine(csr) {
			return false, nil
		}
		return teller.tell(csr)
	}, j.complaint(step))
	if err != nil && (!errors.Is(err, errRefused) || !j.soon(ctx, got)) && !errors.Is(err, errOnDisk) {
		return err
	}
	for !got() { // issued: the kubelet writes it down
		if !sleep(ctx, pollInterval) {
			return ctx.Err()
		}
	}
	teller.arrived(ctx, client, mine)
	return nil
}

// soon waits a little: a token may be deleted in the moment in which it has served.
func (j *joining) soon(ctx context.Context, got func() bool) bool {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	for !got() {
		if !sleep(ctx, pollInterval) {
			return false
		}
	}
	return true
}

// requestTeller says what becomes of requests, each thing once.
type requestTeller struct {
	*joining
	step, signer string
	name         string
	state        csrview.State
	later        *time.Timer
}

func (t *requestTeller) stop() {
	if t.later != nil {
		t.later.Stop()
	}
}

// arrived says what was not seen but is so, for the kubelet may have its certificate before the request was seen at
// all. Nothing depends on it, so it is looked at once.
func (t *requestTeller) arrived(ctx context.Context, client kubernetes.Interface, mine func(*certificatesv1.CertificateSigningRequest) bool) {
	if t.state == csrview.Issued {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	found, err := client.CertificatesV1().CertificateSigningRequests().List(ctx, metav1.ListOptions{FieldSelector: "spec.signerName=" + t.signer})
	if err != nil {
		return
	}
	for i := range found.Items {
		csr := &found.Items[i]
		state, why := outcome(csr)
		if state != csrview.Issued || !mine(csr) {
			continue
		}
		t.stop()
		if t.name != csr.Name {
			t.done(t.step, "%s created", csr.Name)
			t.name, t.state = csr.Name, csrview.Pending
		}
		if t.state != csrview.Approved {
			t.done(t.step, "approved: %s", why)
		}
		_, _ = t.tell(csr) // that it is issued
		return
	}
}

// tell says how far a request is, and stops the watching when it is over.
func (t *requestTeller) tell(csr *certificatesv1.CertificateSigningRequest) (bool, error) {
	state, why := outcome(csr)
	if csr.Name == t.name && state == t.state {
		return false, nil
	}
	t.stop()
	if csr.Name != t.name {
		t.done(t.step, "%s created", csr.Name)
	}
	t.name, t.state = csr.Name, state
	switch state {
	case csrview.Pending:
		text := waitingFor(csr)
		t.later = time.AfterFunc(quiet, func() { t.say(t.step, Waiting, "%s", text) })
	case csrview.Approved:
		t.done(t.step, "approved: %s", why)
		t.later = time.AfterFunc(quiet, func() {
			t.say(t.step, Waiting, "%s is approved and waits to be signed: is the cluster's signer running (kube-controller-manager or muster certificate-controller)?", csr.Name)
		})
	case csrview.Issued:
		t.done(t.step, "issued")
		return true, nil
	case csrview.Denied, csrview.Failed:
		return true, &deniedError{name: csr.Name, why: why, signer: t.signer}
	}
	return false, nil
}

// servingCertificate watches the request that the kubelet makes as the node.
func (j *joining) servingCertificate(ctx context.Context, client kubernetes.Interface) error {
	got := func() bool { return j.disk.holds(servingCertificate, j.ledger.NodeName, j.Now()) }
	if got() {
		return nil
	}
	mine := func(csr *certificatesv1.CertificateSigningRequest) bool {
		return !j.over[csr.Name] && csr.Spec.Username == "system:node:"+j.ledger.NodeName
	}
	if err := j.certificate(ctx, client, "serving CSR", pki.SignerKubeletServing, mine, got); err != nil {
		return err
	}
	j.done("certificate", "serving certificate on disk: %s", servingCertificate)
	return nil
}
