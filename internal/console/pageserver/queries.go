// SPDX-License-Identifier: Apache-2.0

package pageserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/logsinsights"
	"muster.dev/muster/internal/aws/logsinsights/evaluation"
	"muster.dev/muster/internal/console/page"
	"muster.dev/muster/internal/console/view"
	"muster.dev/muster/internal/explain/redaction"
	"muster.dev/muster/internal/plane/logevent"
	"muster.dev/muster/internal/plane/logquery"
)

const (
	// queryTime is how long a query may take, with the time that it waits for others. It is less than answerTime.
	queryTime = 25 * time.Second
	// mostQueries is how many queries run at once, one of a session at most. Others wait.
	mostQueries = 2
	// rowsAsked is how many rows an answer has where the request does not say it.
	rowsAsked = 1000
	// sinceAsked is the range of time where the request does not say it.
	sinceAsked = "1h"
)

// LogAnswer is what a Source answers to a query about kept logs.
type LogAnswer struct {
	// Cluster is the spec.name of the cluster, and Types are its log types that are on.
	Cluster string
	Types   []v1alpha1.LoggingType
	Result  *evaluation.Result
}

// badQuery is an error of a request about logs that another request would not have.
type badQuery struct{ error }

// Unwrap returns the error itself.
func (b badQuery) Unwrap() error { return b.error }

// formOf is the query that an address has. A browser sends lines that end with CR and LF.
func formOf(query url.Values) view.LogForm {
	one := func(name string) string {
		return strings.ReplaceAll(strings.ToValidUTF8(query.Get(name), "\uFFFD"), "\r\n", "\n")
	}
	form := view.LogForm{Cluster: one("cluster"), Query: one("q"), Since: one("since"), Start: one("start"), End: one("end")}
	if form.Since == "" {
		form.Since = sinceAsked
	}
	return form
}

// question is what a form asks, of at most so many rows.
func (s *Server) question(form view.LogForm, most int) (logquery.Question, error) {
	q := logquery.Question{Now: s.Now(), Limit: most + 1} // one more says that there are more
	query, err := logsinsights.Parse(form.Query)
	if err != nil {
		return q, badQuery{err}
	}
	since, err := time.ParseDuration(form.Since)
	if err != nil {
		return q, badQuery{fmt.Errorf("invalid since %q: must be a time ago such as 10m", form.Since)}
	}
	q.Query = query
	if q.Start, q.End, err = (logquery.Range{Since: since, Start: form.Start, End: form.End}).Times(q.Now, ""); err != nil {
		return q, badQuery{err}
	}
	return q, nil
}

// answer asks the source, when no other query of the session runs. The answer has no secrets.
func (s *Server) answer(ctx context.Context, form view.LogForm, most int) (*view.LogAnswer, *logsinsights.Query, error) {
	q, err := s.question(form, most)
	if err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, queryTime)
	defer cancel()
	if form.Cluster, err = s.queryable(ctx, form.Cluster); err != nil {
		return nil, q.Query, err
	}
	turns := []chan struct{}{s.queries}
	if own, ok := ctx.Value(sessionKey{}).(session); ok {
		turns = []chan struct{}{own.queries, s.queries}
	}
	for _, turn := range turns {
		select {
		case turn <- struct{}{}:
			defer func() { <-turn }()
		case <-ctx.Done():
			return nil, q.Query, fmt.Errorf("other queries took longer than %s: end them, and ask again", queryTime)
		}
	}
	found, err := s.Source.Query(ctx, form.Cluster, q)
	if err == nil {
		answer := &view.LogAnswer{Cluster: found.Cluster, LogGroup: logevent.LogGroup(found.Cluster), LogTypes: []string{}, Start: q.Start.UTC(), End: q.End.UTC()}
		for _, t := range found.Types {
			answer.LogTypes = append(answer.LogTypes, string(t))
		}
		answer.SetResult(found.Result, most)
		if err = answer.Redact(func(row any) ([]byte, error) { return withoutSecrets(ctx, row) }); err == nil {
			return answer, q.Query, nil
		}
	}
	if _, ok := errors.AsType[*evaluation.LimitError](err); ok {
		return nil, q.Query, badQuery{err}
	}
	if ctx.Err() != nil {
		return nil, q.Query, fmt.Errorf("the query took longer than %s: choose a shorter range of time, or filter by = of a field", queryTime)
	}
	return nil, q.Query, err
}

// queryable is the cluster about whose logs the viewer of a request asks. It fails if they may not be asked about.
func (s *Server) queryable(ctx context.Context, cluster string) (string, error) {
	if personOf(ctx) == nil {
		return cluster, nil
	}
	h, err := s.seen(ctx, oldest)
	if err != nil {
		return "", err
	}
	if cluster == "" && len(h.facts.Clusters) == 1 {
		cluster = h.facts.Clusters[0].Spec.Name
	}
	if of := h.rights.Of[cluster]; !of.Describe || !of.Logs {
		return "", fmt.Errorf("%w: logs:StartQuery and logs:GetQueryResults of the log group of cluster %q", ErrForbidden, cluster)
	}
	return cluster, nil
}

// withoutSecrets is a value as JSON without its secrets, while somebody waits for it.
func withoutSecrets(ctx context.Context, value any) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	text, _, err := redaction.JSON(value)
	return text, err
}

// problem is why there is no answer, and the status that says so.
func (s *Server) problem(form view.LogForm, err error) (*view.LogProblem, int) {
	p := view.NewMistake(form.Query, err)
	if _, bad := errors.AsType[badQuery](err); bad {
		return p, http.StatusBadRequest
	}
	if errors.Is(err, ErrNotFound) {
		return p, http.StatusNotFound
	}
	if errors.Is(err, ErrForbidden) {
		return p, http.StatusForbidden
	}
	if none, ok := errors.AsType[*logquery.NoStoreError](err); ok {
		for _, command := range none.Commands() {
			if own, ok := strings.CutPrefix(command, "muster "); ok {
				command = page.Frame{Flags: s.Flags}.Command(own)
			}
			p.Commands = append(p.Commands, command)
		}
	}
	return p, http.StatusServiceUnavailable
}

// queryPage answers with the page of queries about kept logs. Nothing keeps it current, since a query is asked once.
func (s *Server) queryPage(w http.ResponseWriter, r *http.Request) {
	h, err := s.seen(r.Context(), oldest)
	if err != nil && (r.Context().Err() != nil || personOf(r.Context()) != nil) {
		s.fail(w, r, err)
		return
	}
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(answerTime)) // the query's time begins here
	facts := h.facts
	facts.At = s.Now()
	form := formOf(r.URL.Query())
	if form.Cluster == "" {
		form.Cluster = view.NewLogs(facts, form, nil, nil).Form.Cluster
	}
	status := http.StatusOK
	var shown view.Logs
	if strings.TrimSpace(form.Query) == "" {
		shown = view.NewLogs(facts, form, nil, nil)
	} else {
		answer, query, err := s.answer(r.Context(), form, rowsAsked)
		if err != nil {
			shown = view.NewLogs(facts, form, nil, nil)
			shown.Problem, status = s.problem(form, err)
		} else {
			shown = view.NewLogs(facts, form, query, answer)
		}
	}
	html, err := s.pages.Whole(s.frame(r, page.Frame{Name: page.Logs, Title: "Logs", At: facts.At}), shown)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(html)
}

// query answers a query about kept logs as JSON.
func (s *Server) query(w http.ResponseWriter, r *http.Request) {
	form, most := formOf(r.URL.Query()), rowsAsked
	var err error
	if text := r.URL.Query().Get("limit"); text != "" {
		if most, err = strconv.Atoi(text); err != nil || most < 1 || most > logsinsights.MaxRows {
			err = badQuery{fmt.Errorf("invalid limit %q: must be from 1 to %d", text, logsinsights.MaxRows)}
		}
	}
	var answer *view.LogAnswer
	if err == nil {
		answer, _, err = s.answer(r.Context(), form, most)
	}
	w.Header().Set("Content-Type", "application/json")
	var value any = answer
	if err != nil {
		problem, status := s.problem(form, err)
		w.WriteHeader(status)
		value = problem
	}
	out := json.NewEncoder(w)
	out.SetIndent("", "  ")
	_ = out.Encode(value)
}
