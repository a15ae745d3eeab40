// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// PowerState says whether a machine is to run.
//
// +kubebuilder:validation:Enum=Running;Stopped
type PowerState string

const (
	// PowerRunning has the machine run. A machine that dies is booted again.
	PowerRunning PowerState = "Running"
	// PowerStopped has the machine shut down. It keeps its disk, addresses and identity.
	PowerStopped PowerState = "Stopped"
)

// The reasons of ConditionRunning.
const (
	ReasonRunning   = "Running"
	ReasonStopping  = "Stopping"
	ReasonStopped   = "Stopped"
	ReasonRebooting = "Rebooting"
	ReasonStarting  = "Starting"
)

// ConditionRunning on a Machine reports whether it runs; if not, whether it is stopped, being stopped or rebooted. Its last transition
// is when that was begun. A Machine that was never stopped or rebooted does not have it, and neither has one that died by itself.
const ConditionRunning = "Running"
