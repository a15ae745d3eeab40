// SPDX-License-Identifier: Apache-2.0

package metricsserver_test

import (
	"testing"

	"muster.dev/muster/internal/addons/addon/addontest"
	"muster.dev/muster/internal/addons/metricsserver"
	"muster.dev/muster/internal/platform/manifest/manifesttest"
)

func TestManifest(t *testing.T) {
	t.Parallel()
	objects := addontest.Objects(t, metricsserver.Addon())
	manifesttest.Bindings(t, objects,
		"ServiceAccount metrics-server: extension-apiserver-authentication-reader in kube-system",
		"ServiceAccount metrics-server: system:auth-delegator",
		"ServiceAccount metrics-server: system:metrics-server",
	)
	manifesttest.Narrow(t, objects)
	addontest.Version(t, metricsserver.Addon(), "metricsserver", "sigs.k8s.io/metrics-server")
}

func TestRead(t *testing.T) {
	t.Parallel()
	addontest.Read(t, metricsserver.Addon(), `{"replicas":1}`, "")
	addontest.Read(t, metricsserver.Addon(), `{"replicaCount":1}`, "replicaCount")
}

const base = `
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: ServiceAccount, metadata: {name: metrics-server, namespace: kube-system}}
- apiVersion: apps/v1
  kind: Deployment
  metadata: {name: metrics-server, namespace: kube-system}
  spec:
    template:
      metadata: {labels: {k8s-app: metrics-server}}
      spec:
        containers: [{name: metrics-server, image: i}]
`

func TestObjects(t *testing.T) {
	t.Parallel()
	made := addontest.Configured(t, metricsserver.Addon(), base, "{replicas: 3, podLabels: {k8s-app: other, a: b}}", "")
	for path, want := range map[string]string{
		"Deployment .spec.replicas":                              "3",
		"Deployment .spec.template.metadata.labels":              `{"a":"b","k8s-app":"metrics-server"}`,
		"PodDisruptionBudget .metadata.name":                     `"metrics-server"`,
		"PodDisruptionBudget .spec.selector.matchLabels.k8s-app": `"metrics-server"`,
		"ServiceAccount .metadata.annotations":                   "null",
	} {
		addontest.Has(t, made, path, want)
	}
}
