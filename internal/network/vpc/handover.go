// SPDX-License-Identifier: Apache-2.0

package vpc

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	"muster.dev/muster/internal/platform/filelock"
	"muster.dev/muster/internal/platform/handover"
	"muster.dev/muster/internal/platform/socketdir"
)

// A relay that is replaced gives its sockets to the next one (package handover), and releases the lock of the network
// before that one serves. A relay of a release that handed nothing over is ended instead.
const (
	// busyFor is how long another relay may have the lock and be neither asked nor ended, as one that begins or ends;
	// busyEvery is the pause between two looks.
	busyFor   = 20 * time.Second
	busyEvery = 20 * time.Millisecond
	// leaveAfter is how long a relay that was replaced keeps connections.
	leaveAfter = 24 * time.Hour
)

// next is the path of the socket at which the next relay takes over.
func (r *Relay) next() string { return filepath.Join(socketdir.Dir(r.config.Socket), "next") }

func (r *Relay) handover() handover.Config {
	return handover.Config{Path: r.next(), Patience: r.answerWithin, Grace: r.answerWithin, Log: r.config.Log}
}

// obtain takes the lock of the network, and over what the relay that serves now listens on, if there is one.
func (r *Relay) obtain(ctx context.Context) (release func(), inherited map[string]*os.File, err error) {
	if err := socketdir.MakeDir(r.config.Socket); err != nil {
		return nil, nil, err
	}
	for began := time.Now(); ; {
		inherited = nil
		err := r.handover().Take(ctx, func(sockets map[string]*os.File) error { inherited = sockets; return nil })
		if err == nil || errors.Is(err, handover.ErrNobody) {
			if release, err = filelock.Take(r.config.Network.dir, lockName); err == nil {
				return release, inherited, nil
			}
		}
		handover.Close(inherited)
		switch {
		case ctx.Err() != nil:
			return nil, nil, ctx.Err()
		case errors.Is(err, filelock.ErrTaken):
			if ended := r.endFormer(ctx); ended != nil {
				return nil, nil, ended
			}
			err = fmt.Errorf("another relay of this VPC is running: %w", err)
		case !errors.Is(err, handover.ErrLost):
			return nil, nil, err
		}
		if time.Since(began) > busyFor {
			return nil, nil, err
		}
		pause(ctx, busyEvery)
	}
}

// endFormer ends a relay that has the lock and serves, but gives nothing away: one of an earlier release.
func (r *Relay) endFormer(ctx context.Context) error {
	former, err := new(net.Dialer).DialContext(ctx, "unix", r.config.Socket)
	if err != nil {
		return nil // it does not serve yet, or not any more
	}
	defer func() { _ = former.Close() }()
	// A relay that gives its sockets away is asked there before it serves, and until it does not.
	if next, err := new(net.Dialer).DialContext(ctx, "unix", r.next()); !handover.IsNobody(err) {
		if err == nil {
			_ = next.Close()
		}
		return nil
	}
	return r.handover().End(ctx, former.(*net.UnixConn)) //nolint:forcetypeassert // of a unix socket
}
