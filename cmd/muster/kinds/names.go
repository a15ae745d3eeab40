// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/cmd/muster/terminal"
)

// NameOf is what people call an object: spec.name of a kind with a SpecName, and the name of any other.
func NameOf(object client.Object) string {
	if named, ok := object.(interface{ SpecName() string }); ok && named.SpecName() != "" {
		return named.SpecName()
	}
	return object.GetName()
}

// GroupOf is the key of the node group that a machine is of.
func GroupOf(m *v1alpha1.Machine) client.ObjectKey {
	return client.ObjectKey{Namespace: v1alpha1.ClusterSlug(m.Spec.ClusterName), Name: v1alpha1.NodeGroupSlug(m.Spec.NodeGroup)}
}

// IsOf reports whether an object of the management plane is of the cluster of that name.
func IsOf(object client.Object, cluster string) bool {
	switch object := object.(type) {
	case *v1alpha1.Cluster:
		return object.Spec.Name == cluster
	case *v1alpha1.Machine:
		return object.Spec.ClusterName == cluster
	}
	return namespaced(object) && object.GetNamespace() == v1alpha1.ClusterSlug(cluster)
}

// namespaced reports whether an object of the management plane is in the namespace of its cluster.
func namespaced(object client.Object) bool {
	return slices.ContainsFunc(v1alpha1.Kinds(), func(k v1alpha1.Kind) bool {
		return k.Namespaced && reflect.TypeOf(k.Object) == reflect.TypeOf(object)
	})
}

// WithClusters returns the kind with a column CLUSTER after the name, if the objects are machines, or have the
// namespaces, of several clusters.
func (p *Client) WithClusters(ctx context.Context, k Kind, objects []client.Object) (Kind, error) {
	slugs := map[string]bool{}
	for _, object := range objects {
		if slug := clusterOf(object); slug != "" {
			slugs[slug] = true
		}
	}
	if len(slugs) < 2 {
		return k, nil
	}
	clusters, _, err := p.Objects(ctx, Clusters())
	if err != nil {
		return k, err
	}
	names := map[string]string{}
	for _, cluster := range clusters {
		names[cluster.GetNamespace()] = NameOf(cluster)
	}
	c := column{heading: headingCluster, cell: func(object client.Object, _ time.Time) string {
		slug := clusterOf(object)
		return terminal.Or(names[slug], slug)
	}}
	k.columns = slices.DeleteFunc(slices.Clone(k.columns), func(c column) bool { return c.heading == headingCluster })
	k.columns = slices.Insert(k.columns, 1, c)
	return k, nil
}

// headingCluster is the heading of the column with the cluster of an object.
const headingCluster = "CLUSTER"

// clusterOf is the slug of the cluster that an object belongs to; "" for Clusters themselves, objects of the account,
// and machines of no cluster.
func clusterOf(object client.Object) string {
	switch object := object.(type) {
	case *v1alpha1.Cluster:
		return ""
	case *v1alpha1.Machine:
		if object.Spec.ClusterName != "" {
			return v1alpha1.ClusterSlug(object.Spec.ClusterName)
		}
		return ""
	}
	if namespaced(object) {
		return object.GetNamespace()
	}
	return ""
}

// Cluster returns the name of the cluster that --cluster names, or of the only one there is.
func (p *Client) Cluster(ctx context.Context, named string) (string, error) {
	k := Clusters()
	objects, _, err := p.Objects(ctx, k)
	if err != nil {
		return "", err
	}
	if named != "" {
		object, err := k.find(objects, named)
		if err != nil {
			return "", fmt.Errorf("--cluster: %w", err)
		}
		return NameOf(object), nil
	}
	var names []string
	for _, object := range objects {
		names = append(names, NameOf(object))
	}
	switch len(names) {
	case 0:
		return "", errors.New("there is no cluster yet: muster create cluster makes one")
	case 1:
		return names[0], nil
	}
	return "", fmt.Errorf("there are several clusters: choose one with --cluster: %s", strings.Join(names, ", "))
}

// AddClusterFlag adds --cluster, which completes the names of clusters.
func AddClusterFlag(cmd *cobra.Command, o *terminal.Options, p Dialers, name *string, use string) {
	cmd.Flags().StringVar(name, "cluster", "", use)
	_ = cmd.RegisterFlagCompletionFunc("cluster", CompleteNames(o, p, Clusters(), 0)) // the flag exists
}
