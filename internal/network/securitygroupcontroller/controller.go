// SPDX-License-Identifier: Apache-2.0

package securitygroupcontroller

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/network/securitygroup"
	"muster.dev/muster/internal/network/vpc"
)

// Networks has rules in force.
type Networks interface {
	// Enforce has the groups of a VPC in force in one step, with the machines that are in them and the groups of
	// clusters' API servers, by the cluster's name. The error is [fs.ErrNotExist] if the VPC is not made.
	Enforce(id string, groups []securitygroup.Group, interfaces []vpc.Interface, endpoints map[string][]string) error
}

// lookAgain is how often it is looked whether a VPC is made, and whether a group that is being deleted is out of use.
const lookAgain = 2 * time.Second

// reconciler reconciles the security groups of one VPC.
type reconciler struct {
	networks Networks
	api      client.Client
}

// Reconcile implements [reconcile.Reconciler], by the VPC's name.
func (r *reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	var network v1alpha1.VPC
	err := r.api.Get(ctx, types.NamespacedName{Name: request.Name}, &network)
	if client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, fmt.Errorf("reading VPC %s: %w", request.Name, err)
	}
	found, problem := r.gather(ctx, request.Name)
	if problem != nil {
		return reconcile.Result{}, problem
	}
	if err != nil { // the VPC is gone, or it was never made
		return reconcile.Result{}, r.orphans(ctx, found)
	}
	p := makePlan(found)
	if err := r.make(ctx, p.missing); err != nil {
		return reconcile.Result{}, err
	}
	enforced := r.networks.Enforce(request.Name, p.groups, p.interfaces, p.endpoints)
	if errors.Is(enforced, fs.ErrNotExist) {
		return reconcile.Result{RequeueAfter: lookAgain}, r.sayAll(ctx, found.groups, verdict{reason: reasonNoVPC, message: "the VPC " + request.Name + " is not made yet: its condition says why"})
	}
	if enforced != nil {
		return reconcile.Result{}, errors.Join(enforced, r.sayAll(ctx, found.groups, verdict{reason: reasonFailed, message: enforced.Error()}))
	}
	return r.conclude(ctx, found, p)
}

// gather reads what a plan is made from.
func (r *reconciler) gather(ctx context.Context, id string) (facts, error) {
	f := facts{vpc: id}
	var groups v1alpha1.SecurityGroupList
	var machines v1alpha1.MachineList
	var clusters v1alpha1.ClusterList
	var subnets v1alpha1.SubnetList
	if err := errors.Join(r.api.List(ctx, &groups), r.api.List(ctx, &machines, client.UnsafeDisableDeepCopy), r.api.List(ctx, &clusters), r.api.List(ctx, &subnets)); err != nil {
		return f, fmt.Errorf("reading the security groups of %s: %w", id, err)
	}
	for _, group := range groups.Items {
		if group.Spec.VPCID == id {
			f.groups = append(f.groups, group)
		}
	}
	own := map[v1alpha1.SubnetID]bool{}
	for _, subnet := range subnets.Items {
		own[v1alpha1.SubnetID(subnet.Name)] = subnet.Spec.VPCID == id
	}
	in := map[string]bool{}
	for _, cluster := range clusters.Items {
		if cluster.Status.VPCID == id {
			in[cluster.Spec.Name] = true
			f.clusters = append(f.clusters, cluster)
		}
	}
	for _, m := range machines.Items {
		if own[m.Spec.SubnetID] || m.Spec.SubnetID == "" && in[m.Spec.ClusterName] {
			f.machines = append(f.machines, m)
		}
	}
	return f, nil
}

// orphans deletes groups of deleted VPCs and reports groups whose VPC never existed.
func (r *reconciler) orphans(ctx context.Context, f facts) error {
	var errs []error
	for i := range f.groups {
		group := &f.groups[i]
		if !controllerutil.ContainsFinalizer(group, v1alpha1.FinalizerSecurityGroup) && group.DeletionTimestamp.IsZero() {
			errs = append(errs, r.say(ctx, group, verdict{reason: reasonNoVPC, message: "there is no VPC " + group.Spec.VPCID + ": delete the group"}))
			continue
		}
		if !group.DeletionTimestamp.IsZero() {
			errs = append(errs, r.release(ctx, group))
		} else if err := r.api.Delete(ctx, group); client.IgnoreNotFound(err) != nil { // its deletion is heard of
			errs = append(errs, fmt.Errorf("deleting %s, whose VPC is gone: %w", group.Name, err))
		}
	}
	return errors.Join(errs...)
}

// make makes the groups that the VPC and its clusters come with.
func (r *reconciler) make(ctx context.Context, missing []v1alpha1.SecurityGroup) error {
	for i := range missing {
		if err := r.api.Create(ctx, &missing[i]); err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("making the security group %s: %w", missing[i].Spec.GroupName, err)
		}
	}
	return nil
}

// conclude says of each group what it came to, once rules are in force.
func (r *reconciler) conclude(ctx context.Context, f facts, p plan) (reconcile.Result, error) {
	var errs []error
	result := reconcile.Result{}
	for i := range f.groups {
		group := &f.groups[i]
		if p.released[group.Name] {
			errs = append(errs, r.release(ctx, group))
			continue
		}
		if p.ended[group.Name] && group.DeletionTimestamp.IsZero() {
			if err := r.api.Delete(ctx, group, client.Preconditions{UID: &group.UID}); client.IgnoreNotFound(err) != nil {
				errs = append(errs, fmt.Errorf("deleting %s, whose cluster is gone: %w", group.Name, err))
			}
			continue
		}
		if !group.DeletionTimestamp.IsZero() {
			result.RequeueAfter = lookAgain
		} else if err := r.hold(ctx, group); err != nil {
			errs = append(errs, err)
			continue
		}
		errs = append(errs, r.say(ctx, group, p.verdicts[group.Name]))
	}
	return result, errors.Join(errs...)
}

// hold adds the finalizer.
func (r *reconciler) hold(ctx context.Context, group *v1alpha1.SecurityGroup) error {
	before := group.DeepCopy()
	if !controllerutil.AddFinalizer(group, v1alpha1.FinalizerSecurityGroup) {
		return nil
	}
	if err := r.api.Patch(ctx, group, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("adding the finalizer of %s: %w", group.Name, err)
	}
	return nil
}

// release removes the finalizer; the group may be gone already.
func (r *reconciler) release(ctx context.Context, group *v1alpha1.SecurityGroup) error {
	before := group.DeepCopy()
	if !controllerutil.RemoveFinalizer(group, v1alpha1.FinalizerSecurityGroup) {
		return nil
	}
	if err := r.api.Patch(ctx, group, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("removing the finalizer of %s: %w", group.Name, err)
	}
	return nil
}

func (r *reconciler) sayAll(ctx context.Context, groups []v1alpha1.SecurityGroup, v verdict) error {
	var errs []error
	for i := range groups {
		errs = append(errs, r.say(ctx, &groups[i], v))
	}
	return errors.Join(errs...)
}

// say writes the condition Ready of a group, if it changes.
func (r *reconciler) say(ctx context.Context, group *v1alpha1.SecurityGroup, v verdict) error {
	status := metav1.ConditionFalse
	if v.ready {
		status = metav1.ConditionTrue
	}
	before := group.DeepCopy()
	changed := meta.SetStatusCondition(&group.Status.Conditions, metav1.Condition{
		Type: v1alpha1.ConditionReady, Status: status, Reason: v.reason, Message: v.message, ObservedGeneration: group.Generation,
	})
	if !changed && group.Status.ObservedGeneration == group.Generation {
		return nil
	}
	group.Status.ObservedGeneration = group.Generation
	if err := r.api.Status().Patch(ctx, group, client.MergeFrom(before)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("writing the status of %s: %w", group.Name, err)
	}
	return nil
}
