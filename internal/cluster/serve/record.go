// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"log/slog"
	"strings"
	"time"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/cluster/clustercontroller"
	"muster.dev/muster/internal/machine/nodegroup"
	"muster.dev/muster/internal/plane/component"
	"muster.dev/muster/internal/plane/planerollout"
	"muster.dev/muster/internal/plane/supervise"
	"muster.dev/muster/internal/platform/logs"
	"muster.dev/muster/internal/platform/release"
	"muster.dev/muster/internal/platform/statedir"
)

// followed is how far a cluster follows its object.
type followed struct {
	refusal    string // of the last change that was asked for: the cluster runs on as it was
	generation int64  // of the object that was read last; 0 if none was

	changes int    // the changes that were made to the record
	settled int    // the number of the last that the control plane took, from 1; 0 while it takes one
	at      int64  // the generation that it was of
	failed  string // why the control plane could not take the last change
}

// unasked is that it could not be found out whether a change is possible. It is no refusal: the change is looked at again.
type unasked struct{ error }

// adopt keeps the record as people want the cluster to be, and has the cluster follow it. The function move refuses
// another minor, and the function settings other settings; an error of the type unasked leaves everything as it is.
func (h *hosted) adopt(object *v1alpha1.Cluster, move func(to release.Release) error, settings clustercontroller.CheckSettings) error {
	changed, err := clustercontroller.Change(h.dir, object.Spec, time.Now(), move, settings)
	if _, ok := errors.AsType[unasked](err); ok {
		return err
	}
	h.mu.Lock()
	h.followed.refusal, h.followed.generation = "", object.Generation
	if err != nil {
		h.followed.refusal = err.Error()
	}
	if changed {
		h.followed.changes++
	}
	if err == nil {
		h.logging = object.Spec.EKS.DeepCopy()
	}
	h.mu.Unlock()
	if err != nil {
		return err
	}
	if changed {
		h.log.Info("the cluster is to change")
		h.requestReload()
	}
	return nil
}

// begin is called before the record is read: whatever change is in it is at least the one that begin returns.
func (h *hosted) begin() (change int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.followed.settled = 0
	select {
	case <-h.reload: // for the record that is about to be read
	default:
	}
	return h.followed.changes + 1
}

// settle notes that the control plane has taken a change, or runs on as it was before if that was refused.
func (h *hosted) settle(change int, outcome planerollout.Outcome) {
	failed := refusal(h.ctx, h.service.cfg.State, outcome, h.log)
	h.news.Ended(outcome, failed)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.followed.settled, h.followed.failed = change, failed
}

// refusal says why a control plane runs on as it was, with the last words of the API server that did not serve; "" if it
// is as wanted.
func refusal(ctx context.Context, state statedir.Dir, outcome planerollout.Outcome, log *slog.Logger) string {
	refusal := outcome.Refusal
	if refusal == nil {
		return ""
	}
	failed := "the API server with the change did not serve: " + refusal.Reason
	if said := lastWords(ctx, state, refusal.Server, refusal.Since, log); said != "" {
		failed += "; its last words: " + said
	}
	log.Error("the control plane runs on as it was", "component", refusal.Server.Process(), "reason", failed)
	return failed
}

// lastWords are the last lines of the log of a component that are not older than a moment.
func lastWords(ctx context.Context, state statedir.Dir, of component.Spec, since time.Time, log *slog.Logger) string {
	const lines = 3
	var words bytes.Buffer
	source := logs.Source{Name: of.Name, Path: supervise.LogOf(state, of), Location: time.Local}
	if err := logs.Copy(ctx, &words, logs.Config{Sources: []logs.Source{source}, Since: since, Tail: lines}); err != nil {
		log.Error("reading the log of a component", "component", of.Process(), "error", err)
	}
	return strings.ReplaceAll(strings.TrimSpace(words.String()), "\n", "; ")
}

// running is how the cluster is run now.
func (h *hosted) running() nodegroup.Run {
	run := nodegroup.Run{Components: h.components(), EtcdSpace: h.etcd.Last()}
	h.mu.Lock()
	defer h.mu.Unlock()
	if f := &h.followed; f.settled == f.changes+1 {
		f.at = f.generation
	}
	run.Refused, run.Generation = cmp.Or(h.followed.refusal, h.followed.failed), h.followed.at
	return run
}
