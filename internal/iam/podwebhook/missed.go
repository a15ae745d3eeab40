// SPDX-License-Identifier: Apache-2.0

package podwebhook

import (
	"context"
	"errors"
	"log/slog"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"muster.dev/muster/internal/iam/podpatch"
)

const (
	// missedEvery is the pause between two searches for pods that the webhook was not asked about, and missedAgain
	// after one that failed.
	missedEvery, missedAgain = 5 * time.Minute, 5 * time.Second
	missedPage               = 500
	// skipLabel keeps the API server from asking about a pod.
	skipLabel = podpatch.Domain + "/skip-pod-identity-webhook"
	reason    = "NoAWSIdentity"
)

// missed looks for pods that should have an identity and were made without it: the webhook was away then, and its
// failure policy lets such pods in.
type missed struct {
	client  kubernetes.Interface
	mutator *mutator
	log     *slog.Logger
	told    map[types.UID]bool
}

// run looks until the context ends, for the first time at once.
func (m *missed) run(ctx context.Context) {
	for ctx.Err() == nil {
		pause := missedEvery
		if err := m.look(ctx); err != nil {
			m.log.Warn("pods without an AWS identity cannot be looked for: again in a moment", "error", err)
			pause = missedAgain
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}

func (m *missed) look(ctx context.Context) error {
	there, without := map[types.UID]bool{}, 0
	var failed error
	options := metav1.ListOptions{Limit: missedPage}
	for {
		page, err := m.client.CoreV1().Pods(metav1.NamespaceAll).List(ctx, options)
		if err != nil {
			return err
		}
		for i := range page.Items {
			pod := &page.Items[i]
			why := m.lacks(pod)
			if why == "" {
				continue
			}
			without++
			if m.told[pod.UID] {
				there[pod.UID] = true
			} else {
				m.log.Warn("a pod was made without the AWS identity of its service account", "namespace", pod.Namespace, "pod", pod.Name, "service_account", pod.Spec.ServiceAccountName)
				err := m.tell(ctx, pod, why)
				there[pod.UID] = err == nil // else in a moment again; the other pods are told of
				failed = errors.Join(failed, err)
			}
		}
		if options.Continue = page.Continue; options.Continue == "" {
			break
		}
	}
	m.told = there
	m.mutator.metrics.without.Set(float64(without))
	return failed
}

// tell says in an Event what a pod lacks. Every replica, and a webhook that was started again, gives it the same name,
// so that there is one.
func (m *missed) tell(ctx context.Context, pod *corev1.Pod, why string) error {
	now := metav1.Now()
	_, err := m.client.CoreV1().Events(pod.Namespace).Create(ctx, &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: pod.Namespace, Name: "no-aws-identity." + string(pod.UID)},
		InvolvedObject: corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, ResourceVersion: pod.ResourceVersion},
		Type:           corev1.EventTypeWarning, Reason: reason, Message: why, Source: corev1.EventSource{Component: component},
		FirstTimestamp: now, LastTimestamp: now, Count: 1,
	}, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) || apierrors.IsForbidden(err) && apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		return nil
	}
	return err
}

// lacks says what a pod lacks; nothing if it has what it should have, has ended, or was made before its service
// account's role.
func (m *missed) lacks(pod *corev1.Pod) string {
	if _, skipped := pod.Labels[skipLabel]; skipped || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed || pod.DeletionTimestamp != nil {
		return ""
	}
	namespace, name := pod.Namespace, pod.Spec.ServiceAccountName
	volume, role := m.mutator.rules.Container.Volume, "a pod identity association"
	if !m.mutator.associations.has(namespace, name) {
		e, _ := m.mutator.accounts.view().Find(namespace, name)
		if e.RoleARN == "" {
			return ""
		}
		volume, role = podpatch.TokenVolume, "the role "+e.RoleARN
	}
	for _, v := range pod.Spec.Volumes {
		if v.Name == volume {
			return ""
		}
	}
	return "The service account " + name + " has " + role + ", and this pod was made without its credentials: the pod identity webhook did not answer then, or the service account got it later. " +
		"Make the pod again, such as with kubectl rollout restart."
}
