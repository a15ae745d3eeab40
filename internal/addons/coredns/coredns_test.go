// SPDX-License-Identifier: Apache-2.0

package coredns_test

import (
	"testing"

	"muster.dev/muster/internal/addons/addon/addontest"
	"muster.dev/muster/internal/addons/coredns"
	"muster.dev/muster/internal/platform/manifest/manifesttest"
)

func TestManifest(t *testing.T) {
	t.Parallel()
	objects := addontest.Objects(t, coredns.Addon())
	manifesttest.Bindings(t, objects, "ServiceAccount coredns: system:coredns")
	manifesttest.Narrow(t, objects)
	addontest.Version(t, coredns.Addon(), ".", "github.com/coredns/coredns")
}

func TestBadNetwork(t *testing.T) {
	t.Parallel()
	c := addontest.Config(true)
	c.Cluster.Spec.Network.ServiceCIDR = "10.0.0.0/29" // without room for the DNS address
	if objects, err := coredns.Addon().Base(c); err == nil {
		t.Errorf("%d objects, want an error", len(objects))
	}
}

func TestRead(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ text, want string }{
		"nothing":         {"", ""},
		"JSON":            {`{"replicaCount":3,"resources":{"limits":{"memory":"200Mi"}}}`, ""},
		"YAML":            {"replicaCount: 3\ntolerations:\n- operator: Exists\n", ""},
		"a percentage":    {`{"podDisruptionBudget":{"minAvailable":"50%"}}`, ""},
		"another type":    {`{"replicaCount":"3"}`, "replicaCount"},
		"a fraction":      {`{"replicaCount":1.5}`, "replicaCount"},
		"too few":         {`{"replicaCount":-1}`, "replicaCount"},
		"an unknown name": {`{"replicas":3}`, "replicas"},
		"a deep one":      {`{"resources":{"claims":[]}}`, "claims"},
		"two wrong":       {`{"replicas":3,"corefile":1}`, "corefile"},
		"twice":           {`{"replicaCount":1,"replicaCount":2}`, "already set"},
		"a list":          {`[]`, "[$: array found, object expected]"},
		"a string":        {`x`, "[$: string found, object expected]"},
		"no YAML":         {`{`, "neither JSON nor YAML"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			addontest.Read(t, coredns.Addon(), c.text, c.want)
		})
	}
}

const base = `
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: ServiceAccount, metadata: {name: coredns, namespace: kube-system}}
- {apiVersion: v1, kind: ConfigMap, metadata: {name: coredns, namespace: kube-system}, data: {Corefile: ours}}
- apiVersion: apps/v1
  kind: Deployment
  metadata: {name: coredns, namespace: kube-system}
  spec:
    template:
      metadata: {labels: {k8s-app: kube-dns}}
      spec:
        tolerations: [{key: ours}]
        containers: [{name: coredns, image: i, resources: {limits: {memory: 1Mi}}}]
`

func TestObjects(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		values string
		want   map[string]string // a path, and what is there
	}{
		"nothing": {"", map[string]string{
			"Deployment .spec.replicas":                                       "2",
			"Deployment .spec.template.spec.tolerations":                      `[{"key":"ours"}]`,
			"ConfigMap .data.Corefile":                                        `"ours"`,
			"PodDisruptionBudget .spec.maxUnavailable":                        "1",
			"ServiceAccount .metadata.annotations.eks.amazonaws.com/role-arn": `"arn:r"`,
			"Deployment .spec.template.spec.containers.0.resources.limits":    `{"memory":"1Mi"}`,
			"PodDisruptionBudget .spec.selector.matchLabels.k8s-app":          `"kube-dns"`,
			"Deployment .spec.template.metadata.labels.k8s-app":               `"kube-dns"`,
			"Deployment .spec.template.spec.affinity":                         "null",
			"Deployment .spec.template.spec.nodeSelector":                     "null",
			"Deployment .spec.template.metadata.annotations":                  "null",
			"Deployment .spec.template.spec.topologySpreadConstraints":        "null",
			"ConfigMap .metadata.labels":                                      `{"eks.amazonaws.com/component":"coredns"}`,
		}},
		"one pod": {"replicaCount: 1", map[string]string{
			"Deployment .spec.replicas": "1",
		}},
		"everything": {`
replicaCount: 4
corefile: mine
nodeSelector: {a: b}
affinity: {nodeAffinity: {}}
tolerations: []
topologySpreadConstraints: [{maxSkew: 1}]
podAnnotations: {a: b}
podLabels: {a: b, k8s-app: other}
podDisruptionBudget: {minAvailable: 2}
resources: {requests: {cpu: 10m}}`, map[string]string{
			"Deployment .spec.replicas":                                "4",
			"ConfigMap .data.Corefile":                                 `"mine"`,
			"Deployment .spec.template.spec.nodeSelector":              `{"a":"b"}`,
			"Deployment .spec.template.spec.affinity":                  `{"nodeAffinity":{}}`,
			"Deployment .spec.template.spec.tolerations":               `[]`,
			"Deployment .spec.template.spec.topologySpreadConstraints": `[{"maxSkew":1}]`,
			"Deployment .spec.template.metadata.annotations":           `{"a":"b"}`,
			"Deployment .spec.template.metadata.labels":                `{"a":"b","k8s-app":"kube-dns"}`,
			"PodDisruptionBudget .spec.minAvailable":                   "2",
			"PodDisruptionBudget .spec.maxUnavailable":                 "null",
			"Deployment .spec.template.spec.containers.0.resources":    `{"requests":{"cpu":"10m"}}`,
			"Deployment .spec.template.spec.containers.0.image":        `"i"`,
		}},
		"no budget": {"podDisruptionBudget: {enabled: false}", map[string]string{"PodDisruptionBudget .spec": "null"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			made := addontest.Configured(t, coredns.Addon(), base, c.values, "arn:r")
			for path, want := range c.want {
				addontest.Has(t, made, path, want)
			}
		})
	}
}
