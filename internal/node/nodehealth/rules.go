// SPDX-License-Identifier: Apache-2.0

package nodehealth

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"muster.dev/muster/api/v1alpha1"
)

const (
	// Interval is between two looks.
	Interval = 30 * time.Second
	// window is how many looks are remembered: five minutes.
	window = 10
	// Heartbeat is how often conditions are written that do not change.
	Heartbeat = 5 * time.Minute
	// EventPause is how often an Event is repeated.
	EventPause = time.Hour
)

// Reason is a reason of EKS's node monitoring agent.
type Reason string

// The reasons that a machine can find out. All others of the agent are in docs/repair.md, with why they cannot be.
const (
	ContainerdRestarts  Reason = "ContainerdRepeatedRestart" // an Event on EKS; see docs/repair.md
	ForkFailed          Reason = "ForkFailedOutOfPIDs"
	LoopbackMissing     Reason = "MissingLoopbackInterface"
	InterfaceNotUp      Reason = "InterfaceNotUp"
	InterfaceNotRunning Reason = "InterfaceNotRunning"
	DiskError           Reason = "BlockDeviceIOError" // an Event on EKS; see docs/repair.md
	KubeletRestarts     Reason = "KubeletRepeatedRestart"
	KubeProxyRestarts   Reason = "Kube-ProxyRepeatedRestart"
	PIDsRunOut          Reason = "ApproachingKernelPidMax"
	ZombiesGather       Reason = "ExcessiveZombieProcesses"
)

// subsystem is what a condition is about: its name, and the reason of the condition while it is True.
type subsystem struct {
	condition     corev1.NodeConditionType
	name, healthy string
}

// subsystems are those that a machine knows of. A machine has no accelerated hardware, so it never says anything of that.
func subsystems() []subsystem {
	return []subsystem{
		{v1alpha1.NodeContainerRuntimeReady, "ContainerRuntime", "ContainerRuntimeIsReady"},
		{v1alpha1.NodeKernelReady, "Kernel", "KernelIsReady"},
		{v1alpha1.NodeNetworkingReady, "Networking", "NetworkingIsReady"},
		{v1alpha1.NodeStorageReady, "Disk", "DiskIsReady"},
	}
}

// rule is what becomes of a reason: the condition that it is of, and at how many of the remembered looks it has to be
// found.
type rule struct {
	reason    Reason
	condition corev1.NodeConditionType
	looks     int
	event     bool // an Event alone
}

// rules are in the order in which they name a condition's reason.
func rules() []rule {
	return []rule{
		{ContainerdRestarts, v1alpha1.NodeContainerRuntimeReady, 2, false},
		{ForkFailed, v1alpha1.NodeKernelReady, 2, false},
		{LoopbackMissing, v1alpha1.NodeNetworkingReady, 4, false},
		{InterfaceNotUp, v1alpha1.NodeNetworkingReady, 4, false},
		{InterfaceNotRunning, v1alpha1.NodeNetworkingReady, 4, false},
		{DiskError, v1alpha1.NodeStorageReady, 3, false},
		{KubeletRestarts, v1alpha1.NodeContainerRuntimeReady, 2, true},
		{KubeProxyRestarts, v1alpha1.NodeContainerRuntimeReady, 2, true},
		{PIDsRunOut, v1alpha1.NodeKernelReady, window, true},
		{ZombiesGather, v1alpha1.NodeKernelReady, window, true},
	}
}
