// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"cmp"
	"context"
	"os"
	"time"

	"muster.dev/muster/internal/cluster/servicestatus"
	"muster.dev/muster/internal/machine/machine/local"
	"muster.dev/muster/internal/plane/apiservermemory"
	"muster.dev/muster/internal/platform/version"
)

// Status returns the present state, from the caches of the controllers: it makes no request to the API servers.
func (s *Service) Status(ctx context.Context) servicestatus.Status {
	failures := s.issuers.Failures()
	s.mu.Lock()
	message, notes := cmp.Or(append([]string{s.message}, failures...)...), failures
	if s.boundNote != "" {
		notes = append(notes, s.boundNote)
	}
	if s.planeNote != "" {
		notes = append(notes, s.planeNote)
	}
	if note := local.DisksNote(s.cfg.State); note != "" {
		notes = append(notes, note)
	}
	if note := s.shipper.Note(); note != "" {
		notes = append(notes, note)
	}
	etcd := s.etcd.Last()
	if etcd.NoSpace {
		notes = append(notes, "the management plane's "+etcd.ManagementProblem())
	}
	looking := !s.found // before clusters are listed
	s.mu.Unlock()
	status := servicestatus.Status{
		Version: version.Version, StateDir: string(s.cfg.State), PID: os.Getpid(), Started: s.started, Message: message, Notes: notes,
		Components: s.components(), Clusters: []servicestatus.Cluster{}, Looking: looking, Host: servicestatus.ThisHost(), Etcd: etcd,
	}
	for _, h := range s.clusters() {
		status.Add(h.status(ctx))
	}
	status.UnlimitedMemory = servicestatus.UnlimitedMemory(status.Clusters)
	status.NoOwnUsers = s.usersNote
	return status
}

// status is the present state of one cluster.
func (h *hosted) status(ctx context.Context) servicestatus.Cluster {
	h.mu.Lock()
	reader, specs, message, users, signer := h.reader, h.specs, h.message, h.usersNote, h.accounts.Signer
	h.mu.Unlock()
	status := servicestatus.Cluster{
		Name: cmp.Or(specs.Cluster.Spec.Name, h.dir.Namespace()), Namespace: h.dir.Namespace(), Message: message,
		Components: h.components(), NodeGroups: []servicestatus.NodeGroup{}, Machines: []servicestatus.Machine{}, Rotation: h.rotationStatus(), Etcd: h.etcd.Last(),
	}
	if specs.Places.Published.Reach.Port() != 0 {
		status.Endpoint = specs.Places.Published.URL()
	}
	if signer != nil {
		if ring, err := signer.Ring(); err == nil {
			status.TokenKeys = servicestatus.TokenKeys(ring, time.Now())
		}
	}
	if reader == nil {
		return status
	}
	if err := servicestatus.Observe(ctx, reader, &status); err != nil {
		status.Message = err.Error()
		status.Settled = false
	}
	if note := h.service.issuers.Note(specs, status.RunsPods()); note != "" {
		status.Notes = append(status.Notes, note)
	}
	if users != "" && h.service.usersNote == "" {
		status.Notes = append(status.Notes, "its control plane runs as the user of the service: "+users)
	}
	status.Notes = append(status.Notes, apiservermemory.Notes(apiservermemory.Of(status.Components))...)
	if status.Etcd.NoSpace {
		status.Notes = append(status.Notes, status.Etcd.Problem())
	}
	return status
}
