// SPDX-License-Identifier: Apache-2.0

package nodecerts

import (
	"context"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"muster.dev/muster/internal/certificates/bundle"
	"muster.dev/muster/internal/certificates/csrview"
	"muster.dev/muster/internal/platform/filelock"
)

// RotateConfig says what to replace, and where.
type RotateConfig struct {
	// Dir holds the kubelet's certificates, and Kubeconfig says where the API server is.
	Dir, Kubeconfig string
	Kinds           []Kind
	// Locks is where a second rotation is kept out; empty: [filelock.Dir].
	Locks string
	// Timeout of waiting until the certificates are issued.
	Timeout time.Duration
	// Restart ends the kubelet and starts it anew: it keeps its certificates in memory.
	Restart func(context.Context) error
	// Say is told what happens, in sentences.
	Say func(format string, args ...any)
	Now func() time.Time

	step func(string)
}

// Rotated is a certificate that was replaced.
type Rotated struct {
	Kind    Kind   `json:"kind"`
	Request string `json:"request"`
	File    string `json:"file"`
	Serial  string `json:"serial"`

	leaf *x509.Certificate
	pair []byte
}

// errByRole is asking for a certificate that the node does not need.
var errByRole = errors.New("this node joined by its machine's role and has no client certificate: its tokens are made anew all the time; --server replaces the certificate that it serves")

// pollInterval is how often a request is looked at.
const pollInterval = 250 * time.Millisecond

// Rotate asks for new certificates with the node's present one. Nothing is written before all are issued and checked,
// and a process that is killed at any moment leaves a kubelet that works: with the old ones, with the new ones, or with
// one of each.
func Rotate(ctx context.Context, c RotateConfig) ([]Rotated, error) {
	unlock, err := c.lock()
	if err != nil {
		return nil, err
	}
	defer unlock()
	for _, kind := range c.Kinds {
		if kind == Client && ByRole(c.Kubeconfig) {
			return nil, errByRole
		}
		if err := replaceable(c.Dir, kind); err != nil {
			return nil, err
		}
	}
	config, name, err := Connection(ctx, c.Kubeconfig, c.Dir, c.Now())
	if err != nil {
		return nil, err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making a client for the certificate's renewal: %w", err)
	}
	node, err := client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("asking %s for node %s: %w", config.Host, name, err)
	}
	waiting, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	var rotated []Rotated
	for _, kind := range c.Kinds {
		r, err := c.obtain(waiting, client, config, kind, node)
		if err != nil {
			return nil, fmt.Errorf("%s certificate: %w", kind, err)
		}
		rotated = append(rotated, r)
	}
	into := installer{dir: c.Dir, now: c.Now, step: c.step}
	if into.step == nil {
		into.step = func(string) {}
	}
	for i := range rotated {
		r := &rotated[i]
		if r.File, err = into.install(r.Kind, r.pair); err != nil {
			return rotated[:i], halfDone(rotated[:i], r.Kind, err)
		}
		c.Say("%s certificate %s is in %s", r.Kind, r.Serial, r.File)
	}
	into.step("restart")
	if err := c.Restart(ctx); err != nil {
		return rotated, fmt.Errorf("the new certificates are in place, but the kubelet goes on with the old ones until it is restarted: %w", err)
	}
	c.Say("the kubelet starts again")
	return rotated, c.uses(ctx, node, rotated)
}

// halfDone says what has been replaced by the time one cannot be: the kubelet goes on with the old ones in its memory,
// and finds the new at its next start.
func halfDone(done []Rotated, failed Kind, err error) error {
	if len(done) == 0 {
		return fmt.Errorf("%s certificate: %w; nothing was replaced", failed, err)
	}
	first := done[len(done)-1]
	return fmt.Errorf("the %s certificate was replaced (%s), but the %s certificate was not: %w; put that right, then run it again with --%s; "+
		"the kubelet uses the new one from its next start on", first.Kind, first.File, failed, err, failed)
}

// obtain asks for one certificate and waits until it is there.
func (c RotateConfig) obtain(ctx context.Context, client kubernetes.Interface, config *rest.Config, kind Kind, node *corev1.Node) (Rotated, error) {
	asked, err := newRequest(kind, node)
	if err != nil {
		return Rotated{}, err
	}
	object, err := asked.object()
	if err != nil {
		return Rotated{}, err
	}
	created, err := client.CertificatesV1().CertificateSigningRequests().Create(ctx, object, metav1.CreateOptions{})
	if err != nil {
		return Rotated{}, fmt.Errorf("creating the request: %w", err)
	}
	c.Say("%s asks for a %s certificate: request %s", node.Name, kind, created.Name)
	issued, err := c.await(ctx, client, created)
	if err != nil {
		return Rotated{}, err
	}
	trusted, err := published(ctx, client, kind)
	if err != nil {
		return Rotated{}, err
	}
	chain, err := asked.check(issued, trusted, c.Now())
	if err != nil {
		return Rotated{}, fmt.Errorf("what was issued for request %s is refused: %w", created.Name, err)
	}
	pair, err := encode(chain, asked.key)
	if err != nil {
		return Rotated{}, err
	}
	if kind == Client {
		if err := accepted(ctx, config, pair, asked.template.Subject.CommonName); err != nil {
			return Rotated{}, err
		}
	}
	return Rotated{Kind: kind, Request: created.Name, Serial: fmt.Sprintf("%x", chain[0].SerialNumber), leaf: chain[0], pair: pair}, nil
}

// await waits until a request is issued, and says each change of why it is not.
func (c RotateConfig) await(ctx context.Context, client kubernetes.Interface, created *certificatesv1.CertificateSigningRequest) ([]byte, error) {
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	said, began := "", c.Now()
	var last error
	for {
		now, err := client.CertificatesV1().CertificateSigningRequests().Get(ctx, created.Name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			return nil, fmt.Errorf("request %s was deleted", created.Name)
		case err != nil && ctx.Err() == nil:
			last = err // the API server may be down for a moment
		case err != nil:
		case now.UID != created.UID:
			return nil, fmt.Errorf("request %s was replaced by another", created.Name)
		default:
			last = nil
			r := csrview.Of(now, nil)
			switch r.State {
			case csrview.Issued:
				return now.Status.Certificate, nil
			case csrview.Denied, csrview.Failed:
				return nil, fmt.Errorf("request %s is %s: %s", now.Name, r.State, or(r.Why, "nobody said why"))
			default: // it is waited for
			}
			if text := waitsFor(r); text != said && c.Now().Sub(began) > time.Second {
				said = text
				c.Say("request %s waits: %s", now.Name, text)
			}
		}
		select {
		case <-ctx.Done():
			if last != nil {
				return nil, fmt.Errorf("request %s: %w", created.Name, last)
			}
			return nil, fmt.Errorf("request %s is not issued after %s (%s); nothing was changed", created.Name, c.Timeout, or(said, "it was just created"))
		case <-ticker.C:
		}
	}
}

// waitsFor says why a request has no certificate yet. The reason of a rule's wait stands in an Event, which nodes may
// not read.
func waitsFor(r csrview.Review) string {
	switch {
	case r.State == csrview.Approved:
		return "it is approved, and not signed yet"
	case r.Why != "":
		return r.Why
	}
	return "nobody has decided; `muster csr explain " + r.Name + "` tells an administrator what it waits for"
}

// published are the authorities of kubelets' certificates, if the cluster publishes them to nodes.
func published(ctx context.Context, client kubernetes.Interface, kind Kind) ([]*x509.Certificate, error) {
	name := bundle.Client
	if kind == Serving {
		name = bundle.Serving
	}
	m, err := client.CoreV1().ConfigMaps(metav1.NamespaceSystem).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("asking who signs kubelets' certificates: %w", err)
	}
	authorities, err := bundle.Parse([]byte(m.Data[bundle.Key]))
	if err != nil {
		return nil, fmt.Errorf("ConfigMap %s: %w", name, err)
	}
	return authorities, nil
}

// lock keeps a second rotation of the same certificates out. It is not in their directory, which others may read, and
// where nothing is but what upstream's kubelet leaves.
func (c RotateConfig) lock() (unlock func(), err error) {
	dir, err := filepath.EvalSymlinks(c.Dir)
	if err == nil {
		dir, err = filepath.Abs(dir)
	}
	if err != nil {
		return nil, fmt.Errorf("opening the kubelet's certificates: %w", err)
	}
	locks := c.Locks
	if locks == "" {
		locks = filelock.Dir
	}
	sum := sha256.Sum256([]byte(dir))
	release, err := filelock.Take(locks, "certificates-"+hex.EncodeToString(sum[:8]))
	if errors.Is(err, filelock.ErrTaken) {
		return nil, fmt.Errorf("certificates in %s are being replaced by another muster", c.Dir)
	}
	return release, err
}
