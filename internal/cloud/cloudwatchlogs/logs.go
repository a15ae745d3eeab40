// SPDX-License-Identifier: Apache-2.0

package cloudwatchlogs

import (
	"context"
	"errors"
	"iter"

	"muster.dev/muster/internal/aws/awsfault"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/plane/logquery"
	"muster.dev/muster/internal/plane/logstore"
)

// Logs is the account's log store.
type Logs interface {
	logquery.Store
	// Write returns when a batch is on the disk.
	Write(ctx context.Context, b logstore.Batch) error
	// Delete deletes the rows that a filter of LogsQL selects.
	Delete(ctx context.Context, filter string) error
	// Ready has the log store run; its error says why it cannot.
	Ready() error
	// Asked reports whether events may be there: something was to be kept once.
	Asked() bool
}

// without is the log store of an account that has none.
type without struct{}

func (without) Rows(context.Context, string) iter.Seq2[map[string]string, error] {
	return func(func(map[string]string, error) bool) {}
}

func (without) Write(context.Context, logstore.Batch) error {
	return errors.New("there is no log store")
}

func (without) Delete(context.Context, string) error { return nil }
func (without) Ready() error                         { return errors.New("there is no log store") }
func (without) Asked() bool                          { return false }

// kept is where events are read. While nobody has asked for logs there is no process to ask, and there are no events.
func (c Config) kept() logquery.Store {
	if c.Logs.Asked() {
		return c.Logs
	}
	return without{}
}

// wipe deletes the events of a log group, or of one of its log streams. IAM is asked again: deleting is a write.
func (c Config) wipe(ctx context.Context, log, stream string) error {
	if err := awsfront.StillAllowed(ctx); err != nil {
		return err
	}
	if !c.Logs.Asked() {
		return nil
	}
	if err := c.Logs.Delete(ctx, logquery.OfLog(log, stream)); err != nil {
		return unanswered(err)
	}
	return nil
}

// logOf is a log group as the log store has it.
func logOf(call *awsfront.Call, group string) string { return call.Caller.Account() + ":" + group }

// unanswered turns what the log store says into an answer that clients try again.
func unanswered(err error) error {
	switch {
	case errors.Is(err, logstore.ErrBusy):
		return &awsfault.Error{Code: "ThrottlingException", Message: "Rate exceeded", Cause: err}
	case errors.Is(err, logstore.ErrDeleting):
		return &awsfault.Error{Code: unavailable, Message: "The log store still deletes the events: try again", Cause: err}
	}
	return &awsfault.Error{Code: unavailable, Message: "The log store does not answer: try again, or see `muster status`", Cause: err}
}
