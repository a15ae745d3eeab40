// SPDX-License-Identifier: Apache-2.0

// Package clusterconfig reads muster.yaml: at most one Cluster and any number of NodeGroups, as documents of one file.
// It is strict, and it reports every problem at once, each with its document and field.
//
// A document says in metadata.name or spec.name what the cluster or node group is called; the rest of its names follows
// from that. An author who writes both, or a namespace, has to write the names that follow.
package clusterconfig

import (
	"fmt"
	"math"
	"net/netip"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"muster.dev/muster/api/v1alpha1"
)

const (
	// DefaultClusterName is the name of the cluster when nobody named one.
	DefaultClusterName = "muster"
	// DefaultNodeGroupName is the name of the node group when nobody named one.
	DefaultNodeGroupName = "default"

	// defaultPodRanges is how many nodes a range of pods that is chosen has a /24 for; largePodCIDR has one for every
	// machine a group can have.
	defaultPodRanges = 256
	largePodCIDR     = "10.224.0.0/11"
)

// Config is what a person asks of the service.
type Config struct {
	Cluster    *v1alpha1.Cluster
	NodeGroups []*v1alpha1.NodeGroup
	// DefaultMax holds the names of the node groups whose document leaves out maxSize. If such a group exists already,
	// it keeps its maxSize.
	DefaultMax map[string]bool
}

// Default returns the configuration of somebody who wrote none: one cluster and one group of that many nodes.
// It may be asked for too many: check it with Validate.
func Default(nodes int, provider v1alpha1.Provider) Config {
	return Named(DefaultClusterName, nodes, provider)
}

// Named is Default for a cluster with another name.
func Named(name string, nodes int, provider v1alpha1.Provider) Config {
	cluster := newCluster()
	cluster.Spec.Name = name
	if nodes > defaultPodRanges {
		cluster.Spec.Network.PodCIDR = largePodCIDR
	}
	group := newNodeGroup()
	group.Spec.Name = DefaultNodeGroupName
	group.Spec.Provider = provider
	size := &group.Spec.ScalingConfig
	size.DesiredSize = int32(max(math.MinInt32, min(nodes, math.MaxInt32)))
	size.MaxSize = v1alpha1.DefaultMaxSize(provider, size.MinSize, size.DesiredSize)
	completeCluster(cluster)
	completeNodeGroup(group, cluster)
	return Config{Cluster: cluster, NodeGroups: []*v1alpha1.NodeGroup{group}, DefaultMax: map[string]bool{DefaultNodeGroupName: true}}
}

// Validate reports every problem of a configuration that was not read from a file, as Problems.
func (c Config) Validate() error {
	var problems Problems
	documents := []document{{object: c.Cluster}}
	for _, group := range c.NodeGroups {
		documents = append(documents, document{object: group})
	}
	for _, d := range documents {
		problems.add(d, validate(d.object))
	}
	problems.cross(documents)
	return problems.orNil()
}

func newCluster() *v1alpha1.Cluster {
	cluster := &v1alpha1.Cluster{TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "Cluster"}}
	cluster.Default()
	return cluster
}

func newNodeGroup() *v1alpha1.NodeGroup {
	group := &v1alpha1.NodeGroup{TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "NodeGroup"}}
	group.Default()
	group.Spec.ScalingConfig.MaxSize = v1alpha1.MaxGroupSize // until the document is read: a maxSize that cannot be read refuses no desiredSize
	return group
}

func validate(object metav1.Object) field.ErrorList {
	switch object := object.(type) {
	case *v1alpha1.Cluster:
		return v1alpha1.ValidateCluster(object)
	case *v1alpha1.NodeGroup:
		return v1alpha1.ValidateNodeGroup(object)
	}
	return nil
}

// cross checks what concerns more than one document.
func (p *Problems) cross(documents []document) {
	var cluster *v1alpha1.Cluster
	for _, d := range documents {
		object, ok := d.object.(*v1alpha1.Cluster)
		switch {
		case !ok:
		case cluster != nil:
			p.say(d, fmt.Sprintf("is a second Cluster, beside %q: one service runs one cluster", cluster.Spec.Name))
		default:
			cluster = object
		}
	}
	nodes := 0 // with pods: those machines alone need a part of the range
	seen := map[string]bool{}
	for _, d := range documents {
		group, ok := d.object.(*v1alpha1.NodeGroup)
		if !ok {
			continue
		}
		if group.Spec.Name != "" && seen[group.Spec.Name] {
			p.add(d, field.ErrorList{field.Duplicate(field.NewPath("spec", "name"), group.Spec.Name)})
		}
		seen[group.Spec.Name] = true
		if cluster != nil && group.Namespace != cluster.Namespace {
			p.add(d, field.ErrorList{field.Invalid(field.NewPath("metadata", "namespace"), group.Namespace,
				fmt.Sprintf("must be %q, that of Cluster %q of this configuration, or left out", cluster.Namespace, cluster.Spec.Name))})
		}
		if size := group.Spec.ScalingConfig.DesiredSize; size >= 0 && size <= v1alpha1.MaxGroupSize && group.Spec.Provider.Can(v1alpha1.RunPods) {
			nodes += int(size)
		}
	}
	for _, d := range documents {
		if d.object == metav1.Object(cluster) {
			p.add(d, room(cluster.Spec.Network, nodes))
		}
	}
}

// room reports whether the range of pods, if one is named, has a part for every node. Without one the subnets decide
// how many there can be.
func room(network v1alpha1.ClusterNetwork, nodes int) field.ErrorList {
	var errs field.ErrorList
	path := field.NewPath("spec", "network")
	pods, err := netip.ParsePrefix(network.PodCIDR)
	if err == nil && pods.Addr().Is4() && pods.Bits() > 0 && pods.Bits() <= 24 {
		if space := 1 << (24 - pods.Bits()); nodes > space {
			errs = append(errs, field.Invalid(path.Child("podCIDR"), network.PodCIDR,
				fmt.Sprintf("has a /24 for each of %d nodes, and the node groups ask for %d", space, nodes)))
		}
	}
	return errs
}
