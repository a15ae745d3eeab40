// SPDX-License-Identifier: Apache-2.0

package eks

import (
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
)

const (
	autoOn = `"computeConfig":{"enabled":true,"nodePools":["general-purpose"],"nodeRoleArn":"` + nodes + `"},` +
		`"storageConfig":{"blockStorage":{"enabled":true}},"kubernetesNetworkConfig":{"elasticLoadBalancing":{"enabled":true}}`
	autoOff = `"computeConfig":{"enabled":false},"storageConfig":{"blockStorage":{"enabled":false}},"kubernetesNetworkConfig":{"elasticLoadBalancing":{"enabled":false}}`
)

// A cluster of EKS Auto Mode, as EKS's documentation makes one, and what DescribeCluster tells of it.
func TestAutoMode(t *testing.T) {
	w := newWorld(t, nil)
	w.built["karpenter"] = true
	body := strings.Replace(makeOne, `"tags"`, autoOn+`,"bootstrapSelfManagedAddons":false,"tags"`, 1)
	told := []string{
		`"computeConfig":{"enabled":true,"nodePools":["general-purpose"],"nodeRoleArn":"` + nodes + `"}`, `"storageConfig":{"blockStorage":{"enabled":true}}`, `"elasticLoadBalancing":{"enabled":true}`,
	}
	w.ask("POST", "/clusters", body, 200, told...)
	asked := strings.Join(w.gate.Asked, "\n")
	for _, want := range []string{"eks:computeconfigenabled=true", "eks:blockstorageenabled=true", "eks:elasticloadbalancingenabled=true", "iam:PassRole " + nodes} {
		if !strings.Contains(asked, want) {
			t.Errorf("IAM is not asked %s:\n%s", want, asked)
		}
	}
	w.served("Blue_1")
	made := w.compute()
	if want := (v1alpha1.ClusterCompute{Enabled: true, NodePools: []v1alpha1.NodePoolName{"general-purpose"}, NodeRole: nodes}); made.Spec.Compute == nil || made.Spec.Compute.NodeRole != want.NodeRole || !made.Spec.Compute.Enabled {
		t.Errorf("the cluster has %+v", made.Spec.Compute)
	}
	if made.Spec.BootstrapSelfManagedAddons != nil {
		t.Error("the cluster is without DNS")
	}
	w.ask("POST", "/clusters/Blue_1/addons", `{"addonName":"karpenter"}`, 400, "Karpenter runs in the control plane of cluster Blue_1")
	const path = "/clusters/Blue_1/update-config"
	w.ask("POST", path, `{"computeConfig":{"enabled":false}}`, 400, "are all either fully enabled or fully disabled")
	w.ask("POST", path, `{"computeConfig":{"enabled":true,"nodePools":["system"],"nodeRoleArn":"`+eksRole+`"}}`, 400, "cannot be changed")
	w.ask("POST", path, `{"computeConfig":{"enabled":true,"nodePools":["general-purpose","system"]}}`, 200, `"type":"AutoModeUpdate"`, `"type":"ComputeConfig"`, "system")
}

// DescribeCluster of clusters that never had EKS Auto Mode, and that have it no more.
func TestAutoModeOff(t *testing.T) {
	w := newWorld(t, nil)
	w.built["karpenter"] = true
	if answer := w.ask("POST", "/clusters", strings.Replace(makeOne, `"tags"`, autoOff+`,"tags"`, 1), 200); strings.Contains(answer, "computeConfig") || strings.Contains(answer, "storageConfig") || strings.Contains(answer, "elasticLoadBalancing") {
		t.Error(answer)
	}
	w.served("Blue_1")
	of := w.compute()
	of.Spec.Compute = &v1alpha1.ClusterCompute{Enabled: true}
	if err := w.api.Update(t.Context(), of); err != nil {
		t.Fatal(err)
	}
	w.ask("GET", "/clusters/Blue_1", "", 200, `"computeConfig":{"enabled":true,"nodePools":[]}`)
	w.ask("POST", "/clusters/Blue_1/update-config", `{`+autoOff+`}`, 200, `"type":"AutoModeUpdate"`, `"type":"StorageConfig"`)
	of = w.compute()
	of.Spec.Compute = &v1alpha1.ClusterCompute{}
	if err := w.api.Update(t.Context(), of); err != nil {
		t.Fatal(err)
	}
	w.ask("GET", "/clusters/Blue_1", "", 200, `"computeConfig":{"enabled":false,"nodePools":[]}`, `"elasticLoadBalancing":{"enabled":false}`)
}

func (w *world) compute() *v1alpha1.Cluster {
	w.t.Helper()
	slug := v1alpha1.ClusterSlug("Blue_1")
	c := &v1alpha1.Cluster{}
	if err := w.api.Get(w.t.Context(), client.ObjectKey{Namespace: slug, Name: slug}, c); err != nil {
		w.t.Fatal(err)
	}
	return c
}
