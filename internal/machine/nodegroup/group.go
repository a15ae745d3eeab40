// SPDX-License-Identifier: Apache-2.0

package nodegroup

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/machine/hostroot"
	"muster.dev/muster/internal/machine/plan"
)

// groups gives NodeGroups the machines they ask for.
type groups struct {
	parts
	writes writes
}

// Reconcile compares, acts, and writes down what it saw.
func (r *groups) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	group := &v1alpha1.NodeGroup{}
	if err := r.management.Get(ctx, request.NamespacedName, group); apierrors.IsNotFound(err) {
		if request.Namespace != r.namespace() {
			return reconcile.Result{}, nil
		}
		return again(r.gone(ctx, request.NamespacedName))
	} else if err != nil {
		return reconcile.Result{}, fmt.Errorf("reading the node group: %w", err)
	}
	if group.Namespace != r.namespace() {
		return again(r.notServed(ctx, group))
	}
	// Every write below reads the group anew. A decision before a write is about the group as it was then.
	deleting := !group.DeletionTimestamp.IsZero()
	if deleting && !held(group, v1alpha1.FinalizerNodeGroup) {
		return reconcile.Result{}, nil
	}
	if !deleting {
		before := group.DeepCopy()
		if controllerutil.AddFinalizer(group, v1alpha1.FinalizerNodeGroup) {
			if err := r.management.Patch(ctx, group, lockedPatch(before)); err != nil {
				return again(fmt.Errorf("adding the finalizer: %w", err))
			}
		}
	}
	before := group.DeepCopy()
	machines, err := r.act(ctx, group)
	if errors.Is(err, errGoing) {
		return reconcile.Result{RequeueAfter: catchUp}, nil
	}
	r.sum(group, machines, err)
	wait, written := r.writeStatus(ctx, before, group)
	if written != nil {
		return again(written)
	}
	if after := unheard(err); after > 0 {
		return reconcile.Result{RequeueAfter: after}, nil
	}
	if _, ok := errors.AsType[*unbalanced](err); ok {
		wait = soonest(wait, balanceAgain)
	} else if err != nil {
		return again(err)
	}
	if progressOf(group) != nil {
		return reconcile.Result{RequeueAfter: soonest(rolloutAgain, wait)}, nil
	}
	wait = soonest(wait, repairWait(group, r.Now()), untilFailed(machines, r.Now()))
	if slices.ContainsFunc(machines, func(m v1alpha1.Machine) bool { return refusalOf(&m) != nil }) {
		return reconcile.Result{RequeueAfter: soonest(rolloutAgain, wait)}, nil // it becomes an issue of the group, or goes
	}
	if !deleting || len(machines) > 0 {
		return reconcile.Result{RequeueAfter: wait}, nil
	}
	return again(r.release(ctx, group))
}

const (
	// roleAgain is how often a role that cannot be that of nodes is looked at again.
	roleAgain = 2 * time.Second
	// notYetAgain is how often it is looked whether the first role is there; a new cluster waits for it.
	notYetAgain = 50 * time.Millisecond
	// hostRootAgain is how often the owner's list is read by a group that is not on it.
	hostRootAgain = 2 * time.Second
)

// unheard is when to look again after an error that somebody may mend without an event; 0 after others.
func unheard(err error) time.Duration {
	if _, ok := errors.AsType[*RoleProblem](err); ok {
		return roleAgain
	}
	if p, ok := errors.AsType[*problem](err); ok && p.again > 0 {
		return p.again
	}
	if errors.Is(err, ErrNotYet) {
		return notYetAgain
	}
	return 0
}

// reasonHostRoot is a group's whose machines would be root on a host whose owner has not allowed it.
const reasonHostRoot = "HostRootNotAllowed"

// problem is a state of a NodeGroup that trying again does not mend: somebody has to change something.
type problem struct {
	reason, message string
	again           time.Duration // when to look again all the same; 0 if the change that mends it is heard of
}

func (p *problem) Error() string { return p.message }

// act carries out the plan, and returns the group's machines as they were seen last.
func (r *groups) act(ctx context.Context, group *v1alpha1.NodeGroup) ([]v1alpha1.Machine, error) {
	machines, strangers, err := r.list(ctx, r.management, group)
	if err != nil {
		return nil, err
	}
	if slices.ContainsFunc(strangers, alive) {
		if err := r.endOrphans(ctx, client.ObjectKeyFromObject(group)); err != nil {
			return machines, err
		}
	}
	if group.DeletionTimestamp.IsZero() {
		of, err := r.check(ctx, group)
		if err == nil {
			err = r.version(group, machines, of)
		}
		if err != nil {
			return machines, err
		}
	}
	if ended, err := r.endSome(ctx, group, machines); err != nil {
		return machines, err
	} else if ended {
		if machines, _, err = r.list(ctx, r.managementLive, group); err != nil {
			return nil, err
		}
	}
	step, err := r.step(group, machines)
	if err != nil {
		return machines, err
	}
	of := scaler{r, group}
	to, err := of.aims(ctx, step)
	if err != nil {
		return machines, err
	}
	if !deletes(step) && len(planned(group, machines, to, r.Now())) == 0 {
		return machines, of.settleSpares(ctx, machines)
	}
	// The cache may not show yet what was made or deleted a moment ago, so nothing is done before the API server says
	// the same. This keeps a group from overshooting.
	machines, _, err = r.list(ctx, r.managementLive, group)
	if err != nil {
		return nil, err
	}
	if to.step, err = r.step(group, machines); err != nil {
		return machines, err
	}
	if replaced, err := r.replace(ctx, group, machines, to.step.Actions); err != nil || replaced {
		return machines, err
	}
	return machines, of.scale(ctx, machines, to)
}

// step is the size that the group is to have now, and what its rollout does next.
func (r *groups) step(group *v1alpha1.NodeGroup, machines []v1alpha1.Machine) (plan.Step, error) {
	if !group.DeletionTimestamp.IsZero() {
		return plan.Step{}, nil
	}
	return r.rollout(group, machines)
}

// deletes reports whether a step of a rollout has a machine deleted.
func deletes(step plan.Step) bool {
	return slices.ContainsFunc(step.Actions, func(action plan.Action) bool { return action.Delete != "" })
}

// notServed says of a group in another namespace than the cluster's why it gets no machines, and does not keep it.
func (r *groups) notServed(ctx context.Context, group *v1alpha1.NodeGroup) error {
	if !group.DeletionTimestamp.IsZero() {
		if !held(group, v1alpha1.FinalizerNodeGroup) {
			return nil
		}
		return r.letGroupGo(ctx, group)
	}
	before := group.DeepCopy()
	r.sum(group, nil, &problem{reason: "ClusterNotFound", message: fmt.Sprintf("namespace %s holds no cluster that this service runs: make the group again in namespace %s, of cluster %q",
		group.Namespace, r.namespace(), r.ClusterName)})
	_, err := r.writeStatus(ctx, before, group)
	return err
}

// check reads the cluster of a group. It returns a *problem if the group must not have machines as it is.
func (r *groups) check(ctx context.Context, group *v1alpha1.NodeGroup) (*v1alpha1.Cluster, error) {
	if wrong := v1alpha1.ValidateNodeGroup(group).ToAggregate(); wrong != nil {
		return nil, &problem{reason: "Invalid", message: wrong.Error()}
	}
	of := &v1alpha1.Cluster{}
	err := r.management.Get(ctx, client.ObjectKey{Namespace: r.namespace(), Name: r.namespace()}, of)
	if apierrors.IsNotFound(err) {
		return nil, &problem{reason: "ClusterNotFound", message: fmt.Sprintf("there is no Cluster %q; the group gets its machines when there is", r.ClusterName)}
	}
	if err != nil {
		return nil, fmt.Errorf("reading the cluster: %w", err)
	}
	if group.Spec.Isolation != v1alpha1.IsolationNone {
		return of, nil
	}
	allowed, err := r.hostRoot(r.ClusterName)
	if err == nil && !allowed {
		err = hostroot.Refused{Cluster: r.ClusterName}
	}
	if err != nil {
		return nil, &problem{reason: reasonHostRoot, message: err.Error(), again: hostRootAgain}
	}
	return of, nil
}

// carryOut does what an action says, and returns the machines of the group, new ones included.
func (r *groups) carryOut(ctx context.Context, group *v1alpha1.NodeGroup, machines []v1alpha1.Machine, action plan.Action) ([]v1alpha1.Machine, error) {
	switch {
	case action.Create > 0 || action.Warm > 0:
		return r.make(ctx, group, machines, action)
	case action.Take != "" || action.Return != "":
		return machines, r.move(ctx, group, machines, action)
	}
	return machines, scaler{r, group}.end(ctx, machines, action)
}

// end deletes a machine of a group.
func (r scaler) end(ctx context.Context, machines []v1alpha1.Machine, action plan.Action) error {
	i := slices.IndexFunc(machines, func(m v1alpha1.Machine) bool { return m.Name == action.Delete })
	cause := warmShrinkCause(r.Now())
	if machines[i].Spec.WarmPool == "" {
		cause = r.endCause(&machines[i], machines)
	}
	if err := r.endBecause(ctx, &machines[i], cause); err != nil {
		return err
	}
	machines[i].DeletionTimestamp = new(metav1.NewTime(r.Now())) // it counts no more
	r.recorder.Eventf(r.group, nil, corev1.EventTypeNormal, "ScalingDown", "Delete", "deleted machine %s: %s", action.Delete, action.Reason)
	return nil
}

// make makes machines for a group or for its warm pool, as many as there is room for, and returns the machines of the group, new ones included.
func (r *groups) make(ctx context.Context, group *v1alpha1.NodeGroup, machines []v1alpha1.Machine, action plan.Action) ([]v1alpha1.Machine, error) {
	if err := r.stillWanted(ctx, r.managementLive, group); err != nil {
		return machines, err
	}
	profile, err := r.profile(ctx, group)
	if err != nil {
		return machines, err
	}
	left, err := r.room(ctx, group)
	if err != nil {
		return machines, err
	}
	defer left.Release()
	subnets, short := r.place(ctx, group, machines, action.Create+action.Warm, action.Zones)
	subnets, short = fit(left, group, subnets, short)
	if p, ok := errors.AsType[*problem](short); ok && evens(action) {
		short = &unbalanced{p.message}
	}
	if short != nil && len(subnets) == 0 {
		return machines, short
	}
	had, has := machines, count(machines)
	for i, subnet := range subnets {
		if err := r.stillWanted(ctx, r.management, group); err != nil { // making many takes a while
			return machines, err
		}
		machine, err := newMachine(r.Config, group, profile, subnet, r.Random)
		if err != nil {
			return machines, err
		}
		cause := growCause(r.Now(), has+i, has+i+1)
		if action.Warm > 0 {
			machine.Spec.WarmPool, cause = group.Spec.WarmPool.State(), warmGrowCause(r.Now())
		}
		if evens(action) {
			if cause, err = (scaler{r, group}).spareOf(machine, had); err != nil {
				return machines, err
			}
		}
		launchedBy(machine, group, cause)
		if err := r.management.Create(ctx, machine); err != nil {
			return machines, fmt.Errorf("making a machine: %w", err)
		}
		machines = append(machines, *machine)
	}
	r.recorder.Eventf(group, nil, corev1.EventTypeNormal, "ScalingUp", "Create", "made %s: %s", machinesOf(int32(len(subnets))), action.Reason) //nolint:gosec // a group has 5,000 at most
	return machines, short
}

// profile is the instance profile of machines that are made now, or "" if they join by token.
func (r *groups) profile(ctx context.Context, group *v1alpha1.NodeGroup) (string, error) {
	role := group.Role()
	if role == "" {
		return "", nil
	}
	if r.NodeRoles == nil {
		return "", &problem{reason: "NoRoles", message: "this service has no IAM roles; set spec.bootstrap to Token"}
	}
	profile, err := r.NodeRoles.Prepare(ctx, role)
	if err != nil {
		return "", fmt.Errorf("preparing the node role %s: %w", role, err)
	}
	return profile, nil
}

// idDigits is how many digits an instance id has, of idBytes random bytes.
const (
	idDigits = 17
	idBytes  = (idDigits + 1) / 2
)

func newMachine(config Config, group *v1alpha1.NodeGroup, profile, subnet string, random io.Reader) (*v1alpha1.Machine, error) {
	id := make([]byte, idBytes)
	if _, err := io.ReadFull(random, id); err != nil {
		return nil, fmt.Errorf("drawing an instance id: %w", err)
	}
	machine := &v1alpha1.Machine{
		ObjectMeta: metav1.ObjectMeta{
			Name:       "i-" + hex.EncodeToString(id)[:idDigits],
			Labels:     map[string]string{v1alpha1.LabelCluster: v1alpha1.ClusterSlug(config.ClusterName), v1alpha1.LabelNodeGroup: group.Name},
			Finalizers: []string{v1alpha1.FinalizerMachine},
		},
		Spec: v1alpha1.MachineSpec{
			ClusterName:  config.ClusterName,
			NodeGroup:    group.Spec.Name,
			NodeGroupUID: group.UID,
			Provider:     group.Spec.Provider,
			SubnetID:     v1alpha1.SubnetID(subnet),

			ImageID:         imageOf(config, group),
			Isolation:       group.Spec.Isolation,
			SimulatePods:    group.Spec.SimulatePods,
			InstanceProfile: profile,
		},
	}
	if group.Spec.Rollout != nil {
		machine.Spec.Rollout = group.Spec.Rollout.ID
	}
	spec := group.Spec.DeepCopy()
	machine.Spec.Labels, machine.Spec.Taints, machine.Spec.LaunchTemplate = spec.Labels, spec.Taints, spec.Launched()
	machine.Spec.DiskSize = spec.EKS.DiskSize
	if template := machine.Spec.LaunchTemplate; template != nil {
		machine.Spec.SecurityGroupIDs, machine.Spec.Tags, machine.Spec.KeyName = template.SecurityGroupIDs, template.Tags, template.KeyName
	}
	if access := spec.EKS.RemoteAccess; access != nil && machine.Spec.KeyName == "" {
		machine.Spec.KeyName = access.EC2SSHKey
	}
	return machine, nil
}

// ofCluster names the groups that a Cluster's coming or going is about.
func (r *groups) ofCluster(ctx context.Context, object client.Object) []reconcile.Request {
	list := &v1alpha1.NodeGroupList{}
	if err := r.management.List(ctx, list, client.InNamespace(object.GetNamespace())); err != nil {
		r.Log.ErrorContext(ctx, "cannot list node groups", "cluster", object.GetName(), "error", err)
		return nil
	}
	var requests []reconcile.Request
	for _, group := range list.Items {
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&group)})
	}
	return requests
}

// lockedPatch is a patch that fails if the object changed since it was read, as from a cache that is behind.
func lockedPatch(before client.Object) client.Patch {
	return client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
}

// catchUp is when a cache that is behind may have caught up.
const catchUp = 20 * time.Millisecond

// again turns an error into what the queue does next. A conflict is not an error: the cache is behind, and the next
// look is due when it may have caught up. A problem is not one either: it is in the status, and the change that mends
// it is an event of its own.
func again(err error) (reconcile.Result, error) {
	var p *problem
	switch {
	case err == nil, errors.As(err, &p):
		return reconcile.Result{}, nil
	case apierrors.IsConflict(err):
		return reconcile.Result{RequeueAfter: catchUp}, nil
	}
	return reconcile.Result{}, err
}
