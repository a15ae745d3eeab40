// SPDX-License-Identifier: Apache-2.0

package hostnode

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"

	"muster.dev/muster/internal/pki"
	"muster.dev/muster/internal/render"
	"muster.dev/muster/internal/review"
	"muster.dev/muster/internal/systemd"
)

const (
	// quiet is how long a step may take before it is said what it waits for.
	quiet = time.Second
	// servingPatience is how long a Ready node's serving certificate is waited for: nothing but logs and exec need it.
	servingPatience = 10 * time.Second
	unitInterval    = 2 * time.Second
)

// errOnDisk ends the watching of requests: the kubelet has what it asked for.
var errOnDisk = errors.New("the certificate is on the disk")

// becomes watches the kubelet become a node, and says each step.
func (j *joining) becomes(ctx context.Context) error {
	return j.wait(func() error {
		ctx, cancel := context.WithCancel(ctx)
		var watchers sync.WaitGroup
		watchers.Go(func() { j.watchUnit(ctx) })
		defer watchers.Wait()
		defer cancel()
		var unimported error
		imported := make(chan struct{})
		go func() {
			defer close(imported)
			unimported = j.images(ctx, func(name string) bool { return name != sandboxImage })
		}()
		err := j.bootstrap(ctx)
		if err != nil {
			cancel()
		}
		<-imported
		if err != nil {
			return err
		}
		return unimported
	})
}

// bootstrap is the TLS bootstrap, and what follows from it.
func (j *joining) bootstrap(ctx context.Context) error {
	if !j.joined {
		if err := j.firstCertificate(ctx); err != nil {
			return j.explain(ctx, err)
		}
	}
	return j.explain(ctx, j.node(ctx))
}

// explain says what to do when a wait has come to an end without its object.
func (j *joining) explain(ctx context.Context, err error) error {
	if err == nil || !errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return err
	}
	return fmt.Errorf("the node is not Ready after %s; the kubelet goes on trying: run the same muster join again to see on, look at journalctl -u kubelet, or take it back with muster leave", j.request.Timeout)
}

// watchUnit says when the kubelet ends again and again, which no request tells of.
func (j *joining) watchUnit(ctx context.Context) {
	last := ""
	for sleep(ctx, unitInterval) {
		unit, err := j.Units.Show(ctx, kubeletUnit)
		if err != nil {
			continue
		}
		if trouble := unit.Trouble(); trouble != "" && last == "" {
			j.say("kubelet", Waiting, "it %s: journalctl -u kubelet tells why", trouble)
			last = trouble
		}
	}
}

// complaint says the same trouble once.
func (j *joining) complaint(step string) func(error) {
	last := ""
	return func(err error) {
		if text := err.Error(); text != last {
			last = text
			j.say(step, Waiting, "the API server does not answer, trying again: %v", err)
		}
	}
}

// requestsBefore notes which requests there are before the kubelet is started, so that they are not taken for its own. Of one that
// runs already, those that wait are its own. The server's clock is of no help there: it is another one.
func (j *joining) requestsBefore(ctx context.Context, runs bool) {
	j.over = map[string]bool{}
	config := byToken(j.Endpoint, j.ca, j.request.Token)
	if j.joined {
		own, err := j.disk.byNode(j.Endpoint)
		if err != nil {
			return
		}
		config = own
	}
	client, err := j.Connect(config)
	if err != nil {
		return
	}
	for _, signer := range []string{pki.SignerKubeletClient, pki.SignerKubeletServing} {
		var found *certificatesv1.CertificateSigningRequestList
		err := j.wait(func() (err error) {
			found, err = client.CertificatesV1().CertificateSigningRequests().List(ctx, metav1.ListOptions{FieldSelector: "spec.signerName=" + signer})
			return err
		})
		if err != nil { // an old one may be told of, then; nothing depends on it
			continue
		}
		for i := range found.Items {
			state, _ := outcome(&found.Items[i])
			if !runs || state != review.Pending && state != review.Approved {
				j.over[found.Items[i].Name] = true
			}
		}
	}
}

// firstCertificate watches the request that the kubelet makes with the token, until the certificate is on the disk.
func (j *joining) firstCertificate(ctx context.Context) error {
	client, err := j.Connect(byToken(j.Endpoint, j.ca, j.request.Token))
	if err != nil {
		return fmt.Errorf("connecting to the API server: %w", err)
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
	state        review.State
	later        *time.Timer
}

func (t *requestTeller) stop() {
	if t.later != nil {
		t.later.Stop()
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
	case review.Pending:
		text := waitingFor(csr)
		t.later = time.AfterFunc(quiet, func() { t.say(t.step, Waiting, "%s", text) })
	case review.Approved:
		t.done(t.step, "approved: %s", why)
		t.later = time.AfterFunc(quiet, func() {
			t.say(t.step, Waiting, "%s is approved and waits to be signed: is the cluster's signer running (kube-controller-manager or muster certificate-controller)?", csr.Name)
		})
	case review.Issued:
		t.done(t.step, "issued")
		return true, nil
	case review.Denied, review.Failed:
		return true, &deniedError{name: csr.Name, why: why, signer: t.signer}
	}
	return false, nil
}

// node watches the Node from its registration until it is Ready and has a serving certificate.
func (j *joining) node(ctx context.Context) error {
	config, err := j.disk.byNode(j.Endpoint)
	if err != nil {
		return err
	}
	client, err := j.Connect(config)
	if err != nil {
		return fmt.Errorf("connecting to the API server: %w", err)
	}
	serving, stop := context.WithCancel(ctx)
	defer stop()
	var unserved error
	over := make(chan struct{})
	go func() {
		defer close(over)
		unserved = j.servingCertificate(serving, client)
	}()
	err = j.ready(ctx, client)
	if err != nil {
		stop()
		<-over
		return err
	}
	patience := time.NewTimer(servingPatience)
	defer patience.Stop()
	select {
	case <-over:
	case <-patience.C:
		stop()
		<-over
		unserved = errors.New("its request still waits")
	}
	if unserved != nil && ctx.Err() == nil {
		j.warn("serving CSR", "the node is Ready without a serving certificate, so kubectl logs and exec fail: %v", unserved)
	}
	return j.uncordon(ctx, client)
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

// ready watches the Node until it is.
func (j *joining) ready(ctx context.Context, client kubernetes.Interface) error {
	registered, last := false, ""
	each := func(node *corev1.Node) (bool, error) {
		if node.Name != j.ledger.NodeName {
			return false, nil
		}
		if !registered {
			registered = true
			j.ledger.NodeUID = string(node.UID)
			if err := j.save(j.ledger); err != nil {
				return true, err
			}
			j.done("node", "registered: %s", node.Name)
			if err := j.kubeProxy(ctx); err != nil {
				return true, err
			}
		}
		if err := j.network(node); err != nil {
			return true, err
		}
		for _, c := range node.Status.Conditions {
			if c.Type != corev1.NodeReady {
				continue
			}
			if c.Status == corev1.ConditionTrue && !c.LastHeartbeatTime.Time.Before(j.started) {
				j.done("ready", "node %s is Ready", node.Name)
				return true, nil
			}
			if text := c.Message; c.Status != corev1.ConditionTrue && text != last {
				last = text
				j.say("node", Waiting, "not Ready yet: %s: %s", c.Reason, text)
			}
		}
		return false, nil
	}
	nodes := client.CoreV1().Nodes()
	selector := fields.OneTermEqualSelector("metadata.name", j.ledger.NodeName).String()
	return follow(ctx, func(ctx context.Context) ([]*corev1.Node, string, error) {
		found, err := nodes.List(ctx, metav1.ListOptions{FieldSelector: selector})
		if err != nil {
			return nil, "", err
		}
		objects := make([]*corev1.Node, len(found.Items))
		for i := range found.Items {
			objects[i] = &found.Items[i]
		}
		return objects, found.ResourceVersion, nil
	}, func(ctx context.Context, version string) (watch.Interface, error) {
		return nodes.Watch(ctx, metav1.ListOptions{FieldSelector: selector, ResourceVersion: version})
	}, each, j.complaint("node"))
}

// kubeProxy starts it: the kubelet's credential, which it uses, is there now.
func (j *joining) kubeProxy(ctx context.Context) error {
	if j.ledger.SkipKubeProxy {
		return nil
	}
	if err := j.run(ctx, kubeProxyUnit, j.changes("/etc/kubernetes/kube-proxy/", unitDir+"/"+kubeProxyUnit)); err != nil {
		return err
	}
	j.done("kube-proxy", "started")
	return nil
}

// network writes the network's configuration once the node has a range of addresses for pods. A containerd of the join's own does
// that itself; one that was there has no template for it. Where there is any configuration, somebody else makes the network.
func (j *joining) network(node *corev1.Node) error {
	if j.Self.OwnContainerd || node.Spec.PodCIDR == "" || !j.ledger.lists(render.PathCNIConfig) || j.disk.exists(render.PathCNIConfig) {
		return nil
	}
	if others, err := j.disk.list("/etc/cni/net.d"); err != nil || len(others) > 0 {
		return err
	}
	podCIDR, err := netip.ParsePrefix(node.Spec.PodCIDR)
	if err != nil {
		return fmt.Errorf("reading the node's range of pods' addresses: %w", err)
	}
	content, err := render.CNIConfig(podCIDR)
	if err != nil {
		return err
	}
	if err := j.disk.place(artifact{path: render.PathCNIConfig, mode: 0o644, content: content}); err != nil {
		return err
	}
	j.done("network", "pods get addresses of %s", podCIDR)
	return nil
}

// uncordon takes back what a leave did that was begun and not ended.
func (j *joining) uncordon(ctx context.Context, client kubernetes.Interface) error {
	if !j.ledger.Cordoned {
		return nil
	}
	if err := cordon(ctx, client, j.ledger.NodeName, false); err != nil {
		return err
	}
	j.ledger.Cordoned = false
	j.done("node", "takes pods again")
	return nil
}

// cordon says whether a node takes new pods. A node may say that of itself.
func cordon(ctx context.Context, client kubernetes.Interface, name string, unschedulable bool) error {
	patch := fmt.Sprintf(`{"spec":{"unschedulable":%t}}`, unschedulable)
	if _, err := client.CoreV1().Nodes().Patch(ctx, name, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
		return fmt.Errorf("telling the cluster that node %s takes pods or does not: %w", name, err)
	}
	return nil
}
