// SPDX-License-Identifier: Apache-2.0

package clusterconfig

import "muster.dev/muster/api/v1alpha1"

// completeCluster fills in the names that a document left out. A document with metadata.name alone says there what the
// cluster is called, as eksctl's do. Names that do not fit each other stay, to be refused.
func completeCluster(cluster *v1alpha1.Cluster) {
	if cluster.Spec.Name == "" {
		cluster.Spec.Name, cluster.Name = cluster.Name, ""
	}
	slug := v1alpha1.ClusterSlug(cluster.Spec.Name)
	if cluster.Name == "" && cluster.Spec.Name != "" {
		cluster.Name = slug
	}
	if cluster.Namespace == "" && cluster.Spec.Name != "" {
		cluster.Namespace = slug
	}
}

// completeNodeGroup fills in the names and the namespace that a document left out.
func completeNodeGroup(group *v1alpha1.NodeGroup, cluster *v1alpha1.Cluster) {
	if group.Spec.Name == "" {
		group.Spec.Name, group.Name = group.Name, ""
	}
	if group.Name == "" && group.Spec.Name != "" {
		group.Name = v1alpha1.NodeGroupSlug(group.Spec.Name)
	}
	if group.Namespace == "" {
		group.Namespace = cluster.Namespace
	}
}
