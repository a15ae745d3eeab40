// SPDX-License-Identifier: Apache-2.0

package karpentercontroller

import (
	_ "embed"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/addons/karpenter"
	"muster.dev/muster/internal/plane/component"
	"muster.dev/muster/internal/platform/manifest"
)

//go:embed pools.yaml
var poolsText string

// The kinds of Karpenter.
var (
	nodePools   = schema.GroupVersionKind{Group: "karpenter.sh", Version: "v1", Kind: "NodePool"}
	nodeClaims  = schema.GroupVersionKind{Group: "karpenter.sh", Version: "v1", Kind: "NodeClaim"}
	nodeClasses = schema.GroupVersionKind{Group: "karpenter.k8s.aws", Version: "v1", Kind: "EC2NodeClass"}
)

// rights are what the add-on's controller may do, bound to the user of the control plane's Karpenter.
func rights(c component.Config) ([]*unstructured.Unstructured, error) {
	objects, err := karpenter.Addon().Base(c)
	if err != nil {
		return nil, err
	}
	var all []*unstructured.Unstructured
	for _, object := range objects {
		switch object.GetKind() {
		case "ClusterRole", "Role":
		case "ClusterRoleBinding", "RoleBinding":
			object.Object["subjects"] = []any{map[string]any{"apiGroup": rbacv1.GroupName, "kind": rbacv1.UserKind, "name": component.UserKarpenter}}
		default:
			continue
		}
		all = append(all, object)
	}
	return all, nil
}

// pools are the EC2NodeClass, with an image by its id, and the NodePools that a cluster asks for; unwanted are the other NodePools that can be
// asked for.
func pools(c component.Config, instanceProfile, image string) (wanted, unwanted []*unstructured.Unstructured, err error) {
	objects, err := manifest.Fill("pools.yaml", poolsText, struct {
		NodeClass, InstanceProfile, Image, SecurityGroupID string
		SubnetIDs                                          []string
	}{karpenter.NodeClass, instanceProfile, image, c.Network.SecurityGroupID, c.Network.SubnetIDs()})
	if err != nil {
		return nil, nil, err
	}
	for _, object := range objects {
		if object.GetKind() == nodePools.Kind && !slices.Contains(c.Cluster.Spec.Compute.NodePools, v1alpha1.NodePoolName(object.GetName())) {
			unwanted = append(unwanted, object)
			continue
		}
		wanted = append(wanted, object)
	}
	return wanted, unwanted, nil
}
