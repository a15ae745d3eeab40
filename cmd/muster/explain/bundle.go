// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"muster.dev/muster/cmd/muster/terminal"
	"muster.dev/muster/internal/cluster/controlsocket"
	"muster.dev/muster/internal/explain/diagnosis"
	"muster.dev/muster/internal/explain/evidence"
	"muster.dev/muster/internal/explain/readaudit"
	"muster.dev/muster/internal/explain/supportbundle"
	"muster.dev/muster/internal/platform/statedir"
)

// askStatus asks the service of a state directory for what muster status prints.
func askStatus(ctx context.Context, dir statedir.Dir) (any, error) {
	return controlsocket.NewClient(dir).Status(ctx)
}

// makeBundle writes the archive.
func (e *explainCommand) makeBundle(ctx context.Context, args []string) error {
	if e.bundle == "" {
		return terminal.UsageError{Err: errors.New("--bundle is empty: name the file that is to be written, such as muster.tar.gz")}
	}
	if err := supportbundle.Free(e.bundle); err != nil {
		return terminal.UsageError{Err: fmt.Errorf("--bundle: %w", err)}
	}
	catalogue, err := e.catalogue()
	if err != nil {
		return err
	}
	dir, err := e.OpenExisting()
	if err != nil {
		return err
	}
	cfg := supportbundle.Config{Dir: dir, Now: e.now(), Secrets: map[string][]string{}}
	what := strings.Join(append([]string{"explain"}, args...), " ")
	if err := readaudit.Of(dir).Add(readaudit.Read{Time: cfg.Now.UTC(), By: readaudit.Self(), With: "muster explain --bundle", Command: what, File: e.bundle}); err != nil {
		return err
	}
	q, err := e.ask(ctx)
	if _, usage := errors.AsType[terminal.UsageError](err); usage {
		return err
	} else if err != nil {
		if q, err = unanswered(dir, err); err != nil {
			return err
		}
		args = nil
	}
	reports, facts, err := q.explain(ctx, catalogue, args)
	if err != nil {
		return e.unasked(err)
	}
	cfg.Reports, cfg.Facts, cfg.Snapshot = q.overview(reports), facts, q.snapshot
	for name, api := range q.apis {
		names, err := evidence.SecretNames(ctx, api)
		if err != nil {
			cfg.Reports.Unseen = append(cfg.Reports.Unseen, diagnosis.Unseen{What: "the names of the Secrets of cluster " + name, Why: err.Error()})
		}
		cfg.Secrets[name] = names
	}
	if cfg.Status, err = e.status(ctx, dir); err != nil {
		cfg.Status, cfg.NoStatus = nil, err.Error()
	}
	if err := supportbundle.Make(ctx, cfg).Save(e.bundle); err != nil {
		return err
	}
	_, err = fmt.Fprintf(e.Err, "%s is written. Read it before you send it: contents.json in it lists what is there and what was left out.\n", e.bundle)
	return err
}

// unanswered is the question where the management plane does not answer: logs are there still.
func unanswered(dir statedir.Dir, why error) (*question, error) {
	clusters, err := dir.ListClusters()
	if err != nil {
		return nil, err
	}
	q := &question{snapshot: &evidence.Snapshot{Of: map[string]evidence.Cluster{}}}
	for _, c := range clusters {
		q.snapshot.Missed(c.Namespace(), why)
	}
	return q, nil
}
