// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"muster.dev/muster/internal/plane/component"
)

// TestSettings changes every setting of a control plane while it is asked and watched, by kubectl and by an Update:
// nothing fails, and the programs have their flags. Values out of EKS's ranges are refused by kubectl, and a range of
// ports that a Service stands against, and a feature gate that Kubernetes does not know, by the cluster: it runs on as it
// was.
//
//story:about plane/component plane/featuregates plane/nodeports cluster/clustercontroller
func TestSettings(t *testing.T) {
	i := newInstallation(t)
	i.muster("up", "--provider", "simulated", "--nodes", "1", "--timeout", "3m")
	first, second := component.APIServerName(0), component.APIServerName(1)

	p := i.probe()
	i.asks(p, 100)
	i.patchCluster(`{"spec":{"apiServer":{"eventTTL":"30m","serviceNodePortRange":{"minPort":20000,"maxPort":25000},"logLevel":2},` +
		`"controllerManager":{"horizontalPodAutoscalerSyncPeriod":"10s","terminatedPodGCThreshold":10000,"logLevel":2},` +
		`"scheduler":{"scoringStrategy":{"type":"MostAllocated"},"logLevel":2},"featureGates":{"WatchList":false}}}`)
	i.serves(second, "30m")
	i.asks(p, 200)
	i.failedNothing(p, "settings were changed")
	for name, flags := range map[string][]string{
		second:                      {"--service-node-port-range=20000-25000", "--v=2", "--feature-gates=WatchList=false"},
		component.ControllerManager: {"--horizontal-pod-autoscaler-sync-period=10s", "--terminated-pod-gc-threshold=10000", "--v=2", "--feature-gates=WatchList=false"},
		component.Scheduler:         {"--config=" + i.cluster().Component(component.Scheduler) + "/configuration.yaml", "--v=2", "--feature-gates=WatchList=false"},
	} {
		arguments := i.mustCommandLine(name)
		for _, flag := range flags {
			if !slices.Contains(arguments, flag) {
				t.Errorf("%s lacks %s: it has %q", name, flag, arguments)
			}
		}
	}
	i.mustKubectl("create", "service", "nodeport", "web", "--tcp=80")
	if port := i.mustKubectl("get", "service", "web", "-o", "jsonpath={.spec.ports[0].nodePort}"); port < "20000" || port > "25000" || len(port) != 5 {
		t.Errorf("a Service has the node port %q", port)
	}

	for change, says := range map[string]string{
		`{"spec":{"apiServer":{"eventTTL":"2h"}}}`:                                       "spec.apiServer.eventTTL: Invalid value: \"2h\": must be from 10m to 60m",
		`{"spec":{"apiServer":{"serviceNodePortRange":{"minPort":1,"maxPort":2}}}}`:      "spec.apiServer.serviceNodePortRange.minPort",
		`{"spec":{"controllerManager":{"terminatedPodGCThreshold":1}}}`:                  "spec.controllerManager.terminatedPodGCThreshold",
		`{"spec":{"scheduler":{"scoringStrategy":{"type":"RequestedToCapacityRatio"}}}}`: "spec.scheduler.scoringStrategy.type",
		`{"spec":{"controllerManager":{"horizontalPodAutoscalerSyncPeriod":"1m"}}}`:      "must be from 10s to 15s",
		`{"spec":{"apiServer":{"logLevel":9}}}`:                                          "spec.apiServer.logLevel",
	} {
		if _, err := i.kubectl(managementContext, "-n", "muster", "patch", "cluster", "muster", "--type", "merge", "-p", change); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %q", change, err, says)
		}
	}
	i.refusedSettings(`{"spec":{"apiServer":{"serviceNodePortRange":{"minPort":30000,"maxPort":32767}}}}`, "Services have node ports outside of 30000-32767: default/web (2")
	i.patchCluster(`{"spec":{"apiServer":{"serviceNodePortRange":{"minPort":20000,"maxPort":25000}}}}`)
	i.refusedSettings(`{"spec":{"featureGates":{"Nope":true}}}`, "spec.featureGates: Kubernetes 1.36 does not take them: Nope cannot be true: unrecognized feature gate: Nope")
	i.patchCluster(`{"spec":{"featureGates":{"Nope":null}}}`)
	i.serves(second, "30m")

	p = i.probe()
	i.asks(p, 100)
	i.mustKubectl(managementContext, "create", "-f", i.manifest(`{"apiVersion":"muster.dev/v1alpha1","kind":"Update","metadata":{"name":"settings","namespace":"muster"},"spec":{"clusterName":"muster",`+
		`"type":"ControlPlaneComponentConfigUpdate","change":{"components":{"apiServer":{"eventTTL":"40m"},"featureGates":{}}}}}`))
	i.eventually("the update is Successful", func() error {
		phase, err := i.kubectl(managementContext, "-n", "muster", "get", "update", "settings", "-o", "jsonpath={.status.phase} {.status.message}")
		if err == nil && !strings.HasPrefix(phase, "Successful") {
			err = errors.New(phase)
		}
		return err
	})
	i.serves(first, "40m")
	i.asks(p, 200)
	i.failedNothing(p, "an update changed settings")
}

// patchCluster changes the cluster's object.
func (i *installation) patchCluster(change string) {
	i.t.Helper()
	i.mustKubectl(managementContext, "-n", "muster", "patch", "cluster", "muster", "--type", "merge", "-p", change)
}

// refusedSettings makes a change that the cluster refuses with words, and runs on.
func (i *installation) refusedSettings(change, says string) {
	i.t.Helper()
	before := i.processes()
	i.patchCluster(change)
	i.eventually("the change is refused", func() error {
		said, err := i.kubectl(managementContext, "-n", "muster", "get", "cluster", "muster", "-o", `jsonpath={.status.conditions[?(@.type=="Ready")]}`)
		if err == nil && (!strings.Contains(said, "ChangeRefused") || !strings.Contains(said, says)) {
			err = errors.New(said)
		}
		return err
	})
	for name, p := range i.processes() {
		if p.PID != before[name].PID {
			i.t.Errorf("after %s, which was refused, %s was process %d and is %d", change, name, before[name].PID, p.PID)
		}
	}
}
