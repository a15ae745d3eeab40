// SPDX-License-Identifier: Apache-2.0

package component

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"muster.dev/muster/api/v1alpha1"
)

// apiServerSettings are the flags of how an API server ends, and those that users choose.
func apiServerSettings(c Config) map[string]string {
	wanted, values := c.Cluster.Spec.APIServer.APIServerSettings, endFlags()
	maps.Copy(values, zonalShiftFlags(c))
	maps.Copy(values, verbosity(wanted.LogLevel))
	if wanted.EventTTL != nil {
		values["event-ttl"] = wanted.EventTTL.Duration.String()
	}
	if ports := wanted.ServiceNodePortRange; ports != nil {
		values["service-node-port-range"] = fmt.Sprintf("%d-%d", ports.MinPort, ports.MaxPort)
	}
	return values
}

// controllerManagerSettings are the flags that users choose.
func controllerManagerSettings(wanted v1alpha1.ControllerManagerSettings) map[string]string {
	values := verbosity(wanted.LogLevel)
	if period := wanted.HorizontalPodAutoscalerSyncPeriod; period != nil {
		values["horizontal-pod-autoscaler-sync-period"] = period.Duration.String()
	}
	if threshold := wanted.TerminatedPodGCThreshold; threshold != nil {
		values["terminated-pod-gc-threshold"] = fmt.Sprint(*threshold)
	}
	return values
}

// printFlags is the verbosity at which upstream's programs write each of their flags into their logs when they start (PrintFlags in
// component-base, cli/flag). It is for those whose verbosity nobody chose. A control plane that runs is not started again for it.
func printFlags(level *int32) []string {
	if level != nil {
		return nil
	}
	return []string{"--v=1"}
}

func verbosity(level *int32) map[string]string {
	if level == nil {
		return map[string]string{}
	}
	return map[string]string{"v": fmt.Sprint(*level)}
}

// schedulerConfiguration is the file that sets the strategy by which the scheduler ranks nodes. The scheduler takes its
// kubeconfig and whether it serves profiles from such a file alone, if it has one.
func schedulerConfiguration(strategy v1alpha1.ScoringStrategy, kubeconfig string) string {
	var text strings.Builder
	_, _ = fmt.Fprintf(&text, `apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
clientConnection: {kubeconfig: %q}
enableProfiling: false
leaderElection: {leaderElect: false}
profiles:
- pluginConfig:
  - name: NodeResourcesFit
    args:
      scoringStrategy:
        type: %s
        resources:
`, kubeconfig, cmp.Or(strategy.Type, v1alpha1.LeastAllocated))
	resources := strategy.Resources
	if len(resources) == 0 {
		resources = v1alpha1.DefaultScoringResources()
	}
	for _, r := range resources {
		_, _ = fmt.Fprintf(&text, "        - {name: %s, weight: %d}\n", r.Name, r.Weight)
	}
	return text.String()
}

// FeatureGateFlag is the value of the flag feature-gates of all programs of a control plane; "" sets none.
func FeatureGateFlag(gates v1alpha1.FeatureGates) string {
	pairs := make([]string, 0, len(gates))
	for _, name := range slices.Sorted(maps.Keys(gates)) {
		pairs = append(pairs, fmt.Sprintf("%s=%v", name, gates[name]))
	}
	return strings.Join(pairs, ",")
}
