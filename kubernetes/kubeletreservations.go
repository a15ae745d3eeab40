// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	kubeletconfig "k8s.io/kubernetes/pkg/kubelet/apis/config"
	"k8s.io/kubernetes/pkg/kubelet/cm"
	"k8s.io/kubernetes/pkg/kubelet/eviction"
	evictionapi "k8s.io/kubernetes/pkg/kubelet/eviction/api"
	"k8s.io/kubernetes/pkg/kubelet/stats/pidlimit"
)

// reservations are what a kubelet refuses once it knows what the machine has: more reserved than there is, and amounts
// and thresholds that it parses no sooner (cmd/kubelet/app/server.go, run;
// pkg/kubelet/cm/node_container_manager_linux.go, validateNodeAllocatable).
func (c checked) reservations(config *kubeletconfig.KubeletConfiguration) (found []string) {
	refuse := func(what string, err error) {
		if err != nil {
			found = append(found, fmt.Sprintf("%s: %v", what, err))
		}
	}
	_, err := eviction.ParseThresholdConfig(config.EnforceNodeAllocatable, config.EvictionHard, config.EvictionSoft, config.EvictionSoftGracePeriod, config.EvictionMinimumReclaim)
	refuse("eviction", err)
	_, err = cm.ParseQOSReserved(config.QOSReserved)
	refuse("qosReserved", err)
	reserved := corev1.ResourceList{}
	for _, of := range []struct {
		field   string
		amounts map[string]string
	}{{"kubeReserved", config.KubeReserved}, {"systemReserved", config.SystemReserved}} {
		for _, name := range slices.Sorted(maps.Keys(of.amounts)) {
			if name == "cpu" && config.ReservedSystemCPUs != "" {
				continue // they replace it
			}
			amount, err := parseReservation(name, of.amounts[name])
			refuse(of.field, err)
			sum := reserved[corev1.ResourceName(name)]
			sum.Add(amount)
			reserved[corev1.ResourceName(name)] = sum
		}
	}
	if len(found) > 0 {
		return found
	}
	return c.beyond(config, reserved)
}

func parseReservation(name, amount string) (resource.Quantity, error) {
	switch corev1.ResourceName(name) {
	case corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage, pidlimit.PIDs:
	default:
		return resource.Quantity{}, fmt.Errorf("cannot reserve %q resource", name)
	}
	quantity, err := resource.ParseQuantity(amount)
	switch {
	case err != nil:
		return resource.Quantity{}, fmt.Errorf("failed to parse quantity %q for %q resource: %w", amount, name, err)
	case quantity.Sign() < 0:
		return resource.Quantity{}, fmt.Errorf("resource quantity for %q cannot be negative: %s", name, amount)
	}
	return quantity, nil
}

// beyond are the resources of which more is kept from pods than the machine has: reserved, and below the thresholds of
// hard eviction.
func (c checked) beyond(config *kubeletconfig.KubeletConfiguration, reserved corev1.ResourceList) (found []string) {
	capacity := corev1.ResourceList{}
	for name, quantity := range map[corev1.ResourceName]*resource.Quantity{
		corev1.ResourceCPU:              resource.NewQuantity(c.CPUs, resource.DecimalSI),
		corev1.ResourceMemory:           resource.NewQuantity(c.MemoryBytes, resource.BinarySI),
		corev1.ResourceEphemeralStorage: resource.NewQuantity(c.DiskBytes, resource.BinarySI),
	} {
		if !quantity.IsZero() {
			capacity[name] = *quantity
		}
	}
	thresholds, err := eviction.ParseThresholdConfig(nil, config.EvictionHard, nil, nil, nil)
	if err != nil {
		return []string{err.Error()}
	}
	for _, threshold := range thresholds {
		name, ok := map[evictionapi.Signal]corev1.ResourceName{
			evictionapi.SignalMemoryAvailable: corev1.ResourceMemory, evictionapi.SignalNodeFsAvailable: corev1.ResourceEphemeralStorage,
		}[threshold.Signal]
		if all, known := capacity[name]; ok && known && threshold.Operator == evictionapi.OpLessThan {
			sum := reserved[name]
			sum.Add(*evictionapi.GetThresholdQuantity(threshold.Value, &all))
			reserved[name] = sum
		}
	}
	for _, name := range slices.Sorted(maps.Keys(reserved)) {
		all, known := capacity[name]
		if keeps := reserved[name]; known && keeps.Cmp(all) > 0 {
			found = append(found, fmt.Sprintf("resource %q has a reservation of %s but capacity of %s: kubeReserved, systemReserved and evictionHard must leave pods something", name, keeps.String(), all.String()))
		}
	}
	return found
}
