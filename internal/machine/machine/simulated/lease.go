// SPDX-License-Identifier: Apache-2.0

package simulated

import (
	"context"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// firstLease makes the Lease of a Node that has just registered, or renews the Lease that an earlier life left.
func (k *kubelet) firstLease(ctx context.Context, node *corev1.Node) error {
	err := k.createLease(ctx, node)
	if apierrors.IsAlreadyExists(err) {
		return k.renewLease(ctx)
	}
	return err
}

// renewLease renews the node's Lease, or makes another if it is gone.
func (k *kubelet) renewLease(ctx context.Context) error {
	if k.lease == nil {
		lease, err := k.leases.Get(ctx, k.record.PrivateDNSName, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			node, err := k.nodes.Get(ctx, k.record.PrivateDNSName, metav1.GetOptions{})
			if err != nil {
				return fmt.Errorf("getting node: %w", err)
			}
			return k.createLease(ctx, node)
		}
		if err != nil {
			return fmt.Errorf("getting lease: %w", err)
		}
		k.lease = lease
	}
	now := metav1.NowMicro()
	lease := k.lease.DeepCopy()
	lease.Spec.RenewTime = &now
	renewed, err := k.leases.Update(ctx, lease, metav1.UpdateOptions{})
	if err != nil {
		k.lease = nil // it is read again
		return fmt.Errorf("renewing lease: %w", err)
	}
	k.lease = renewed
	return nil
}

// createLease makes the node's Lease, owned by its Node so that it goes with it.
func (k *kubelet) createLease(ctx context.Context, node *corev1.Node) error {
	seconds, now := int32(leaseDuration/time.Second), metav1.NowMicro()
	lease, err := k.leases.Create(ctx, &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{
			Name:            k.record.PrivateDNSName,
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: node.Name, UID: node.UID}},
		},
		Spec: coordinationv1.LeaseSpec{HolderIdentity: &node.Name, LeaseDurationSeconds: &seconds, RenewTime: &now},
	}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("creating lease: %w", err)
	}
	k.lease = lease
	return nil
}
