// SPDX-License-Identifier: Apache-2.0

package cloudwatchlogs

import (
	"context"
	"errors"
	"time"

	awsaccount "muster.dev/muster/internal/aws/account"
	"muster.dev/muster/internal/plane/logquery"
	"muster.dev/muster/internal/plane/logstore"
)

const (
	// retainFirst is when events that are too old are deleted for the first time after the service has started.
	retainFirst = time.Minute
	// retainInterval is the pause after that. AWS takes up to 72 hours.
	retainInterval = time.Hour
)

// retain deletes events that are older than the retention of their log group, until the context ends.
func (a *api) retain(ctx context.Context) {
	timer := time.NewTimer(retainFirst)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		if err := a.expire(ctx, time.Now()); err != nil && ctx.Err() == nil {
			a.Log.WarnContext(ctx, "cannot delete log events that are older than the retention of their log group; they are deleted later", "error", err)
		}
		timer.Reset(retainInterval)
	}
}

// expire deletes what is too old now.
func (a *api) expire(ctx context.Context, now time.Time) error {
	if !a.Logs.Asked() {
		return nil
	}
	all, err := groups.List(ctx, a.Management)
	errs := []error{err}
	for _, r := range all {
		if r.Data.Retention == 0 {
			continue
		}
		oldest := now.AddDate(0, 0, -int(r.Data.Retention))
		filter := logquery.OfLog(awsaccount.DefaultID+":"+r.Name, "") + " " + logstore.Between(time.Unix(0, 0), oldest)
		if err := a.Logs.Delete(ctx, filter); err != nil && !errors.Is(err, logstore.ErrDeleting) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
