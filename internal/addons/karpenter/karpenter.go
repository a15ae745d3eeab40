// SPDX-License-Identifier: Apache-2.0

// Package karpenter is the add-on karpenter: upstream's controller, which launches machines for pending pods by EC2's
// API of the account, with what belongs to it and its kinds. `make karpenter` makes its image and the file with the kinds.
package karpenter

import (
	_ "embed"

	"muster.dev/muster/internal/addons/addon"
	"muster.dev/muster/internal/plane/component"
)

// Name is the add-on's name. EKS has no add-on for Karpenter: people install its chart.
const Name = "karpenter"

// program is Karpenter's version, as images/karpenter/go.mod pins it.
const program = "v1.15.0"

//go:embed schema.json
var schema string

//go:embed manifest.yaml
var manifest string

// Addon returns the definition.
func Addon() addon.Addon {
	return addon.New(addon.Addon{
		Name: Name, Type: "kubernetes-management", Publisher: "karpenter", Owner: "community", ServiceAccount: Name, Program: program, Schema: schema, Manifest: manifest,
		Fill: fill, Archive: "addons/karpenter.tar", Kinds: "addons/karpenter-kinds.yaml", Build: addon.MakeOnce(Name, "about 5 minutes on two processors"),
		Pods: addon.Pods{App: Name, Replicas: "replicas"}, Configure: configure,
	})
}

func fill(c component.Config) (map[string]string, error) {
	return map[string]string{"ClusterName": c.Cluster.Spec.Name}, nil
}
