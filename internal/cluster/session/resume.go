// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"log/slog"

	"muster.dev/muster/internal/cluster/controlsocket"
	"muster.dev/muster/internal/cluster/guard"
	"muster.dev/muster/internal/cluster/stateconversion"
	"muster.dev/muster/internal/machine/machine/local"
	"muster.dev/muster/internal/platform/programs"
	"muster.dev/muster/internal/platform/statedir"
	"muster.dev/muster/internal/platform/steps"
)

// Resume starts the service of a state directory that is set up, and returns when it answers. The service brings every
// cluster back from its record, so no cluster is named or waited for. It reports whether a service of this program ran already.
func Resume(ctx context.Context, dir statedir.Dir) (ran bool, err error) {
	now := &start{Session: Session{State: dir}, service: controlsocket.NewClient(dir)}
	guard.AwaitEnd(ctx, dir, slog.New(slog.DiscardHandler))
	err = inOrder(
		steps.Into("programs", &now.binDir, func() (string, error) { return programs.Find(local.Possible()) }),
		steps.Into("service that runs", &now.running, func() (bool, error) { return answers(ctx, now.service) }),
		steps.New("state directory", func() error {
			_, err := stateconversion.Of(dir).Check()
			return err
		}),
		steps.New("service of another program", func() error { return now.stopOutdated(ctx) }),
		steps.New("service", func() error {
			ran = now.running
			return now.serve(ctx)
		}),
	)
	return ran, err
}
