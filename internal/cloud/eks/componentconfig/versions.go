// SPDX-License-Identifier: Apache-2.0

package componentconfig

import "muster.dev/muster/api/v1alpha1"

// The defaults and ranges of settings, as DescribeClusterVersions tells them.
type (
	// Version has those of a minor.
	Version struct {
		KubeAPIServerConfig         versionAPIServer
		KubeControllerManagerConfig versionControllerManager
		KubeSchedulerConfig         versionScheduler
	}
	versionAPIServer struct {
		EventTTL             parameter[string, bounds[string]]
		ServiceNodePortRange parameter[*PortRange, portBounds]
	}
	versionControllerManager struct {
		HorizontalPodAutoscalerControllerConfig struct {
			HorizontalPodAutoscalerSyncPeriod parameter[string, bounds[string]]
		}
		PodGCControllerConfig struct {
			TerminatedPodGCThreshold parameter[*int32, bounds[*int32]]
		}
	}
	versionScheduler struct {
		NodeResourcesFit struct {
			ScoringStrategy parameter[*Strategy, strategyBounds]
		}
	}
	parameter[Value, Constraints any] struct {
		DefaultValue Value
		Constraints  Constraints
	}
	bounds[Value any] struct{ Min, Max Value }
	portBounds        struct{ MinPort, MaxPort bounds[*int32] }
	allowed           struct{ AllowedValues []string }
	strategyBounds    struct {
		ScoringStrategy allowed
		Resources       struct {
			Name   allowed
			Weight bounds[*int32]
		}
	}
)

// OfVersions are the defaults and ranges of every minor.
func OfVersions() *Version {
	v, is := &Version{}, Show(v1alpha1.ClusterSpec{})
	ports := bounds[*int32]{new(int32(v1alpha1.MinNodePort)), new(int32(v1alpha1.MaxNodePort))}
	v.KubeAPIServerConfig = versionAPIServer{
		EventTTL:             parameter[string, bounds[string]]{is.KubeAPIServerConfig.EventTTL, bounds[string]{v1alpha1.MinEventTTL, v1alpha1.MaxEventTTL}},
		ServiceNodePortRange: parameter[*PortRange, portBounds]{is.KubeAPIServerConfig.ServiceNodePortRange, portBounds{ports, ports}},
	}
	manager := &v.KubeControllerManagerConfig
	manager.HorizontalPodAutoscalerControllerConfig.HorizontalPodAutoscalerSyncPeriod = parameter[string, bounds[string]]{
		is.KubeControllerManagerConfig.HorizontalPodAutoscalerControllerConfig.HorizontalPodAutoscalerSyncPeriod, bounds[string]{v1alpha1.MinAutoscalerPeriod, v1alpha1.MaxAutoscalerPeriod},
	}
	manager.PodGCControllerConfig.TerminatedPodGCThreshold = parameter[*int32, bounds[*int32]]{
		is.KubeControllerManagerConfig.PodGCControllerConfig.TerminatedPodGCThreshold, bounds[*int32]{new(v1alpha1.MinTerminatedPods), new(v1alpha1.MaxTerminatedPods)},
	}
	strategy := &v.KubeSchedulerConfig.NodeResourcesFit.ScoringStrategy
	strategy.DefaultValue = showStrategy(v1alpha1.ScoringStrategy{Resources: v1alpha1.DefaultScoringResources()})
	for _, kind := range v1alpha1.ScoringStrategyTypes() {
		strategy.Constraints.ScoringStrategy.AllowedValues = append(strategy.Constraints.ScoringStrategy.AllowedValues, string(kind))
	}
	strategy.Constraints.Resources.Name.AllowedValues = v1alpha1.ScoringResources()
	strategy.Constraints.Resources.Weight = bounds[*int32]{new(v1alpha1.MinResourceWeight), new(v1alpha1.MaxResourceWeight)}
	return v
}
