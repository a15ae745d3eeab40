// SPDX-License-Identifier: Apache-2.0

// Package karpenter is the add-on karpenter: upstream's controller, which launches machines for pending pods by EC2's
// API of the account, with what belongs to it and its kinds. `make karpenter` makes its image and the file with the kinds.
package karpenter

import (
	_ "embed"
	"fmt"

	"muster.dev/muster/internal/addons/addon"
	"muster.dev/muster/internal/plane/component"
)

// Name is the add-on's name. EKS has no add-on for Karpenter: people install its chart.
const Name = "karpenter"

// The names by which Karpenter in a control plane launches machines.
const (
	// NodeClass is the name of its EC2NodeClass.
	NodeClass = "default"
	// LabelNodeClass is the label of Nodes, and the tag of instances, with the name of their EC2NodeClass.
	LabelNodeClass = "karpenter.k8s.aws/ec2nodeclass"
)

// program is Karpenter's version, as images/karpenter/go.mod pins it.
const program = "v1.15.0"

// buildTime is how long `make karpenter` takes with empty caches of Go (docs/benchmarks.md).
const buildTime = "about 5 minutes on two processors"

//go:embed schema.json
var schema string

//go:embed manifest.yaml
var manifest string

// Addon returns the definition.
func Addon() addon.Addon {
	return addon.New(addon.Addon{
		Name: Name, Type: "kubernetes-management", Publisher: "karpenter", Owner: "community", ServiceAccount: Name, Program: program, Schema: schema, Manifest: manifest,
		Fill: fill, Archive: "addons/karpenter.tar", Kinds: "addons/karpenter-kinds.yaml", Build: addon.MakeOnce(Name, buildTime),
		Pods: addon.Pods{App: Name, Replicas: "replicas"}, Configure: configure,
	})
}

// Unbuilt says what is to be done before Karpenter can run in a control plane; empty if nothing is. Has reports whether a
// file is there, by its path below the directory of Muster's programs.
func Unbuilt(has func(path string) bool) string {
	for _, path := range []string{component.KarpenterProgram, Addon().Kinds} {
		if !has(path) {
			return fmt.Sprintf("Karpenter %s is not built here: run `make karpenter` where Muster was built, once: it takes %s, some 2 GiB in the caches of Go and 100 MB in bin/", program, buildTime)
		}
	}
	return ""
}

// InControlPlane says why a cluster whose control plane runs Karpenter cannot have the add-on.
func InControlPlane(cluster string) string {
	return fmt.Sprintf("Karpenter runs in the control plane of cluster %s (spec.compute), and a cluster has one Karpenter: set spec.compute.enabled to false first", cluster)
}

func fill(c component.Config) (map[string]string, error) {
	return map[string]string{"ClusterName": c.Cluster.Spec.Name}, nil
}
