// SPDX-License-Identifier: Apache-2.0

// Package coredns is the add-on coredns: the DNS of a cluster, as a Deployment that a cluster begins with.
package coredns

import (
	_ "embed"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"muster.dev/muster/internal/addons/addon"
	"muster.dev/muster/internal/network/clusternetwork"
	"muster.dev/muster/internal/plane/component"
)

// Name is EKS's name of the add-on.
const Name = "coredns"

// program is CoreDNS's version, as images/go.mod pins it.
const program = "v1.15.0"

//go:embed schema.json
var schema string

//go:embed manifest.yaml
var manifest string

// Addon returns the definition. Every machine has the image: clusters do not come up without it.
func Addon() addon.Addon {
	return addon.New(addon.Addon{
		Name: Name, Type: "networking", ServiceAccount: "coredns", Program: program, SelfManaged: true,
		Schema: schema, Manifest: manifest, Fill: fill,
		Pods: addon.Pods{App: "kube-dns", Replicas: "replicaCount"}, Configure: configure,
	})
}

func fill(c component.Config) (map[string]string, error) {
	dns, err := c.DNSAddress()
	if err != nil {
		return nil, err
	}
	return map[string]string{
		"ClusterDomain": c.Cluster.Spec.Network.ClusterDomain,
		"DNSAddress":    dns.String(),
		"NameServer":    clusternetwork.Resolver(c.Network.VPCCIDR).String(),
	}, nil
}

// configure puts the Corefile of a configuration in place of Muster's.
func configure(objects []*unstructured.Unstructured, values addon.Values) ([]*unstructured.Unstructured, error) {
	corefile, ok := values["corefile"]
	if !ok {
		return objects, nil
	}
	for _, object := range objects {
		if object.GetKind() != "ConfigMap" {
			continue
		}
		if err := unstructured.SetNestedField(object.Object, corefile, "data", "Corefile"); err != nil {
			return nil, addon.Wrong(object, err)
		}
	}
	return objects, nil
}
