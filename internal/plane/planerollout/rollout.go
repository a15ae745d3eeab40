// SPDX-License-Identifier: Apache-2.0

package planerollout

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"

	"muster.dev/muster/internal/plane/component"
	"muster.dev/muster/internal/plane/frontservers"
	"muster.dev/muster/internal/plane/runner"
	"muster.dev/muster/internal/platform/atomicfile"
)

const (
	// look is how often a newcomer is looked at, and again the pause after a step that failed.
	look  = 100 * time.Millisecond
	again = 2 * time.Second
	// maxRecord is the size of a record in bytes. A record has some 20 KiB.
	maxRecord = 4 << 20
)

// Config is what a rollout works with.
type Config struct {
	Runner runner.Runner
	// Plane is what is wanted.
	Plane component.Plane
	// Room returns how many bytes of memory new programs can have.
	Room func() (int64, error)
	// Turns lets the rollouts of a host replace servers one after the other: each needs the memory of a newcomer.
	Turns *Turns
	// Began is told once that API servers begin to change beside others that serve.
	Began func(message string)
	Log   *slog.Logger
}

// Outcome is what came of a rollout.
type Outcome struct {
	// Refusal is of what was wanted; nil if the plane is made of it now.
	Refusal *Refusal
	// Servers are the names of the API servers that serve.
	Servers []string
	// Took is how long API servers took to change beside others that serve; 0 if they were as wanted.
	Took time.Duration
}

// Refusal is of an API server that was wanted and did not serve.
type Refusal struct {
	Server component.Spec
	// Since is when it was started, or would have been.
	Since  time.Time
	Reason string
}

// Rollout brings one plane to what is wanted.
type Rollout struct {
	config  Config
	wanted  Wanted
	record  Record
	carried bool      // the record has been carried out
	begun   bool      // this rollout has carried out a record
	turn    bool      // it has the turn of the host
	changes time.Time // when servers began to change, for this rollout; zero if they have not
	refusal *Refusal
}

// New prepares a rollout. It starts nothing.
func New(c Config) (*Rollout, error) {
	r := &Rollout{config: c, wanted: Wanted{Servers: c.Plane.Servers, Replicas: c.Plane.Replicas}}
	for _, spec := range c.Plane.Specs {
		if isFollower(spec) {
			r.wanted.Followers = append(r.wanted.Followers, spec)
		}
	}
	record, err := read(c.Plane.Record)
	if err != nil {
		return nil, err
	}
	for i, s := range record.Servers {
		if s.Slot >= len(c.Plane.Servers) || s.Spec.Name != c.Plane.Servers[s.Slot].Name {
			return nil, damaged(c.Plane.Record, fmt.Errorf("servers[%d] is %q, which is of another plane", i, s.Spec.Name))
		}
		record.Servers[i].Since = time.Now() // a newcomer is given all its time by each service
	}
	r.record = record
	if serving := count(record.Servers, Serving); serving > 0 && serving < len(record.Servers) {
		r.changes = time.Now() // a service before has told that it began
	}
	return r, nil
}

// isServer reports whether a component is an API server, in whichever slot.
func isServer(name string) bool {
	_, found := component.ServerSlot(name)
	return found
}

func isFollower(spec component.Spec) bool {
	return spec.Name == component.ControllerManager || spec.Name == component.Scheduler
}

// Begin gives the runner its list, before it runs: that of the record, or the first one of a plane that has none. A
// server that drains goes on until Run ends it.
func (r *Rollout) Begin(ctx context.Context) error {
	if len(r.record.Servers) == 0 {
		r.record, _ = Next(r.record, r.wanted, Facts{Now: time.Now()})
		if err := r.save(); err != nil {
			return err
		}
	}
	for i, s := range r.record.Servers {
		if s.Phase != Serving {
			continue
		}
		outdated, err := r.config.Runner.Outdated(s.Spec)
		if err != nil {
			return err
		}
		r.record.Servers[i].Outdated = outdated
	}
	if err := r.tellFront(r.record.Servers); err != nil {
		return err
	}
	return r.config.Runner.Apply(ctx, r.list(r.record, r.record.Servers))
}

// Run carries the plane on until it is what is wanted, or what it was if that is refused. The error is the context's.
func (r *Rollout) Run(ctx context.Context) (Outcome, error) {
	defer r.giveTurn()
	for {
		moved, err := r.step(ctx)
		pause := look
		switch {
		case err != nil && ctx.Err() == nil:
			r.config.Log.Error("changing the control plane", "error", err)
			pause = again
		case moved:
			continue
		case err == nil && r.wanted.Done(r.record, r.refusal != nil):
			return r.outcome(), nil
		}
		select {
		case <-ctx.Done():
			return Outcome{}, ctx.Err()
		case <-time.After(pause):
		}
	}
}

// step carries the record out, and writes the next one down. It reports whether there was one.
func (r *Rollout) step(ctx context.Context) (moved bool, err error) {
	if !r.carried {
		if err := r.carryOut(ctx, r.record); err != nil {
			return false, err
		}
		r.carried, r.begun = true, true
	}
	room, err := r.config.Room()
	if err != nil {
		room = -1
	}
	next, reason := Next(r.record, r.wanted, Facts{Statuses: r.config.Runner.Status(), Refused: r.refusal != nil, Room: room, Now: time.Now()})
	if reflect.DeepEqual(next, r.record) {
		r.refuse(next, reason)
		return reason != "", nil
	}
	if !r.takeTurn(next) {
		return false, nil
	}
	for _, s := range next.Servers {
		r.config.Log.Info("API server", "component", s.Spec.Process(), "phase", s.Phase)
	}
	before := r.record
	r.record = next
	if err := r.save(); err != nil {
		r.record = before
		return false, err
	}
	r.carried = false
	r.refuse(before, reason)
	r.tellBegin(before)
	if count(next.Servers, Serving) == len(next.Servers) {
		r.giveTurn()
	}
	return true, nil
}

// tellBegin tells that servers begin to change, if they do now.
func (r *Rollout) tellBegin(before Record) {
	if !r.changes.IsZero() || count(before.Servers, Serving) == 0 {
		return
	}
	for _, s := range r.record.Servers {
		switch s.Phase {
		case Serving:
			continue
		case Newcomer:
			r.config.Began(fmt.Sprintf("%s is started beside %s, and serves once it is Ready", s.Spec.Name, strings.Join(r.record.serving(), " and ")))
		case Draining:
			r.config.Began(fmt.Sprintf("%s ends, beside %s", s.Spec.Name, strings.Join(r.record.serving(), " and ")))
		}
		r.changes = time.Now()
	}
}

// serving are the names of the servers that serve.
func (is Record) serving() (names []string) {
	for _, s := range is.Servers {
		if s.Phase == Serving {
			names = append(names, s.Spec.Name)
		}
	}
	return names
}

// outcome is what came of the rollout, which is done.
func (r *Rollout) outcome() Outcome {
	o := Outcome{Refusal: r.refusal, Servers: r.record.serving()}
	if !r.changes.IsZero() {
		o.Took = time.Since(r.changes)
	}
	return o
}

// refuse notes why what is wanted is refused, if it is, and of which newcomer, which may not have been started.
func (r *Rollout) refuse(before Record, reason string) {
	if reason == "" {
		return
	}
	r.refusal = &Refusal{Reason: reason, Since: time.Now()}
	newcomer := slices.IndexFunc(before.Servers, func(s Server) bool { return s.Phase == Newcomer })
	if newcomer >= 0 {
		r.refusal.Server, r.refusal.Since = before.Servers[newcomer].Spec, before.Servers[newcomer].Since
	} else if slot := r.wanted.free(before.Servers); slot >= 0 {
		r.refusal.Server = r.wanted.Servers[slot]
	}
}

// save writes the record down.
func (r *Rollout) save() error {
	raw, err := json.Marshal(r.record)
	if err != nil {
		return fmt.Errorf("rendering what the plane is made of: %w", err)
	}
	return atomicfile.Write(r.config.Plane.Record, raw, 0o600)
}

// carryOut makes a record true: the front knows its servers, those that drain have ended, and all others run.
func (r *Rollout) carryOut(ctx context.Context, is Record) error {
	if err := r.tellFront(is.Servers); err != nil {
		return err
	}
	for _, s := range is.Servers {
		if s.Phase != Draining {
			continue
		}
		if !r.begun {
			r.untold(ctx, s)
		}
		if _, err := r.config.Runner.Stop(ctx, s.Spec.Grace.Duration, func(process string) bool { return process == s.Spec.Process() }); err != nil {
			return fmt.Errorf("ending %s, which another server has replaced: %w", s.Spec.Process(), err)
		}
	}
	return r.config.Runner.Apply(ctx, r.list(is, without(is.Servers, Draining)))
}

// untold waits until a server that drains, perhaps by the word of a service before, is Ready: a kube-apiserver that is
// told to end a second time ends at once, and breaks what it still answers. A server that was told is started again once
// it has ended, and then nobody has a connection to it.
func (r *Rollout) untold(ctx context.Context, s Server) {
	ctx, cancel := context.WithTimeout(ctx, s.Spec.Grace.Duration)
	defer cancel()
	if err := r.config.Runner.WaitReady(ctx, s.Spec.Name); err != nil {
		r.config.Log.Warn("an API server that drains is told to end, perhaps a second time", "component", s.Spec.Process(), "error", err)
	}
}

// tellFront writes down which servers the front passes connections to.
func (r *Rollout) tellFront(servers []Server) error {
	var told []frontservers.Server
	serves := slices.ContainsFunc(servers, func(s Server) bool { return s.Phase == Serving })
	for _, s := range servers {
		if s.Phase == Newcomer && serves {
			continue
		}
		told = append(told, frontservers.Server{Address: r.config.Plane.Places[s.Slot].Reach, Draining: s.Phase == Draining})
	}
	path := r.config.Plane.FrontServers
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("making the folder of the front: %w", err)
	}
	return atomicfile.Write(path, frontservers.Marshal(told), 0o640)
}

// list is what is to run by a record: some of its servers, its followers, and what is wanted for the rest. While the file
// of a program may be newer than the server that serves, servers with connections and followers keep the programs that
// they run.
func (r *Rollout) list(is Record, running []Server) []component.Spec {
	var servers []component.Spec
	serving := slices.IndexFunc(running, func(s Server) bool { return s.Phase == Serving })
	for _, s := range running {
		spec, wanted := s.Spec, r.wanted.Servers[s.Slot]
		if spec.Hash() == wanted.Hash() {
			spec = wanted
		}
		spec.Memory, spec.KeepsProgram = wanted.Memory, s.Phase != Newcomer
		servers = append(servers, spec)
	}
	needed := running[max(serving, 0)].Spec.Name // which components wait for when they start; they ask the front
	var list []component.Spec
	for _, spec := range r.config.Plane.Specs {
		if isServer(spec.Name) {
			list = append(list, servers...)
			continue
		}
		if isFollower(spec) {
			spec = is.follower(spec)
			spec.KeepsProgram = !r.wanted.alone(is.Servers)
		}
		spec.After = slices.Clone(spec.After)
		for i, name := range spec.After {
			if isServer(name) {
				spec.After[i] = needed
			}
		}
		list = append(list, spec)
	}
	return list
}

// follower is the recorded spec of a follower, or the wanted one if it differs in nothing that a process notices.
func (is Record) follower(wanted component.Spec) component.Spec {
	for _, spec := range is.Followers {
		if spec.Name == wanted.Name && spec.Hash() != wanted.Hash() {
			return spec
		}
	}
	return wanted
}

// read reads a record; an empty one if there is none.
func read(path string) (Record, error) {
	var record Record
	raw, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return record, nil
	}
	if err != nil {
		return record, fmt.Errorf("reading what the plane is made of: %w", err)
	}
	if len(raw) > maxRecord {
		err = fmt.Errorf("it has more than %d bytes", maxRecord)
	} else if err = json.Unmarshal(raw, &record); err == nil {
		err = record.check()
	}
	if err != nil {
		return Record{}, damaged(path, err)
	}
	return record, nil
}

func damaged(path string, err error) error {
	return fmt.Errorf("reading what the plane is made of: %s is damaged (%w): remove the file, and the API server is started again once", path, err)
}

// check refuses a record that no rollout writes.
func (is Record) check() error {
	if len(without(is.Servers, Draining)) == 0 {
		return errors.New("servers has no entry, or those alone that drain")
	}
	for i, s := range is.Servers {
		slot, found := component.ServerSlot(s.Spec.Name)
		switch {
		case !found || s.Slot != slot:
			return fmt.Errorf("servers[%d] is %q in slot %d", i, s.Spec.Name, s.Slot)
		case slices.ContainsFunc(is.Servers[:i], func(other Server) bool { return other.Slot == s.Slot || other.Phase == s.Phase && s.Phase != Serving }):
			return fmt.Errorf("servers[%d] is in slot %d as %s, and so is another", i, s.Slot, s.Phase)
		case s.Phase != Newcomer && s.Phase != Serving && s.Phase != Draining:
			return fmt.Errorf("servers[%d].phase is %q", i, s.Phase)
		}
	}
	return nil
}
