// SPDX-License-Identifier: Apache-2.0

package eks

import (
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// defaults are the settings of a cluster that asks for none, as EKS tells them.
const defaults = `"kubeApiServerConfig":{"eventTtl":"60m","serviceNodePortRange":{"minPort":30000,"maxPort":32767}},` +
	`"kubeSchedulerConfig":{"nodeResourcesFit":{"scoringStrategy":{"type":"LeastAllocated"}}},` +
	`"kubeControllerManagerConfig":{"podGcControllerConfig":{"terminatedPodGcThreshold":12500},"horizontalPodAutoscalerControllerConfig":{"horizontalPodAutoscalerSyncPeriod":"15s"}}`

func TestSettingsOfACluster(t *testing.T) {
	const path = "/clusters/Blue_1/update-config"
	w := newWorld(t, nil)
	w.ask("POST", "/clusters", strings.Replace(makeOne, "{", `{"kubeApiServerConfig":{"eventTtl":"5m"},`, 1), 400, "InvalidParameterException", `kubeApiServerConfig.eventTtl: Invalid value: \"5m\": must be from 10m to 60m`)
	w.ask("POST", "/clusters", strings.Replace(makeOne, "{", `{"kubeApiServerConfig":{"eventTtl":"10m"},`, 1), 200, strings.Replace(defaults, "60m", "10m", 1))
	w.served("Blue_1")
	w.ask("GET", "/clusters/Blue_1", "", 200, strings.Replace(defaults, "60m", "10m", 1))
	w.ask("GET", "/cluster-versions", "", 200,
		`"eventTtl":{"defaultValue":"60m","constraints":{"min":"10m","max":"60m"}}`,
		`"serviceNodePortRange":{"defaultValue":{"minPort":30000,"maxPort":32767},"constraints":{"minPort":{"min":10260,"max":32767},"maxPort":{"min":10260,"max":32767}}}`,
		`"terminatedPodGcThreshold":{"defaultValue":12500,"constraints":{"min":10000,"max":12500}}`,
		`"horizontalPodAutoscalerSyncPeriod":{"defaultValue":"15s","constraints":{"min":"10s","max":"15s"}}`,
		`"defaultValue":{"type":"LeastAllocated","resources":[{"name":"cpu","weight":1},{"name":"memory","weight":1}]}`,
		`"allowedValues":["cpu","memory","nvidia.com/gpu","aws.amazon.com/neuron","aws.amazon.com/neuroncore"]`)

	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{NodePort: 30080}}}}
	if err := w.cluster.Create(t.Context(), service); err != nil {
		t.Fatal(err)
	}
	const ports = `{"kubeApiServerConfig":{"serviceNodePortRange":{"minPort":20000,"maxPort":25000}}}`
	w.ask("POST", path, ports, 400, "InvalidRequestException", "kubeApiServerConfig.serviceNodePortRange: Services have node ports outside of 20000-25000: shop/web (30080). Give them others, or choose a range that has these")
	w.ask("POST", path, strings.Replace(ports, "25000", "32000", 1), 200, "ControlPlaneComponentConfigUpdate")
}

// A cluster that does not answer is no refusal: clients try again.
func TestNodePortsOfAClusterThatIsAway(t *testing.T) {
	w := newWorld(t, func(c *Config) {
		c.Cluster = func(string) (client.Client, error) { return nil, errors.New("it is away") }
	})
	w.ask("POST", "/clusters", makeOne, 200)
	w.served("Blue_1")
	w.ask("POST", "/clusters/Blue_1/update-config", `{"kubeApiServerConfig":{"serviceNodePortRange":{"minPort":20000,"maxPort":25000}}}`, 503)
}
