// SPDX-License-Identifier: Apache-2.0

package traefik_test

import (
	"strings"
	"testing"

	"muster.dev/muster/internal/addons/addon/addontest"
	"muster.dev/muster/internal/addons/traefik"
	"muster.dev/muster/internal/platform/manifest/manifesttest"
)

func TestManifest(t *testing.T) {
	t.Parallel()
	objects := addontest.Objects(t, traefik.Addon())
	manifesttest.Bindings(t, objects, "ServiceAccount traefik: traefik", "ServiceAccount traefik: traefik-gateway")
	// The certificates of Ingresses and Gateways are in Secrets of any namespace, and no rule can choose Secrets by
	// their type.
	manifesttest.Narrow(t, objects, manifesttest.ReadsSecrets)
	addontest.Version(t, traefik.Addon(), "traefik", "github.com/traefik/traefik/v3")
}

func TestRead(t *testing.T) {
	t.Parallel()
	addontest.Read(t, traefik.Addon(), `{"replicas":1,"gateway":false,"defaultIngressClass":false}`, "")
	addontest.Read(t, traefik.Addon(), `{"gateway":"no"}`, "gateway")
}

const base = `
apiVersion: v1
kind: List
items:
- {apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: gateways.gateway.networking.k8s.io}, spec: {group: gateway.networking.k8s.io}}
- {apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: traefik-gateway}}
- {apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: traefik}}
- {apiVersion: gateway.networking.k8s.io/v1, kind: GatewayClass, metadata: {name: traefik}}
- {apiVersion: networking.k8s.io/v1, kind: IngressClass, metadata: {name: traefik, annotations: {ingressclass.kubernetes.io/is-default-class: "true"}}}
- apiVersion: apps/v1
  kind: Deployment
  metadata: {name: traefik, namespace: kube-system}
  spec:
    template:
      metadata: {labels: {k8s-app: traefik}}
      spec:
        containers: [{name: traefik, image: i, args: [--ping=true, --providers.kubernetesgateway=true, --providers.kubernetesgateway.statusaddress.service.name=traefik]}]
`

func TestObjects(t *testing.T) {
	t.Parallel()
	const args, class = "Deployment .spec.template.spec.containers.0.args", "IngressClass .metadata.annotations.ingressclass.kubernetes.io/is-default-class"
	const rest = "IngressClass/traefik Deployment/traefik PodDisruptionBudget/traefik"
	for name, c := range map[string]struct {
		values, kinds, args, isDefault string
	}{
		"nothing": {
			"", "CustomResourceDefinition/gateways.gateway.networking.k8s.io ClusterRole/traefik-gateway ClusterRole/traefik GatewayClass/traefik " + rest,
			`["--ping=true","--providers.kubernetesgateway=true","--providers.kubernetesgateway.statusaddress.service.name=traefik"]`, `"true"`,
		},
		"no Gateway API":             {"gateway: false", "ClusterRole/traefik " + rest, `["--ping=true"]`, `"true"`},
		"another default, no budget": {"{gateway: false, defaultIngressClass: false, podDisruptionBudget: {enabled: false}}", "ClusterRole/traefik IngressClass/traefik Deployment/traefik", `["--ping=true"]`, `"false"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			made := addontest.Configured(t, traefik.Addon(), base, c.values, "")
			var kinds []string
			for _, object := range made {
				kinds = append(kinds, object.GetKind()+"/"+object.GetName())
			}
			if got := strings.Join(kinds, " "); got != c.kinds {
				t.Errorf("it has %s", got)
			}
			addontest.Has(t, made, args, c.args)
			addontest.Has(t, made, class, c.isDefault)
		})
	}
}
