// SPDX-License-Identifier: Apache-2.0

package hostjoin

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// drain asks the node's pods to go elsewhere. A node may evict its own pods and say of itself that it takes no more; an
// administrator is needed only where its certificate is of no use any more.
func (l *leaving) drain(ctx context.Context) error {
	switch ever, err := l.certified(); {
	case err != nil:
		return err
	case !ever:
		l.done("drain", "the node never had a certificate, so it has no pods")
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, l.request.DrainTimeout)
	defer cancel()
	client, node, err := l.node(ctx)
	switch {
	case apierrors.IsNotFound(err):
		l.done("drain", "the cluster has no node %s", l.ledger.NodeName)
		return nil
	case err != nil && l.ledger.Drained:
		l.done("drain", "done before")
		return nil
	case err != nil:
		return err
	case l.anothers(node):
		l.warn("drain", "the cluster's node %s is another machine by now (machine ID %s), so it is left alone", node.Name, node.Status.NodeInfo.MachineID)
		return nil
	}
	l.ledger.NodeUID, l.ledger.Cordoned = string(node.UID), true
	if err := l.save(l.ledger); err != nil {
		return err
	}
	if err := l.disk.change("cordon"); err != nil {
		return err
	}
	if err := cordon(ctx, client, l.ledger.NodeName, true); err != nil {
		return err
	}
	evicted, err := evictAll(ctx, client, l.ledger.NodeName, func(why string) { l.say("drain", Waiting, "%s", why) })
	if err != nil {
		return err
	}
	l.done("drain", "%s evicted", countPods(evicted))
	return nil
}

// drained writes down that this has been seen to: the next step removes the certificate.
func (l *leaving) drained() error {
	if l.ledger.Drained {
		return nil
	}
	l.ledger.Drained = true
	return l.save(l.ledger)
}

// certified reports whether the kubelet ever had a certificate. A rotation that was killed half way may have left it
// without the link to the newest, but not without the files. The kubeconfig tells nothing: a kubelet writes it before
// it asks.
func (l *leaving) certified() (bool, error) {
	if l.ledger.NodeUID != "" || l.ledger.Drained {
		return true, nil
	}
	names, err := l.disk.list(filepath.Dir(clientCertificate))
	return slices.ContainsFunc(names, func(name string) bool {
		return strings.HasPrefix(name, "kubelet-client-") && strings.HasSuffix(name, ".pem")
	}), err
}

// node is the Node, and the client that read it: the node itself, or the administrator where that does not work.
func (l *leaving) node(ctx context.Context) (kubernetes.Interface, *corev1.Node, error) {
	client, err := l.own()
	var node *corev1.Node
	if err == nil {
		node, err = l.read(ctx, client)
	}
	switch admin := l.request.Admin; {
	case err == nil || apierrors.IsNotFound(err):
		return client, node, err
	case admin != nil:
		l.warn("drain", "by the administrator, as the node itself cannot: %v", err)
		node, err = l.read(ctx, admin)
		return admin, node, err
	}
	return nil, nil, fmt.Errorf("%w; --kubeconfig of an administrator drains the node in its place", err)
}

func (l *leaving) read(ctx context.Context, client kubernetes.Interface) (*corev1.Node, error) {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	node, err := client.CoreV1().Nodes().Get(ctx, l.ledger.NodeName, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("asking the cluster of %s for node %s: %w", l.ledger.Endpoint, l.ledger.NodeName, err)
	}
	return node, nil
}

// own is the node's own way in.
func (l *leaving) own() (kubernetes.Interface, error) {
	certificate, err := l.disk.certificateIn(clientCertificate)
	if err != nil {
		return nil, fmt.Errorf("reading the node's certificate: %w", err)
	}
	if !l.Now().Before(certificate.NotAfter) {
		return nil, fmt.Errorf("the node's certificate expired at %s", certificate.NotAfter.UTC().Format(time.RFC3339))
	}
	config, err := l.disk.byNode(l.ledger.Endpoint)
	if err != nil {
		return nil, err
	}
	return l.Connect(config)
}

// anothers reports whether a Node is not the one that this host was, but that of another machine which has joined under
// its name since. A Node that was deleted and registered by this host again has another UID, too, but this host's
// machine ID (machine-id(5)), which the kubelet tells in Node.status.
func (l *leaving) anothers(node *corev1.Node) bool {
	if string(node.UID) == l.ledger.NodeUID {
		return false
	}
	own, theirs := l.machineID(), node.Status.NodeInfo.MachineID
	return own != "" && theirs != "" && own != theirs
}

// machineID is this host's; empty if it has none.
func (l *leaving) machineID() string {
	raw, err := os.ReadFile(l.disk.at("/etc/machine-id"))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(raw))
}
