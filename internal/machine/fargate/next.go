// SPDX-License-Identifier: Apache-2.0

package fargate

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"muster.dev/muster/api/v1alpha1"
)

// Action is what is next for a pod.
type Action string

// The actions.
const (
	// Nothing is of a pod that is bound, is being deleted, or is not the fargate-scheduler's.
	Nothing Action = "Nothing"
	// Refuse is of a pod that cannot have a machine as it is.
	Refuse Action = "Refuse"
	// Make is of a pod that has no machine yet.
	Make Action = "Make"
	// Wait is of a pod whose machine is not Ready.
	Wait Action = "Wait"
	// Bind is of a pod whose machine is Ready.
	Bind Action = "Bind"
)

// Facts are what is known of a pod.
type Facts struct {
	Pod *corev1.Pod
	// Profiles of the cluster.
	Profiles []v1alpha1.FargateProfile
	// Claims of the pod, by name.
	Claims map[string]Claim
	// Machine that was made for the pod; nil if there is none.
	Machine *v1alpha1.Machine
}

// Step is what is next for a pod, and why.
type Step struct {
	Action Action
	// Message says why a pod waits or is refused.
	Message string
	// Profile and Size are those of a machine to be made; Size is also that of the machine that a pod is bound to.
	Profile *v1alpha1.FargateProfile
	Size    Size
}

// Next decides what is next for a pod. A machine that is there decides more than the pod: its profile and size stay as
// they were when it was made.
func Next(f Facts) Step {
	pod := f.Pod
	if pod.Spec.SchedulerName != v1alpha1.FargateScheduler || pod.Spec.NodeName != "" || !pod.DeletionTimestamp.IsZero() {
		return Step{Action: Nothing}
	}
	if len(pod.Spec.SchedulingGates) > 0 {
		return Step{Action: Nothing} // as the scheduler of Kubernetes, which says so itself
	}
	if f.Machine != nil {
		return ofMachine(f)
	}
	profile, why := profileOf(f)
	if why == "" {
		why = Unsupported(pod, f.Claims)
	}
	if why != "" {
		return Step{Action: Refuse, Message: why}
	}
	size, err := SizeOf(RequestOf(pod))
	if err != nil {
		return Step{Action: Refuse, Message: "Pod not supported on Fargate: " + err.Error()}
	}
	return Step{Action: Make, Profile: profile, Size: size}
}

// profileOf returns the profile of a pod, or why it has none.
func profileOf(f Facts) (*v1alpha1.FargateProfile, string) {
	name := f.Pod.Labels[v1alpha1.LabelFargateProfile]
	profile, ok := Chosen(f.Profiles, f.Pod.Namespace, f.Pod.Labels)
	switch {
	case !ok && name == "":
		return nil, "Pod not supported on Fargate (M-POD-77): no Fargate profile selects it: name another scheduler, or make a profile with a selector for its namespace and labels"
	case !ok || name != "" && profile.Spec.Name != name:
		return nil, fmt.Sprintf("Pod not supported on Fargate: Fargate profile %.100q, which its label names, does not select it, or is gone: make the pod again", name)
	}
	if ready := meta.FindStatusCondition(profile.Status.Conditions, v1alpha1.ConditionReady); profile.Status.InstanceProfile == "" {
		if ready != nil {
			return nil, fmt.Sprintf("Fargate profile %s is not ready: %s", profile.Spec.Name, ready.Message)
		}
		return nil, fmt.Sprintf("Fargate profile %s is not ready yet", profile.Spec.Name)
	}
	return profile, ""
}

// ofMachine is the step of a pod with a machine.
func ofMachine(f Facts) Step {
	m := f.Machine
	ready := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionReady)
	switch {
	case !m.DeletionTimestamp.IsZero():
		return Step{Action: Wait, Message: fmt.Sprintf("its machine %s is being deleted; it gets another when that is gone", m.Name)}
	case ready != nil && ready.Status == metav1.ConditionTrue && m.Status.NodeName != "":
		return Step{Action: Bind, Size: Size{m.Spec.Fargate.MilliCPU, m.Spec.Fargate.MemoryMiB}}
	case ready != nil:
		return Step{Action: Wait, Message: fmt.Sprintf("its machine %s is not Ready: %s", m.Name, ready.Message)}
	}
	return Step{Action: Wait, Message: fmt.Sprintf("its machine %s is being launched", m.Name)}
}

// TurnedAway reports whether the kubelet of a pod's machine refused the pod, as for a sysctl that it does not allow: the pod
// has failed before any container of it was made, and will not run.
func TurnedAway(pod *corev1.Pod) bool {
	s := pod.Status
	return pod.Spec.NodeName != "" && s.Phase == corev1.PodFailed && len(s.InitContainerStatuses)+len(s.ContainerStatuses) == 0
}
