// SPDX-License-Identifier: Apache-2.0

package logstore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"time"
)

// deleteTime is how long a deletion is waited for. VictoriaLogs begins one within a second and writes the parts of its data
// anew that have such rows.
const deleteTime = 20 * time.Second

// ErrDeleting says that a deletion goes on: VictoriaLogs has written it down, and goes on with it even after it was killed.
var ErrDeleting = errors.New("the log store still deletes log events")

type task struct {
	ID string `json:"task_id"`
}

// Delete deletes the rows that a filter of LogsQL selects and whose time is not in the future. It returns when they are gone.
func (s *Store) Delete(ctx context.Context, filter string) error {
	ctx, cancel := context.WithTimeout(ctx, deleteTime)
	defer cancel()
	var begun task
	return repeated(func() error { return s.deleteOnce(ctx, filter, &begun) })
}

// deleteOnce begins a deletion, unless it has begun, and waits for it.
func (s *Store) deleteOnce(ctx context.Context, filter string, begun *task) error {
	session, err := s.Begin(ctx)
	if err != nil {
		return err
	}
	defer session.Close()
	if begun.ID == "" {
		if err := session.form(ctx, "/delete/run_task", url.Values{"filter": {filter}}, begun); err != nil {
			return err
		}
	}
	for {
		var active []task
		if err := session.form(ctx, "/delete/active_tasks", nil, &active); err != nil {
			return err
		}
		if !slices.Contains(active, *begun) {
			return nil
		}
		select {
		case <-ctx.Done():
			return ErrDeleting
		case <-time.After(session.poll):
		}
	}
}

// form sends a form, and reads the answer, which is JSON.
func (s *Session) form(ctx context.Context, path string, values url.Values, into any) error {
	_, err := s.ask(ctx, http.MethodPost, path, []byte(values.Encode()), func(body io.Reader) error {
		if err := json.NewDecoder(body).Decode(into); err != nil {
			return fmt.Errorf("reading the log store's answer to %s: %w", path, err)
		}
		return nil
	})
	return err
}
