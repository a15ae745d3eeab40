// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// MachinePhase is the stage of a machine's life.
type MachinePhase string

// The phases of a machine, in the order it passes through them.
const (
	MachinePending     MachinePhase = "Pending"     // nothing runs yet
	MachineJoining     MachinePhase = "Joining"     // it runs; its Node is not Ready yet
	MachineReady       MachinePhase = "Ready"       // its Node is Ready
	MachineNotReady    MachinePhase = "NotReady"    // its Node was Ready and is not any more
	MachineStopped     MachinePhase = "Stopped"     // it is stopped, or being stopped, as its spec says
	MachineTerminating MachinePhase = "Terminating" // it is being deleted

	// The phases in a warm pool are EC2 Auto Scaling's lifecycle states.
	MachineWarmPending MachinePhase = "Warmed:Pending" // it boots, or its pods leave it
	MachineWarmRunning MachinePhase = "Warmed:Running" // it runs without a kubelet
	MachineWarmStopped MachinePhase = "Warmed:Stopped" // it is stopped
)

// Warm reports whether a machine in the phase waits in the warm pool of its node group.
func (p MachinePhase) Warm() bool {
	return p == MachineWarmPending || p == MachineWarmRunning || p == MachineWarmStopped
}
