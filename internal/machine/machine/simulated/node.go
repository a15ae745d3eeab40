// SPDX-License-Identifier: Apache-2.0

package simulated

import (
	"cmp"
	"maps"
	"runtime"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"muster.dev/muster/internal/machine/instancetype"
	"muster.dev/muster/internal/machine/machine"
	"muster.dev/muster/internal/node/render"
)

// taint keeps pods away from a node that takes none.
func taint() corev1.Taint {
	return corev1.Taint{Key: "muster.dev/simulated", Value: "true", Effect: corev1.TaintEffectNoSchedule}
}

// The kubelet's older names of corev1.LabelArchStable and corev1.LabelOSStable (k8s.io/kubelet/pkg/apis). It registers
// with both; a Node that lacks them gets them from the node lifecycle controller, for a read and a write.
const (
	labelArch = "beta.kubernetes.io/arch"
	labelOS   = "beta.kubernetes.io/os"
)

// newNode is the Node as its kubelet would register it.
func newNode(record machine.Record, told registration, version string, now metav1.Time) *corev1.Node {
	labels := map[string]string{
		corev1.LabelArchStable: runtime.GOARCH,
		corev1.LabelHostname:   record.PrivateDNSName,
		corev1.LabelOSStable:   "linux",
		labelArch:              runtime.GOARCH,
		labelOS:                "linux",
	}
	maps.Copy(labels, instance(record).Labels())
	maps.Copy(labels, told.labels)
	taints := slices.Clone(told.taints)
	if !record.SimulatePods {
		taints = append(taints, taint())
	}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: record.PrivateDNSName, Labels: labels},
		Spec:       corev1.NodeSpec{ProviderID: instance(record).ProviderID(), Taints: taints},
		Status:     newStatus(record, told, version, corev1.ConditionFalse, now),
	}
}

// instance is what a real machine would be told of itself by instance metadata.
func instance(record machine.Record) render.Instance {
	return render.Instance{
		ID: record.ID, Type: record.InstanceType(), Region: record.Region, AvailabilityZone: record.Zone, AvailabilityZoneID: record.ZoneID,
		PrivateIP: record.PrivateIP, PrivateDNSName: record.PrivateDNSName,
	}
}

// capacityOf is how large a machine is: as its instance type, or small if that is not known. Pods may have all of it.
func capacityOf(record machine.Record, told registration) corev1.ResourceList {
	capacity := corev1.ResourceList{
		corev1.ResourceCPU:              resource.MustParse("2"),
		corev1.ResourceMemory:           resource.MustParse("4Gi"),
		corev1.ResourceEphemeralStorage: *resource.NewQuantity(int64(cmp.Or(record.DiskSize, machine.DefaultDiskSize))<<30, resource.BinarySI),
		corev1.ResourcePods:             *resource.NewQuantity(int64(told.maxPods), resource.DecimalSI),
	}
	if kind, err := instancetype.OfMachine(record.Type); err == nil {
		capacity[corev1.ResourceCPU] = *resource.NewQuantity(int64(kind.VCPUs), resource.DecimalSI)
		capacity[corev1.ResourceMemory] = *resource.NewQuantity(kind.MemoryBytes(), resource.BinarySI)
	}
	return capacity
}

// newStatus is what the kubelet reports: a machine that lacks nothing.
func newStatus(record machine.Record, told registration, version string, ready corev1.ConditionStatus, now metav1.Time) corev1.NodeStatus {
	capacity := capacityOf(record, told)
	condition := func(kind corev1.NodeConditionType, status corev1.ConditionStatus, reason, message string) corev1.NodeCondition {
		return corev1.NodeCondition{Type: kind, Status: status, Reason: reason, Message: message, LastHeartbeatTime: now, LastTransitionTime: now}
	}
	readiness := condition(corev1.NodeReady, corev1.ConditionFalse, "KubeletNotReady", "simulated kubelet starts")
	if ready == corev1.ConditionTrue {
		readiness = condition(corev1.NodeReady, corev1.ConditionTrue, "KubeletReady", "simulated kubelet is posting ready status")
	}
	return corev1.NodeStatus{
		Addresses: []corev1.NodeAddress{
			{Type: corev1.NodeInternalIP, Address: record.PrivateIP.String()},
			{Type: corev1.NodeHostName, Address: record.PrivateDNSName},
		},
		Allocatable: capacity,
		Capacity:    capacity,
		Conditions: []corev1.NodeCondition{
			condition(corev1.NodeMemoryPressure, corev1.ConditionFalse, "KubeletHasSufficientMemory", "simulated"),
			condition(corev1.NodeDiskPressure, corev1.ConditionFalse, "KubeletHasNoDiskPressure", "simulated"),
			condition(corev1.NodePIDPressure, corev1.ConditionFalse, "KubeletHasSufficientPID", "simulated"),
			readiness,
		},
		NodeInfo: corev1.NodeSystemInfo{
			Architecture:            runtime.GOARCH,
			ContainerRuntimeVersion: "simulated://0",
			KubeletVersion:          version,
			MachineID:               record.ID,
			OperatingSystem:         "linux",
			OSImage:                 "simulated by muster",
			SystemUUID:              record.ID,
		},
	}
}
