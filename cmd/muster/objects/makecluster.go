// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/cmd/muster/kinds"
	"muster.dev/muster/cmd/muster/terminal"
	"muster.dev/muster/cmd/muster/tools"
	"muster.dev/muster/internal/cluster/session"
	"muster.dev/muster/internal/plane/baseline"
	"muster.dev/muster/internal/plane/clusterconfig"
	"muster.dev/muster/internal/platform/programs"
	"muster.dev/muster/internal/platform/shellquote"
)

// outcome is what became of an object that was to be made.
type outcome struct {
	kind   kinds.Kind
	object client.Object
	did    string
}

// checkRelease refuses a version that there is not, or whose programs are not built here.
func (c *createClusterCommand) checkRelease(wanted v1alpha1.ClusterSpec) error {
	if c.dryRun == dryRunClient { // another host may have them
		_, err := clusterconfig.ReleaseOf(wanted.Version)
		return err
	}
	binDir, err := programs.Dir()
	if err != nil {
		return err
	}
	return session.CheckRelease(binDir, wanted)
}

func (c *createClusterCommand) run(ctx context.Context, name string) error {
	wanted, err := c.wanted(name)
	if err != nil {
		return err
	}
	if err := c.checkRelease(wanted.Cluster.Spec); err != nil {
		return err
	}
	if c.dryRun == dryRunClient {
		outcomes := []outcome{{kinds.Clusters(), wanted.Cluster, made(c.dryRun)}}
		for _, group := range wanted.NodeGroups {
			outcomes = append(outcomes, outcome{kinds.NodeGroups(), group, made(c.dryRun)})
		}
		return c.print(outcomes)
	}
	for _, group := range wanted.NodeGroups {
		if err := needRoot(c.euid, group.Spec.Provider, c.dryRun); err != nil {
			return err
		}
	}
	p, err := c.planes.Management(c.Options)
	if err != nil {
		return err
	}
	for _, group := range wanted.NodeGroups {
		if err := p.CheckRole(ctx, group); err != nil {
			return err
		}
	}
	if c.dryRun == dryRunNone {
		tellClaims(ctx, c.Err, p, c.host(), wanted.NodeGroups...)
	}
	outcomes, err := c.create(ctx, p, wanted)
	if err != nil {
		if c.output == terminal.FormatName { // the objects before the one that failed exist
			err = errors.Join(c.print(outcomes), err)
		}
		return err
	}
	if err := c.print(outcomes); err != nil || c.dryRun != dryRunNone {
		return err
	}
	isNew := outcomes[0].did == made(c.dryRun)
	if !c.wait {
		if isNew {
			_, err = fmt.Fprintf(c.Err, "When it is Ready (muster get clusters), muster kubeconfig --cluster %s adds its context to your kubeconfig.\n", shellquote.Quote(wanted.Cluster.Spec.Name))
		}
		return err
	}
	return c.follow(ctx, p, wanted, isNew)
}

// create makes the namespace, the cluster and its node groups, in this order, and returns what became of those before
// the first that failed.
func (c *createClusterCommand) create(ctx context.Context, p *kinds.Client, wanted clusterconfig.Config) ([]outcome, error) {
	slug := wanted.Cluster.Namespace
	at, err := c.namespace(ctx, p, slug)
	if err != nil {
		return nil, err
	}
	did, err := createCluster(ctx, p, in(at, wanted.Cluster), c.dryRun)
	if err != nil {
		return nil, err
	}
	outcomes := []outcome{{kinds.Clusters(), in(slug, wanted.Cluster), did}}
	for _, group := range wanted.NodeGroups {
		if did, err = createGroup(ctx, p, in(at, group), !wanted.DefaultMax[group.Spec.Name], c.dryRun); err != nil {
			return outcomes, err
		}
		outcomes = append(outcomes, outcome{kinds.NodeGroups(), in(slug, group), did})
	}
	return outcomes, nil
}

// in puts an object into a namespace, and returns it.
func in[T metav1.Object](namespace string, object T) T {
	object.SetNamespace(namespace)
	return object
}

// namespace makes the namespace of the cluster, and returns the one in which its objects are to be made. The API server
// makes nothing in a namespace that does not exist, not even in a dry run; it is asked about one that exists then,
// since it checks objects of all namespaces alike.
func (c *createClusterCommand) namespace(ctx context.Context, p *kinds.Client, slug string) (string, error) {
	if c.dryRun == dryRunNone {
		return slug, p.Within(ctx, func(ctx context.Context) error { return baseline.EnsureNamespace(ctx, p, slug) })
	}
	err := p.Read(ctx, slug, &corev1.Namespace{})
	if apierrors.IsNotFound(err) {
		return metav1.NamespaceDefault, nil
	}
	return slug, err
}

// createCluster makes a cluster. If there is one of that name, the error lists the fields that differ; an equal one is
// left as it is.
func createCluster(ctx context.Context, p *kinds.Client, cluster *v1alpha1.Cluster, dryRun string) (did string, err error) {
	var there v1alpha1.Cluster
	exists, err := create(ctx, p, cluster, dryRun, &there)
	switch {
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause), exists && there.DeletionTimestamp != nil:
		return "", fmt.Errorf("cluster %q is being deleted: try again when it is gone", cluster.Spec.Name)
	case err != nil || !exists:
		return made(dryRun), err
	}
	difference, err := clusterconfig.Differences(&there.Spec, &cluster.Spec)
	if err != nil {
		return "", err
	}
	if difference != "" {
		return "", fmt.Errorf("cluster %q exists with %s: muster up -f or kubectl apply changes what can be changed", cluster.Spec.Name, difference)
	}
	*cluster = there
	return unchanged(dryRun), nil
}

// print prints a line for each object, or all of them as a list that kubectl can apply: the namespace comes first.
func (c *createClusterCommand) print(outcomes []outcome) error {
	if c.output == terminal.FormatName {
		for _, o := range outcomes {
			if _, err := fmt.Fprintln(c.Out, o.kind.Qualified(kinds.NameOf(o.object)), o.did); err != nil {
				return err
			}
		}
		return nil
	}
	scheme, err := kinds.NewScheme()
	if err != nil {
		return err
	}
	objects := []client.Object{baseline.Namespace(outcomes[0].object.GetNamespace())}
	for _, o := range outcomes {
		objects = append(objects, o.object)
	}
	return (&kinds.Printer{Out: c.Out, Scheme: scheme, Kind: kinds.Clusters(), Format: c.output}).Objects(objects)
}

// follow returns when the cluster and its nodes are Ready. The cluster's context is added as soon as it is of use, also
// if the nodes take too long.
func (c *createClusterCommand) follow(ctx context.Context, p *kinds.Client, wanted clusterconfig.Config, isNew bool) error {
	deadline := time.Now().Add(c.timeout)
	left := func() time.Duration { return max(time.Until(deadline).Round(time.Second), time.Second) }
	cluster, err := kinds.WaitForCluster(ctx, c.Err, p, client.ObjectKeyFromObject(wanted.Cluster), c.timeout, c.interval)
	if err != nil {
		return err
	}
	dir, err := c.OpenExisting()
	if err != nil {
		return err
	}
	try := "kubectl --context " + shellquote.Quote(cluster.Spec.Name) + " get nodes"
	if err := tools.MergeKubeconfig(c.Options, dir, c.kubeconfig, dir.Cluster(cluster.Namespace), isNew); err != nil {
		_, _ = fmt.Fprintf(c.Err, "Warning: %v\n", err)
		try = "muster get nodes --cluster " + shellquote.Quote(cluster.Spec.Name)
	}
	for _, group := range wanted.NodeGroups {
		if err := kinds.WaitForNodes(ctx, c.Err, p, kinds.WaitConfig{Group: group, Timeout: left(), Interval: c.interval}); err != nil {
			return err
		}
	}
	_, err = fmt.Fprintf(c.Err, "Cluster %s is ready at %s\nTry: %s\n", cluster.Spec.Name, cluster.Status.Endpoint, try)
	return err
}
