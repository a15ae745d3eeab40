// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/machine/capacity"
	"muster.dev/muster/internal/machine/nodegroupspec"
	"muster.dev/muster/internal/plane/apiservermemory"
	"muster.dev/muster/internal/plane/readiness"
	"muster.dev/muster/internal/platform/host"
	"muster.dev/muster/internal/platform/version"
)

// Status returns the present state, from the caches of the controllers: it makes no request to the API servers.
func (s *Service) Status(ctx context.Context) Status {
	s.mu.Lock()
	failures := s.issuerFailed()
	message, notes := cmp.Or(append([]string{s.message}, failures...)...), failures
	if s.boundNote != "" {
		notes = append(notes, s.boundNote)
	}
	if note := unboundedDisks(s.cfg.State); note != "" {
		notes = append(notes, note)
	}
	looking := !s.found // before clusters are listed
	s.mu.Unlock()
	status := Status{
		Version: version.Version, StateDir: string(s.cfg.State), PID: os.Getpid(), Started: s.started, Message: message, Notes: notes,
		Components: s.components(), Clusters: []ClusterStatus{}, Looking: looking, Host: ThisHost(),
	}
	for _, h := range s.clusters() {
		cluster := h.status(ctx)
		status.Clusters = append(status.Clusters, cluster)
		for _, kind := range cluster.localNodes {
			status.Host.Claim(kind)
		}
	}
	status.UnlimitedMemory = unlimitedMemory(status.Clusters)
	status.NoOwnUsers = s.usersNote
	return status
}

// ThisHost describes this host. A figure that cannot be read stays 0, and no warning is made of it.
func ThisHost() capacity.Host {
	memory, err := host.Memory()
	if err != nil {
		return capacity.Host{}
	}
	return capacity.Host{CPUs: host.CPUs(), Memory: memory}
}

// status is the present state of one cluster.
func (h *hosted) status(ctx context.Context) ClusterStatus {
	h.mu.Lock()
	reader, specs, message, users := h.reader, h.specs, h.message, h.usersNote
	h.mu.Unlock()
	status := ClusterStatus{
		Name: cmp.Or(specs.Cluster.Spec.Name, h.dir.Namespace()), Namespace: h.dir.Namespace(), Message: message,
		Components: h.components(), NodeGroups: []NodeGroupStatus{}, Machines: []MachineStatus{}, Rotation: h.rotationStatus(),
	}
	if specs.Ports.APIServer != 0 {
		status.Endpoint, status.TokenKeys = specs.ServerURL(), tokenKeyStatus(specs, time.Now())
	}
	if reader == nil {
		return status
	}
	if err := observe(ctx, reader, &status); err != nil {
		status.Message = err.Error()
		status.Settled = false
	}
	if note := h.issuerNote(specs, status.NodeGroups); note != "" {
		status.Notes = append(status.Notes, note)
	}
	if users != "" && h.service.usersNote == "" {
		status.Notes = append(status.Notes, "its control plane runs as the user of the service: "+users)
	}
	status.Notes = append(status.Notes, apiservermemory.Notes(apiservermemory.Of(status.Components))...)
	return status
}

// unlimitedMemory is why API servers run without a memory limit; empty if all have one.
func unlimitedMemory(clusters []ClusterStatus) string {
	for _, c := range clusters {
		if m := apiservermemory.Of(c.Components); m.Limit == 0 && m.Problem != "" {
			return m.Problem
		}
	}
	return ""
}

func observe(ctx context.Context, reader client.Reader, status *ClusterStatus) error {
	var clusters v1alpha1.ClusterList
	var groups v1alpha1.NodeGroupList
	var machines v1alpha1.MachineList
	for _, list := range []client.ObjectList{&clusters, &groups, &machines} {
		if err := reader.List(ctx, list); err != nil {
			return err
		}
	}
	namespace := v1alpha1.ClusterSlug(status.Name)
	status.Settled = false // until the Cluster is there, which is made last
	for _, c := range clusters.Items {
		if c.Spec.Name != status.Name || c.Namespace != namespace || c.Name != namespace {
			continue
		}
		status.Settled = true
		ready := meta.FindStatusCondition(c.Status.Conditions, v1alpha1.ConditionReady)
		status.Version = c.Status.Version
		status.Ready = ready != nil && ready.Status == metav1.ConditionTrue
		if ready != nil && !status.Ready {
			status.Message = ready.Message
		}
	}
	for _, g := range groups.Items {
		if g.Namespace != namespace {
			continue // it is not served, and its condition says why
		}
		if g.Status.ObservedGeneration != g.Generation {
			status.Settled = false
		}
		if g.DeletionTimestamp != nil {
			continue
		}
		status.NodeGroups = append(status.NodeGroups, NodeGroupStatus{
			Name: g.Spec.Name, Provider: g.Spec.Provider, Isolation: nodegroupspec.Isolation(g.Spec.Provider, g.Spec.Isolation), Desired: g.Spec.ScalingConfig.DesiredSize,
			Machines: g.Status.Replicas, Ready: g.Status.ReadyReplicas, Message: readiness.Message(g.Status.Conditions),
		})
	}
	for _, m := range machines.Items {
		if m.Spec.ClusterName != status.Name {
			continue
		}
		machine := MachineStatus{
			Name: m.Name, NodeGroup: m.Spec.NodeGroup, NodeName: m.Status.NodeName, Isolation: m.Status.Isolation,
			Phase: m.Status.Phase, Message: readiness.Message(m.Status.Conditions),
		}
		if ready := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionReady); ready != nil {
			machine.Reason = ready.Reason
		}
		if m.Spec.Provider == v1alpha1.ProviderLocal && (m.Status.Phase == v1alpha1.MachineReady || m.Status.Phase == v1alpha1.MachineNotReady) {
			status.localNodes = append(status.localNodes, m.Spec.Type())
		}
		if n := len(m.Status.Join); n > 0 {
			machine.Step = m.Status.Join[n-1].Step
		}
		status.Machines = append(status.Machines, machine)
	}
	status.Notes = append(openMetadata(machines.Items, status.Name), otherIsolation(status.NodeGroups, status.Machines)...)
	slices.SortFunc(status.NodeGroups, func(a, b NodeGroupStatus) int { return strings.Compare(a.Name, b.Name) })
	slices.SortFunc(status.Machines, func(a, b MachineStatus) int {
		return cmp.Or(strings.Compare(a.NodeName, b.NodeName), strings.Compare(a.Name, b.Name))
	})
	return nil
}

// openMetadata notes machines whose instance metadata answers pods, and so gives them the role of the node: a note for each node group.
func openMetadata(machines []v1alpha1.Machine, cluster string) []string {
	open := map[string]int32{}
	for i := range machines {
		m := &machines[i]
		if m.Spec.ClusterName == cluster && m.Spec.InstanceProfile != "" && m.Spec.Metadata().HTTPPutResponseHopLimit > 1 {
			open[m.Spec.NodeGroup]++
		}
	}
	var notes []string
	for _, group := range slices.Sorted(maps.Keys(open)) {
		notes = append(notes, fmt.Sprintf("pods on %s of node group %s can take the role of the node: httpPutResponseHopLimit is more than 1 there", readiness.Of(open[group], open[group], "machine", "machines"), group))
	}
	return notes
}

// until says how long a machine that was launched with another isolation keeps that.
func until(isolation v1alpha1.Isolation) string {
	if isolation == v1alpha1.IsolationUserNamespace {
		return "root there is root on this host until the machine boots next, or for good if isolation none was asked for"
	}
	return "a machine keeps its isolation until it is replaced"
}

// otherIsolation notes machines with another isolation than their node group makes machines with by now: a note for each node group.
func otherIsolation(groups []NodeGroupStatus, machines []MachineStatus) []string {
	var notes []string
	for _, g := range groups {
		var other, all int32
		for _, m := range machines {
			if m.NodeGroup != g.Name {
				continue
			}
			all++
			if m.Isolation != "" && m.Isolation != g.Isolation {
				other++
			}
		}
		if other > 0 {
			notes = append(notes, fmt.Sprintf("isolation %s of node group %s does not hold for %s, launched before it was set: %s "+
				"(`muster get machines -o wide` shows each, `muster delete machine NAME` replaces one)",
				g.Isolation, g.Name, readiness.Of(other, all, "machine", "machines"), until(g.Isolation)))
		}
	}
	return notes
}
