// SPDX-License-Identifier: Apache-2.0

package hostjoin

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/kubernetes"
)

// evictInterval is how often a pod that a disruption budget protects is asked for again, and looked whether it is gone.
const evictInterval = time.Second

// endingQuiet is how long pods may take to end before it is said which of them are waited for.
const endingQuiet = 5 * time.Second

// evictAll evicts a node's pods and waits until they are gone. Pods of daemon sets would come back at once, and static
// pods are the host's own: both stay until the kubelet is stopped.
func evictAll(ctx context.Context, client kubernetes.Interface, node string, waiting func(string)) (int, error) {
	asked := map[string]bool{}
	last, began := "", time.Now()
	for {
		left, err := evictable(ctx, client, node)
		if err != nil {
			return 0, err
		}
		if len(left) == 0 {
			return len(asked), nil
		}
		why := ""
		for i := range left {
			pod := &left[i]
			if asked[string(pod.UID)] || pod.DeletionTimestamp != nil {
				asked[string(pod.UID)] = true
				continue
			}
			switch err := evict(ctx, client, pod); {
			case apierrors.IsTooManyRequests(err):
				why = fmt.Sprintf("pod %s/%s may not go yet: %v", pod.Namespace, pod.Name, err)
			case err != nil && !apierrors.IsNotFound(err):
				return 0, fmt.Errorf("evicting pod %s/%s: %w", pod.Namespace, pod.Name, err)
			default:
				asked[string(pod.UID)] = true
			}
		}
		if why == "" && time.Since(began) >= endingQuiet {
			why = remaining(left, "has not ended yet", "have not ended yet")
		}
		if why != "" && why != last {
			waiting(why)
			last = why
		}
		if !sleep(ctx, evictInterval) {
			if errors.Is(ctx.Err(), context.DeadlineExceeded) {
				return 0, fmt.Errorf("%s: give them longer with --drain-timeout", remaining(left, "is still on the node", "are still on the node"))
			}
			return 0, ctx.Err()
		}
	}
}

// remaining says how many pods are left, what they do, and the name of the first.
func remaining(pods []corev1.Pod, does, do string) string {
	first := pods[0].Namespace + "/" + pods[0].Name
	if len(pods) == 1 {
		return fmt.Sprintf("pod %s %s", first, does)
	}
	return fmt.Sprintf("%s %s, %s among them", countPods(len(pods)), do, first)
}

func countPods(n int) string {
	if n == 1 {
		return "1 pod"
	}
	return fmt.Sprintf("%d pods", n)
}

// evictable are the pods that eviction helps against.
func evictable(ctx context.Context, client kubernetes.Interface, node string) ([]corev1.Pod, error) {
	list, err := client.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("spec.nodeName", node).String()})
	if err != nil {
		return nil, fmt.Errorf("listing the node's pods: %w", err)
	}
	var pods []corev1.Pod
	for _, pod := range list.Items {
		owner := metav1.GetControllerOf(&pod)
		_, static := pod.Annotations[corev1.MirrorPodAnnotationKey]
		over := pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
		if pod.Spec.NodeName == node && !static && !over && (owner == nil || owner.Kind != "DaemonSet") {
			pods = append(pods, pod)
		}
	}
	return pods, nil
}

func evict(ctx context.Context, client kubernetes.Interface, pod *corev1.Pod) error {
	return client.PolicyV1().Evictions(pod.Namespace).Evict(ctx, &policyv1.Eviction{
		ObjectMeta:    metav1.ObjectMeta{Name: pod.Name, Namespace: pod.Namespace},
		DeleteOptions: &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &pod.UID}},
	})
}
