// SPDX-License-Identifier: Apache-2.0

package karpentercontroller

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/arn"
	"muster.dev/muster/internal/iam/identityservice"
	"muster.dev/muster/internal/plane/baseline"
	"muster.dev/muster/internal/plane/component"
)

const (
	// again is the time until the next try of a step that failed, or that waits.
	again = time.Second
	// minorAgain is the time between two looks at the minor of machines.
	minorAgain = 5 * time.Second
	// keptAgain is the time between two looks at what is as it is to be.
	keptAgain = time.Minute
)

// annotationOnce and valueOnce mark the NodePools that are made here.
const annotationOnce, valueOnce = "muster.dev/apply", "once"

// Roles prepares the role of machines: their access to the cluster and an instance profile, whose name it returns.
type Roles interface {
	Prepare(ctx context.Context, role string) (instanceProfile string, err error)
}

// Config is what the controller needs.
type Config struct {
	Plane component.Config
	// Cluster reads and writes the cluster's objects, past any cache.
	Cluster client.Client
	Roles   Roles
	// Minor is the minor of Kubernetes that machines are launched of, as [MinorOf] says.
	Minor func(context.Context) (string, error)
	// Kinds are the CustomResourceDefinitions of Karpenter.
	Kinds func() ([]*unstructured.Unstructured, error)
	// Store is that of the identity service, and Assume makes credentials of the role of a cluster's Karpenter. Store is
	// nil, and Assume fails, while that service does not run.
	Store  func() identityservice.Store
	Assume func(namespace string) (identityservice.Credentials, error)
	// Ended is called once everything is taken away, and Karpenter is to end.
	Ended func()
	Log   *slog.Logger
	Now   func() time.Time
}

// Controller prepares one cluster.
type Controller struct {
	Config
	chosen string // the image that the EC2NodeClass has
}

// New makes a controller.
func New(c Config) (*Controller, error) {
	if c.Cluster == nil || c.Roles == nil || c.Minor == nil || c.Kinds == nil || c.Store == nil || c.Assume == nil || c.Ended == nil || c.Log == nil || c.Now == nil {
		return nil, errors.New("the controller of Karpenter lacks a part of its configuration")
	}
	return &Controller{Config: c}, nil
}

// Left reports whether a cluster has something that is to be taken away before its Karpenter ends.
func Left(c component.Config) bool {
	for _, path := range []string{begun(c), c.KarpenterCredentials()} {
		if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
			return true
		}
	}
	return false
}

// Run keeps the cluster as its spec says until the context ends, or everything is taken away.
func (k *Controller) Run(ctx context.Context) {
	told := ""
	for {
		next, err := k.step(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil && err.Error() != told:
			told = err.Error()
			k.Log.Warn("Karpenter in the control plane waits", "reason", told)
		case err == nil && told != "":
			told = ""
			k.Log.Info("Karpenter in the control plane waits no longer")
		}
		if err == nil && next == 0 {
			k.Ended()
			return
		}
		if err != nil {
			next = again
		}
		k.pause(ctx, next)
	}
}

// step does what is to be done now, and returns when it is to be looked at again: 0 once everything is taken away.
func (k *Controller) step(ctx context.Context) (next time.Duration, err error) {
	if k.Plane.Cluster.Spec.Compute.On() {
		return keptAgain, k.prepare(ctx)
	}
	return 0, k.takeAway(ctx)
}

// prepare does everything that Karpenter needs. The credentials come last: with them Karpenter starts.
func (k *Controller) prepare(ctx context.Context) error {
	if err := k.begin(); err != nil {
		return err
	}
	if err := k.kinds(ctx); err != nil {
		return err
	}
	objects, err := rights(k.Plane)
	if err != nil {
		return err
	}
	if err := baseline.Apply(ctx, k.Cluster, objects); err != nil {
		return err
	}
	role := k.Plane.Cluster.ComputeRole()
	profile, err := k.Roles.Prepare(ctx, role)
	if err != nil {
		return fmt.Errorf("preparing the role %s of machines: %w", role, err)
	}
	roleID, err := k.role(ctx, role)
	if err != nil {
		return err
	}
	image, err := k.image(ctx)
	if err != nil {
		return err
	}
	wanted, unwanted, err := pools(k.Plane, profile, image)
	if err != nil {
		return err
	}
	if err := baseline.Apply(ctx, k.Cluster, wanted); err != nil {
		return err
	}
	k.chosen = image
	for _, pool := range unwanted {
		if err := k.deletePool(ctx, pool); err != nil {
			return err
		}
	}
	return k.credentials(roleID)
}

// kinds defines Karpenter's kinds.
func (k *Controller) kinds(ctx context.Context) error {
	kinds, err := k.Kinds()
	if err != nil {
		return err
	}
	return baseline.Apply(ctx, k.Cluster, kinds)
}

// role makes Karpenter's own role, which may give machines the node role, and returns its id.
func (k *Controller) role(ctx context.Context, nodeRole string) (id string, err error) {
	store := k.Store()
	if store == nil {
		return "", identityservice.ErrNotReady
	}
	state, err := store.State()
	if err != nil {
		return "", err
	}
	name := nodeRole
	if parsed, err := arn.Parse(nodeRole); err == nil {
		_, name, _ = parsed.Role()
	}
	role, ok := state.Role(identityservice.DefaultAccount, name)
	if !ok {
		return "", fmt.Errorf("there is no role %s", nodeRole)
	}
	text, err := policy(k.Plane, identityservice.DefaultAccount, role.ARN().String())
	if err != nil {
		return "", err
	}
	if id, err = identityservice.MakeKarpenterRole(ctx, store, identityservice.DefaultAccount, k.Plane.Dir.Namespace(), text, k.Now()); err != nil {
		return "", fmt.Errorf("making the role %s: %w", v1alpha1.ClusterKarpenterRole(k.Plane.Dir.Namespace()), err)
	}
	return id, nil
}

// deletePool deletes a NodePool that was made here and is not asked for any more. A NodePool that people made stays.
func (k *Controller) deletePool(ctx context.Context, pool *unstructured.Unstructured) error {
	there := &unstructured.Unstructured{}
	there.SetGroupVersionKind(nodePools)
	err := k.Cluster.Get(ctx, client.ObjectKeyFromObject(pool), there)
	if apierrors.IsNotFound(err) || err == nil && (there.GetAnnotations()[annotationOnce] != valueOnce || there.GetDeletionTimestamp() != nil) {
		return nil
	}
	if err == nil {
		err = k.Cluster.Delete(ctx, there)
	}
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting NodePool %s: %w", pool.GetName(), err)
	}
	return nil
}

// takeAway removes everything, step by step: a step that waits returns an error.
func (k *Controller) takeAway(ctx context.Context) error {
	claims, err := k.deleteAll(ctx, nodePools, nodeClaims)
	if err != nil {
		return err
	}
	if claims > 0 {
		return fmt.Errorf("%d NodePools and NodeClaims are being deleted: their machines are drained first", claims)
	}
	classes, err := k.deleteAll(ctx, nodeClasses)
	if err != nil {
		return err
	}
	if classes > 0 {
		return fmt.Errorf("%d EC2NodeClasses are being deleted", classes)
	}
	objects, err := rights(k.Plane)
	if err != nil {
		return err
	}
	for _, object := range objects {
		if err := k.Cluster.Delete(ctx, object); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("deleting %s %s: %w", object.GetKind(), object.GetName(), err)
		}
	}
	store := k.Store()
	if store == nil {
		return identityservice.ErrNotReady
	}
	if err := identityservice.RemoveKarpenterRole(ctx, store, identityservice.DefaultAccount, k.Plane.Dir.Namespace()); err != nil {
		return err
	}
	for _, path := range []string{k.Plane.KarpenterCredentials(), begun(k.Plane)} {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("removing the credentials of Karpenter: %w", err)
		}
	}
	return nil
}

// deleteAll deletes all objects of some kinds, and returns how many are left. A kind that the cluster does not have has
// no objects.
func (k *Controller) deleteAll(ctx context.Context, kinds ...schema.GroupVersionKind) (left int, err error) {
	for _, kind := range kinds {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		err := k.Cluster.List(ctx, list)
		if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return 0, fmt.Errorf("listing objects of kind %s: %w", kind.Kind, err)
		}
		left += len(list.Items)
		for i := range list.Items {
			object := &list.Items[i]
			if object.GetDeletionTimestamp() != nil {
				continue
			}
			if err := k.Cluster.Delete(ctx, object); client.IgnoreNotFound(err) != nil {
				return 0, fmt.Errorf("deleting %s %s: %w", kind.Kind, object.GetName(), err)
			}
		}
	}
	return left, nil
}
