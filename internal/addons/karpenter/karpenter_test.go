// SPDX-License-Identifier: Apache-2.0

package karpenter_test

import (
	"encoding/json"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"muster.dev/muster/internal/addons/addon/addontest"
	"muster.dev/muster/internal/addons/karpenter"
	"muster.dev/muster/internal/platform/manifest/manifesttest"
)

func TestManifest(t *testing.T) {
	t.Parallel()
	objects := addontest.Objects(t, karpenter.Addon())
	manifesttest.Bindings(t, objects,
		"ServiceAccount karpenter: karpenter",
		"ServiceAccount karpenter: karpenter in kube-system",
		"ServiceAccount karpenter: karpenter-core",
		"ServiceAccount karpenter: karpenter-dns in kube-system",
	)
	manifesttest.Narrow(t, objects)
	addontest.Version(t, karpenter.Addon(), "karpenter", "github.com/aws/karpenter-provider-aws")
}

func TestRead(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		`{"replicas":1,"logLevel":"debug","dnsPolicy":"Default","settings":{"interruptionQueue":"q","batchIdleDuration":"1.5s","reservedENIs":"1","featureGates":{"nodeRepair":true}}}`,
		`{"settings":{"reservedENIs":2,"vmMemoryOverheadPercent":0},"controller":{"resources":{"requests":{"cpu":1}},"env":[{"name":"A_B","value":"c"}]}}`,
	} {
		addontest.Read(t, karpenter.Addon(), text, "")
	}
	for text, want := range map[string]string{
		`{"interruptionQueue":"q"}`:                            "interruptionQueue", // it is below settings, as in the chart
		`{"logLevel":"trace"}`:                                 "logLevel",
		`{"settings":{"batchMaxDuration":"10"}}`:               "batchMaxDuration",
		`{"settings":{"featureGates":{"drift":true}}}`:         "drift",
		`{"settings":{"vmMemoryOverheadPercent":7.5}}`:         "vmMemoryOverheadPercent",
		`{"settings":{"reservedENIs":"-1"}}`:                   "reservedENIs",
		`{"controller":{"env":[{"name":"A","valueFrom":{}}]}}`: "valueFrom",
		`{"resources":{}}`:                                     "resources",
	} {
		addontest.Read(t, karpenter.Addon(), text, want)
	}
}

// Each setting of the schema becomes the environment variable that Karpenter reads, in the place of the chart's default.
func TestSettings(t *testing.T) {
	t.Parallel()
	base := addontest.Objects(t, karpenter.Addon())
	for name, c := range map[string]struct{ values, want string }{
		"nothing": {"", `CLUSTER_NAME=blue LOG_LEVEL=info BATCH_MAX_DURATION=10s BATCH_IDLE_DURATION=1s VM_MEMORY_OVERHEAD_PERCENT=0.075 RESERVED_ENIS=0 ` +
			`FEATURE_GATES=CapacityBuffer=false,NodeOverlay=false,NodeRepair=false,PodDeletionCostManagement=false,ReservedCapacity=true,SpotToSpotConsolidation=false,StaticCapacity=false,TerminateFirstDrift=false,TerminateFirstRepair=false ` +
			`AWS_FEATURE_GATES=NodeClassCEL=false,RebootForRepair=false IGNORE_DRA_REQUESTS=true`},
		"names":     {"settings: {clusterName: green, clusterEndpoint: 'https://10.0.0.1', clusterCABundle: YQ==, interruptionQueue: spots}", "CLUSTER_NAME=green CLUSTER_ENDPOINT=https://10.0.0.1 CLUSTER_CA_BUNDLE=YQ== INTERRUPTION_QUEUE=spots"},
		"times":     {"settings: {batchMaxDuration: 2s, batchIdleDuration: 200ms, amiRefreshInterval: 5m, subnetRefreshInterval: 6m, securityGroupRefreshInterval: 7m}", "AMI_REFRESH_INTERVAL=5m SUBNET_REFRESH_INTERVAL=6m SECURITY_GROUP_REFRESH_INTERVAL=7m BATCH_MAX_DURATION=2s BATCH_IDLE_DURATION=200ms"},
		"switches":  {"settings: {isolatedVPC: true, disableDryRun: true, eksControlPlane: true, ignoreDRARequests: false, disableClusterStateObservability: true, enableZonalShift: true, legacyNodeRepair: true}", "ENABLE_ZONAL_SHIFT=true LEGACY_NODE_REPAIR=true ISOLATED_VPC=true DISABLE_DRY_RUN=true EKS_CONTROL_PLANE=true IGNORE_DRA_REQUESTS=false DISABLE_CLUSTER_STATE_OBSERVABILITY=true"},
		"numbers":   {"settings: {reservedENIs: 2, vmMemoryOverheadPercent: 0.01}", "RESERVED_ENIS=2 VM_MEMORY_OVERHEAD_PERCENT=0.01"},
		"policies":  {"{logLevel: error, settings: {preferencePolicy: Ignore, minValuesPolicy: BestEffort}}", "LOG_LEVEL=error PREFERENCE_POLICY=Ignore MIN_VALUES_POLICY=BestEffort"},
		"gates":     {"settings: {featureGates: {nodeRepair: true, reservedCapacity: false}}", "FEATURE_GATES=CapacityBuffer=false,NodeOverlay=false,NodeRepair=true,PodDeletionCostManagement=false,ReservedCapacity=false,SpotToSpotConsolidation=false,StaticCapacity=false,TerminateFirstDrift=false,TerminateFirstRepair=false"},
		"aws gates": {"settings: {awsFeatureGates: {rebootForRepair: true}}", "AWS_FEATURE_GATES=NodeClassCEL=false,RebootForRepair=true"},
		"variables": {"{settings: {clusterName: green}, controller: {env: [{name: AWS_REGION, value: eu-west-1}, {name: CLUSTER_NAME, value: red}]}}", "CLUSTER_NAME=red AWS_REGION=eu-west-1"},
	} {
		t.Run(name, func(t *testing.T) {
			values, err := karpenter.Addon().Read(c.values)
			if err != nil {
				t.Fatal(err)
			}
			made, err := karpenter.Addon().Objects(base, values, "")
			if err != nil {
				t.Fatal(err)
			}
			got := environment(t, made)
			for pair := range strings.FieldsSeq(c.want) {
				variable, value, _ := strings.Cut(pair, "=")
				if got[variable] != value {
					t.Errorf("%s is %q, want %q", variable, got[variable], value)
				}
			}
			if got["SYSTEM_NAMESPACE"] != "" || len(got) < 15 {
				t.Errorf("%v", got)
			}
		})
	}
}

// environment reads the variables of the controller. A variable that is there twice is an error.
func environment(t *testing.T, objects []*unstructured.Unstructured) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, object := range objects {
		if object.GetKind() != "Deployment" {
			continue
		}
		containers, _, err := unstructured.NestedSlice(object.Object, "spec", "template", "spec", "containers")
		if err != nil || len(containers) != 1 {
			t.Fatal(containers, err)
		}
		raw, err := json.Marshal(containers[0])
		if err != nil {
			t.Fatal(err)
		}
		var container struct {
			Env []struct{ Name, Value string }
		}
		if err := json.Unmarshal(raw, &container); err != nil {
			t.Fatal(err)
		}
		for _, variable := range container.Env {
			if _, twice := all[variable.Name]; twice {
				t.Errorf("%s is there twice", variable.Name)
			}
			all[variable.Name] = variable.Value
		}
	}
	return all
}

// The role may annotate pods where the gate is on that does it.
func TestRoleOfGate(t *testing.T) {
	t.Parallel()
	objects := addontest.Objects(t, karpenter.Addon())
	for text, want := range map[string]int{"": 0, "settings: {featureGates: {podDeletionCostManagement: true}}": 1} {
		values, err := karpenter.Addon().Read(text)
		if err != nil {
			t.Fatal(err)
		}
		made, err := karpenter.Addon().Objects(objects, values, "")
		if err != nil {
			t.Fatal(err)
		}
		raw, err := json.Marshal(made)
		if got := strings.Count(string(raw), `"resources":["pods"],"verbs":["delete","patch"]`); err != nil || got != want {
			t.Errorf("%q: %d rules let it change pods, want %d; %v", text, got, want, err)
		}
	}
}

func TestObjects(t *testing.T) {
	t.Parallel()
	objects := addontest.Objects(t, karpenter.Addon())
	for _, c := range []struct{ values, path, want string }{
		{"", "Deployment .spec.replicas", "2"},
		{"replicas: 1", "Deployment .spec.replicas", "1"},
		{"controller: {resources: {limits: {memory: 1Gi}}}", "Deployment .spec.template.spec.containers.0.resources", `{"limits":{"memory":"1Gi"}}`},
		{"dnsPolicy: Default", "Deployment .spec.template.spec.dnsPolicy", `"Default"`},
		{"", "Deployment .spec.template.spec.dnsPolicy", `"ClusterFirst"`},
		{"podDisruptionBudget: {minAvailable: 1}", "PodDisruptionBudget .spec.minAvailable", "1"},
	} {
		values, err := karpenter.Addon().Read(c.values)
		if err != nil {
			t.Fatal(err)
		}
		made, err := karpenter.Addon().Objects(objects, values, "arn:aws:iam::000000000000:role/karpenter")
		if err != nil {
			t.Fatal(err)
		}
		addontest.Has(t, made, c.path, c.want)
		addontest.Has(t, made, "ServiceAccount .metadata.annotations.eks.amazonaws.com/role-arn", `"arn:aws:iam::000000000000:role/karpenter"`)
	}
}
