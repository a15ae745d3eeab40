// SPDX-License-Identifier: Apache-2.0

package vpccontroller

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/machine/machine"
	"muster.dev/muster/internal/network/vpc"
)

// Config is what the controller works with.
type Config struct {
	// Root is the directory of all VPCs.
	Root string
	// Zones are the names of the region's availability zones.
	Zones []string
	// Store has the records of all machines, and keeps addresses from being given away meanwhile.
	Store *machine.Store
	// Networks makes and removes networks.
	Networks Networks
	// Processes runs the process of each VPC.
	Processes Processes
	// HostRanges are the addresses of the host that machines reach load balancers by, which are no VPC's.
	HostRanges func() ([]netip.Prefix, error)
}

// Networks makes and removes the networks that descriptions say.
type Networks interface {
	// Ensure makes what is missing of the network of a VPC.
	Ensure(id string) error
	// Remove removes the network, its description and its directory, if there are any.
	Remove(id string) error
}

// Processes runs a process for each VPC.
type Processes interface {
	// Start has the processes of a VPC run from now on that its description asks for, and does not wait for them. A
	// process that the description does not ask for has ended when Start returns. Doing it twice changes nothing.
	Start(ctx context.Context, id string) error
	// Stop ends the processes of a VPC for good, and returns when they have ended.
	Stop(ctx context.Context, id string) error
}

// lookAgain is how often it is looked whether what keeps an object from being deleted is gone.
const lookAgain = 2 * time.Second

// judgeAgain is how soon it is looked again whether a VPC that was refused may be: the range of load balancers may be
// another one by then.
const judgeAgain = 15 * time.Second

// reconciler reconciles one VPC with all its subnets.
type reconciler struct {
	Config
	api client.Client
}

// Reconcile implements [reconcile.Reconciler], by the VPC's name. It need not exist: a subnet may name any.
func (r *reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	subnets, err := r.subnets(ctx, request.Name)
	if err != nil {
		return reconcile.Result{}, err
	}
	var object v1alpha1.VPC
	err = r.api.Get(ctx, types.NamespacedName{Name: request.Name}, &object)
	if client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, fmt.Errorf("reading VPC %s: %w", request.Name, err)
	}
	gone := err != nil || !object.DeletionTimestamp.IsZero() && !controllerutil.ContainsFinalizer(&object, v1alpha1.FinalizerVPC)
	if gone { // or it was never made
		return reconcile.Result{}, r.orphans(ctx, subnets, "there is no VPC "+request.Name)
	}
	if object.DeletionTimestamp.IsZero() {
		refused, err := r.refusal(ctx, object)
		if err != nil {
			return reconcile.Result{}, errors.Join(err, r.say(ctx, &object, verdict{reason: reasonFailed, message: err.Error()}))
		}
		if refused.reason != "" {
			return reconcile.Result{RequeueAfter: judgeAgain}, errors.Join(
				r.orphans(ctx, subnets, "the VPC "+object.Name+" is not made: its condition says why"), r.say(ctx, &object, refused))
		}
		if err := r.hold(ctx, &object, v1alpha1.FinalizerVPC); err != nil {
			return reconcile.Result{}, err
		}
	}
	return r.bring(ctx, &object, subnets)
}

// subnets lists the subnets that name a VPC.
func (r *reconciler) subnets(ctx context.Context, name string) ([]v1alpha1.Subnet, error) {
	var list v1alpha1.SubnetList
	if err := r.api.List(ctx, &list); err != nil {
		return nil, fmt.Errorf("listing subnets: %w", err)
	}
	return slices.DeleteFunc(list.Items, func(s v1alpha1.Subnet) bool { return s.Spec.VPCID != name }), nil
}

// orphans says of the subnets of a VPC that there is no network of. Nothing has an address of them.
func (r *reconciler) orphans(ctx context.Context, subnets []v1alpha1.Subnet, message string) error {
	var errs []error
	for i := range subnets {
		if !subnets[i].DeletionTimestamp.IsZero() {
			errs = append(errs, r.release(ctx, &subnets[i], v1alpha1.FinalizerSubnet))
			continue
		}
		errs = append(errs, r.say(ctx, &subnets[i], verdict{reason: reasonNoVPC, message: message}))
	}
	return errors.Join(errs...)
}

// refusal says why a VPC is not made. Without a reason it is.
func (r *reconciler) refusal(ctx context.Context, object v1alpha1.VPC) (verdict, error) {
	if controllerutil.ContainsFinalizer(&object, v1alpha1.FinalizerVPC) {
		return verdict{}, nil // the finalizer is there once it has been accepted
	}
	taken, err := r.defaultTaken(ctx, object)
	if err != nil {
		return verdict{}, err
	}
	if taken != "" {
		return verdict{reason: reasonDefault, message: taken + " is the account's default VPC: delete this one"}, nil
	}
	cidr, err := netip.ParsePrefix(object.Spec.CIDRBlock)
	if err != nil {
		return verdict{}, nil //nolint:nilerr // makePlan says so
	}
	ranges, err := r.HostRanges()
	if err != nil {
		return verdict{}, err
	}
	if at := slices.IndexFunc(ranges, cidr.Overlaps); at >= 0 {
		return verdict{reason: reasonHostRange, message: fmt.Sprintf(
			"spec.cidrBlock %s overlaps %s, where this host has load balancers: machines could not tell them apart; delete this VPC and make one of another range, or choose another range by `muster up --load-balancer-range`", cidr, ranges[at])}, nil
	}
	return verdict{}, nil
}

// defaultTaken returns the name of the VPC that is the default in place of a new one, if it is not.
func (r *reconciler) defaultTaken(ctx context.Context, object v1alpha1.VPC) (string, error) {
	if !object.Spec.IsDefault {
		return "", nil
	}
	var list v1alpha1.VPCList
	if err := r.api.List(ctx, &list); err != nil {
		return "", fmt.Errorf("listing VPCs: %w", err)
	}
	for _, other := range list.Items {
		older := other.CreationTimestamp.Before(&object.CreationTimestamp) || other.CreationTimestamp.Equal(&object.CreationTimestamp) && other.Name < object.Name
		if other.Name != object.Name && other.Spec.IsDefault && (older || controllerutil.ContainsFinalizer(&other, v1alpha1.FinalizerVPC)) {
			return other.Name, nil
		}
	}
	return "", nil
}

// bring makes the network as its objects say, or removes it.
func (r *reconciler) bring(ctx context.Context, object *v1alpha1.VPC, subnets []v1alpha1.Subnet) (reconcile.Result, error) {
	for i := range subnets {
		if subnets[i].DeletionTimestamp.IsZero() { // before it is described: from then on machines may come into it
			if err := r.hold(ctx, &subnets[i], v1alpha1.FinalizerSubnet); err != nil {
				return reconcile.Result{}, err
			}
		}
	}
	planned, err := r.describe(*object, subnets)
	if err != nil {
		return reconcile.Result{}, errors.Join(err, r.say(ctx, object, verdict{reason: reasonFailed, message: err.Error()}))
	}
	var errs []error
	waiting := false
	for i := range subnets {
		if slices.Contains(planned.released, subnets[i].Name) {
			errs = append(errs, r.release(ctx, &subnets[i], v1alpha1.FinalizerSubnet))
			continue
		}
		waiting = waiting || !subnets[i].DeletionTimestamp.IsZero()
		errs = append(errs, r.say(ctx, &subnets[i], planned.verdicts[subnets[i].Name]))
	}
	if err := errors.Join(errs...); err != nil {
		return reconcile.Result{}, err
	}
	result := reconcile.Result{}
	if waiting {
		result.RequeueAfter = lookAgain
	}
	if object.DeletionTimestamp.IsZero() || len(planned.verdicts) > 0 {
		return result, r.keep(ctx, object, planned)
	}
	return reconcile.Result{}, r.end(ctx, object)
}

// describe writes the description of a VPC, while nobody gets an address of it.
func (r *reconciler) describe(object v1alpha1.VPC, subnets []v1alpha1.Subnet) (planned plan, err error) {
	err = r.Store.Locked(func(records []machine.Record) error {
		before, err := vpc.Read(r.Root, object.Name)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		known := err == nil
		uses, err := r.uses(object.Name, known, records)
		if err != nil {
			return err
		}
		if planned, err = makePlan(facts{vpc: object, subnets: subnets, before: before, zones: r.Zones, uses: uses}); err != nil {
			return err
		}
		if known && reflect.DeepEqual(before, planned.description) || !known && !object.DeletionTimestamp.IsZero() {
			return nil
		}
		return vpc.Describe(r.Root, planned.description)
	})
	return planned, err
}

// uses lists who has addresses of a VPC.
func (r *reconciler) uses(id string, known bool, records []machine.Record) ([]use, error) {
	var uses []use
	for _, record := range records {
		if record.VPC == id {
			uses = append(uses, use{what: "machine " + record.ID, address: record.PrivateIP, subnet: record.Subnet})
			if record.PodSubnet != "" {
				uses = append(uses, use{what: "the pods of machine " + record.ID, address: record.PodRange.Addr(), subnet: record.PodSubnet})
			}
		}
	}
	if !known {
		return uses, nil
	}
	network, err := vpc.Open(r.Root, id)
	if err != nil {
		return nil, err
	}
	endpoints, err := network.Endpoints()
	if err != nil {
		return nil, err
	}
	for _, e := range endpoints {
		for _, address := range e.Addresses {
			uses = append(uses, use{what: "the endpoint of cluster " + e.Cluster, address: address})
		}
		for _, subnet := range e.PodSubnets {
			uses = append(uses, use{what: "cluster " + e.Cluster + " for its pods", subnet: subnet})
		}
	}
	balancers, err := network.Balancers()
	if err != nil {
		return nil, err
	}
	for _, b := range balancers {
		uses = append(uses, use{what: "the load balancer of Service " + b.Namespace + "/" + b.Service + " of cluster " + b.Cluster, address: b.Address})
	}
	return uses, nil
}

// keep has the network there and its process run.
func (r *reconciler) keep(ctx context.Context, object *v1alpha1.VPC, planned plan) error {
	if err := r.Networks.Ensure(object.Name); err != nil {
		return errors.Join(err, r.say(ctx, object, verdict{reason: reasonFailed, message: err.Error()}))
	}
	if err := r.Processes.Start(ctx, object.Name); err != nil {
		return errors.Join(err, r.say(ctx, object, verdict{reason: reasonFailed, message: err.Error()}))
	}
	if planned.egress.reason != "" && object.DeletionTimestamp.IsZero() {
		return r.say(ctx, object, planned.egress)
	}
	if object.DeletionTimestamp.IsZero() {
		return r.say(ctx, object, verdict{ready: true, reason: reasonReady, message: "the network is there"})
	}
	names := make([]string, 0, len(planned.verdicts))
	for name := range planned.verdicts {
		names = append(names, name)
	}
	slices.Sort(names)
	return r.say(ctx, object, verdict{reason: reasonSubnets, message: "it is deleted once its subnets are: " + strings.Join(names, ", ")})
}

// end removes a VPC without subnets: nothing has an address of it.
func (r *reconciler) end(ctx context.Context, object *v1alpha1.VPC) error {
	if err := r.Processes.Stop(ctx, object.Name); err != nil {
		return fmt.Errorf("ending the process of %s: %w", object.Name, err)
	}
	if err := r.Networks.Remove(object.Name); err != nil {
		return fmt.Errorf("removing the network of %s: %w", object.Name, err)
	}
	return r.release(ctx, object, v1alpha1.FinalizerVPC)
}

// hold adds a finalizer.
func (r *reconciler) hold(ctx context.Context, object client.Object, finalizer string) error {
	if !controllerutil.AddFinalizer(object, finalizer) {
		return nil
	}
	if err := r.api.Update(ctx, object); err != nil {
		return fmt.Errorf("adding the finalizer of %s: %w", object.GetName(), err)
	}
	return nil
}

// release removes a finalizer; the object may be gone already.
func (r *reconciler) release(ctx context.Context, object client.Object, finalizer string) error {
	if !controllerutil.RemoveFinalizer(object, finalizer) {
		return nil
	}
	if err := r.api.Update(ctx, object); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("removing the finalizer of %s: %w", object.GetName(), err)
	}
	return nil
}

// say writes the condition Ready of a VPC or a subnet, if it changes.
func (r *reconciler) say(ctx context.Context, object client.Object, v verdict) error {
	var conditions *[]metav1.Condition
	var observed *int64
	switch object := object.(type) {
	case *v1alpha1.VPC:
		conditions, observed = &object.Status.Conditions, &object.Status.ObservedGeneration
	case *v1alpha1.Subnet:
		conditions, observed = &object.Status.Conditions, &object.Status.ObservedGeneration
	default:
		return fmt.Errorf("%T has no conditions", object)
	}
	status := metav1.ConditionFalse
	if v.ready {
		status = metav1.ConditionTrue
	}
	changed := meta.SetStatusCondition(conditions, metav1.Condition{
		Type: v1alpha1.ConditionReady, Status: status, Reason: v.reason, Message: v.message, ObservedGeneration: object.GetGeneration(),
	})
	if !changed && *observed == object.GetGeneration() {
		return nil
	}
	*observed = object.GetGeneration()
	if err := r.api.Status().Update(ctx, object); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("writing the status of %s: %w", object.GetName(), err)
	}
	return nil
}
