// SPDX-License-Identifier: Apache-2.0

package fargatecontroller

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/machine/fargate"
	"muster.dev/muster/internal/machine/hostroom"
	"muster.dev/muster/internal/machine/machine"
	"muster.dev/muster/internal/machine/plan"
)

// shortage keeps a machine from being made now, and is told on the pod. It is looked at again after a while, or after
// refusedAgain.
type shortage struct {
	message string
	again   time.Duration
}

func (s *shortage) Error() string { return s.message }

// make makes the machine of a pod. A machine that exists is left alone: the id of the machine follows from the pod.
func (r *pods) make(ctx context.Context, pod *corev1.Pod, step fargate.Step) error {
	if left, why := r.pauses.left(pod, r.Now()); left > 0 {
		return &shortage{why, left}
	}
	if why := r.full.says(step.Size, r.Now()); why != "" {
		return &shortage{message: why}
	}
	if wanted, err := r.stillWanted(ctx, pod, step.Profile); err != nil || !wanted {
		return err
	}
	left, err := r.Room.Hold(ctx, r.live)
	if err != nil {
		return err
	}
	defer left.Release()
	subnet, err := r.place(ctx, pod, step.Profile)
	if err != nil {
		return err
	}
	if err := left.Take(step.Size.Type()); err != nil {
		why := fmt.Sprintf("%s: the host has no room for a machine of %s: %v. Delete machines, request less, or have more memory and processors", hostroom.Code, step.Size, err)
		r.full.note(step.Size, r.Now(), why)
		return &shortage{message: why}
	}
	logging, told, err := r.logging(ctx)
	if err != nil {
		return err
	}
	m := fargate.Machine(r.ClusterName, pod, step.Profile, step.Size, logging, subnet, r.ImageID)
	err = r.management.Create(ctx, m)
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("making the machine of pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	if err == nil {
		r.tellLogging(pod, logging, told)
	}
	return nil
}

// stillWanted reports whether pod and profile are there, by the word of the API servers and not of a cache: no machine is
// made for a profile that was seen deleted.
func (r *pods) stillWanted(ctx context.Context, pod *corev1.Pod, profile *v1alpha1.FargateProfile) (bool, error) {
	now, of := &corev1.Pod{}, &v1alpha1.FargateProfile{}
	err := r.API.Get(ctx, client.ObjectKeyFromObject(pod), now)
	switch {
	case client.IgnoreNotFound(err) != nil:
		return false, fmt.Errorf("asking whether pod %s/%s is there: %w", pod.Namespace, pod.Name, err)
	case apierrors.IsNotFound(err), now.UID != pod.UID, !now.DeletionTimestamp.IsZero(), now.Spec.NodeName != "":
		return false, nil
	}
	err = r.live.Get(ctx, client.ObjectKeyFromObject(profile), of)
	if client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("asking whether Fargate profile %s is there: %w", profile.Spec.Name, err)
	}
	return err == nil && of.UID == profile.UID && of.DeletionTimestamp.IsZero(), nil
}

// place chooses the subnet of the machine of a pod: one of the profile's with room for it, in a zone that the pod can be
// in and that no zonal shift moves the cluster away from, with the fewest machines of the profile.
func (r *pods) place(ctx context.Context, pod *corev1.Pod, profile *v1alpha1.FargateProfile) (string, error) {
	usage, err := r.Usage()
	if err != nil {
		return "", fmt.Errorf("looking at the subnets of the cluster's VPC: %w", err)
	}
	of := &v1alpha1.Cluster{}
	if err := r.management.Get(ctx, types.NamespacedName{Namespace: r.namespace(), Name: r.namespace()}, of); client.IgnoreNotFound(err) != nil {
		return "", fmt.Errorf("reading the cluster's shifted zones: %w", err)
	}
	ids := profile.Spec.SubnetIDs
	if len(ids) == 0 {
		for _, id := range r.Network.SubnetIDs() {
			ids = append(ids, v1alpha1.SubnetID(id))
		}
	}
	if ids, err = r.private(ctx, profile, ids); err != nil {
		return "", err
	}
	var places []fargate.Place
	for _, u := range usage {
		if slices.Contains(ids, v1alpha1.SubnetID(u.ID)) && !slices.Contains(of.Status.ShiftedZones, u.Zone) {
			places = append(places, fargate.Place{SubnetID: u.ID, Zone: u.Zone})
		}
	}
	if len(places) == 0 {
		return "", &shortage{message: fmt.Sprintf("Fargate profile %s has no subnet that is there, and in a zone that no zonal shift moves the cluster away from", profile.Spec.Name)}
	}
	fitting := fargate.Fitting(pod, r.Region, places)
	if len(fitting) == 0 {
		return "", &shortage{message: fmt.Sprintf("Pod not supported on Fargate: its nodeSelector or node affinity demands labels that no machine of Fargate profile %s has: "+
			"they have kubernetes.io/arch=amd64, kubernetes.io/os=linux, %s=fargate, and the zones %s", profile.Spec.Name, v1alpha1.LabelComputeType, strings.Join(zones(places), ", "))}
	}
	own, err := r.machines(ctx, r.management, func(m *v1alpha1.Machine) bool { return m.Spec.Fargate.ProfileUID == profile.UID })
	if err != nil {
		return "", err
	}
	subnets := make([]plan.Subnet, 0, len(fitting))
	for _, p := range fitting {
		subnet := plan.Subnet{ID: p.SubnetID, Zone: p.Zone}
		for i := range own {
			if string(own[i].Spec.SubnetID) == p.SubnetID && own[i].DeletionTimestamp.IsZero() {
				subnet.Machines++
			}
		}
		subnets = append(subnets, subnet)
	}
	room, podsOfMachine := machine.NewRoom(usage), 0
	if r.Network.PodsInSubnets {
		podsOfMachine = 1
	}
	chosen := plan.Place(1, subnets, func(id string) bool {
		_, err := room.Take(machine.Demand{SubnetID: id, Pods: podsOfMachine, PodSubnetIDs: r.Network.PodSubnetIDs()})
		return err == nil
	})
	if len(chosen) == 0 {
		return "", &shortage{message: fmt.Sprintf("no subnet of Fargate profile %s has a free address: delete machines, or make a profile with other subnets", profile.Spec.Name)}
	}
	return chosen[0], nil
}

// private are those of a profile's subnets that have no route to an internet gateway. The API refuses a profile with another
// one, and nobody asks it about a profile that kubectl makes. It returns a *shortage if none is left.
func (r *pods) private(ctx context.Context, profile *v1alpha1.FargateProfile, ids []v1alpha1.SubnetID) ([]v1alpha1.SubnetID, error) {
	if r.Public == nil {
		return ids, nil
	}
	var left []v1alpha1.SubnetID
	refused := ""
	for _, id := range ids {
		table, gateway, err := r.Public(ctx, r.Network.VPCID, string(id))
		if err != nil {
			return nil, fmt.Errorf("looking for the route of subnet %s: %w", id, err)
		}
		if gateway == "" {
			left = append(left, id)
			continue
		}
		refused = fmt.Sprintf("Subnet %s provided in Fargate Profile %s is not a private subnet: its route table %s has a route to the internet gateway %s; name subnets without one", id, profile.Spec.Name, table, gateway)
	}
	if len(left) == 0 && refused != "" {
		return nil, &shortage{message: refused}
	}
	return left, nil
}

// zones are those of places, sorted.
func zones(places []fargate.Place) []string {
	var all []string
	for _, p := range places {
		all = append(all, p.Zone)
	}
	slices.Sort(all)
	return slices.Compact(all)
}
