// SPDX-License-Identifier: Apache-2.0

package fis

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/arn"
	"muster.dev/muster/internal/cloud/awsresource"
	"muster.dev/muster/internal/cloud/experiment"
	"muster.dev/muster/internal/platform/readcache"
)

// look is the time between two looks at experiments. Without an active one a look is a list from memory.
const look = time.Second

// mayInterrupt is what a role must be allowed for each instance.
const mayInterrupt = "ec2:SendSpotInstanceInterruptions"

// Watch brings experiments forward until the context ends.
func (e *Experiments) Watch(ctx context.Context) {
	for {
		if err := e.advance(ctx); err != nil && ctx.Err() == nil {
			e.Log.WarnContext(ctx, "experiments were not brought forward; they will be", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-e.begun:
		case <-time.After(look):
		}
	}
}

// advance takes the next step of each active experiment, and forgets the oldest of those that have ended.
func (e *Experiments) advance(ctx context.Context) error {
	all, err := experiments.List(readcache.Allow(ctx), e.Management)
	if err != nil {
		return err
	}
	var errs []error
	var ended []experimentRecord
	for i := range all {
		if r := &all[i]; r.Data.active() {
			errs = append(errs, e.step(ctx, r))
		} else {
			ended = append(ended, *r)
		}
	}
	if len(ended) > maxEnded {
		slices.SortFunc(ended, func(x, y experimentRecord) int {
			return cmp.Or(x.Created.Compare(y.Created), strings.Compare(x.ID, y.ID))
		})
		for i := range len(ended) - maxEnded {
			errs = append(errs, client.IgnoreNotFound(experiments.Delete(ctx, e.Management, ended[i].ID)))
		}
	}
	return errors.Join(errs...)
}

// step takes the next step of an experiment.
func (e *Experiments) step(ctx context.Context, r *experimentRecord) error {
	switch r.Data.Status {
	case initiating:
		return e.begin(ctx, r)
	case stopping:
		if err := e.each(ctx, r, e.endDrill); err != nil {
			return err
		}
		return e.end(ctx, r, stopped, "Experiment stopped.")
	}
	over := true
	err := e.each(ctx, r, func(ctx context.Context, id string, a experiment.Action, began time.Time) error {
		done, err := e.drill(ctx, id, a, began)
		over = over && done
		return err
	})
	if err != nil || !over {
		return err
	}
	return e.end(ctx, r, completed, "Experiment completed.")
}

// begin resolves the targets of an experiment and asks IAM about each instance; after that, the actions run. An
// experiment that cannot begin is failed.
func (e *Experiments) begin(ctx context.Context, r *experimentRecord) error {
	instances, err := e.instances(ctx)
	if err != nil {
		return err
	}
	resolved := map[string][]string{}
	for _, name := range slices.Sorted(maps.Keys(r.Data.Template.Targets)) {
		ids, err := r.Data.Template.Targets[name].Choose(r.Name, instances)
		if err == nil && len(ids) == 0 && r.Data.Template.Empty != experiment.EmptySkips {
			err = errors.New("it resolves to no spot instance")
		}
		if err != nil {
			return e.end(ctx, r, failed, fmt.Sprintf("Target resolution failed: target %s: %v.", name, err))
		}
		resolved[name] = ids
		for _, id := range ids {
			i := instances[slices.IndexFunc(instances, func(i experiment.Instance) bool { return i.ID == id })]
			use := Use{r.Data.Template.RoleARN, e.experimentARN(r.Name), mayInterrupt, i.ARN, awsresource.ResourceTags(nil, i.Tags, "ec2")}
			if err := e.Role(ctx, use); err != nil {
				return e.end(ctx, r, failed, fmt.Sprintf("The experiment's role may not interrupt instance %s: %v", id, err))
			}
		}
	}
	began := e.Now().UTC().Truncate(time.Microsecond)
	if err := e.change(ctx, r, func(data *running) {
		data.Status, data.Reason, data.Began, data.Resolved = runs, "Experiment is running.", &began, resolved
	}); err != nil {
		return err
	}
	e.tell()
	return nil
}

// end records that an experiment has ended.
func (e *Experiments) end(ctx context.Context, r *experimentRecord, status, reason string) error {
	ended := e.Now().UTC().Truncate(time.Second)
	return e.change(ctx, r, func(data *running) { data.Status, data.Reason, data.Ended = status, reason, &ended })
}

// errMoved says that somebody else has brought an experiment forward, or asked for its end.
var errMoved = errors.New("the experiment has another state by now")

// change changes an experiment that still has the state that it was seen in. Any other is left for the next look.
func (e *Experiments) change(ctx context.Context, seen *experimentRecord, change func(*running)) error {
	_, err := experiments.Update(ctx, e.Management, seen.ID, func(r *experimentRecord) error {
		if r.Data.Status != seen.Data.Status {
			return errMoved
		}
		change(&r.Data)
		return nil
	})
	if errors.Is(err, errMoved) || apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// each calls a function for each instance of each action of an experiment that has begun.
func (e *Experiments) each(ctx context.Context, r *experimentRecord, do func(ctx context.Context, id string, a experiment.Action, began time.Time) error) error {
	if r.Data.Began == nil {
		return nil
	}
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(r.Data.Template.Actions)) {
		a := r.Data.Template.Actions[name]
		for _, id := range r.Data.Resolved[a.Target()] {
			errs = append(errs, do(ctx, id, a, *r.Data.Began))
		}
	}
	return errors.Join(errs...)
}

// drill gives an instance the drill that an action has for it next. It reports whether the action is over for it.
func (e *Experiments) drill(ctx context.Context, id string, a experiment.Action, began time.Time) (over bool, err error) {
	lasts, err := a.Before()
	if err != nil {
		return false, err
	}
	var gone bool
	gone, err = e.changeMachine(ctx, id, func(m *v1alpha1.Machine) {
		var wanted *v1alpha1.MachineDrill
		if wanted, over = experiment.Drill(m.Spec.Drill, m.Status.Drill, began, lasts, e.Now()); wanted != nil {
			m.Spec.Drill = wanted
		}
	})
	return over || gone, err
}

// endDrill takes back the drill that an action has given an instance.
func (e *Experiments) endDrill(ctx context.Context, id string, _ experiment.Action, began time.Time) error {
	_, err := e.changeMachine(ctx, id, func(m *v1alpha1.Machine) {
		if experiment.Own(m.Spec.Drill, began) {
			m.Spec.Drill = nil
		}
	})
	return err
}

// changeMachine changes a machine's drill. It reports whether the machine is gone, or on its way.
func (e *Experiments) changeMachine(ctx context.Context, id string, change func(*v1alpha1.Machine)) (gone bool, err error) {
	for {
		m := &v1alpha1.Machine{}
		if err := e.Management.Get(ctx, client.ObjectKey{Name: id}, m); apierrors.IsNotFound(err) {
			return true, nil
		} else if err != nil {
			return false, fmt.Errorf("reading machine %s: %w", id, err)
		}
		if !m.DeletionTimestamp.IsZero() {
			return true, nil
		}
		before := m.DeepCopy()
		change(m)
		if m.Spec.Drill == before.Spec.Drill || m.Spec.Drill != nil && before.Spec.Drill != nil && *m.Spec.Drill == *before.Spec.Drill {
			return false, nil
		}
		err := e.Management.Patch(ctx, m, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
		if err == nil || apierrors.IsNotFound(err) {
			return err != nil, nil
		}
		if !apierrors.IsConflict(err) || ctx.Err() != nil {
			return false, fmt.Errorf("changing the drill of machine %s: %w", id, err)
		}
	}
}

func (e *Experiments) instanceARN(id string) string {
	return arn.ARN{Partition: "aws", Service: "ec2", Region: e.Region, Account: e.AccountID, Resource: "instance/" + id}.String()
}

func (e *Experiments) experimentARN(id string) string {
	return arn.ARN{Partition: "aws", Service: Service, Region: e.Region, Account: e.AccountID, Resource: experimentResource + id}.String()
}

// instances are the spot instances of the account that are not on their way out.
func (e *Experiments) instances(ctx context.Context) ([]experiment.Instance, error) {
	var machines v1alpha1.MachineList
	if err := e.Management.List(ctx, &machines); err != nil {
		return nil, fmt.Errorf("listing instances: %w", err)
	}
	var subnets v1alpha1.SubnetList
	if err := e.Management.List(ctx, &subnets); err != nil {
		return nil, fmt.Errorf("listing subnets: %w", err)
	}
	vpcs := map[string]string{}
	for i := range subnets.Items {
		vpcs[subnets.Items[i].Name] = subnets.Items[i].Spec.VPCID
	}
	var all []experiment.Instance
	for i := range machines.Items {
		m := &machines.Items[i]
		if m.Spec.MarketType != v1alpha1.MarketSpot || !m.DeletionTimestamp.IsZero() {
			continue
		}
		one := experiment.Instance{
			ID: m.Name, ARN: e.instanceARN(m.Name), State: e.State(m), Type: m.Spec.Type(), Subnet: string(m.Spec.SubnetID), VPC: vpcs[string(m.Spec.SubnetID)], Tags: m.AWSTags(),
		}
		one.Zone, _, _ = strings.Cut(strings.TrimPrefix(m.Status.ProviderID, "aws:///"), "/")
		switch {
		case !m.Spec.Provider.Can(v1alpha1.RunPods):
			one.Cannot = "a machine of the provider " + string(m.Spec.Provider) + " runs no pods, and has no drills"
		case m.Spec.ClusterName == "":
			one.Cannot = "it is of no cluster, and has no drills"
		}
		all = append(all, one)
	}
	return all, nil
}
