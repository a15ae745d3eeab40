// SPDX-License-Identifier: Apache-2.0

package hostjoin

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"muster.dev/muster/internal/certificates/token"
)

// revoke deletes what the cluster knows of the node. A node may not delete itself (NodeRestriction), so that takes a
// user that may.
func (l *leaving) revoke(ctx context.Context) error {
	name := l.ledger.NodeName
	admin := l.request.Admin
	if admin == nil {
		if !l.request.KeepNode && l.ledger.NodeUID != "" {
			l.warn("node", "a node may not delete itself; an administrator does: kubectl delete node %s", name)
		}
		if l.ledger.TokenID != "" {
			l.warn("token", "if it is not to serve again: kubectl -n kube-system delete secret %s --ignore-not-found", token.SecretName(l.ledger.TokenID))
		}
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	if err := l.disk.change("revoke"); err != nil {
		return err
	}
	if err := l.deleteToken(ctx, admin); err != nil {
		return err
	}
	if l.request.KeepNode {
		return nil
	}
	return l.deleteNode(ctx, admin, name)
}

// deleteToken deletes the token that the host came in by, if that is bound to this node's name. A token that is not
// bound to a name stays: other hosts may be about to join by it.
func (l *leaving) deleteToken(ctx context.Context, admin kubernetes.Interface) error {
	if l.ledger.TokenID == "" {
		return nil
	}
	secrets := admin.CoreV1().Secrets(metav1.NamespaceSystem)
	secret, err := secrets.Get(ctx, token.SecretName(l.ledger.TokenID), metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		l.done("token", "%s is gone already", l.ledger.TokenID)
		return nil
	case err != nil:
		return fmt.Errorf("reading the bootstrap token: %w", err)
	case !boundTo(secret, l.ledger.NodeName):
		l.warn("token", "%s is not bound to this node's name, so it may be others' to join by, and stays: kubectl -n kube-system delete secret %s", l.ledger.TokenID, secret.Name)
		return nil
	}
	if err := secrets.Delete(ctx, secret.Name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("deleting the bootstrap token: %w", err)
	}
	l.done("token", "%s is deleted", l.ledger.TokenID)
	return nil
}

// boundTo reports whether a token is good for one node alone. A token that is bound to a machine does not count: it may
// be another machine's, which was tried here and denied, and nothing on this host tells.
func boundTo(secret *corev1.Secret, node string) bool {
	b, err := token.Read(secret)
	if err != nil {
		return false
	}
	scopes, err := b.Scopes()
	return err == nil && slices.ContainsFunc(scopes, func(s token.Scope) bool {
		return s.Kind == token.ScopeName && s.Value == node
	})
}

// deleteNode deletes the very Node that this host was.
func (l *leaving) deleteNode(ctx context.Context, admin kubernetes.Interface, name string) error {
	uid := types.UID(l.ledger.NodeUID)
	if uid == "" { // a join that was killed may not have seen it register
		node, err := admin.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			l.done("node", "it never registered")
			return nil
		case err != nil:
			return fmt.Errorf("asking for node %s: %w", name, err)
		case l.machineID() == "" || node.Status.NodeInfo.MachineID != l.machineID():
			l.warn("node", "this host never registered; the cluster's node %s is another machine's, and stays", name)
			return nil
		}
		uid = node.UID
	}
	err := admin.CoreV1().Nodes().Delete(ctx, name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}})
	switch {
	case apierrors.IsConflict(err):
		l.warn("node", "the cluster's node %s is another one than this host was, and stays", name)
	case err != nil && !apierrors.IsNotFound(err):
		return fmt.Errorf("deleting node %s: %w", name, err)
	default:
		l.done("node", "%s is deleted", name)
	}
	return nil
}
