// SPDX-License-Identifier: Apache-2.0

package hostjoin

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"muster.dev/muster/internal/platform/systemd"
)

const (
	// quiet is how long a step may take before it is said what it waits for.
	quiet = time.Second
	// servingPatience is how long a Ready node's serving certificate is waited for: nothing but logs and exec need it.
	servingPatience = 10 * time.Second
	unitInterval    = 2 * time.Second
)

// becomes watches the kubelet become a node, and says each step.
func (j *joining) becomes(ctx context.Context) error {
	return j.wait(func() error {
		ctx, cancel := context.WithCancel(ctx)
		var watchers sync.WaitGroup
		watchers.Go(func() { j.watchUnit(ctx) })
		defer watchers.Wait()
		defer cancel()
		imported := soon(&j.aside, func() (struct{}, error) {
			return struct{}{}, j.images(ctx, func(name string) bool { return name != sandboxImage })
		})
		placed := soon(&j.aside, func() (map[string]string, error) { return j.rest(ctx) })
		err := j.bootstrap(ctx)
		if err != nil {
			cancel()
		}
		_, unimported := imported()
		marks, unplaced := placed()
		if err != nil {
			return err
		}
		for path, mark := range marks {
			j.ledger.settle(path, mark)
		}
		return errors.Join(unplaced, unimported)
	})
}

// rest is what the kubelet does not wait for: programs that it runs later, and that systemd starts all units when the
// host is next started. It ends with the hashes of all programs that are new on the host.
func (j *joining) rest(ctx context.Context) (map[string]string, error) {
	for _, a := range j.artifacts {
		if !a.late {
			continue
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if err := j.disk.place(a); err != nil {
			return nil, err
		}
	}
	if err := j.do(ctx, systemd.Enable, j.Services...); err != nil {
		return nil, err
	}
	if err := j.do(ctx, systemd.Reload); err != nil {
		return nil, err
	}
	return j.disk.fingerprints(ctx, j.copies()), nil
}

// bootstrap is the TLS bootstrap, and the steps that follow from it.
func (j *joining) bootstrap(ctx context.Context) error {
	if !j.joined {
		if err := j.firstCertificate(ctx); err != nil {
			return j.explain(ctx, err)
		}
	}
	return j.explain(ctx, j.node(ctx))
}

// ErrNotReady says that a kubelet runs, and that its node is not Ready in the time that was given.
var ErrNotReady = errors.New("the node is not Ready")

// explain says what to do when a wait has come to an end without its object.
func (j *joining) explain(ctx context.Context, err error) error {
	if err == nil || !errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return err
	}
	return fmt.Errorf("%w after %s; the kubelet goes on trying: run the same muster join again to see on, look at journalctl -u kubelet, or take it back with muster leave", ErrNotReady, j.request.Timeout)
}

// watchUnit says when the kubelet ends again and again, which no request tells of.
func (j *joining) watchUnit(ctx context.Context) {
	last := ""
	for sleep(ctx, unitInterval) {
		unit, err := j.Units.Show(ctx, kubeletUnit)
		if err != nil {
			continue
		}
		if trouble := unit.Trouble(); trouble != "" && last == "" {
			j.say("kubelet", Waiting, "it %s: journalctl -u kubelet tells why", trouble)
			last = trouble
		}
	}
}

// complaint says the same trouble once.
func (j *joining) complaint(step string) func(error) {
	last := ""
	return func(err error) {
		if text := err.Error(); text != last {
			last = text
			j.say(step, Waiting, "the API server does not answer, trying again: %v", err)
		}
	}
}
