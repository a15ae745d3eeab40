// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/plane/component"
	"muster.dev/muster/internal/plane/supervise"
	"muster.dev/muster/internal/platform/statedir"
)

const (
	// auditFiles and auditFileSize are the older parts of the audit log that are there to be kept: 1 GiB, in parts as the API server makes.
	auditFiles    = 16
	auditFileSize = 64 << 20
	// logPatience is how long that may take, many times what it takes.
	logPatience = 20 * time.Minute
	// auditEvery is the time between two requests of that log.
	auditEvery = 10 * time.Millisecond
)

// logQueries are asked once all is kept: the third query of the first seed, a filter by a field, a count of all, and a search of all
// text.
var logQueries = []struct{ name, query string }{
	{"one request, by like", "filter @logStream like /^kube-apiserver-audit/ | fields @timestamp, @message | sort @timestamp asc | filter @message like \"bench-%d-7\" | limit 10000"},
	{"by a field", "filter auditID = \"bench-%d-7\" | fields @timestamp, verb, user.username"},
	{"a count by verb", "filter @logStream like /^kube-apiserver-audit/ | stats count(*) as n by verb"},
	{"a count by hour", "filter ispresent(verb) | stats count(*) as n by bin(1h)"},
}

// logTrial is a trial whose log store is measured.
type logTrial struct{ trial }

// benchLogs has the log store keep 1 GiB of a cluster's audit log, which is made of lines of its API server, and asks it.
func benchLogs(ctx context.Context, bin string, rounds int) error {
	if _, err := os.Stat(filepath.Join(bin, component.LogStoreProgram)); err != nil {
		return fmt.Errorf("run `make logs` first: %w", err)
	}
	made, remove, err := newTrial(ctx, bin)
	if err != nil {
		return err
	}
	defer remove()
	t := logTrial{made}
	if _, err := t.muster(ctx, "up", "--provider", "simulated", "--nodes", "3"); err != nil {
		return err
	}
	lines, err := t.writeAudit()
	if err != nil {
		return err
	}
	before, err := t.processorTime()
	if err != nil {
		return err
	}
	began := time.Now()
	if _, err := t.mustKubectl(ctx, "--context=muster-management", "-n", "muster", "patch", "cluster", "muster", "--type=merge", "-p", `{"spec":{"eks":{"loggingTypes":["audit"]}}}`); err != nil {
		return err
	}
	for t.kept(ctx) < lines {
		if time.Since(began) > logPatience {
			return fmt.Errorf("%d of %d lines are kept after %s", t.kept(ctx), lines, logPatience)
		}
		if err := pause(ctx, time.Second); err != nil {
			return err
		}
	}
	took := time.Since(began)
	after, err := t.processorTime()
	if err != nil {
		return err
	}
	w := newTable()
	size, err := sizeOf(statedir.LogStore(t.state()).Data())
	if err != nil {
		return err
	}
	now, most, err := t.memoryOfStore()
	if err != nil {
		return err
	}
	_, _ = fmt.Fprintf(w, "%d MiB, %d lines\ts to keep\tCPU s, service\tCPU s, log store\tMiB on disk\tlog store, MiB\tmost\t\n", auditFiles*auditFileSize>>20, lines)
	_, _ = fmt.Fprintf(w, "\t%.1f\t%.1f\t%.1f\t%d\t%d\t%d\t\n", took.Seconds(), (after["serve"] - before["serve"]).Seconds(), after[component.LogStore].Seconds(), size>>20, now.resident>>10, most>>10)
	if err := errors.Join(w.Flush(), t.askLogs(ctx, rounds)); err != nil {
		return err
	}
	if _, most, err = t.memoryOfStore(); err != nil {
		return err
	}
	fmt.Printf("the most that the log store held, with the queries: %d MiB\n", most>>10)
	return nil
}

// askLogs asks each query, and prints the medians of what that took.
func (t logTrial) askLogs(ctx context.Context, rounds int) error {
	w := newTable()
	_, _ = fmt.Fprintln(w, "query\tms\trows\t")
	for _, q := range logQueries {
		var times []time.Duration
		rows := 0
		for round := range rounds {
			query := q.query
			if strings.Contains(query, "%d") {
				query = fmt.Sprintf(query, round)
			}
			began := time.Now()
			out, err := t.muster(ctx, "logs", "query", "--since", "72h", "-o", "json", query)
			if err != nil {
				return fmt.Errorf("%s: %w", q.name, err)
			}
			times, rows = append(times, time.Since(began)), bytes.Count(out, []byte("\n  {"))
		}
		_, _ = fmt.Fprintf(w, "%s\t%d\t%d\t\n", q.name, median(times).Milliseconds(), rows)
	}
	return w.Flush()
}

// writeAudit writes older parts of the audit log, of lines that the API server has written so far. They are of the hours
// before, each with an auditID of its own.
func (t logTrial) writeAudit() (lines int, err error) {
	path := t.state().Cluster(v1alpha1.ClusterSlug("muster")).Audit(0)
	raw, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	var events []map[string]any
	for line := range bytes.Lines(raw) {
		var event map[string]any
		if json.Unmarshal(line, &event) == nil {
			events = append(events, event)
		}
	}
	if len(events) == 0 {
		return 0, errors.New("the audit log has no lines")
	}
	begin := time.Now().Add(-24 * time.Hour)
	for part := range auditFiles {
		name := strings.TrimSuffix(path, ".log") + "-" + begin.Add(time.Duration(part)*time.Minute).UTC().Format("2006-01-02T15-04-05.000") + ".log"
		n, err := writePart(name, part, events, begin.Add(time.Duration(lines)*auditEvery))
		if err != nil {
			return 0, err
		}
		lines += n
	}
	return lines, nil
}

// writePart writes one part, whose first line is of the time begin.
func writePart(name string, part int, events []map[string]any, begin time.Time) (lines int, err error) {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	w := bufio.NewWriterSize(f, 1<<20)
	for size := 0; size < auditFileSize; lines++ {
		event := events[lines%len(events)]
		at := begin.Add(time.Duration(lines) * auditEvery).UTC().Format("2006-01-02T15:04:05.000000Z07:00")
		event["auditID"], event["requestReceivedTimestamp"], event["stageTimestamp"] = fmt.Sprintf("bench-%d-%d", part, lines), at, at
		line, err := json.Marshal(event)
		if err != nil {
			return 0, err
		}
		size += len(line) + 1
		if _, err := w.Write(append(line, '\n')); err != nil {
			return 0, err
		}
	}
	return lines, w.Flush()
}

// kept is how many of the lines are in the log store; 0 while it does not answer.
func (t logTrial) kept(ctx context.Context) int {
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", statedir.LogStore(t.state()).Socket())
	}}}
	body := strings.NewReader(url.Values{"query": {`auditID:~"^bench-" | stats count() n`}}.Encode())
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://log-store/select/logsql/query", body)
	if err != nil {
		return 0
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	response, err := client.Do(request)
	if err != nil {
		return 0
	}
	defer func() { _ = response.Body.Close() }()
	var answer struct{ N string }
	if json.NewDecoder(response.Body).Decode(&answer) != nil {
		return 0
	}
	n, _ := strconv.Atoi(answer.N)
	return n
}

// memoryOfStore is what the log store holds now, and the most that was resident at a time, in KiB.
func (t logTrial) memoryOfStore() (now held, most int, err error) {
	found, err := supervise.Find(t.state())
	if err != nil {
		return held{}, 0, err
	}
	for _, p := range found {
		if p.Name == component.LogStore {
			now, err = memoryOf(p.PID)
			if err != nil {
				return held{}, 0, err
			}
			most, err = peakOf(p.PID)
			return now, most, err
		}
	}
	return held{}, 0, errors.New("there is no log store")
}

// sizeOf is how many bytes the files below a directory have together.
func sizeOf(dir string) (size int64, err error) {
	err = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return nil //nolint:nilerr // the log store has merged the files meanwhile
		}
		if info, err := d.Info(); err == nil {
			size += info.Size()
		}
		return nil
	})
	return size, err
}
