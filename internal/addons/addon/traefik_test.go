// SPDX-License-Identifier: Apache-2.0

package addon_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"muster.dev/muster/internal/addons/addon"
)

const ingressBase = `
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

func TestObjectsOfTraefik(t *testing.T) {
	t.Parallel()
	const args, class = "spec.template.spec.containers.0.args", "metadata.annotations.ingressclass.kubernetes.io/is-default-class"
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
			a := find(t, addon.Traefik)
			values, err := a.Read(c.values)
			if err != nil {
				t.Fatal(err)
			}
			before := objects(t, ingressBase)
			made, err := a.Objects(before, values, "")
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(objects(t, ingressBase), before); diff != "" {
				t.Errorf("the base was changed (-want +got):\n%s", diff)
			}
			var kinds []string
			for _, object := range made {
				kinds = append(kinds, object.GetKind()+"/"+object.GetName())
			}
			if got := strings.Join(kinds, " "); got != c.kinds {
				t.Errorf("it has %s", got)
			}
			if got, err := json.Marshal(at(made, "Deployment", args)); err != nil || string(got) != c.args {
				t.Errorf("its arguments are %s; %v", got, err)
			}
			if got, err := json.Marshal(at(made, "IngressClass", class)); err != nil || string(got) != c.isDefault {
				t.Errorf("its class is the default: %s; %v", got, err)
			}
		})
	}
}

func TestUnbuilt(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		addon string
		files []string
		want  string
	}{
		"all is there":     {addon.Traefik, []string{addon.TraefikImage, addon.GatewayKinds}, ""},
		"one is missing":   {addon.Traefik, []string{addon.TraefikImage}, "traefik v3.7.5-eksbuild.1 is not built here: run `make addons` where Muster was built, once"},
		"nothing is there": {addon.Traefik, nil, "traefik v3.7.5-eksbuild.1 is not built here: run `make addons` where Muster was built, once"},
		"another add-on's": {addon.SnapshotController, []string{addon.TraefikImage, addon.GatewayKinds}, "snapshot-controller v8.7.0-eksbuild.1 is not built here: run `make addons` where Muster was built, once"},
		"of make build":    {addon.MetricsServer, []string{addon.TraefikImage, addon.GatewayKinds}, "metrics-server v0.9.0-eksbuild.1 is not built here: run `make build` where Muster was built, or wait if `make up` still builds there"},
		"built by now":     {addon.MetricsServer, []string{addon.MetricsServerImage}, ""},
		"nothing needed":   {addon.CoreDNS, nil, ""},
	} {
		if got := find(t, c.addon).Unbuilt(func(path string) bool { return slices.Contains(c.files, path) }); got != c.want {
			t.Errorf("%s: %q", name, got)
		}
	}
}
