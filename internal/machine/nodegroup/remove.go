// SPDX-License-Identifier: Apache-2.0

package nodegroup

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/machine/machine"
	"muster.dev/muster/internal/machine/terminated"
	"muster.dev/muster/internal/plane/readiness"
)

// remove waits for the pods of a machine that is being deleted, and then ends it. It returns when to look again, if at
// all.
func (r *machines) remove(ctx context.Context, m *v1alpha1.Machine) (time.Duration, error) {
	if !held(m, v1alpha1.FinalizerMachine) {
		return 0, nil
	}
	before := m.DeepCopy()
	if provider, err := r.Providers.Find(m.Spec.Provider); err == nil {
		group, err := r.group(ctx, m)
		if err != nil {
			return 0, err
		}
		wait, err := r.drain(ctx, m, provider, r.drainTime(group), fateOf(m, group))
		if err != nil {
			r.judge(m, v1alpha1.MachineTerminating, "DrainFailed", err.Error())
		}
		if written := r.writeStatus(ctx, before, m); wait > 0 || err != nil || written != nil {
			return wait, errors.Join(err, written)
		}
	}
	return 0, r.end(ctx, m)
}

// end clears up after a machine, in the order that the package's comment tells, and lets it go.
func (r *machines) end(ctx context.Context, m *v1alpha1.Machine) error {
	before := m.DeepCopy()
	r.judge(m, v1alpha1.MachineTerminating, readiness.ReasonTerminating, "the machine is being deleted")
	provider, unknown := r.Providers.Find(m.Spec.Provider)
	if unknown != nil {
		r.judge(m, v1alpha1.MachineTerminating, "NoProvider", unknown.Error()+", so it cannot end this one")
		return r.writeStatus(ctx, before, m)
	}
	err := r.cutOff(ctx, m, provider)
	var pods []corev1.Pod
	if err == nil {
		pods, err = r.podsOf(ctx, m)
	}
	if err != nil {
		r.judge(m, v1alpha1.MachineTerminating, "TerminationFailed", err.Error())
	}
	if written := r.writeStatus(ctx, before, m); written != nil || err != nil {
		return errors.Join(err, written)
	}
	if err := provider.Terminate(ctx, m.Name); err != nil {
		return r.stuck(ctx, m, fmt.Errorf("terminating the instance: %w", err))
	}
	if err := r.deletePods(ctx, pods); err != nil {
		return r.stuck(ctx, m, err)
	}
	if err := r.mountsNothing(ctx, m); err != nil {
		return r.stuck(ctx, m, err)
	}
	// Up to the end the instance may have gone on joining.
	if err := r.forgetNode(ctx, m); err != nil {
		return r.stuck(ctx, m, err)
	}
	if err := r.deletePending(ctx, func(csr *certificatesv1.CertificateSigningRequest) bool { return madeWithTokenOf(csr, m) }); err != nil {
		return r.stuck(ctx, m, err)
	}
	if err := terminated.Remember(ctx, r.management, m, r.Now()); err != nil {
		return r.stuck(ctx, m, err)
	}
	r.forget(m.Name)
	before = m.DeepCopy()
	letGo(m, v1alpha1.FinalizerMachine)
	if err := r.management.Patch(ctx, m, lockedPatch(before)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("removing the finalizer: %w", err)
	}
	r.memory.forget(m.Name)
	return nil
}

// cutOff takes from a machine all that lets it take part in the cluster, while its name and addresses are still its
// own.
func (r *machines) cutOff(ctx context.Context, m *v1alpha1.Machine, provider machine.Provider) error {
	if m.Status.NodeName == "" { // the service may have died between launching it and writing that down
		instance, err := provider.Get(ctx, m.Name)
		switch {
		case err == nil:
			adopt(m, instance)
		case !errors.Is(err, machine.ErrNotFound) && !errors.Is(err, machine.ErrDamaged): // nobody will know the name of a damaged record's machine
			return fmt.Errorf("asking the provider for the instance: %w", err)
		}
	}
	err := r.cluster.DeleteAllOf(ctx, &corev1.Secret{}, client.InNamespace(metav1.NamespaceSystem), client.MatchingLabels{v1alpha1.LabelMachine: m.Name})
	if err != nil {
		return fmt.Errorf("removing the bootstrap token: %w", err)
	}
	m.Status.BootstrapTokenID = ""
	if err := r.deletePending(ctx, func(csr *certificatesv1.CertificateSigningRequest) bool { return madeBy(csr, m) }); err != nil {
		return err
	}
	if err := r.unroute(ctx, m); err != nil {
		return err
	}
	return r.leaveNode(ctx, m)
}

// stuck writes down why a machine cannot go, and passes it on.
func (r *machines) stuck(ctx context.Context, m *v1alpha1.Machine, err error) error {
	before := m.DeepCopy()
	r.judge(m, v1alpha1.MachineTerminating, "TerminationFailed", err.Error())
	return errors.Join(err, r.writeStatus(ctx, before, m))
}

// forgetNode deletes the machine's Node.
func (r *machines) forgetNode(ctx context.Context, m *v1alpha1.Machine) error {
	node, err := r.nodeNow(ctx, m)
	if err != nil || node == nil {
		return err
	}
	return r.deleteNode(ctx, node)
}

// nodeNow is the machine's Node, or nil. It asks the API server, not the cache, which may not have seen the Node yet.
func (r *machines) nodeNow(ctx context.Context, m *v1alpha1.Machine) (*corev1.Node, error) {
	if m.Status.NodeName == "" {
		return nil, nil //nolint:nilnil // a missing Node is not an error
	}
	node := &corev1.Node{}
	if err := r.clusterLive.Get(ctx, client.ObjectKey{Name: m.Status.NodeName}, node); apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // a missing Node is not an error
	} else if err != nil {
		return nil, fmt.Errorf("reading the Node: %w", err)
	}
	if id := machineOf(node); id != "" && id != m.Name {
		return nil, nil //nolint:nilnil // the name is another machine's by now
	}
	return node, nil
}

// deletePending deletes the CSRs that are the machine's and have no answer yet.
func (r *machines) deletePending(ctx context.Context, of func(*certificatesv1.CertificateSigningRequest) bool) error {
	list := &certificatesv1.CertificateSigningRequestList{}
	if err := r.cluster.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil { // there are two for each node, for an hour
		return fmt.Errorf("listing certificate signing requests: %w", err)
	}
	for i := range list.Items {
		csr := &list.Items[i]
		if !of(csr) || answered(csr) {
			continue
		}
		if err := r.cluster.Delete(ctx, csr, client.Preconditions{UID: &csr.UID}); err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			return fmt.Errorf("deleting certificate signing request %s: %w", csr.Name, err)
		}
	}
	return nil
}

func answered(csr *certificatesv1.CertificateSigningRequest) bool {
	return len(csr.Status.Certificate) > 0 || slices.ContainsFunc(csr.Status.Conditions, func(c certificatesv1.CertificateSigningRequestCondition) bool {
		return c.Type == certificatesv1.CertificateDenied || c.Type == certificatesv1.CertificateFailed
	})
}

func madeBy(csr *certificatesv1.CertificateSigningRequest, m *v1alpha1.Machine) bool {
	return madeWithTokenOf(csr, m) || (m.Status.NodeName != "" && csr.Spec.Username == "system:node:"+m.Status.NodeName)
}

func madeWithTokenOf(csr *certificatesv1.CertificateSigningRequest, m *v1alpha1.Machine) bool {
	return strings.HasPrefix(csr.Spec.Username, "system:bootstrap:") && slices.Contains(csr.Spec.Groups, v1alpha1.BootstrapGroupPrefix+m.Name)
}
