// SPDX-License-Identifier: Apache-2.0

package simulated

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	mathrand "math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	certificatesclient "k8s.io/client-go/kubernetes/typed/certificates/v1"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
	coreclient "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"

	"muster.dev/muster/internal/machine/machine"
	"muster.dev/muster/internal/node/nodeconfig"
)

// The kubelet's own intervals (KubeletConfiguration, nodeLeaseDurationSeconds and nodeStatusReportFrequency).
const (
	leaseDuration  = 40 * time.Second
	leaseInterval  = leaseDuration / 4
	statusInterval = 5 * time.Minute
	leaseRetry     = time.Second
	rotationRetry  = 30 * time.Second
	firstPause     = 200 * time.Millisecond
	lastPause      = 10 * time.Second
)

// kubelet is one simulated node. One goroutine runs it.
type kubelet struct {
	simulator *Simulator
	record    machine.Record
	dir       string
	log       *slog.Logger

	client, serving *credential
	// presented is the certificate for new connections; the transport asks for it from other goroutines.
	presented atomic.Pointer[tls.Certificate]
	transport *http.Transport

	config       nodeconfig.Spec
	registration registration
	version      string
	certificates certificatesclient.CertificateSigningRequestInterface
	core         coreclient.CoreV1Interface
	nodes        coreclient.NodeInterface
	leases       coordinationclient.LeaseInterface
	lease        *coordinationv1.Lease
}

// runNode is the life of one node. Whatever fails is tried again, from where it failed. A node that has lost its
// certificate starts over, and joins if its user data has a token that is still good.
func (s *Simulator) runNode(ctx context.Context, record machine.Record) {
	dir := filepath.Join(s.config.State.Machine(record.ID), "kubelet")
	k := &kubelet{
		simulator: s, record: record, dir: dir, log: s.config.Log.With("machine", record.ID, "node", record.PrivateDNSName),
		client: clientCredential(dir), serving: servingCredential(dir),
	}
	for k.persist(ctx, "joining", k.join) {
		err := k.serve(ctx)
		if ctx.Err() != nil {
			break
		}
		k.log.Warn("simulated kubelet joins anew", "error", err)
	}
	if k.transport != nil {
		k.transport.CloseIdleConnections()
	}
}

// serve is the life of a node that has joined: it runs pods, if it takes any, and renews what it has.
func (k *kubelet) serve(ctx context.Context) error {
	if k.record.SimulatePods {
		defer k.simulator.pods.attach(&podRunner{record: k.record, core: k.core, log: k.log, allocatable: capacityOf(k.record, k.registration)})()
	}
	if !k.persist(ctx, "asking for serving certificate", k.ensureServing) {
		return ctx.Err()
	}
	return k.live(ctx)
}

// persist runs a step until it succeeds; false means that the context has ended first.
func (k *kubelet) persist(ctx context.Context, name string, run func(context.Context) error) bool {
	pause := firstPause
	for ctx.Err() == nil {
		err := run(ctx)
		if err == nil {
			return true
		}
		if ctx.Err() != nil {
			break
		}
		k.log.Warn("simulated kubelet has to try again", "doing", name, "error", err)
		if !sleep(ctx, jitter(pause)) {
			break
		}
		pause = min(2*pause, lastPause)
	}
	return false
}

// jitter spreads a duration by a tenth either way, so that nodes that started together do not stay together.
func jitter(d time.Duration) time.Duration {
	return time.Duration(float64(d) * (0.9 + 0.2*mathrand.Float64())) //nolint:gosec // G404: jitter is no secret
}

// join gets a certificate, registers the Node and makes it Ready.
func (k *kubelet) join(ctx context.Context) error {
	select {
	case k.simulator.joining <- struct{}{}:
		defer func() { <-k.simulator.joining }()
	case <-ctx.Done():
		return ctx.Err()
	}
	// Read again at each attempt: an expired token is replaced there.
	if err := k.configure(); err != nil {
		return err
	}
	// Not with its parents: those of a machine that is just being removed must not come back.
	if err := os.Mkdir(k.dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("making directory of the simulated kubelet: %w", err)
	}
	if !k.client.load(time.Now()) {
		if err := k.bootstrap(ctx); err != nil {
			return err
		}
	}
	if err := k.connect(); err != nil {
		return err
	}
	node, err := k.register(ctx)
	if err != nil {
		return err
	}
	return k.firstLease(ctx, node)
}

// bootstrap asks for the first certificate, with the machine's token.
func (k *kubelet) bootstrap(ctx context.Context) error {
	if k.config.Join.Token == "" {
		return errors.New("no certificate and no bootstrap token to join with")
	}
	config := k.simulator.restConfig()
	config.BearerToken = k.config.Join.Token
	transport, err := rest.HTTPWrappersForConfig(config, k.simulator.anonymous)
	if err != nil {
		return fmt.Errorf("making a client with the bootstrap token: %w", err)
	}
	client, err := certificatesclient.NewForConfigAndClient(config, &http.Client{Transport: transport})
	if err != nil {
		return fmt.Errorf("making a client of certificates with the bootstrap token: %w", err)
	}
	return k.client.obtain(ctx, client.CertificateSigningRequests(), k.record)
}

// restConfig has no limits of its own: each node makes few requests, and the API server says when they are too many
// (429), which client-go heeds.
func (s *Simulator) restConfig() *rest.Config {
	return &rest.Config{
		Host: s.config.APIServer, QPS: -1, UserAgent: "muster-simulator",
		ContentConfig: rest.ContentConfig{ContentType: "application/vnd.kubernetes.protobuf", AcceptContentTypes: "application/vnd.kubernetes.protobuf,application/json"},
	}
}

// connect makes the clients that use the node's certificate.
func (k *kubelet) connect() error {
	k.presented.Store(k.client.current)
	if k.transport != nil {
		k.transport.CloseIdleConnections()
		return nil
	}
	transport := k.simulator.transport(func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return k.presented.Load(), nil })
	config, client := k.simulator.restConfig(), &http.Client{Transport: transport}
	certificates, err := certificatesclient.NewForConfigAndClient(config, client)
	if err != nil {
		return fmt.Errorf("making a client of certificates: %w", err)
	}
	core, err := coreclient.NewForConfigAndClient(config, client)
	if err != nil {
		return fmt.Errorf("making a client of nodes: %w", err)
	}
	coordination, err := coordinationclient.NewForConfigAndClient(config, client)
	if err != nil {
		return fmt.Errorf("making a client of leases: %w", err)
	}
	k.transport = transport
	k.certificates = certificates.CertificateSigningRequests()
	k.core, k.nodes = core, core.Nodes()
	k.leases = coordination.Leases(corev1.NamespaceNodeLease)
	return nil
}

// register creates the Node, reports it Ready, and returns it.
func (k *kubelet) register(ctx context.Context) (*corev1.Node, error) {
	if k.version == "" {
		version, err := k.simulator.serverVersion(ctx, k.transport)
		if err != nil {
			return nil, err
		}
		k.version = version
	}
	node, err := k.nodes.Create(ctx, newNode(k.record, k.registration, k.version, metav1.Now()), metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		node, err = k.nodes.Get(ctx, k.record.PrivateDNSName, metav1.GetOptions{})
	}
	if err != nil {
		return nil, fmt.Errorf("registering node: %w", err)
	}
	if want := instance(k.record).ProviderID(); node.Spec.ProviderID != want {
		return nil, fmt.Errorf("registering node: the Node of that name belongs to %s", node.Spec.ProviderID)
	}
	return node, k.report(ctx, node)
}

// report writes the Node's status: Ready. As the kubelet does it patches, since others write to the Node at the same
// time.
func (k *kubelet) report(ctx context.Context, node *corev1.Node) error {
	status := newStatus(k.record, k.registration, k.version, corev1.ConditionTrue, metav1.Now())
	for i, condition := range status.Conditions {
		for _, old := range node.Status.Conditions {
			if old.Type == condition.Type && old.Status == condition.Status {
				status.Conditions[i].LastTransitionTime = old.LastTransitionTime
			}
		}
	}
	patch, err := json.Marshal(map[string]any{"status": status})
	if err != nil {
		return fmt.Errorf("writing status: %w", err)
	}
	if _, err := k.nodes.PatchStatus(ctx, node.Name, patch); err != nil {
		return fmt.Errorf("reporting status: %w", err)
	}
	return nil
}

func (k *kubelet) ensureServing(ctx context.Context) error {
	if k.serving.load(time.Now()) {
		return nil
	}
	return k.serving.obtain(ctx, k.certificates, k.record)
}

// errExpired says that the node has lost its certificate, and needs its token again.
var errExpired = errors.New("the client certificate has expired")

// rotation is how an attempt to renew a certificate ended.
type rotation struct {
	credential  *credential
	certificate *tls.Certificate
	err         error
}

// live does what is due, again and again, until the context ends or the client certificate has expired.
func (k *kubelet) live(ctx context.Context) error {
	// A renewal under way ends with the node: it must not write to a disk that is being removed.
	var renewals sync.WaitGroup
	defer renewals.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	nextLease, nextStatus := time.Now().Add(jitter(leaseInterval)), time.Now().Add(jitter(statusInterval))
	rotations := make(chan rotation, 2) // one of each certificate, so that nobody waits for a node that has gone
	for {
		due := earliest(nextLease, nextStatus, k.client.current.Leaf.NotAfter)
		for _, c := range []*credential{k.client, k.serving} {
			if !c.rotating {
				due = earliest(due, c.rotateAt)
			}
		}
		timer := time.NewTimer(time.Until(due))
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case r := <-rotations:
			timer.Stop()
			if err := k.rotated(r); err != nil {
				return err
			}
			continue
		case <-timer.C:
		}
		now := time.Now()
		if !now.Before(k.client.current.Leaf.NotAfter) {
			return errExpired
		}
		for _, c := range []*credential{k.client, k.serving} {
			if !c.rotating && !now.Before(c.rotateAt) {
				c.rotating = true
				renewals.Go(func() {
					certificate, err := c.request(ctx, k.certificates, k.record)
					rotations <- rotation{c, certificate, err}
				})
			}
		}
		if !now.Before(nextLease) {
			if err := k.renewLease(ctx); err != nil {
				k.log.Warn("cannot renew lease", "error", err)
				nextLease = time.Now().Add(jitter(leaseRetry))
			} else {
				nextLease = time.Now().Add(jitter(leaseInterval))
			}
		}
		if !now.Before(nextStatus) {
			if err := k.refresh(ctx); err != nil {
				k.log.Warn("cannot report status", "error", err)
			}
			nextStatus = time.Now().Add(jitter(statusInterval))
		}
	}
}

func earliest(first time.Time, others ...time.Time) time.Time {
	for _, t := range others {
		if t.Before(first) {
			first = t
		}
	}
	return first
}

// rotated takes a renewed certificate into use. After a failure it is tried again a little later.
func (k *kubelet) rotated(r rotation) error {
	r.credential.rotating = false
	if r.err != nil {
		k.log.Warn("cannot renew certificate", "signer", r.credential.signer, "error", r.err)
		r.credential.rotateAt = time.Now().Add(jitter(rotationRetry))
		return nil //nolint:nilerr // it tries again
	}
	r.credential.use(r.certificate, time.Now())
	k.log.Info("certificate renewed", "signer", r.credential.signer)
	if r.credential == k.client {
		return k.connect()
	}
	return nil
}

// refresh reports the status of the Node as it is now.
func (k *kubelet) refresh(ctx context.Context) error {
	node, err := k.nodes.Get(ctx, k.record.PrivateDNSName, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("getting node: %w", err)
	}
	return k.report(ctx, node)
}
