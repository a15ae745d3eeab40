// SPDX-License-Identifier: Apache-2.0

package nodegroup

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// blocked is a pod that may not go yet, and why.
type blocked struct{ pod, why string }

// evictAll evicts a node's pods, and returns those that it still has to wait for and one of those that may not go yet.
// In a cluster that ends, and on its last node, they are deleted, with the time that they ask for: of what a disruption
// budget keeps up there, nothing would be left.
func (r *machines) evictAll(ctx context.Context, node *corev1.Node, nothingStays bool) (left []string, first blocked, err error) {
	ask := r.evict
	if nothingStays {
		ask = r.deletePod
	}
	list := &corev1.PodList{}
	if err := r.clusterLive.List(ctx, list, client.MatchingFields{fieldNodeName: node.Name}); err != nil {
		return nil, blocked{}, fmt.Errorf("listing the pods to evict: %w", err)
	}
	served := readyOf(node).Status == corev1.ConditionTrue
	for i := range list.Items {
		pod := &list.Items[i]
		if !evictable(pod) {
			continue
		}
		name := pod.Namespace + "/" + pod.Name
		if pod.DeletionTimestamp.IsZero() {
			why, gone, err := ask(ctx, pod)
			switch {
			case err != nil:
				return nil, blocked{}, err
			case gone || why == "" && !served:
				continue
			case why != "" && first.why == "":
				first = blocked{pod: name, why: why}
			}
		} else if !served || r.Now().After(pod.DeletionTimestamp.Add(graceMore)) {
			continue // the kubelet, which could end it, does not
		}
		left = append(left, name)
	}
	return left, first, nil
}

// evictable reports whether a pod has something to end that goes on elsewhere. Pods of daemon sets would come back at
// once, static pods are the machine's own, and those that are over need no eviction.
func evictable(pod *corev1.Pod) bool {
	owner := metav1.GetControllerOfNoCopy(pod)
	_, static := pod.Annotations[corev1.MirrorPodAnnotationKey]
	over := pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
	return !static && !over && (owner == nil || owner.Kind != "DaemonSet")
}

// evict asks for the eviction of one pod: of this very pod, not of another that has its name meanwhile. It returns why
// the pod may not go yet, as for a disruption budget, or that it is gone. Any other refusal is the pod's own too: it
// must not hold up the rest.
func (r *machines) evict(ctx context.Context, pod *corev1.Pod) (why string, gone bool, err error) {
	err = r.cluster.SubResource("eviction").Create(ctx, pod, &policyv1.Eviction{
		ObjectMeta:    metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name},
		DeleteOptions: &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &pod.UID}},
	})
	if _, budget := apierrors.StatusCause(err, policyv1.DisruptionBudgetCause); budget {
		given, unknown := granted(ctx, r.clusterLive, pod)
		if unknown != nil {
			return "", false, unknown
		}
		if given {
			return r.deletePod(ctx, pod)
		}
	}
	return refused(pod, err)
}

// granted reports whether a disruption budget has given the pod away already. An API server takes an eviction off the
// budget first and deletes the pod then (pkg/registry/core/pod/storage, EvictionREST). If it dies in between, or the
// service does, whose request ends with it, the budget counts the pod as gone for two minutes (pkg/controller/disruption,
// DeletionTimeout), and gives away neither another one nor this one again.
func granted(ctx context.Context, cluster client.Reader, pod *corev1.Pod) (bool, error) {
	list := &policyv1.PodDisruptionBudgetList{}
	if err := cluster.List(ctx, list, client.InNamespace(pod.Namespace)); err != nil {
		return false, fmt.Errorf("listing the disruption budgets of pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	return slices.ContainsFunc(list.Items, func(budget policyv1.PodDisruptionBudget) bool {
		at, has := budget.Status.DisruptedPods[pod.Name]
		return has && pod.CreationTimestamp.Before(&at) // else it was an earlier pod of that name
	}), nil
}

// deletePod deletes one pod, this very one, as evict evicts it.
func (r *machines) deletePod(ctx context.Context, pod *corev1.Pod) (why string, gone bool, err error) {
	return refused(pod, r.cluster.Delete(ctx, pod, client.Preconditions{UID: &pod.UID}))
}

// refused is what an answer says to who asked for the end of a pod.
func refused(pod *corev1.Pod, err error) (why string, gone bool, failure error) {
	answer := apierrors.APIStatus(nil) // whose reason may be empty: webhooks need not give one
	answered := errors.As(err, &answer)
	switch {
	case err == nil:
		return "", false, nil
	case apierrors.IsNotFound(err), apierrors.IsConflict(err):
		return "", true, nil
	case !answered:
		return "", false, fmt.Errorf("ending pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	if cause, ok := apierrors.StatusCause(err, policyv1.DisruptionBudgetCause); ok {
		return cause.Message, false, nil
	}
	return err.Error(), false, nil
}

// sayLeft names the pods that are waited for, and why.
func sayLeft(pods []string, first blocked) string {
	if first.why != "" {
		return fmt.Sprintf("%s, and %s may not be evicted: %s", podsLeft(len(pods)), first.pod, first.why)
	}
	return fmt.Sprintf("%s, %s among them", podsLeft(len(pods)), pods[0])
}

func podsLeft(n int) string {
	if n == 1 {
		return "1 pod is left"
	}
	return fmt.Sprintf("%d pods are left", n)
}
