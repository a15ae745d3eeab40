// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// DrillKind is a trouble that a machine can have on purpose.
//
// +kubebuilder:validation:Enum=spot-interruption;maintenance;rebalance;stop;reboot;disk-full;no-network;kubelet;containerd
type DrillKind string

// The kinds of drills.
const (
	DrillSpotInterruption DrillKind = "spot-interruption" // announced in instance metadata; the machine is terminated when the time is up
	DrillMaintenance      DrillKind = "maintenance"       // announced in instance metadata; the machine reboots when the time is up
	DrillRebalance        DrillKind = "rebalance"         // recommended in instance metadata; nothing else happens
	DrillStop             DrillKind = "stop"              // the machine is stopped for the time
	DrillReboot           DrillKind = "reboot"            // the machine reboots once
	DrillDiskFull         DrillKind = "disk-full"         // the machine's disk is full for the time
	DrillNoNetwork        DrillKind = "no-network"        // no packet reaches the machine or leaves it for the time
	DrillKubelet          DrillKind = "kubelet"           // the machine has no kubelet for the time
	DrillContainerd       DrillKind = "containerd"        // the machine has no containerd for the time
)

// DrillKinds returns all kinds of drills, in the order in which people are told of them.
func DrillKinds() []DrillKind {
	return []DrillKind{
		DrillSpotInterruption, DrillMaintenance, DrillRebalance, DrillStop, DrillReboot, DrillDiskFull, DrillNoNetwork, DrillKubelet, DrillContainerd,
	}
}

// MachineDrill is a drill of a machine. It ends by itself.
//
// +kubebuilder:validation:XValidation:rule="timestamp(self.ends) >= timestamp(self.began)",message="ends must not be before began",fieldPath=".ends"
type MachineDrill struct {
	Kind DrillKind `json:"kind"`

	// Began tells one drill from the next.
	Began metav1.MicroTime `json:"began"`

	// Ends is when the drill is over. The end that spot-interruption and maintenance announce comes then.
	Ends metav1.Time `json:"ends"`
}

// MachineDrillStatus is how far the last drill of a machine is.
type MachineDrillStatus struct {
	Kind DrillKind `json:"kind"`

	// Began is that of the drill in the spec.
	Began metav1.MicroTime `json:"began"`

	// EndedAt is the time at which the machine was as before again. A drill that goes on does not have it.
	// +optional
	EndedAt *metav1.Time `json:"endedAt,omitempty"`
}

// Goes reports whether a drill of this kind goes on.
func (s *MachineDrillStatus) Goes(kind DrillKind) bool {
	return s != nil && s.EndedAt == nil && s.Kind == kind
}
