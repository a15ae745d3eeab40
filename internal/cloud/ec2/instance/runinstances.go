// SPDX-License-Identifier: Apache-2.0

package instance

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/awsfault"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/aws/clienttoken"
	"muster.dev/muster/internal/aws/dryrun"
	"muster.dev/muster/internal/aws/ec2id"
	"muster.dev/muster/internal/cloud/awsresource"
	"muster.dev/muster/internal/cloud/ec2/ec2resource"
	"muster.dev/muster/internal/cloud/launchtemplate"
	"muster.dev/muster/internal/machine/hostroom"
	"muster.dev/muster/internal/machine/machine"
)

// runInstancesInput has the parameters that Muster can honour: those of a launch template, and the rest. The front
// refuses all other parameters.
type runInstancesInput struct {
	launchtemplate.Data
	LaunchTemplate                    *versionOfTemplate
	MaxCount, MinCount                *int32
	SubnetID, PrivateIPAddress        string
	SecurityGroups                    []string // by name
	InstanceInitiatedShutdownBehavior string
	ClientToken                       string
	DryRun                            bool

	// spot says that the instances are spot instances, where the request is not a client's.
	spot bool
	// noMarketOptions is the refusal of a launch template with market options; nil if it may have them. A fleet and a policy
	// of mixed instances decide themselves which instances are spot instances.
	noMarketOptions error
	// requested is when the Spot Instance requests end that RequestSpotInstances makes; nil for any other launch.
	requested *time.Time
	// refused is why there was no launch template to go by when IAM was asked about the request; nil if there was one.
	refused error
}

type versionOfTemplate struct{ LaunchTemplateID, LaunchTemplateName, Version string }

func (a *Actions) runInstances() awsfront.Spec[runInstancesInput, reservation] {
	return awsfront.Spec[runInstancesInput, reservation]{
		About: func(ctx context.Context, call *awsfront.Call, in *runInstancesInput) ([]awsfront.Target, error) {
			if err := fixTemplate(ctx, a, in); err != nil {
				return nil, err
			}
			return a.aboutRunInstances(ctx, call, in)
		},
		Do: a.doRunInstances,
	}
}

// fixTemplate has a request go by the very version of the launch template that there is now, or be refused as it would be
// now. IAM is asked about what that version says, such as its role. Later the default version of the template may be another
// one, and the name another template's.
func fixTemplate(ctx context.Context, a *Actions, in *runInstancesInput) error {
	if in.LaunchTemplate == nil {
		return nil
	}
	found, version, err := findVersion(ctx, a.templates, in.LaunchTemplate)
	if err != nil {
		in.refused = err
		return lost(err)
	}
	in.LaunchTemplate = &versionOfTemplate{LaunchTemplateID: found.Name, Version: strconv.FormatInt(version.Number, 10)}
	return nil
}

func (a *Actions) doRunInstances(ctx context.Context, call *awsfront.Call, in *runInstancesInput) (*reservation, error) {
	machines, gone, err := a.makeInstances(ctx, call, in)
	if err != nil {
		return nil, err
	}
	view, err := a.viewInstances(ctx, call)
	if err != nil {
		return nil, err
	}
	return &reserved(view.launched(machines, gone))[0], nil
}

// makeInstances makes the machines that a request asks for, and returns them when they have addresses. Machines that the same
// request made before are not made again; machines of it that are gone have the time of their end, by name.
func (a *Actions) makeInstances(ctx context.Context, call *awsfront.Call, in *runInstancesInput) ([]*v1alpha1.Machine, map[string]time.Time, error) {
	wanted, err := a.wantedInstances(ctx, in)
	if err != nil {
		return nil, nil, err
	}
	sent, err := ec2resource.TokenOf(call, in.ClientToken)
	if err != nil {
		return nil, nil, err
	}
	if in.ClientToken != "" {
		defer a.ec2.Locks.Hold("RunInstances " + sent.Key.Label())()
	}
	made, gone, err := a.madeBefore(ctx, sent)
	if err != nil {
		return nil, nil, err
	}
	if in.requested == nil && allGone(made, gone) { // a Spot Instance request that was closed is still described
		return nil, nil, clienttoken.Terminated()
	}
	left, err := a.ec2.Room.Hold(ctx, a.ec2.Management)
	if err != nil {
		return nil, nil, ec2resource.Away(err)
	}
	defer left.Release()
	if sent.Request.Count, err = a.countOf(ctx, in, wanted, made, left); err != nil {
		return nil, nil, err
	}
	decision, err := clienttoken.Decide(sent.Key, sent.Request, slices.Collect(maps.Keys(made)))
	if err != nil {
		return nil, nil, err
	}
	if err := dryrun.Would(in.DryRun); err != nil {
		return nil, nil, err
	}
	id := ec2resource.NewID(ec2id.Reservation)
	machines := slices.Collect(maps.Values(made))
	for _, m := range machines {
		id = m.Spec.Reservation.ID
	}
	for _, index := range decision.Missing {
		m := wanted.machine.DeepCopy()
		m.Spec.Reservation = &v1alpha1.Reservation{ID: id, Index: int32(index)} //nolint:gosec // G115: at most MaxCount
		if err := a.create(ctx, m, sent, index); err != nil {
			return nil, nil, ec2resource.Away(fmt.Errorf("making instance %d of %d: %w", index+1, sent.Request.Count, err))
		}
		machines = append(machines, m)
	}
	left.Release()
	a.AwaitAddresses(ctx, machines)
	return machines, gone, nil
}

// create makes the machine with the index of a request. The marks by which the request is found again are in the same write.
func (a *Actions) create(ctx context.Context, m *v1alpha1.Machine, sent awsresource.Token, index int) error {
	m.Name = ec2resource.NewID(ec2id.Instance)
	if token := sent.Key.Token; token != "" {
		metav1.SetMetaDataLabel(&m.ObjectMeta, clienttoken.Label, sent.Key.Label())
		metav1.SetMetaDataAnnotation(&m.ObjectMeta, clienttoken.Annotation, sent.Request.Mark(index).String())
		metav1.SetMetaDataAnnotation(&m.ObjectMeta, annotationToken, token)
	}
	if m.Spec.ClusterName != "" {
		metav1.SetMetaDataLabel(&m.ObjectMeta, v1alpha1.LabelCluster, v1alpha1.ClusterSlug(m.Spec.ClusterName))
	}
	return a.ec2.Management.Create(ctx, m)
}

// AddressLook is the time between two looks at instances that are being launched.
const AddressLook = 50 * time.Millisecond

// AwaitAddresses reads machines until each has its address, which the controller that launches it chooses. A machine
// that has no address in time, as when the host lacks memory, is shown without it.
func (a *Actions) AwaitAddresses(ctx context.Context, machines []*v1alpha1.Machine) {
	_ = wait.PollUntilContextTimeout(ctx, AddressLook, a.ec2.LaunchWait, true, func(ctx context.Context) (bool, error) { // late ones are shown as they are
		for _, m := range machines {
			if AddressOf(m).IsValid() {
				continue
			}
			now := &v1alpha1.Machine{}
			if err := a.ec2.Management.Get(ctx, client.ObjectKeyFromObject(m), now); apierrors.IsNotFound(err) {
				continue // it was terminated before it had one
			} else if err != nil {
				return false, err
			}
			if *m = *now; !AddressOf(m).IsValid() {
				return false, nil
			}
		}
		return true, nil
	})
}

// launched shows the machines of one request, in the order of the request. Machines that are gone have the time of their end, by name.
func (v *instanceView) launched(machines []*v1alpha1.Machine, gone map[string]time.Time) []instance {
	slices.SortFunc(machines, func(x, y *v1alpha1.Machine) int {
		return cmp.Compare(x.Spec.Reservation.Index, y.Spec.Reservation.Index)
	})
	shown := make([]instance, 0, len(machines))
	for _, m := range machines {
		if at, terminated := gone[m.Name]; terminated {
			shown = append(shown, v.showTerminated(m, at))
			continue
		}
		shown = append(shown, v.show(m))
	}
	return shown
}

// madeBefore are the machines that requests with the token have made, by their marks. Machines that were terminated are among
// them while they are described, with the time of their end by their name: the request does not make them again.
func (a *Actions) madeBefore(ctx context.Context, sent awsresource.Token) (made map[clienttoken.Mark]*v1alpha1.Machine, gone map[string]time.Time, err error) {
	made, gone = map[clienttoken.Mark]*v1alpha1.Machine{}, map[string]time.Time{}
	if sent.Key.Token == "" {
		return made, gone, nil
	}
	note := func(m *v1alpha1.Machine) bool {
		mark, err := clienttoken.ParseMark(m.Annotations[clienttoken.Annotation])
		if err != nil || m.Spec.Reservation == nil {
			return false
		}
		made[mark] = m
		return true
	}
	// The machines come first: an instance is at every moment one, or remembered.
	var found v1alpha1.MachineList
	if err := a.ec2.Management.List(ctx, &found, client.MatchingLabels(sent.Labels())); err != nil {
		return nil, nil, ec2resource.Away(fmt.Errorf("looking for the instances of a client token: %w", err))
	}
	terminated, err := a.terminated(ctx)
	if err != nil {
		return nil, nil, err
	}
	for i := range terminated {
		if m := &terminated[i].Machine; m.Labels[clienttoken.Label] == sent.Key.Label() && note(m) {
			gone[m.Name] = terminated[i].At.Time
		}
	}
	for i := range found.Items {
		m := &found.Items[i]
		if note(m) {
			delete(gone, m.Name) // it is about to go
		}
	}
	return made, gone, nil
}

// allGone reports whether all machines that a request made are gone. RunInstances and CreateFleet refuse its token then.
func allGone(made map[clienttoken.Mark]*v1alpha1.Machine, gone map[string]time.Time) bool {
	for _, m := range made {
		if _, is := gone[m.Name]; !is {
			return false
		}
	}
	return len(made) > 0
}

// countOf is how many instances the request makes: those that it made before, or as many as have an address, one for
// each of their pods, and room on the host, up to MaxCount.
func (a *Actions) countOf(ctx context.Context, in *runInstancesInput, wanted *wantedInstances, made map[clienttoken.Mark]*v1alpha1.Machine, left *hostroom.Left) (int, error) {
	for mark := range made {
		return mark.Count, nil
	}
	if in.DryRun { // EC2 looks for no room then. Karpenter takes a type by chance, which must not fail on a full host
		return int(*in.MaxCount), nil
	}
	var all v1alpha1.MachineList
	if err := a.ec2.List(ctx, &all); err != nil {
		return 0, err
	}
	usage, err := a.ec2.Usage(wanted.subnet.Spec.VPCID)
	if err != nil {
		return 0, fmt.Errorf("looking who has addresses of %s: %w", wanted.subnet.Name, err)
	}
	room := machine.NewRoom(usage)
	demand := machine.Demand{SubnetID: wanted.subnet.Name, Pods: wanted.pods, PodSubnetIDs: wanted.podSubnets}
	for _, of := range usage {
		for i := range all.Items {
			if m := &all.Items[i]; string(m.Spec.SubnetID) == of.ID && !slices.Contains(of.Machines, m.Name) { // made a moment ago
				coming := demand
				coming.SubnetID = of.ID
				_, _ = room.Take(coming) // a machine without room is refused when it is launched
			}
		}
	}
	free := 0
	var full error
	for free < int(*in.MaxCount) {
		if _, err = room.Take(demand); err != nil {
			break
		}
		if full = left.Take(wanted.machine.Spec.Type()); full != nil {
			break
		}
		free++
	}
	switch {
	case full != nil && free < int(*in.MinCount):
		return 0, awsfault.Errorf("InsufficientInstanceCapacity", "We currently do not have sufficient %s capacity in the Availability Zone you requested (%s): %v. Delete machines, or choose a smaller type.",
			wanted.machine.Spec.Type(), wanted.subnet.Spec.AvailabilityZone, full).WithStatus(http.StatusInternalServerError)
	case errors.Is(err, machine.ErrNoPodSubnet):
		return 0, awsfault.Errorf(ec2resource.InvalidParameter, "Cluster %s, which the user data names, has no subnet for pods (spec.network.podSubnetIDs) in %s, the zone of '%s': name a subnet of another zone.",
			wanted.machine.Spec.ClusterName, wanted.subnet.Spec.AvailabilityZone, wanted.subnet.Name)
	case free < int(*in.MinCount):
		return 0, awsfault.Errorf("InsufficientFreeAddressesInSubnet", "There are not enough free addresses in subnet '%s' to satisfy the requested number of instances.", wanted.lacking(usage, err))
	}
	return free, nil
}

// lacking names the subnets without room, by the error: those for pods in the zone, if it is they.
func (w *wantedInstances) lacking(usage []machine.Usage, err error) string {
	if !errors.Is(err, machine.ErrPodsFull) || len(w.podSubnets) == 0 {
		return w.subnet.Name
	}
	var ids []string
	for _, of := range usage {
		if of.Zone == w.subnet.Spec.AvailabilityZone && slices.Contains(w.podSubnets, of.ID) {
			ids = append(ids, of.ID)
		}
	}
	return strings.Join(ids, "', '")
}
