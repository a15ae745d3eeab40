// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/cluster/clustercontroller"
	"muster.dev/muster/internal/cluster/insight"
	"muster.dev/muster/internal/iam/identityservice"
	"muster.dev/muster/internal/plane/baseline"
	"muster.dev/muster/internal/plane/component"
	"muster.dev/muster/internal/plane/runner"
	"muster.dev/muster/internal/platform/release"
	"muster.dev/muster/internal/storage/volumedriver"
)

// clusterHosts runs the clusters that Cluster objects ask for.
type clusterHosts struct {
	*Service
	account component.Account
	api     client.Client // of the management plane
}

// Host implements [clustercontroller.Hosts].
func (c clusterHosts) Host(ctx context.Context, object *v1alpha1.Cluster) error {
	dir := c.cfg.State.Cluster(object.Namespace)
	if dir.BeingRemoved() { // what is left of an earlier one whose object was taken off by force
		if err := c.Remove(ctx, object); err != nil {
			return err
		}
	}
	if h := c.cluster(object.Namespace); h != nil {
		served, _ := c.State(object.Namespace)
		err := h.adopt(object, c.move(ctx, object), c.settings(ctx, h))
		if _, ok := errors.AsType[unasked](err); ok {
			return err
		}
		if err != nil && !served { // its own controllers say so while it is served
			return clustercontroller.ChangeRefused(err)
		}
		return nil
	}
	if _, err := os.Stat(dir.Record()); err == nil || !errors.Is(err, fs.ErrNotExist) {
		return err // it is about to be run
	}
	if err := clustercontroller.Admit(component.Config{Account: c.account, Dir: dir, Cluster: *object.DeepCopy()}); err != nil {
		return err
	}
	if err := c.admitGates(ctx, object); err != nil {
		return err
	}
	c.making.Lock() // so that the next one knows that this one is about to need memory
	defer c.making.Unlock()
	available, err := c.memory()
	if err != nil {
		return err
	}
	if err := clustercontroller.CheckMemory(c.cfg.State, available, func(namespace string) bool { served, _ := c.State(namespace); return served }); err != nil {
		return err
	}
	if err := clustercontroller.Begin(dir, object); err != nil {
		return err
	}
	c.cfg.Log.Info("a cluster was asked for", "cluster", object.Namespace)
	c.lookForNew()
	return nil
}

// move refuses a release that the control plane of a cluster cannot be taken to now, unless people have forced it.
func (c clusterHosts) move(ctx context.Context, object *v1alpha1.Cluster) func(to release.Release) error {
	return func(to release.Release) error {
		refusal, against, err := versions{c.Service, c.api}.checkMove(ctx, object, to, func(v1alpha1.Machine) bool { return false })
		switch {
		case err != nil:
			return unasked{err}
		case refusal != "":
			return errors.New(refusal)
		case len(against) > 0 && object.Annotations[v1alpha1.AnnotationForceVersion] != to.Minor():
			return fmt.Errorf("spec.version: insights are against %s (M-UPDATE-71): %s: mend that, or go on all the same by the annotation %s=%[1]s of the Cluster", to.Minor(), insight.Summary(against), v1alpha1.AnnotationForceVersion)
		}
		return nil
	}
}

// State implements [clustercontroller.Hosts].
func (c clusterHosts) State(namespace string) (served bool, message string) {
	h := c.cluster(namespace)
	if h == nil {
		return false, ""
	}
	h.mu.Lock()
	served, message = h.reader != nil, h.message
	h.mu.Unlock()
	return served, cmp.Or(message, runner.Summary(h.components(), time.Now()))
}

// Remove implements [clustercontroller.Hosts].
func (c clusterHosts) Remove(ctx context.Context, object *v1alpha1.Cluster) error {
	if err := c.removeCluster(ctx, c.account, object.Spec.Name, c.cfg.State.Cluster(object.Namespace)); err != nil {
		return err
	}
	if err := volumedriver.RemoveCluster(ctx, c.api, c.files, object.Spec.Name); err != nil {
		return err
	}
	if err := c.removeNodeRole(ctx, object.Namespace); err != nil {
		return err
	}
	if err := identityservice.RemoveKarpenterRole(ctx, c.identityStore(), identityservice.DefaultAccount, object.Namespace); err != nil {
		return fmt.Errorf("removing the role of Karpenter of cluster %s: %w", object.Spec.Name, err)
	}
	binding := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: baseline.BindingInventory(object.Namespace)}}
	if err := c.api.Delete(ctx, binding); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("removing what cluster %s may do in the management plane: %w", object.Spec.Name, err)
	}
	return nil
}
