// SPDX-License-Identifier: Apache-2.0

package podstatus

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// RunTimeAnnotation on a pod is how long its containers run before they end with exit code 0, such as 30s. It has an
// effect if the pod's restartPolicy is Never or OnFailure; other pods run until they are deleted, and so do those whose
// value is not a duration.
const RunTimeAnnotation = "muster.dev/simulated-run-time"

// Node is what a kubelet knows of its node.
type Node struct {
	// Name of the Node.
	Name string
	// Address of the machine, which pods with hostNetwork have too.
	Address netip.Addr
	// PodRange is the range of the addresses of its pods; not valid while it is not known.
	PodRange netip.Prefix
	// Allocatable are the resources that the pods may request together.
	Allocatable corev1.ResourceList
}

// Action is one write of a kubelet: a new status of a pod, or, once nothing of the pod runs, its removal with a grace
// period of 0.
type Action struct {
	Pod *corev1.Pod
	// Status is the whole status to be written; nil for a removal.
	Status *corev1.PodStatus
}

// Next returns the writes that are due for the pods that are bound to a node, and when to ask again if no pod changes
// until then; the zero time if only a change calls for another look. It does not change the pods.
func Next(node Node, pods []*corev1.Pod, now time.Time) (actions []Action, again time.Time) {
	r := newRound(node, pods, now)
	for _, pod := range inOrder(pods) {
		if isOver(pod) {
			if isToGo(pod) {
				r.actions = append(r.actions, Action{Pod: pod})
			}
			continue
		}
		status := r.status(pod)
		if !equality.Semantic.DeepEqual(*status, pod.Status) {
			r.actions = append(r.actions, Action{Pod: pod, Status: status})
		}
	}
	return r.actions, r.again
}

// inOrder returns the pods that were admitted, and then the others, the oldest first, as a kubelet admits them.
func inOrder(pods []*corev1.Pod) []*corev1.Pod {
	sorted := slices.Clone(pods)
	slices.SortFunc(sorted, func(a, b *corev1.Pod) int {
		if admitted(a) != admitted(b) {
			if admitted(a) {
				return -1
			}
			return 1
		}
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), strings.Compare(string(a.UID), string(b.UID)))
	})
	return sorted
}

// admitted reports whether a kubelet has taken a pod.
func admitted(pod *corev1.Pod) bool { return pod.Status.StartTime != nil }

// isOver reports whether nothing of a pod runs any more.
func isOver(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// isToGo reports whether the API server waits for the kubelet to remove a pod. With a grace period of 0 it has been
// removed, and stays for a finalizer.
func isToGo(pod *corev1.Pod) bool {
	grace := pod.DeletionGracePeriodSeconds
	return pod.DeletionTimestamp != nil && (grace == nil || *grace > 0)
}

// round is one look at the pods of a node.
type round struct {
	node      Node
	at        time.Time
	now       metav1.Time // at, as the API tells times: in whole seconds
	requested corev1.ResourceList
	pods      int64
	taken     map[netip.Addr]bool
	actions   []Action
	again     time.Time
}

// newRound counts what the pods that were admitted have.
func newRound(node Node, pods []*corev1.Pod, now time.Time) *round {
	r := &round{node: node, at: now, now: metav1.NewTime(now.Truncate(time.Second)), requested: corev1.ResourceList{}, taken: map[netip.Addr]bool{}}
	for _, pod := range pods {
		if isOver(pod) || !admitted(pod) {
			continue
		}
		r.admit(pod)
		if address, err := netip.ParseAddr(pod.Status.PodIP); err == nil {
			r.taken[address] = true
		}
	}
	return r
}

// due has the caller ask again at a time.
func (r *round) due(at time.Time) {
	if r.again.IsZero() || at.Before(r.again) {
		r.again = at
	}
}

// status is what the kubelet says about a pod that is not over. It is equal to what it said before if that is still
// true.
func (r *round) status(pod *corev1.Pod) *corev1.PodStatus {
	if !admitted(pod) {
		if pod.DeletionTimestamp != nil { // nothing of it ever ran
			return r.failed(pod, "", "")
		}
		if reason, message := r.refuse(pod); reason != "" {
			return r.failed(pod, reason, "Pod was rejected: "+message)
		}
		r.admit(pod)
	}
	s := r.begin(pod)
	switch {
	case s.PodIP != "":
	case pod.DeletionTimestamp != nil:
		return r.failed(pod, "", "")
	default:
		r.wait(pod, s)
		return s
	}
	end, result := endOf(pod, s.StartTime.Time)
	switch {
	case end.IsZero():
	case r.at.Before(end):
		r.due(end)
	default:
		r.end(pod, s, result)
		return s
	}
	r.run(pod, s)
	return s
}

// failed is the status of a pod that never ran, as a kubelet gives it (rejectPod): nothing else is said.
func (r *round) failed(pod *corev1.Pod, reason, message string) *corev1.PodStatus {
	s := pod.Status.DeepCopy()
	s.Conditions = slices.DeleteFunc(s.Conditions, func(c corev1.PodCondition) bool { return slices.Contains(ownConditions(), c.Type) })
	s.Phase, s.Reason, s.Message, s.ObservedGeneration = corev1.PodFailed, reason, message, pod.Generation
	if s.StartTime == nil {
		s.StartTime = r.now.DeepCopy()
	}
	return s
}

// begin is the status of a pod that was admitted, with what does not depend on its containers.
func (r *round) begin(pod *corev1.Pod) *corev1.PodStatus {
	s := pod.Status.DeepCopy()
	s.ObservedGeneration = pod.Generation
	if s.StartTime == nil {
		s.StartTime = r.now.DeepCopy()
	}
	s.HostIP = r.node.Address.String()
	s.HostIPs = []corev1.HostIP{{IP: s.HostIP}}
	if s.PodIP == "" && pod.DeletionTimestamp == nil {
		if address := r.address(pod); address.IsValid() {
			s.PodIP = address.String()
			s.PodIPs = []corev1.PodIP{{IP: s.PodIP}}
		}
	}
	return s
}

// result is how the containers of a pod end, and what the pod is told to have ended for.
type result struct {
	exitCode                int32
	container               string // reason of the containers
	phase                   corev1.PodPhase
	podReason, podExplained string
}

const (
	reasonCompleted = "Completed"
	reasonError     = "Error"
	// killed is the exit code of a process that SIGKILL ended.
	killed = 137
)

// endOf is when the containers of a pod end, and how; the zero time if they do not end by themselves.
func endOf(pod *corev1.Pod, started time.Time) (time.Time, result) {
	ended := result{exitCode: killed, container: reasonError, phase: corev1.PodFailed}
	var end time.Time
	if seconds := pod.Spec.ActiveDeadlineSeconds; seconds != nil {
		end = started.Add(time.Duration(*seconds) * time.Second)
		ended.podReason, ended.podExplained = "DeadlineExceeded", "Pod was active on the node longer than the specified deadline"
	}
	if over, ok := runTime(pod); ok && (end.IsZero() || started.Add(over).Before(end)) {
		end, ended = started.Add(over), result{container: reasonCompleted, phase: corev1.PodSucceeded}
	}
	if gone := pod.DeletionTimestamp; gone != nil && (end.IsZero() || gone.Time.Before(end)) {
		end, ended = gone.Time, result{exitCode: killed, container: reasonError, phase: corev1.PodFailed}
	}
	return end, ended
}

// runTime is how long the containers of a pod run; false if that is until they are told to end.
func runTime(pod *corev1.Pod) (time.Duration, bool) {
	text, asked := pod.Annotations[RunTimeAnnotation]
	if !asked || pod.Spec.RestartPolicy != corev1.RestartPolicyNever && pod.Spec.RestartPolicy != corev1.RestartPolicyOnFailure {
		return 0, false
	}
	d, err := time.ParseDuration(text)
	return d, err == nil && d >= 0
}
