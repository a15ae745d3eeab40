// SPDX-License-Identifier: Apache-2.0

package blueprint

import (
	"bytes"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"muster.dev/muster/api/v1alpha1"
)

// Object is an object of an API server.
type Object interface {
	metav1.Object
	runtime.Object
}

// Objects are Muster's own objects of a blueprint without problems, in the order in which they are made: the namespace and the cluster, if
// there is none yet, node groups, add-ons.
func (b Blueprint) Objects() []Object {
	var all []Object
	if !b.Exists {
		all = append(all, namespace(v1alpha1.ClusterSlug(b.Name)), b.object())
	}
	for _, g := range b.Groups {
		all = append(all, b.groupObject(g))
	}
	if b.Exists {
		return all
	}
	for _, name := range b.sortedAddons() {
		all = append(all, &v1alpha1.Addon{
			TypeMeta: typeOf("Addon"), ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.ClusterSlug(b.Name), Name: name}, Spec: v1alpha1.AddonSpec{AddonName: name},
		})
	}
	return all
}

// namespace is that of a cluster, with the label that marks it as one.
func namespace(slug string) *corev1.Namespace {
	return &corev1.Namespace{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"}, ObjectMeta: metav1.ObjectMeta{Name: slug, Labels: map[string]string{v1alpha1.LabelCluster: slug}}}
}

func typeOf(kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: kind}
}

// object is the cluster.
func (b Blueprint) object() *v1alpha1.Cluster {
	slug := v1alpha1.ClusterSlug(b.Name)
	c := &v1alpha1.Cluster{TypeMeta: typeOf("Cluster"), ObjectMeta: metav1.ObjectMeta{Namespace: slug, Name: slug}, Spec: v1alpha1.ClusterSpec{
		Name: b.Name, Version: b.Version, EKS: v1alpha1.ClusterEKS{RoleARN: b.RoleARN}, BootstrapSelfManagedAddons: new(false),
		AccessConfig: v1alpha1.ClusterAccessConfig{AuthenticationMode: v1alpha1.AuthenticationAPIAndConfigMap},
	}}
	c.Spec.Network.SubnetIDs = subnetsOf(b.SubnetIDs)
	for _, kind := range b.LoggingTypes {
		c.Spec.EKS.LoggingTypes = append(c.Spec.EKS.LoggingTypes, v1alpha1.LoggingType(kind))
	}
	if b.AutoMode { // it brings DNS along, which EKS's API has no switch for then
		c.Spec.BootstrapSelfManagedAddons = nil
		c.Spec.Compute = &v1alpha1.ClusterCompute{Enabled: true, NodePools: v1alpha1.NodePoolNames(), NodeRole: b.AutoNodeRole}
	}
	c.Default()
	return c
}

// groupObject is a node group.
func (b Blueprint) groupObject(g Group) *v1alpha1.NodeGroup {
	group := &v1alpha1.NodeGroup{
		TypeMeta: typeOf("NodeGroup"), ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.ClusterSlug(b.Name), Name: v1alpha1.NodeGroupSlug(g.Name)},
		Spec: v1alpha1.NodeGroupSpec{
			Name: g.Name, Provider: v1alpha1.DefaultProvider, NodeRole: b.NodeRole(g), InstanceTypes: g.InstanceTypes, SubnetIDs: subnetsOf(b.SubnetIDs),
			ScalingConfig: v1alpha1.ScalingConfig{MinSize: g.MinSize, MaxSize: g.MaxSize, DesiredSize: g.DesiredSize},
			EKS:           v1alpha1.NodeGroupEKS{DiskSize: g.DiskSize},
		},
	}
	if len(g.Labels) > 0 {
		group.Spec.Labels = v1alpha1.NodeLabels{}
	}
	for key, value := range g.Labels {
		group.Spec.Labels[key] = v1alpha1.LabelValue(value)
	}
	return group
}

func subnetsOf(ids []string) []v1alpha1.SubnetID {
	var all []v1alpha1.SubnetID
	for _, id := range ids {
		all = append(all, v1alpha1.SubnetID(id))
	}
	return all
}

// Manifest renders the objects for kubectl apply on the management plane.
func (b Blueprint) Manifest() (string, error) {
	var out bytes.Buffer
	for i, object := range b.Objects() {
		text, err := manifest(object)
		if err != nil {
			return "", fmt.Errorf("writing the manifest: %w", err)
		}
		if i > 0 {
			out.WriteString("---\n")
		}
		out.Write(text)
	}
	return out.String(), nil
}

// manifest is an object without what only a server writes.
func manifest(object Object) ([]byte, error) {
	raw, err := json.Marshal(object)
	if err != nil {
		return nil, err
	}
	var content map[string]any
	if err := json.Unmarshal(raw, &content); err != nil {
		return nil, err
	}
	delete(content, "status")
	if metadata, ok := content["metadata"].(map[string]any); ok {
		delete(metadata, "creationTimestamp")
	}
	if spec, ok := content["spec"].(map[string]any); ok && len(spec) == 0 {
		delete(content, "spec")
	}
	return yaml.Marshal(content)
}
