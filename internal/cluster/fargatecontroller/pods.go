// SPDX-License-Identifier: Apache-2.0

package fargatecontroller

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/machine/fargate"
	"muster.dev/muster/internal/plane/readiness"
)

const (
	// refusedAgain is when a pod is looked at again that was refused, or found no room: a claim may be bound then.
	refusedAgain = 5 * time.Second
	// reasonFailed and reasonScheduled are the reasons of Events, as those of kube-scheduler.
	reasonFailed    = "FailedScheduling"
	reasonScheduled = "Scheduled"
)

// pods reconciles the pods of the fargate-scheduler, and their machines.
type pods struct {
	world

	pauses  pauses
	full    full
	leaving leaving
}

// waiting names the pods that may have been waiting for a profile.
func (r *pods) waiting(ctx context.Context, _ client.Object) []reconcile.Request {
	var all corev1.PodList
	if err := r.Pods.List(ctx, &all); err != nil {
		return nil // they are looked at again by themselves
	}
	var requests []reconcile.Request
	for i := range all.Items {
		if p := &all.Items[i]; p.Spec.NodeName == "" {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(p)})
		}
	}
	return requests
}

// Reconcile implements [reconcile.Reconciler].
func (r *pods) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	pod := &corev1.Pod{}
	err := r.Pods.Get(ctx, request.NamespacedName, pod)
	if client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, fmt.Errorf("reading pod %s: %w", request.NamespacedName, err)
	}
	there := err == nil
	own, err := r.machines(ctx, r.management, func(m *v1alpha1.Machine) bool {
		return m.Spec.Fargate.PodNamespace == request.Namespace && m.Spec.Fargate.PodName == request.Name
	})
	if err != nil {
		return reconcile.Result{}, err
	}
	var machine *v1alpha1.Machine
	var stays time.Duration
	for i := range own {
		m := &own[i]
		if there && m.Spec.Fargate.PodUID == pod.UID {
			machine = m
			continue
		}
		left, err := r.release(ctx, m)
		if err != nil {
			return reconcile.Result{}, err
		}
		stays = max(stays, left)
	}
	if !there {
		return reconcile.Result{RequeueAfter: stays}, nil
	}
	again, err := r.bring(ctx, pod, machine)
	if stays > 0 && (again == 0 || stays < again) {
		again = stays
	}
	return settle(again, err)
}

// release deletes a machine whose pod is gone, by the word of the API server and not of a cache. It returns how long the machine stays
// yet.
func (r *pods) release(ctx context.Context, m *v1alpha1.Machine) (time.Duration, error) {
	if !m.DeletionTimestamp.IsZero() {
		return 0, nil
	}
	of := m.Spec.Fargate
	pod := &corev1.Pod{}
	err := r.API.Get(ctx, types.NamespacedName{Namespace: of.PodNamespace, Name: of.PodName}, pod)
	switch {
	case err == nil && pod.UID == of.PodUID:
		return 0, nil
	case client.IgnoreNotFound(err) != nil:
		return 0, fmt.Errorf("asking whether pod %s/%s of machine %s is there: %w", of.PodNamespace, of.PodName, m.Name, err)
	}
	if left := r.leaving.left(m, r.Now()); left > 0 {
		return left, nil
	}
	if err := r.management.Delete(ctx, m, client.Preconditions{UID: &m.UID}); client.IgnoreNotFound(err) != nil {
		return 0, fmt.Errorf("deleting machine %s, whose pod is gone: %w", m.Name, err)
	}
	return 0, nil
}

// bring does what is next for a pod, and returns when to look again, or 0.
func (r *pods) bring(ctx context.Context, pod *corev1.Pod, machine *v1alpha1.Machine) (time.Duration, error) {
	switch {
	case machine != nil && fargate.TurnedAway(pod):
		return 0, r.turnAway(ctx, pod, machine)
	case pod.Status.Phase == corev1.PodRunning:
		r.pauses.end(pod)
	}
	facts := fargate.Facts{Pod: pod, Machine: machine}
	var err error
	if machine == nil && pod.Spec.NodeName == "" {
		if facts.Profiles, err = r.profiles(ctx, r.management); err != nil {
			return 0, err
		}
		if facts.Claims, err = r.claims(ctx, pod); err != nil {
			return 0, err
		}
	}
	switch step := fargate.Next(facts); step.Action {
	case fargate.Refuse:
		return refusedAgain, r.refuse(ctx, pod, step.Message)
	case fargate.Make:
		err := r.make(ctx, pod, step)
		if short, ok := errors.AsType[*shortage](err); ok {
			return cmp.Or(short.again, refusedAgain), r.refuse(ctx, pod, short.message)
		}
		return 0, err
	case fargate.Wait:
		_, err := r.unscheduled(ctx, pod, step.Message)
		return 0, err
	case fargate.Bind:
		return r.bind(ctx, pod, machine, step.Size)
	case fargate.Nothing:
	}
	return 0, nil
}

// claims are what is known of the claims of a pod.
func (r *pods) claims(ctx context.Context, pod *corev1.Pod) (map[string]fargate.Claim, error) {
	known := map[string]fargate.Claim{}
	for _, name := range fargate.ClaimNames(pod) {
		claim, volume := &corev1.PersistentVolumeClaim{}, &corev1.PersistentVolume{}
		if err := r.API.Get(ctx, client.ObjectKey{Namespace: pod.Namespace, Name: name}, claim); apierrors.IsNotFound(err) {
			continue
		} else if err != nil {
			return nil, fmt.Errorf("reading claim %s/%s: %w", pod.Namespace, name, err)
		}
		if claim.Status.Phase != corev1.ClaimBound {
			continue
		}
		if err := r.API.Get(ctx, client.ObjectKey{Name: claim.Spec.VolumeName}, volume); apierrors.IsNotFound(err) {
			continue
		} else if err != nil {
			return nil, fmt.Errorf("reading volume %s: %w", claim.Spec.VolumeName, err)
		}
		known[name] = fargate.Claim{Bound: true, Kind: fargate.KindOf(volume)}
	}
	return known, nil
}

// refuse says on a pod why it gets no machine, in its condition and by an Event if that is news.
func (r *pods) refuse(ctx context.Context, pod *corev1.Pod, message string) error {
	news, err := r.unscheduled(ctx, pod, message)
	if news {
		r.Recorder.Eventf(pod, nil, corev1.EventTypeWarning, reasonFailed, "Scheduling", "%s", readiness.Shorten(message))
	}
	return err
}

// unscheduled says on a pod why it has no Node, in the condition that kube-scheduler writes, and reports whether that is
// news.
func (r *pods) unscheduled(ctx context.Context, pod *corev1.Pod, message string) (bool, error) {
	message = readiness.Shorten(message)
	i := slices.IndexFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == corev1.PodScheduled })
	if i >= 0 && pod.Status.Conditions[i].Status == corev1.ConditionFalse && pod.Status.Conditions[i].Message == message {
		return false, nil
	}
	before := pod.DeepCopy()
	now := metav1.NewTime(r.Now().Truncate(time.Second))
	condition := corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: message, LastTransitionTime: now}
	if i >= 0 {
		if pod.Status.Conditions[i].Status == corev1.ConditionFalse {
			condition.LastTransitionTime = pod.Status.Conditions[i].LastTransitionTime
		}
		pod.Status.Conditions[i] = condition
	} else {
		pod.Status.Conditions = append(pod.Status.Conditions, condition)
	}
	if err := r.API.Status().Patch(ctx, pod, client.StrategicMergeFrom(before)); client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("writing why pod %s/%s has no Node: %w", pod.Namespace, pod.Name, err)
	}
	return true, nil
}

// bind puts a pod on its machine, with the annotation of the machine's size. It returns when to try that again, or 0.
func (r *pods) bind(ctx context.Context, pod *corev1.Pod, m *v1alpha1.Machine, size fargate.Size) (time.Duration, error) {
	binding := &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, Annotations: annotations(m, size)},
		Target:     corev1.ObjectReference{Kind: "Node", Name: m.Status.NodeName},
	}
	err := r.API.SubResource("binding").Create(ctx, pod, binding)
	switch {
	case err == nil:
		r.Recorder.Eventf(pod, nil, corev1.EventTypeNormal, reasonScheduled, "Binding", "Successfully assigned %s/%s to %s", pod.Namespace, pod.Name, m.Status.NodeName)
		return 0, nil
	case apierrors.IsNotFound(err), apierrors.IsConflict(err): // it is gone, or bound already: the cache is behind
		return 0, nil
	case refused(err):
		return refusedAgain, r.refuse(ctx, pod, fmt.Sprintf("the cluster refuses to bind the pod to its machine %s: %v", m.Status.NodeName, err))
	}
	return 0, fmt.Errorf("binding pod %s/%s to %s: %w", pod.Namespace, pod.Name, m.Status.NodeName, err)
}

// refused reports whether an API server's answer is what a policy or a webhook of the cluster says, or that a webhook does not
// answer: somebody of the cluster has to mend it.
func refused(err error) bool {
	status, ok := errors.AsType[*apierrors.StatusError](err)
	if !ok {
		return false
	}
	switch status.Status().Code {
	case http.StatusUnauthorized, http.StatusRequestTimeout, http.StatusTooManyRequests, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return false
	}
	return true
}
