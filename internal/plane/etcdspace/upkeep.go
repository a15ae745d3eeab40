// SPDX-License-Identifier: Apache-2.0

package etcdspace

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"muster.dev/muster/internal/plane/component"
	"muster.dev/muster/internal/plane/diskreserve"
	"muster.dev/muster/internal/platform/mutualclient"
)

const (
	// patience is how long etcd may take to answer, but for a defragmentation.
	patience = 10 * time.Second
	// maxAnswer is the size of an answer in bytes.
	maxAnswer = 1 << 20
	// alarmNoSpace is the alarm of an etcd whose file has reached its quota.
	alarmNoSpace = "NOSPACE"
)

// Upkeep asks an etcd, by its gateway of JSON.
type Upkeep struct {
	URL string
	// Client verifies the server. It has no timeout of its own.
	Client *http.Client
}

// Of is the upkeep of a cluster's etcd.
func Of(c component.Config) Upkeep {
	authority, credential, server := component.EtcdUpkeep(c)
	return Upkeep{URL: c.Places.Etcd.URL(), Client: mutualclient.New(authority, credential, server, 0)}
}

// OfManagement is the upkeep of the management plane's etcd.
func OfManagement(a component.Account) Upkeep {
	authority, credential, server := component.ManagementEtcdUpkeep(a)
	return Upkeep{URL: a.Places.ManagementEtcd.URL(), Client: mutualclient.New(authority, credential, server, 0)}
}

// Space asks for the space that etcd has.
func (u Upkeep) Space(ctx context.Context) (Space, error) {
	s, _, err := u.look(ctx)
	return s, err
}

// follow asks for the space, raises the alarm while the disk is full, and disarms it afterwards, if disks says that it may
// be the disk's. An alarm whose file has reached its quota stays.
func (u Upkeep) follow(ctx context.Context, disk diskreserve.State, disks bool) (Space, error) {
	s, of, err := u.look(ctx)
	if err != nil {
		return s, err
	}
	switch {
	case disk == diskreserve.Full && !s.NoSpace:
		err = u.ask(ctx, alarmPath, alarmRequest{"ACTIVATE", alarm{of.MemberID, alarmNoSpace}}, nil, patience)
		s.NoSpace = err == nil
	case disk == diskreserve.Plenty && s.NoSpace && disks && !s.reached():
		err = u.disarm(ctx)
		s.NoSpace = err != nil
	}
	s.DiskFull = s.NoSpace && disk != diskreserve.Plenty && disks && !s.reached()
	return s, err
}

// header is of each answer of etcd.
type header struct {
	MemberID string `json:"member_id"`
	Revision int64  `json:",string"`
}

// look asks for the space, and who says so.
func (u Upkeep) look(ctx context.Context) (s Space, of header, err error) {
	var status struct {
		Header                           header
		DBSize, DBSizeInUse, DBSizeQuota int64 `json:",string"`
	}
	if err := u.ask(ctx, "/v3/maintenance/status", struct{}{}, &status, patience); err != nil {
		return s, of, err
	}
	var raised struct{ Alarms []alarm }
	if err := u.ask(ctx, alarmPath, alarmRequest{Action: "GET"}, &raised, patience); err != nil {
		return s, of, err
	}
	s = Space{Size: status.DBSize, InUse: status.DBSizeInUse, Quota: status.DBSizeQuota}
	for _, a := range raised.Alarms {
		s.NoSpace = s.NoSpace || a.Alarm == alarmNoSpace
	}
	return s, status.Header, nil
}

// alarm is an alarm of a member.
type alarm struct {
	MemberID string `json:"memberID,omitempty"`
	Alarm    string `json:"alarm,omitempty"`
}

// alarmRequest is what is to be done about an alarm; alarmPath is where it is asked.
type alarmRequest struct {
	Action string `json:"action"`
	alarm
}

const alarmPath = "/v3/maintenance/alarm"

// Freed is what Free did.
type Freed struct {
	Before, After Space
	// Defragmented says that etcd copied its file, which took Pause.
	Defragmented bool
	Pause        time.Duration
}

func (f Freed) String() string {
	switch {
	case !f.Defragmented && !f.Before.NoSpace:
		return fmt.Sprintf("nothing was done: of %d MiB that are not in use none are worth a pause (more than %d MiB and than half of the file): %s",
			(f.Before.Size-f.Before.InUse)>>20, worthBytes>>20, f.Before)
	case f.Before.NoSpace:
		return fmt.Sprintf("the alarm NOSPACE is disarmed, and %d MiB were freed: %s; etcd answered nobody for %s", (f.Before.Size-f.After.Size)>>20, f.After, f.Pause.Round(10*time.Millisecond))
	}
	return fmt.Sprintf("%d MiB were freed: %s; etcd answered nobody for %s", (f.Before.Size-f.After.Size)>>20, f.After, f.Pause.Round(10*time.Millisecond))
}

// FullError says that there was nothing to give back: objects take all of the quota.
type FullError struct{ Space Space }

func (f *FullError) Error() string {
	return fmt.Sprintf("nothing is left of the quota: %s. Delete objects, and free space again", f.Space)
}

// Free gives space back: where there is the alarm, the history goes, the file is defragmented in any case, and the alarm
// is disarmed; elsewhere the file is defragmented if that is worth it. An etcd that is full of objects keeps its alarm, and
// the error is a *FullError. A defragmentation writes the file anew, beside itself: nothing is done if the disk has less
// room for it.
func (u Upkeep) Free(ctx context.Context, room func() (int64, error)) (Freed, error) {
	var f Freed
	before, of, err := u.look(ctx)
	if err != nil {
		return f, err
	}
	f.Before, f.After = before, before
	if !before.NoSpace && !before.Worth() {
		return f, nil
	}
	if before.NoSpace {
		// An API server keeps five minutes of history, for lists in pages and watches that begin where they were. They
		// begin anew.
		err := u.ask(ctx, "/v3/kv/compaction", map[string]any{"revision": fmt.Sprint(of.Revision), "physical": true}, nil, component.EtcdPause)
		if err != nil && !isCompacted(err) {
			return f, err
		}
	}
	if err := u.fits(ctx, room); err != nil {
		return f, err
	}
	began := time.Now()
	if err := u.ask(ctx, "/v3/maintenance/defragment", struct{}{}, nil, component.EtcdPause); err != nil {
		return f, err
	}
	f.Defragmented, f.Pause = true, time.Since(began)
	if f.After, _, err = u.look(ctx); err != nil || !before.NoSpace {
		return f, err
	}
	if f.After.Size >= f.After.Quota {
		return f, &FullError{f.After}
	}
	if err := u.disarm(ctx); err != nil {
		return f, err
	}
	f.After.NoSpace = false
	return f, nil
}

// fits says that the disk has no room for what a defragmentation writes.
func (u Upkeep) fits(ctx context.Context, room func() (int64, error)) error {
	s, _, err := u.look(ctx)
	if err != nil {
		return err
	}
	has, err := room()
	if err != nil {
		return err
	}
	if s.InUse > has {
		return fmt.Errorf("defragmenting etcd writes %d MiB, and the disk of the state directory has room for %d MiB: free space there first", s.InUse>>20, has>>20)
	}
	return nil
}

// disarm disarms the alarm of each member that raised it.
func (u Upkeep) disarm(ctx context.Context) error {
	var raised struct{ Alarms []alarm }
	if err := u.ask(ctx, alarmPath, alarmRequest{Action: "GET"}, &raised, patience); err != nil {
		return err
	}
	for _, a := range raised.Alarms {
		if a.Alarm != alarmNoSpace {
			continue
		}
		if err := u.ask(ctx, alarmPath, alarmRequest{"DEACTIVATE", a}, nil, patience); err != nil {
			return err
		}
	}
	return nil
}

// refusal is what etcd says against a request.
type refusal struct {
	path, message string
}

func (r *refusal) Error() string { return fmt.Sprintf("asking etcd for %s: %s", r.path, r.message) }

// isCompacted reports whether etcd says that the history before a revision is gone already.
func isCompacted(err error) bool {
	said, ok := errors.AsType[*refusal](err)
	return ok && strings.Contains(said.message, "has been compacted")
}

// ask asks etcd, and reads the answer into a value, unless that is nil.
func (u Upkeep) ask(ctx context.Context, path string, request, into any, within time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	body, err := json.Marshal(request)
	if err != nil {
		return fmt.Errorf("rendering a request to etcd: %w", err)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, u.URL+path, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("asking etcd for %s: %w", path, err)
	}
	answer, err := u.Client.Do(r)
	if err != nil {
		return fmt.Errorf("asking etcd for %s: %w", path, err)
	}
	defer func() { _ = answer.Body.Close() }()
	raw, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer))
	if err != nil {
		return fmt.Errorf("asking etcd for %s: %w", path, err)
	}
	if answer.StatusCode != http.StatusOK {
		var said struct{ Message string }
		if err := json.Unmarshal(raw, &said); err != nil || said.Message == "" {
			said.Message = answer.Status
		}
		return &refusal{path, said.Message}
	}
	if into == nil {
		return nil
	}
	if err := json.Unmarshal(raw, into); err != nil {
		return fmt.Errorf("reading etcd's answer to %s: %w", path, err)
	}
	return nil
}
