// SPDX-License-Identifier: Apache-2.0

package certs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"muster.dev/muster/cmd/muster/terminal"
	"muster.dev/muster/internal/cluster/controlsocket"
	"muster.dev/muster/internal/cluster/servicestatus"
	"muster.dev/muster/internal/platform/table"
)

// runTokenKeys replaces the key of service account tokens.
func (r *rotateOptions) runTokenKeys(ctx context.Context) error {
	dir, err := r.OpenExisting()
	if err != nil {
		return err
	}
	cluster, err := r.OpenCluster()
	if err != nil {
		return err
	}
	service := controlsocket.NewClient(dir)
	before, err := service.Status(ctx)
	if errors.Is(err, controlsocket.ErrNotRunning) {
		return errors.New("the cluster is stopped, and its service does the rotation: run `muster up` first")
	}
	if err != nil {
		return err
	}
	was, _ := before.In(cluster.Namespace())
	now := time.Now()
	if n := len(was.TokenKeys); n > 1 && !r.again {
		if last := was.TokenKeys[n-1]; last.Signs && now.Sub(last.SignsFrom) < rotatedLately {
			fmt.Fprintf(r.Err, "The key %s signs since %s ago. Nothing was begun; --again begins another rotation.\n", last.ID, duration.HumanDuration(now.Sub(last.SignsFrom)))
			return r.printTokenKeys(was.TokenKeys)
		}
	}
	keys, err := service.RotateTokenKeys(ctx, cluster.Namespace(), r.notice)
	if err != nil {
		return fmt.Errorf("asking the service to rotate: %w", err)
	}
	switch {
	case r.format != terminal.FormatTable:
	case r.noWait:
		fmt.Fprintln(r.Err, "The service goes on; `muster certs` shows how far it is.")
	}
	if !r.noWait {
		if keys, err = r.waitForSigner(ctx, service, cluster.Namespace(), keys); err != nil {
			return err
		}
	}
	return r.printTokenKeys(keys)
}

// waitForSigner waits until the last of the keys signs.
func (r *rotateOptions) waitForSigner(ctx context.Context, service *controlsocket.Client, namespace string, keys []servicestatus.TokenKey) ([]servicestatus.TokenKey, error) {
	if r.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, r.timeout, terminal.ErrTimeUp)
		defer cancel()
	}
	progress := terminal.NewWaitProgress(r.Err)
	defer progress.End()
	ticker := time.NewTicker(terminal.WaitInterval)
	defer ticker.Stop()
	for len(keys) > 0 && !keys[len(keys)-1].Signs {
		last := keys[len(keys)-1]
		progress.Show(fmt.Sprintf("the key %s is published, and signs from %s on", last.ID, last.SignsFrom.Local().Format(time.DateTime)))
		select {
		case <-ctx.Done():
			progress.End()
			const then = "the service goes on with it; run the command again to wait, or see `muster certs`"
			if errors.Is(context.Cause(ctx), terminal.ErrTimeUp) {
				return keys, fmt.Errorf("the new key does not sign after %s: %s", r.timeout, then)
			}
			return keys, errors.New("interrupted: " + then)
		case <-ticker.C:
		}
		now, err := service.Status(ctx)
		if c, ok := now.In(namespace); err == nil && ok && len(c.TokenKeys) > 0 {
			keys = c.TokenKeys
		}
	}
	return keys, nil
}

func (r *rotateOptions) printTokenKeys(keys []servicestatus.TokenKey) error {
	if r.format != terminal.FormatTable {
		return terminal.PrintData(r.Out, r.format, keys)
	}
	return tokenKeyTable(r.Out, keys, time.Now())
}

// tokenKeyTable shows the keys of service account tokens, the last first.
func tokenKeyTable(out io.Writer, keys []servicestatus.TokenKey, now time.Time) error {
	t := table.New(out, "SERVICE ACCOUNT KEY", "STATE", "AGE")
	for _, k := range slices.Backward(keys) {
		state := "trusted by the API server"
		switch {
		case k.Signs:
			state = "signs"
		case k.SignsFrom.After(now):
			state = "published, signs in " + duration.HumanDuration(k.SignsFrom.Sub(now))
		case k.Published:
			state = "published"
		}
		t.Row(k.ID, state, duration.HumanDuration(now.Sub(k.Created)))
	}
	return t.Flush()
}
